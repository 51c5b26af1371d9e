"""Grouping of similar rows around leaders, with candidates from the buckets of locality-sensitive hashing.

Rows are taken in the order of their priority. A row that shares a bucket with a *kept* row it is similar to is
dropped and joins the most similar such row, its leader; a row without one is kept and listed in its buckets. So every
dropped row is itself similar to a kept row, and the same again on the kept rows drops none: they meet the same lists.

A bucket lists at most ``limit`` rows, the first of those kept, so that candidate pairs grow with the number of keys
and not with the square of a hot bucket. What a full list misses, other buckets find.

As the alternative, connected components join all rows that a chain of similar rows connects; their rows need not be
similar to their representative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from curation.algorithms.components import components, join
from curation.algorithms.cores import Cores
from curation.algorithms.edit import Room, Rule, alike, make_room
from curation.algorithms.shingles import bits_apart, jaccard

__all__ = ["Rows", "Tally", "group"]

BLOCK = 128  # rows whose buckets are read ahead
REMEMBERED = 64  # rows already compared with the row at hand; more than that may be compared twice


class Rows(NamedTuple):
    """What the grouping reads of n rows in the order of their priority, the first the highest."""

    hashes: np.ndarray
    """uint32: shingles."""
    starts: np.ndarray
    """int64, n + 1: where each row's lie in ``hashes``."""
    bitmaps: np.ndarray
    """uint64 of shape (n, 2): shingle bitmaps."""
    numbers: np.ndarray
    """uint32: hash of digits and model names; rows whose hashes differ are never similar."""
    cores: Cores | None = None
    """Texts for the edit rule."""
    rule: Rule | None = None
    """What makes two rows similar beside Jaccard similarity; None if nothing does."""


class Tally(NamedTuple):
    """What the grouping did."""

    candidates: int
    """Times that a row met a kept row in a bucket."""
    compared: int
    """Distinct pairs, but for a few, whose shingle sets were compared."""
    similar: int
    """Of these, pairs found similar."""


class _Search(NamedTuple):
    """How to search; a tuple of its own so that the kernel is compiled once for all settings."""

    threshold: float
    use_rule: bool
    limit: int
    connect: bool


@njit(nogil=True, cache=True)
def _slot(key, shift):
    return np.int64(np.uint32(key * np.uint32(0x9E3779B1)) >> shift)


@njit(nogil=True, cache=True)
def _touch(keys, begin, end, table, shift, facts):
    """Read what the rows with ``keys[begin:end]`` will ask of ``table`` and ``facts``, so that it waits in the cache.

    These reads do not depend on each other, so the processor has many under way; those of the grouping do.
    """
    read = np.uint64(0)
    for at in range(begin, end):
        read ^= table[_slot(keys[at], shift)]
    for at in range(begin, end):
        other = np.int64(table[_slot(keys[at], shift)] & np.uint64(0xFFFFFFFF)) - 1
        read ^= facts[max(other, 0), 0]
    return read


@njit(nogil=True, cache=True)
def _may_reach(starts, bitmaps, row, other, threshold):
    """Whether sizes and bitmaps let the Jaccard similarity of two rows reach ``threshold``."""
    size, other_size = starts[row + 1] - starts[row], starts[other + 1] - starts[other]
    most_apart = np.int64((1.0 - threshold) / (1.0 + threshold) * (size + other_size) + 1e-9)
    return abs(size - other_size) <= most_apart and bits_apart(bitmaps, row, other) <= most_apart


@njit(nogil=True, cache=True)
def _group(rows, search, keys, key_starts, table, room, parents, tally):
    """One pass in the order of the rows; ``parents`` comes out as each row's leader or, with ``connect``, a forest.

    ``table`` is open-addressed: a slot holds a key in its upper and a row + 1 in its lower half, 0 when free. Slots
    of one key follow each other in the order of the rows.
    """
    count = key_starts.size - 1
    shift = np.uint32(32)
    while np.int64(1) << np.int64(np.uint32(32) - shift) < table.size:
        shift -= np.uint32(1)
    free = np.empty(np.max(key_starts[1:] - key_starts[:-1]), np.int64)
    met = np.empty(REMEMBERED, np.int64)
    # Arrays are taken out of their tuples once: handing a tuple to a function counts references of all it holds.
    hashes, starts, bitmaps, numbers = rows.hashes, rows.starts, rows.bitmaps, rows.numbers
    data, begins, ends = rows.cores.data, rows.cores.begins, rows.cores.ends
    edits, classes, digits_free = rows.rule.edits, rows.rule.classes, rows.rule.digits_free
    left, right, stack = room.left, room.right, room.stack
    threshold, limit, use_rule, connect = search.threshold, search.limit, search.use_rule, search.connect
    facts = rows.cores.profiles if use_rule else rows.bitmaps
    most_apart = edits + 1
    read = np.uint64(0)
    for row in range(count):
        if row % BLOCK == 0:
            read ^= _touch(keys, key_starts[row], key_starts[min(row + BLOCK, count)], table, shift, facts)
        if not use_rule:
            # The union of two sets this similar is no larger than this one by the threshold; a share of it differs.
            most_apart = np.int64((1.0 - threshold) / threshold * (starts[row + 1] - starts[row]) + 1e-6)
        leader, best, compared = np.int64(-1), -1.0, 0
        begin, end = key_starts[row], key_starts[row + 1]
        for at in range(begin, end):
            slot, listed = _slot(keys[at], shift), 0
            while table[slot] != 0 and listed < limit:
                entry = table[slot]
                slot = (slot + 1) & (table.size - 1)
                if np.uint32(entry >> np.uint64(32)) == keys[at]:
                    listed += 1
                    other = np.int64(entry & np.uint64(0xFFFFFFFF)) - 1
                    near = numbers[other] == numbers[row] and bits_apart(facts, row, other) <= most_apart
                    if near:
                        for place in range(compared):
                            near &= met[place] != other
                    if near:
                        if compared < REMEMBERED:
                            met[compared] = other
                            compared += 1
                        if not _may_reach(starts, bitmaps, row, other, threshold):
                            continue
                        similarity = jaccard(hashes, starts[row], starts[row + 1], starts[other], starts[other + 1])
                        tally[1] += 1
                        better = similarity > best or (similarity == best and other < leader)
                        if similarity < threshold or not (better or connect):
                            continue
                        if use_rule and not alike(
                            data,
                            begins[row],
                            ends[row],
                            begins[other],
                            ends[other],
                            edits,
                            classes,
                            digits_free,
                            left,
                            right,
                            stack,
                        ):
                            continue
                        tally[2] += 1
                        if better:
                            leader, best = other, similarity
                        if connect:
                            join(parents, row, other)
            tally[0] += listed
            free[at - begin] = slot if listed < limit else -1
        if leader >= 0 and not connect:
            parents[row] = leader
            continue
        for at in range(begin, end):
            slot = free[at - begin]
            if slot >= 0:
                while table[slot] != 0:
                    slot = (slot + 1) & (table.size - 1)
                table[slot] = np.uint64(keys[at]) << np.uint64(32) | np.uint64(row + 1)
    return read


def group(
    rows: Rows, keys: np.ndarray, key_starts: np.ndarray, *, threshold: float, limit: int, connect: bool = False
) -> tuple[np.ndarray, Tally]:
    """Leader of each row, int32 of length n (itself when kept), and what it took.

    Args:
        rows: Rows in the order of their priority.
        keys: Bucket keys, uint32, not 0; best without those that only one row has.
        key_starts: int64, n + 1: row i has ``keys[key_starts[i]:key_starts[i + 1]]``.
        threshold: Least Jaccard similarity, above 0.
        limit: Most rows a bucket lists.
        connect: Give connected components, named by their first row, instead of leaders.
    """
    count = len(key_starts) - 1
    parents = np.arange(count, dtype=np.int32)
    if count == 0:
        return parents, Tally(0, 0, 0)
    size = 16
    while size * 3 < keys.size * 4:
        size *= 2
    search = _Search(threshold - 1e-9, rows.rule is not None, limit, connect)
    if rows.cores is None or rows.rule is None:
        rows = rows._replace(cores=_NO_CORES, rule=_NO_RULE)
    tally = np.zeros(3, np.int64)
    _group(rows, search, keys, key_starts, np.zeros(size, np.uint64), _room(rows), parents, tally)
    if connect:
        parents = components(count, np.arange(count, dtype=np.int32), parents)
    return parents, Tally(*tally.tolist())


def _room(rows: Rows) -> Room:
    assert rows.cores is not None
    return make_room(rows.cores)


# They stand in where there is no rule, for the kernel's types.
_NO_RULE = Rule(np.zeros(1, np.uint8), 0, False)
_NO_TEXT = np.zeros(1, np.int64)
_NO_CORES = Cores(np.zeros(1, np.uint8), _NO_TEXT, _NO_TEXT, np.zeros(1, np.int32), np.zeros((1, 2), np.uint64))
