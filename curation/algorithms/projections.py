"""Near neighbours by sign random projections: which rows keep none within the threshold before them.

The signs of a row (:mod:`curation.algorithms.signs`) are cut into bands; rows that share a band are candidates, a
Hamming filter of 512, then of 1,024 signs drops most of them, an exact product decides the rest.

No list of pairs is ever built: rows come in order of priority, halves are solved one after the other, and a row is
compared with *kept* rows only. So fifty thousand copies cost fifty thousand comparisons, and memory does not
depend on how dense the data are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from curation.algorithms.parallel import run_chunks
from curation.algorithms.signs import FILTER_BITS, Sketch
from curation.algorithms.vectors import FixedRows, dot, step

__all__ = ["kept_rows", "nearest_kept"]

_LEAF = 2048  # below this comparing all codes is cheaper than sorting bands
_TASKS = 8  # groups of bands that run side by side; each has results of its own, so more would cost memory


def _count_ones(typingctx: Any, x: Any) -> Any:
    """Number of ones in a uint64, as the processor's own instruction."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), build


_ones: Any = intrinsic(_count_ones)


@njit(cache=True, nogil=True)
def _candidates(
    i: int,
    one: NDArray[np.uint64],
    words: NDArray[np.uint64],
    names: NDArray[np.int64],
    size: int,
    codes: NDArray[np.uint64],
    most_different: tuple[int, int],
    differences: NDArray[np.int32],
    found: NDArray[np.int32],
) -> np.int64:
    """Which of the rows ``names[:size]`` agree with row i in enough signs; their number, and they first in ``found``.

    ``one`` is the filter of row i, ``words`` holds the others' word by word, so that the compiler can vectorise.
    There are no branches: mispredicted ones would cost more than all else here, and codes are fetched side by side.
    """
    most, most_in_all = most_different
    a, b, c, d, e, f, g, h = one[0], one[1], one[2], one[3], one[4], one[5], one[6], one[7]
    for v in range(size):
        left = _ones(a ^ words[0, v]) + _ones(b ^ words[1, v]) + _ones(c ^ words[2, v]) + _ones(d ^ words[3, v])
        right = _ones(e ^ words[4, v]) + _ones(f ^ words[5, v]) + _ones(g ^ words[6, v]) + _ones(h ^ words[7, v])
        differences[v] = left + right
    count = np.int64(0)
    for v in range(size):
        found[count] = v
        count += differences[v] <= most
    near = np.int64(0)
    for t in range(count):
        v = found[t]
        total = np.int64(differences[v])
        for w in range(codes.shape[1]):
            total += np.int64(_ones(codes[i, w] ^ codes[names[v], w]))
        found[near] = v
        near += total <= most_in_all
    return near


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
def _gather(filters: NDArray[np.uint64], order: NDArray[np.int32], out: NDArray[np.uint64]) -> None:
    """Filters in the order of their keys: one tight loop, so that many cache misses are on their way at once."""
    for u in range(len(order)):
        for w in range(FILTER_BITS // 64):
            out[u, w] = filters[order[u], w]


@njit(cache=True, nogil=True)
def _widest(start: NDArray[np.int32]) -> int:
    widest = 0
    for key in range(len(start) - 1):
        widest = max(widest, start[key + 1] - start[key])
    return widest


@njit(cache=True, nogil=True)
def _met_before(keys: NDArray[np.uint16], i: int, j: int, band: int, mask: int) -> bool:
    """Whether two rows share an earlier band: then the pair has been checked there."""
    met = False
    for earlier in range(band):  # without an early end, so that the compiler can vectorise
        met |= (keys[i, earlier] ^ keys[j, earlier]) & np.uint16(mask) == 0
    return met


@njit(cache=True, nogil=True)
def _leaf(
    rows: FixedRows,
    filters: NDArray[np.uint64],
    codes: NDArray[np.uint64],
    most_different: tuple[int, int],
    least: int,
    first: int,
    last: int,
    gone: NDArray[np.uint8],
) -> None:
    """Rows first..last in order of priority: each is gone when a kept one before it in this range is close."""
    kept = np.empty(last - first, dtype=np.int64)
    words = np.empty((FILTER_BITS // 64, last - first), dtype=np.uint64)
    differences = np.empty(last - first, dtype=np.int32)
    found = np.empty(last - first, dtype=np.int32)
    size = 0
    for i in range(first, last):
        if gone[i]:
            continue
        near = _candidates(i, filters[i], words, kept, size, codes, most_different, differences, found)
        for t in range(near):
            if dot(rows, i, rows, kept[found[t]]) >= least:
                gone[i] = 1
                break
        if not gone[i]:
            for w in range(FILTER_BITS // 64):
                words[w, size] = filters[i, w]
            kept[size] = i
            size += 1


@njit(cache=True, nogil=True)
def _drop(
    task: int,
    rows: FixedRows,
    keys: NDArray[np.uint16],
    columns: NDArray[np.uint16],
    codes: NDArray[np.uint64],
    bands: int,
    mask: int,
    most_different: tuple[int, int],
    least: int,
    kept: NDArray[np.int64],
    kept_filters: NDArray[np.uint64],
    open_: NDArray[np.int64],
    open_filters: NDArray[np.uint64],
    gone: NDArray[np.uint8],
) -> None:
    """Mark the open rows that are close to a kept row. Tasks run side by side: a mark is only ever set."""
    start = np.empty(mask + 2, dtype=np.int32)
    open_start = np.empty(mask + 2, dtype=np.int32)
    ordered, open_ordered = np.empty_like(kept_filters), np.empty_like(open_filters)
    for band in range(task, bands, _TASKS):
        order = _by_key(columns[band], mask, kept, start)
        open_order = _by_key(columns[band], mask, open_, open_start)
        _gather(kept_filters, order, ordered)
        _gather(open_filters, open_order, open_ordered)
        widest = _widest(start)
        words = np.empty((FILTER_BITS // 64, widest), dtype=np.uint64)
        names = np.empty(widest, dtype=np.int64)
        differences = np.empty(widest, dtype=np.int32)
        found = np.empty(widest, dtype=np.int32)
        for key in range(mask + 1):
            begin, size = start[key], start[key + 1] - start[key]
            if size == 0 or open_start[key] == open_start[key + 1]:
                continue
            for v in range(size):
                names[v] = kept[order[begin + v]]
                for w in range(FILTER_BITS // 64):
                    words[w, v] = ordered[begin + v, w]
            for u in range(open_start[key], open_start[key + 1]):
                at = open_order[u]
                i = open_[at]
                if gone[i]:
                    continue
                one = open_ordered[u]
                near = _candidates(i, one, words, names, size, codes, most_different, differences, found)
                for t in range(near):
                    j = names[found[t]]
                    if not _met_before(keys, i, j, band, mask) and dot(rows, i, rows, j) >= least:
                        gone[i] = 1
                        break


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
            _leaf(rows, marks.filters, marks.codes, marks.most_different, least, first, last, gone)
            return
        middle = first + _LEAF * (-(-(last - first) // _LEAF) // 2)
        solve(first, middle)
        kept = first + np.flatnonzero(gone[first:middle] == 0)
        open_ = middle + np.flatnonzero(gone[middle:last] == 0)
        # Shorter keys, and so fewer bands, for fewer rows.
        bits = min(marks.bits, max(4, int(len(kept) + len(open_)).bit_length() - 5))
        limits = (marks.enough[bits], (1 << bits) - 1, marks.most_different, least)
        sides = (kept, marks.filters[kept], open_, marks.filters[open_])
        known = (rows, marks.keys, marks.columns, marks.codes, *limits, *sides, gone)
        run_chunks(lambda task: _drop(task, *known), [(task,) for task in range(_TASKS)], workers)
        solve(middle, last)

    solve(0, len(rows))
    return gone == 0


@njit(cache=True, nogil=True)
def _closest(
    task: int,
    rows: FixedRows,
    keys: NDArray[np.uint16],
    columns: NDArray[np.uint16],
    codes: NDArray[np.uint64],
    bands: int,
    mask: int,
    most_different: tuple[int, int],
    least: int,
    kept: NDArray[np.int64],
    kept_filters: NDArray[np.uint64],
    gone: NDArray[np.int64],
    gone_filters: NDArray[np.uint64],
    best: NDArray[np.int64],
    level: NDArray[np.int64],
) -> None:
    """Best kept row per gone row among the pairs of a task's bands; ``best`` holds indices into ``kept``."""
    start = np.empty(mask + 2, dtype=np.int32)
    gone_start = np.empty(mask + 2, dtype=np.int32)
    ordered, gone_ordered = np.empty_like(kept_filters), np.empty_like(gone_filters)
    for band in range(task, bands, _TASKS):
        order = _by_key(columns[band], mask, kept, start)
        gone_order = _by_key(columns[band], mask, gone, gone_start)
        _gather(kept_filters, order, ordered)
        _gather(gone_filters, gone_order, gone_ordered)
        widest = _widest(start)
        words = np.empty((FILTER_BITS // 64, widest), dtype=np.uint64)
        names = np.empty(widest, dtype=np.int64)
        differences = np.empty(widest, dtype=np.int32)
        found = np.empty(widest, dtype=np.int32)
        for key in range(mask + 1):
            begin, size = start[key], start[key + 1] - start[key]
            if size == 0 or gone_start[key] == gone_start[key + 1]:
                continue
            for v in range(size):
                names[v] = kept[order[begin + v]]
                for w in range(FILTER_BITS // 64):
                    words[w, v] = ordered[begin + v, w]
            for u in range(gone_start[key], gone_start[key + 1]):
                at = gone_order[u]
                i = gone[at]
                one = gone_ordered[u]
                near = _candidates(i, one, words, names, size, codes, most_different, differences, found)
                for t in range(near):
                    choice = order[begin + found[t]]
                    j = kept[choice]
                    if _met_before(keys, i, j, band, mask):
                        continue
                    product = dot(rows, i, rows, j)
                    height = step(product)
                    better = height > level[at] or (height == level[at] and choice < best[at])
                    if product >= least and better:
                        level[at], best[at] = height, choice


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
    best = np.full((_TASKS, len(gone)), -1, dtype=np.int64)
    level = np.full((_TASKS, len(gone)), -1, dtype=np.int64)
    limits = (marks.enough[marks.bits], (1 << marks.bits) - 1, marks.most_different, least)
    sides = (kept, marks.filters[kept], gone, marks.filters[gone])
    known = (rows, marks.keys, marks.columns, marks.codes, *limits, *sides)
    run_chunks(lambda task: _closest(task, *known, best[task], level[task]), [(t,) for t in range(_TASKS)], workers)
    top = level.max(axis=0)
    choice = np.where((level == top) & (best >= 0), best, len(kept)).min(axis=0, initial=len(kept))
    return np.where(top >= 0, choice, -1)
