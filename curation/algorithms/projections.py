"""Near neighbours by sign random projections: which rows keep none within the threshold before them.

The signs of a row (:mod:`curation.algorithms.signs`) are cut into bands; rows that share a band are candidates. A
Hamming filter of 512, then of 1,024 signs drops most of them, a product of bytes most of the others, and an exact
product decides the rest.

No list of pairs is ever built: rows come in order of priority, halves are solved one after the other, and a row is
compared with *kept* rows only. So fifty thousand copies cost fifty thousand comparisons, and memory does not
depend on how dense the data are.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from curation.algorithms.bands import CODE, LOWEST, by_key, candidates, earlier_lanes, gather
from curation.algorithms.parallel import run_chunks
from curation.algorithms.processor import fetch
from curation.algorithms.signs import Sketch
from curation.algorithms.vectors import FIXED, ROUGH, FixedRows, dot, step

__all__ = ["kept_rows", "nearest_kept"]

_LEAF = 2048  # below this comparing all codes is cheaper than sorting bands
_CHUNK = 128  # rows of a key compared at a time: their signs stay in the innermost cache
_TASKS = 8  # groups of bands that run side by side
_PAIRS = 32  # pairs that wait for their bytes to arrive from memory
_LINE = 64  # bytes of a cache line


@njit(cache=True, nogil=True)
def _perhaps(rough: NDArray[np.int8], length: NDArray[np.float32], floor: float, i: int, j: int) -> bool:
    """Whether rows i and j may be close, as bytes tell."""
    total = np.int32(0)
    for c in range(rough.shape[1]):  # int32 throughout, or the compiler would not multiply bytes side by side
        total = np.int32(total + np.int32(rough[i, c]) * np.int32(rough[j, c]))
    return total >= floor * length[i] * length[j]


@njit(cache=True, nogil=True)
def _expect(rough: NDArray[np.int8], i: int) -> None:
    """Ask for the bytes of a row ahead of their use."""
    for c in range(0, rough.shape[1], _LINE):
        fetch(rough, i, c)


@njit(cache=True, nogil=True)
def _leaf(
    rows: FixedRows,
    rough: NDArray[np.int8],
    length: NDArray[np.float32],
    floor: float,
    codes: NDArray[np.uint64],
    most_different: tuple[int, int],
    least: int,
    first: int,
    last: int,
    gone: NDArray[np.uint8],
) -> None:
    """Rows first..last in order of priority: each is gone when a kept one before it in this range is close."""
    kept = np.empty(last - first, dtype=np.int64)
    kept_codes = np.empty((last - first, codes.shape[1]), dtype=np.uint64)
    words = np.empty((CODE, last - first), dtype=np.uint64)
    differences = np.empty(last - first, dtype=np.int32)
    found = np.empty(last - first, dtype=np.int32)
    none = earlier_lanes(0)
    size = 0
    for i in range(first, last):
        if gone[i]:
            continue
        near = candidates(
            codes, i, words, kept_codes, 0, size, none, np.uint64(0), most_different, differences, found
        )
        for t in range(near):
            _expect(rough, kept[found[t]])
        for t in range(near):
            j = kept[found[t]]
            if _perhaps(rough, length, floor, i, j) and dot(rows, i, rows, j) >= least:
                gone[i] = 1
                break
        if not gone[i]:
            for w in range(CODE):
                words[w, size] = codes[i, w]
            kept_codes[size] = codes[i]
            kept[size] = i
            size += 1


@njit(cache=True, nogil=True)
def _settle(
    rows: FixedRows,
    rough: NDArray[np.int8],
    length: NDArray[np.float32],
    floor: float,
    least: int,
    pairs: NDArray[np.int32],
    places: NDArray[np.int32],
    asked_places: NDArray[np.int32],
    any_will_do: bool,
    best: NDArray[np.int64],
    level: NDArray[np.int64],
) -> None:
    """Compare pairs (an asked place, a kept place); where any close row will do, an asked row that has one is -1."""
    for t in range(len(pairs)):
        i, j = asked_places[pairs[t, 0], 1], places[pairs[t, 1], 1]
        if i < 0 or not _perhaps(rough, length, floor, i, j):
            continue
        product = dot(rows, i, rows, j)
        if product < least:
            continue
        at, choice, height = asked_places[pairs[t, 0], 0], places[pairs[t, 1], 0], step(product)
        if height > level[at] or (height == level[at] and choice < best[at]):
            best[at], level[at] = choice, height
        if any_will_do:
            asked_places[pairs[t, 0], 1] = -1


@njit(cache=True, nogil=True)
def _search(
    task: int,
    rows: FixedRows,
    rough: NDArray[np.int8],
    length: NDArray[np.float32],
    floor: float,
    codes: NDArray[np.uint64],
    columns: NDArray[np.uint16],
    bands: int,
    bits: int,
    most_different: tuple[int, int],
    least: int,
    kept: NDArray[np.int64],
    asked: NDArray[np.int64],
    any_will_do: bool,
    best: NDArray[np.int64],
    level: NDArray[np.int64],
) -> None:
    """Best kept row (an index into ``kept``) for each row asked for, among the pairs that meet in a task's bands.

    Where any close row will do, a row that has one is left alone; then tasks may share ``best`` and ``level``, of
    which only the signs count.
    """
    mask = (1 << bits) - 1
    start, asked_start = np.empty(mask + 2, dtype=np.int32), np.empty(mask + 2, dtype=np.int32)
    places, asked_places = np.empty((len(kept), 2), dtype=np.int32), np.empty((len(asked), 2), dtype=np.int32)
    ordered = np.empty((len(kept), codes.shape[1]), dtype=np.uint64)
    asked_ordered = np.empty((len(asked), codes.shape[1]), dtype=np.uint64)
    words = np.empty((CODE, _CHUNK), dtype=np.uint64)
    differences, found = np.empty(_CHUNK, dtype=np.int32), np.empty(_CHUNK, dtype=np.int32)
    pairs = np.empty((_PAIRS + _CHUNK, 2), dtype=np.int32)
    for band in range(task, bands, _TASKS):
        gather(codes, places, by_key(columns[band], mask, kept, level[:0], start, places), ordered)
        done = level if any_will_do else level[:0]
        gather(
            codes, asked_places, by_key(columns[band], mask, asked, done, asked_start, asked_places), asked_ordered
        )
        earlier = earlier_lanes(band)
        waiting = 0
        for key in range(mask + 1):
            if asked_start[key] == asked_start[key + 1]:
                continue
            for begin in range(start[key], start[key + 1], _CHUNK):
                size = min(_CHUNK, start[key + 1] - begin)
                for v in range(size):
                    for w in range(CODE):
                        words[w, v] = ordered[begin + v, w]
                for u in range(asked_start[key], asked_start[key + 1]):
                    if asked_places[u, 1] < 0:
                        continue
                    near = candidates(
                        asked_ordered,
                        u,
                        words,
                        ordered,
                        begin,
                        size,
                        earlier,
                        np.uint64(mask) * LOWEST,
                        most_different,
                        differences,
                        found,
                    )
                    if near == 0:
                        continue
                    _expect(rough, asked_places[u, 1])
                    for t in range(near):
                        _expect(rough, places[begin + found[t], 1])
                        pairs[waiting, 0], pairs[waiting, 1] = u, begin + found[t]
                        waiting += 1
                    if waiting >= _PAIRS:
                        _settle(
                            rows,
                            rough,
                            length,
                            floor,
                            least,
                            pairs[:waiting],
                            places,
                            asked_places,
                            any_will_do,
                            best,
                            level,
                        )
                        waiting = 0
        _settle(rows, rough, length, floor, least, pairs[:waiting], places, asked_places, any_will_do, best, level)


def _run(
    rows: FixedRows,
    marks: Sketch,
    least: int,
    kept: NDArray[np.int64],
    asked: NDArray[np.int64],
    any_will_do: bool,
    workers: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Best kept row and its level for each row asked for, task by task; -1 where no pair is close."""
    # Shorter keys, and so fewer bands, for fewer pairs.
    bits = min(marks.bits, max(4, math.isqrt(4 * len(kept) * len(asked)).bit_length() - 5))
    shape = (1 if any_will_do else _TASKS, len(asked))
    best, level = np.full(shape, -1, dtype=np.int64), np.full(shape, -1, dtype=np.int64)
    floor = least / FIXED**2 - ROUGH
    known = (
        rows,
        marks.rough,
        marks.length,
        floor,
        marks.codes,
        marks.columns,
        marks.enough[bits],
        bits,
        marks.most_different,
        least,
    )

    def search(task: int) -> None:
        own = task % len(best)
        _search(task, *known, kept, asked, any_will_do, best[own], level[own])

    run_chunks(search, [(task,) for task in range(_TASKS)], workers)
    return best, level


def kept_rows(rows: FixedRows, marks: Sketch, least: int, *, workers: int = 1) -> NDArray[np.bool_]:
    """Rows, in order of priority, that no kept row before them is close to.

    Args:
        rows: int32[n, d] of :func:`~curation.algorithms.vectors.to_fixed`, best first.
        marks: their :func:`~curation.algorithms.signs.sketch`.
        least: smallest product that counts as close.
        workers: threads; they do not change the result.

    Returns:
        bool[n].
    """
    gone = np.zeros(len(rows), dtype=np.uint8)

    def solve(first: int, last: int) -> None:
        if last - first <= _LEAF:
            _leaf(
                rows,
                marks.rough,
                marks.length,
                least / FIXED**2 - ROUGH,
                marks.codes,
                marks.most_different,
                least,
                first,
                last,
                gone,
            )
            return
        middle = first + _LEAF * (-(-(last - first) // _LEAF) // 2)
        solve(first, middle)
        kept = first + np.flatnonzero(gone[first:middle] == 0)
        open_ = middle + np.flatnonzero(gone[middle:last] == 0)
        _, level = _run(rows, marks, least, kept, open_, True, workers)
        gone[open_[level[0] >= 0]] = 1
        solve(middle, last)

    solve(0, len(rows))
    return gone == 0


def nearest_kept(
    rows: FixedRows,
    marks: Sketch,
    least: int,
    kept: NDArray[np.int64],
    gone: NDArray[np.int64],
    *,
    workers: int = 1,
) -> NDArray[np.int64]:
    """The most similar kept row of each row that is gone; ties go to the kept row of higher priority.

    Args:
        rows, marks, least: as in :func:`kept_rows`.
        kept: int64[k], kept rows, best first.
        gone: int64[m], the other rows.
        workers: threads; they do not change the result.

    Returns:
        int64[m], an index into ``kept``, or -1 where the bands hold no close pair.
    """
    best, level = _run(rows, marks, least, kept, gone, False, workers)
    top = level.max(axis=0)
    choice = np.where((level == top) & (best >= 0), best, len(kept)).min(axis=0, initial=len(kept))
    return np.where(top >= 0, choice, -1)
