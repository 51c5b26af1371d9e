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

from curation.algorithms.parallel import run_chunks
from curation.algorithms.processor import fetch, ones
from curation.algorithms.signs import CODE_BITS, FILTER_BITS, LANE, Sketch
from curation.algorithms.vectors import FIXED, ROUGH, FixedRows, dot, step

__all__ = ["kept_rows", "nearest_kept"]

_LEAF = 2048  # below this comparing all codes is cheaper than sorting bands
_CHUNK = 128  # rows of a key compared at a time: their signs stay in the innermost cache
_TASKS = 8  # groups of bands that run side by side
_HALF = FILTER_BITS // 64
_CODE = CODE_BITS // 64
_AHEAD = 16  # rows that are on their way from memory at a time
_LINE = 64  # bytes of a cache line
_LOWEST = np.uint64(0x0001_0001_0001_0001)  # the lowest bit of each lane of a word


@njit(cache=True, nogil=True)
def _by_key(
    column: NDArray[np.uint16], mask: int, chosen: NDArray[np.int64], start: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Counting sort of ``chosen`` rows by their masked key of a band; ``start`` becomes the offsets of the keys."""
    start[:] = 0
    own = np.empty(len(chosen), dtype=np.uint16)
    for u in range(len(chosen)):
        own[u] = column[chosen[u]] & np.uint16(mask)
        start[np.int64(own[u]) + 1] += 1
    for key in range(len(start) - 1):
        start[key + 1] += start[key]
    order = np.empty(len(chosen), dtype=np.int32)
    for u in range(len(chosen)):
        order[start[own[u]]] = u
        start[own[u]] += 1
    for key in range(len(start) - 1, 0, -1):
        start[key] = start[key - 1]
    start[0] = 0
    return order


@njit(cache=True, nogil=True)
def _gather(
    codes: NDArray[np.uint64], chosen: NDArray[np.int64], order: NDArray[np.int32], out: NDArray[np.uint64]
) -> None:
    """Codes in the order of their keys."""
    n = len(order)
    for u in range(n):
        soon = chosen[order[min(u + _AHEAD, n - 1)]]
        fetch(codes, soon, 0)
        fetch(codes, soon, _HALF)
        row = chosen[order[u]]
        for w in range(_CODE):  # a fixed number of words makes a few wide moves
            out[u, w] = codes[row, w]
        for w in range(_CODE, codes.shape[1]):
            out[u, w] = codes[row, w]


@njit(cache=True, nogil=True)
def _earlier_lanes(band: int) -> NDArray[np.uint64]:
    """The highest bit of each lane that belongs to a band before ``band``, for as many words as have such a lane."""
    out = np.zeros((band + 3) // 4, dtype=np.uint64)
    for lane in range(band):
        out[lane // 4] |= np.uint64(0x8000) << np.uint64(LANE * (lane % 4))
    return out


@njit(cache=True, nogil=True)
def _differing(
    one: NDArray[np.uint64], w: int, words: NDArray[np.uint64], size: int, differences: NDArray[np.int32]
) -> np.int32:
    """Add the signs of eight words, from word ``w`` on, in which rows differ from row ``one``; the smallest sum."""
    a, b, c, d, e, f, g, h = (
        one[w],
        one[w + 1],
        one[w + 2],
        one[w + 3],
        one[w + 4],
        one[w + 5],
        one[w + 6],
        one[w + 7],
    )
    lowest = np.int32(CODE_BITS)
    for v in range(size):
        left = (
            ones(a ^ words[w, v]) + ones(b ^ words[w + 1, v]) + ones(c ^ words[w + 2, v]) + ones(d ^ words[w + 3, v])
        )
        right = (
            ones(e ^ words[w + 4, v])
            + ones(f ^ words[w + 5, v])
            + ones(g ^ words[w + 6, v])
            + ones(h ^ words[w + 7, v])
        )
        differences[v] += np.int32(left + right)
        lowest = min(lowest, differences[v])
    return lowest


@njit(cache=True, nogil=True)
def _candidates(
    one: NDArray[np.uint64],
    words: NDArray[np.uint64],
    codes: NDArray[np.uint64],
    size: int,
    earlier: NDArray[np.uint64],
    key_mask: np.uint64,
    most_different: tuple[int, int],
    differences: NDArray[np.int32],
    found: NDArray[np.int32],
) -> int:
    """Which of the first ``size`` rows agree with a row in enough signs and in no earlier band.

    Args:
        one: uint64[w], the signs of the row.
        words: uint64[16, m], the signs of the others word by word, so that the compiler can vectorise.
        codes: uint64[m, w], the same and what bands there are beyond, row by row.
        size: how many others there are.
        earlier: of :func:`_earlier_lanes`; a pair that agrees in one of these lanes has been met there.
        key_mask: the bits of each lane that are the key.
        most_different: signs that may differ of the first half, and of all.
        differences: room for m numbers.
        found: room for m numbers; the rows found come first, and their number is returned.

    There are no branches but one: mispredicted ones would cost more than all else here.
    """
    differences[:size] = 0
    if _differing(one, 0, words, size, differences) > most_different[0]:
        return 0
    _differing(one, _HALF, words, size, differences)
    count = 0
    for v in range(size):
        found[count] = v
        count += differences[v] <= most_different[1]
    near = 0
    for t in range(count):
        v = found[t]
        met = np.uint64(0)
        for w in range(len(earlier)):
            x = (one[w] ^ codes[v, w]) & key_mask
            met |= (x - _LOWEST) & ~x & earlier[w]  # a lane of zeros borrows, and so flips its highest bit
        found[near] = v
        near += met == 0
    return near


@njit(cache=True, nogil=True)
def _perhaps(
    rough: NDArray[np.int8],
    length: NDArray[np.float32],
    floor: float,
    i: int,
    names: NDArray[np.int64],
    found: NDArray[np.int32],
    near: int,
) -> int:
    """How many of the rows ``names[found[:near]]`` may be close to row i as bytes tell; these first in ``found``."""
    for t in range(near):
        for c in range(0, rough.shape[1], _LINE):
            fetch(rough, names[found[t]], c)
    count = 0
    for t in range(near):
        v = found[t]
        total = np.int32(0)
        for c in range(rough.shape[1]):  # int32 throughout, or the compiler would not multiply bytes side by side
            total = np.int32(total + np.int32(rough[i, c]) * np.int32(rough[names[v], c]))
        found[count] = v
        count += total >= floor * length[i] * length[names[v]]
    return count


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
    words = np.empty((_CODE, last - first), dtype=np.uint64)
    differences = np.empty(last - first, dtype=np.int32)
    found = np.empty(last - first, dtype=np.int32)
    none = _earlier_lanes(0)
    size = 0
    for i in range(first, last):
        if gone[i]:
            continue
        one = codes[i]
        near = _candidates(one, words, kept_codes, size, none, np.uint64(0), most_different, differences, found)
        near = _perhaps(rough, length, floor, i, kept, found, near)
        for t in range(near):
            if dot(rows, i, rows, kept[found[t]]) >= least:
                gone[i] = 1
                break
        if not gone[i]:
            for w in range(_CODE):
                words[w, size] = one[w]
            kept_codes[size] = one
            kept[size] = i
            size += 1


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
    ordered = np.empty((len(kept), codes.shape[1]), dtype=np.uint64)
    asked_ordered = np.empty((len(asked), codes.shape[1]), dtype=np.uint64)
    words = np.empty((_CODE, _CHUNK), dtype=np.uint64)
    differences, found = np.empty(_CHUNK, dtype=np.int32), np.empty(_CHUNK, dtype=np.int32)
    names = np.empty(_CHUNK, dtype=np.int64)
    for band in range(task, bands, _TASKS):
        order = _by_key(columns[band], mask, kept, start)
        asked_order = _by_key(columns[band], mask, asked, asked_start)
        _gather(codes, kept, order, ordered)
        _gather(codes, asked, asked_order, asked_ordered)
        earlier = _earlier_lanes(band)
        for key in range(mask + 1):
            if asked_start[key] == asked_start[key + 1]:
                continue
            for begin in range(start[key], start[key + 1], _CHUNK):
                size = min(_CHUNK, start[key + 1] - begin)
                for v in range(size):
                    names[v] = kept[order[begin + v]]
                    for w in range(_CODE):
                        words[w, v] = ordered[begin + v, w]
                for u in range(asked_start[key], asked_start[key + 1]):
                    at = asked_order[u]
                    if any_will_do and level[at] >= 0:
                        continue
                    near = _candidates(
                        asked_ordered[u],
                        words,
                        ordered[begin : begin + size],
                        size,
                        earlier,
                        np.uint64(mask) * _LOWEST,
                        most_different,
                        differences,
                        found,
                    )
                    near = _perhaps(rough, length, floor, asked[at], names, found, near)
                    for t in range(near):
                        choice = order[begin + found[t]]
                        product = dot(rows, asked[at], rows, kept[choice])
                        height = step(product)
                        better = height > level[at] or (height == level[at] and choice < best[at])
                        if product >= least and better:
                            best[at], level[at] = choice, height
                            if any_will_do:
                                break


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
