"""Grouping of similar rows around leaders, with candidates from the buckets of locality-sensitive hashing.

Rows are taken in the order of their priority. A row that shares a bucket with a *kept* row it is similar to is
dropped and joins the most similar such row, its leader; a row without one is kept and listed in its buckets. So every
dropped row is itself similar to a kept row, and running the same again on the kept rows drops none: they meet the same
lists again.

A bucket lists at most ``limit`` rows, the first of those kept, so that candidate pairs grow with rows times bands and
not with the square of a hot bucket. What a full list misses, other bands find.

As the alternative, connected components join all rows that a chain of similar rows connects; their rows need not be
similar to their representative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from curation.algorithms.components import components, join
from curation.algorithms.edit import Cores, Rule, alike, make_room
from curation.algorithms.shingles import bits_apart, jaccard

__all__ = ["Rows", "Tally", "group"]

BLOCK = 128


class Rows(NamedTuple):
    """What the grouping reads of n rows in the order of their priority."""

    hashes: np.ndarray
    """uint32: shingles."""
    starts: np.ndarray
    """int64, n + 1: where each row's lie in ``hashes``."""
    bitmaps: np.ndarray
    """uint64 of shape (n, 2): shingle bitmaps."""
    numbers: np.ndarray
    """uint32: hash of digits and model names; rows whose hashes differ are never similar."""


class Tally(NamedTuple):
    """What the grouping did, in pairs of rows."""

    candidates: int
    """Distinct pairs that shared a bucket."""
    compared: int
    """Of these, pairs whose shingle sets were compared."""
    similar: int
    """Of these, pairs found similar."""


@njit(inline="always")
def _may_reach(rows, row, other, threshold):
    """Whether sizes and bitmaps let the Jaccard similarity reach ``threshold``."""
    if rows.numbers[row] != rows.numbers[other]:
        return False
    size = rows.starts[row + 1] - rows.starts[row]
    other_size = rows.starts[other + 1] - rows.starts[other]
    most_apart = np.int64((1.0 - threshold) / (1.0 + threshold) * (size + other_size) + 1e-9)
    return abs(size - other_size) <= most_apart and bits_apart(rows.bitmaps, row, other) <= most_apart


@njit(inline="always")
def _similarity(rows, row, other):
    return jaccard(rows.hashes, rows.starts[row], rows.starts[row + 1], rows.starts[other], rows.starts[other + 1])


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


@njit(inline="always")
def _similar(rows, cores, use_rule, rule, threshold, row, other, floor, room, tally):
    """Jaccard similarity of two rows if they are similar and it is at least ``floor``, else -1."""
    if not _may_reach(rows, row, other, threshold):
        return -1.0
    tally[1] += 1
    similarity = _similarity(rows, row, other)
    if similarity < threshold or similarity < floor:
        return -1.0
    if use_rule and not alike(cores, row, other, rule, room):
        return -1.0
    tally[2] += 1
    return similarity


@njit(nogil=True, cache=True)
def _group(rows, cores, keys, key_starts, table, threshold, use_rule, rule, limit, connect, room, parents, tally):
    count = key_starts.size - 1
    shift = np.uint32(32)
    size = table.size
    while size > 1:
        size >>= 1
        shift -= np.uint32(1)
    most_keys = 0
    for row in range(count):
        most_keys = max(most_keys, key_starts[row + 1] - key_starts[row])
    free = np.empty(most_keys, np.int64)
    met = np.empty(64, np.int64)
    read = np.uint64(0)
    facts = cores.profiles if use_rule else rows.bitmaps
    # Arrays are taken out of their tuples once: to hand a tuple to a function counts references of all it holds.
    profiles, numbers, most_apart = cores.profiles, rows.numbers, rule.edits + 1
    for row in range(count):
        if row & (BLOCK - 1) == 0:
            read ^= _touch(keys, key_starts[row], key_starts[min(row + BLOCK, count)], table, shift, facts)
        leader, best, checked = np.int64(-1), -1.0, 0
        begin, end = key_starts[row], key_starts[row + 1]
        for at in range(begin, end):
            key = keys[at]
            free[at - begin] = -1
            slot = _slot(key, shift)
            listed, joined = 0, False
            while table[slot] != 0 and listed < limit:
                if np.uint32(table[slot] >> np.uint64(32)) == key:
                    listed += 1
                    other = np.int64(table[slot] & np.uint64(0xFFFFFFFF)) - 1
                    tally[0] += 1
                    near = (
                        numbers[other] == numbers[row]
                        if not use_rule
                        else bits_apart(profiles, row, other) <= most_apart
                    )
                    for place in range(checked):
                        near &= met[place] != other
                    if near:
                        if checked < met.size:
                            met[checked] = other
                            checked += 1
                        similarity = _similar(
                            rows, cores, use_rule, rule, threshold, row, other, -1.0 if connect else best, room, tally
                        )
                        if similarity > best or (similarity == best and other < leader):
                            leader, best = other, similarity
                        if connect and similarity >= 0:
                            join(parents, row, other)
                            joined = True
                slot = (slot + 1) & (table.size - 1)
            if listed < limit and not joined:
                free[at - begin] = slot
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
    rows: Rows,
    keys: np.ndarray,
    key_starts: np.ndarray,
    *,
    threshold: float,
    rule: Rule | None,
    cores: Cores | None,
    limit: int,
    connect: bool = False,
) -> tuple[np.ndarray, Tally]:
    """Leader of each row, int32 of length n (itself when kept), and what it took.

    Args:
        rows: Rows in the order of their priority, the first the highest.
        keys: Bucket keys, uint32, not 0; best without those that only one row has.
        key_starts: int64, n + 1: row i has ``keys[key_starts[i]:key_starts[i + 1]]``.
        threshold: Least Jaccard similarity.
        rule: What else makes two rows similar; None if nothing.
        limit: Most rows a bucket lists.
        connect: Give connected components instead of leaders.
    """
    count = len(key_starts) - 1
    size = 16
    while size * 3 < keys.size * 4:
        size *= 2
    table = np.zeros(size, np.uint64)
    any_cores = cores if cores is not None else _no_cores()
    room = make_room(any_cores)
    parents = np.arange(count, dtype=np.int32)
    tally = np.zeros(3, np.int64)
    any_rule = rule if rule is not None else _no_rule()
    _group(
        rows, any_cores, keys, key_starts, table, threshold - 1e-9, rule is not None, any_rule, limit, connect, room, parents, tally
    )  # fmt: skip
    if connect:
        parents = components(count, np.arange(count, dtype=np.int32), parents)
    return parents, Tally(*map(int, tally))


def _no_rule() -> Rule:
    """Stands in where there is no rule, for the kernel's types."""
    nothing = np.zeros(1, np.int32)
    return Rule(np.zeros(1, np.uint8), *(nothing,) * 6, 0, False)


def _no_cores() -> Cores:
    return Cores(
        np.zeros(1, np.uint8),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int32),
        np.zeros((1, 2), np.uint64),
    )
