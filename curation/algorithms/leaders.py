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

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from curation.algorithms.components import components, join
from curation.algorithms.edit import Rule, alike, edits_allowed, make_room
from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.processor import fetch
from curation.algorithms.shingles import Shingles, jaccard, ones, shingle_row
from curation.algorithms.texts import BEGIN, BITS, END, NUMBER, Texts

__all__ = ["Grouping", "Sets", "Tally", "group", "make_sets"]

ROW = np.uint64(0xFFFFFFFF)
ROWS_PER_CHUNK = 16_384
BLOCK = 64  # rows whose buckets are read ahead
STEPS = 8  # slots of a key that are read ahead
REMEMBERED = 64  # rows already compared with the row at hand; more than that may be compared twice


class Sets(NamedTuple):
    """Shingle sets of n rows, where Jaccard similarity alone says what is similar."""

    hashes: np.ndarray
    """uint32: shingles."""
    facts: np.ndarray
    """uint64[n, 4], as in :class:`~curation.algorithms.texts.Texts`. BITS: whether the shingles with each value of
    the top 6 bits are odd in number. NUMBER: hash of the row's numbers; where it differs, rows are never similar.
    BEGIN, END: its range in ``hashes``.

    Rows differ in no more of BITS than in shingles.
    """


class Grouping(NamedTuple):
    """Groups of n rows."""

    leaders: np.ndarray
    """int32: leader of each row, itself when kept; or the first row of its component."""
    similarities: np.ndarray
    """float32: Jaccard similarity to the leader, 1 for itself; not told of components."""
    tally: Tally


class Tally(NamedTuple):
    """What the grouping did."""

    candidates: int
    """Times that a row met a kept row in a bucket."""
    compared: int
    """Distinct pairs, but for a few, that were not refused by their bits."""
    similar: int
    """Of these, pairs found similar, as far as that mattered."""


class _Search(NamedTuple):
    """How to search; a tuple of its own so that the kernel is compiled once for all settings."""

    threshold: float
    use_rule: bool
    limit: int
    connect: bool


class _Room(NamedTuple):
    """Where the kernel writes."""

    left: np.ndarray
    """int32: see :class:`~curation.algorithms.edit.Room`."""
    right: np.ndarray
    stack: np.ndarray
    codes: np.ndarray
    """int64: characters of one text."""
    values: np.ndarray
    """uint32: its shingles in the order of the text."""
    pair: np.ndarray
    """uint32: sorted shingles of both texts of a pair."""


def _make_room(longest: int) -> _Room:
    """Room for texts of at most ``longest`` characters."""
    size = longest + 10
    return _Room(
        *make_room(longest), np.empty(size, np.int64), np.empty(size, np.uint32), np.empty(2 * size, np.uint32)
    )


@njit(nogil=True, cache=True)
def _fact_rows(hashes, starts, numbers, first, last, facts):
    for row in range(first, last):
        bits = np.uint64(0)
        for slot in range(starts[row], starts[row + 1]):
            bits ^= np.uint64(1) << np.uint64(hashes[slot] >> np.uint32(26))
        facts[row, BITS], facts[row, NUMBER] = bits, numbers[row]
        facts[row, BEGIN], facts[row, END] = starts[row], starts[row + 1]


def make_sets(
    sets: Shingles,
    numbers: np.ndarray,
    workers: int | None = None,
    allocate: Callable[[int, Any], np.ndarray] = np.empty,
) -> Sets:
    """Shingle sets with the hashes of their rows' numbers (uint32); ``allocate`` gives the array of the facts."""
    facts = allocate(len(numbers) * 4, np.uint64).reshape(-1, 4)
    chunks = spans(len(facts), ROWS_PER_CHUNK)
    run_chunks(lambda first, last: _fact_rows(*sets, numbers, first, last, facts), chunks, workers)
    return Sets(sets.hashes, facts)


@njit(nogil=True, cache=True)
def _slot(key, shift):
    return np.int64(np.uint32(key * np.uint32(0x9E3779B1)) >> shift)


@njit(nogil=True, cache=True)
def _read_ahead(keys, begin, end, table, shift, facts):
    """Ask for what the rows with ``keys[begin:end]`` will look up, so that it waits in the cache.

    These look-ups do not depend on each other, so the processor has many under way; those of the grouping do.
    """
    slots = table.reshape(table.size, 1)
    for at in range(begin, end):
        fetch(slots, _slot(keys[at], shift), 0)
    for at in range(begin, end):
        slot = _slot(keys[at], shift)
        for _ in range(STEPS):
            entry = table[slot]
            if entry == 0:
                break
            if np.uint32(entry >> np.uint64(32)) == keys[at]:
                fetch(facts, np.int64(entry & ROW) - 1, 0)
            slot = (slot + 1) & (table.size - 1)


@njit(nogil=True, cache=True)
def _may_reach(facts, row, other, threshold):
    """Whether sizes and bits let the Jaccard similarity of two sets reach ``threshold``."""
    size, other_size = facts[row, END] - facts[row, BEGIN], facts[other, END] - facts[other, BEGIN]
    most_apart = np.int64((1.0 - threshold) / (1.0 + threshold) * (size + other_size) + 1e-9)
    return abs(np.int64(size) - np.int64(other_size)) <= most_apart and _apart(facts, row, other) <= most_apart


@njit(nogil=True, cache=True)
def _apart(facts, row, other):
    return ones(facts[row, BITS] ^ facts[other, BITS])


@njit(nogil=True, cache=True)
def _ends(facts, row):
    return np.int64(facts[row, BEGIN]), np.int64(facts[row, END])


@njit(nogil=True, cache=True)
def _group(texts, rule, sets, search, keys, key_starts, table, room, leaders, similarities, tally):
    """One pass in the order of the rows; ``leaders`` comes out as such or, with ``connect``, as a forest.

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
    hashes, data, starts, cores, sizes = sets.hashes, texts.data, texts.starts, texts.cores, texts.sizes
    edits, classes, digits_free = rule.edits, rule.classes, rule.digits_free
    left, right, stack, pair = room.left, room.right, room.stack, room.pair
    codes, values = room.codes, room.values
    threshold, limit, use_rule, connect = search.threshold, search.limit, search.use_rule, search.connect
    facts = texts.facts if use_rule else sets.facts
    for row in range(count):
        if row % BLOCK == 0:
            _read_ahead(keys, key_starts[row], key_starts[min(row + BLOCK, count)], table, shift, facts)
        begin, end = _ends(facts, row)
        if use_rule:
            most_apart = edits_allowed(sizes[row], edits) + 1
        else:
            # The union of two sets this similar is no larger than this one by the threshold; a share of it differs.
            most_apart = np.int64((1.0 - threshold) / threshold * (end - begin) + 1e-6)
        leader, best, compared, own = np.int64(-1), -1.0, 0, 0
        first, last = key_starts[row], key_starts[row + 1]
        for at in range(first, last):
            slot, listed = _slot(keys[at], shift), 0
            while table[slot] != 0 and listed < limit:
                entry = table[slot]
                slot = (slot + 1) & (table.size - 1)
                if np.uint32(entry >> np.uint64(32)) != keys[at]:
                    continue
                listed += 1
                other = np.int64(entry & ROW) - 1
                near = _apart(facts, row, other) <= most_apart and facts[other, NUMBER] == facts[row, NUMBER]
                if near:
                    for place in range(compared):
                        near &= met[place] != other
                if not near or not (use_rule or _may_reach(facts, row, other, threshold)):
                    continue
                if compared < REMEMBERED:
                    met[compared] = other
                    compared += 1
                tally[1] += 1
                if use_rule:
                    b, b_end = _ends(facts, other)
                    if not alike(cores, begin, end, b, b_end, edits, classes, digits_free, left, right, stack):
                        continue
                    if own == 0:
                        own = shingle_row(data, starts[row], starts[row + 1], codes, values, pair, 0)
                    both = shingle_row(data, starts[other], starts[other + 1], codes, values, pair, own)
                    similarity = jaccard(pair, 0, own, own, both)
                else:
                    similarity = jaccard(hashes, begin, end, *_ends(facts, other))
                if similarity < threshold:
                    continue
                tally[2] += 1
                if similarity > best or (similarity == best and other < leader):
                    leader, best = other, similarity
                if connect:
                    join(leaders, row, other)
            tally[0] += listed
            free[at - first] = slot if listed < limit else -1
        if leader >= 0 and not connect:
            leaders[row], similarities[row] = leader, best
            continue
        for at in range(first, last):
            slot = free[at - first]
            if slot >= 0:
                while table[slot] != 0:
                    slot = (slot + 1) & (table.size - 1)
                table[slot] = np.uint64(keys[at]) << np.uint64(32) | np.uint64(row + 1)


def group(
    rows: Texts | Sets,
    keys: np.ndarray,
    key_starts: np.ndarray,
    *,
    threshold: float,
    limit: int,
    rule: Rule | None = None,
    connect: bool = False,
) -> Grouping:
    """Group rows in the order of their priority, the first the highest.

    Args:
        rows: What similarity is judged by: texts and ``rule``, or shingle sets alone.
        keys: Bucket keys, uint32, not 0; best without those that only one row has.
        key_starts: int64, n + 1: row i has ``keys[key_starts[i]:key_starts[i + 1]]``.
        threshold: Least Jaccard similarity, above 0.
        limit: Most rows a bucket lists.
        rule: The edit rule, for texts.
        connect: Give connected components, named by their first row, instead of leaders.
    """
    count = len(key_starts) - 1
    leaders, similarities = np.arange(count, dtype=np.int32), np.ones(count, np.float32)
    if count == 0:
        return Grouping(leaders, similarities, Tally(0, 0, 0))
    size = 16
    while size * 3 < keys.size * 4:
        size *= 2
    table, tally = np.zeros(size, np.uint64), np.zeros(3, np.int64)
    search = _Search(threshold - 1e-9, rule is not None, limit, connect)
    texts, sets = (rows, _NO_SETS) if isinstance(rows, Texts) else (_NO_TEXTS, rows)
    room = _make_room(int(np.diff(texts.starts).max()))
    _group(texts, rule or _NO_RULE, sets, search, keys, key_starts, table, room, leaders, similarities, tally)
    if connect:
        leaders = components(count, np.arange(count, dtype=np.int32), leaders)
    return Grouping(leaders, similarities, Tally(*tally.tolist()))


# They stand in for what is not asked for, for the kernel's types.
_NO_FACTS = np.zeros((1, 4), np.uint64)
_NO_SETS = Sets(np.zeros(1, np.uint32), _NO_FACTS)
_NO_BYTES = np.zeros(1, np.uint8)
_NO_TEXTS = Texts(_NO_BYTES, np.zeros(2, np.int64), _NO_BYTES, np.zeros(1, np.int32), _NO_FACTS)
_NO_RULE = Rule(np.zeros(1, np.uint8), 0, False)
