"""Near neighbours by sign random projections: which rows keep none within the threshold before them.

Rows whose angle is small agree on most signs of random projections (Charikar 2002). The signs are cut into bands;
rows that share a band are candidates, a Hamming filter of 512, then of 1,024 bits drops most of them, an exact
product decides the rest.

Two things differ from the usual construction. The projections are three rounds of random sign flips and a
Walsh-Hadamard transform (as in cross-polytope hashing; Andoni et al. 2015, section 5): far cheaper than a matrix
product, and made of float additions in one fixed order, so that no sign depends on threads or BLAS. And no list of
pairs is ever built: rows come in order of priority, halves are solved one after the other, and a row is compared with
*kept* rows only, so that fifty thousand copies cost fifty thousand comparisons and memory does not depend on how
dense the data are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.vectors import FixedRows, dot, step

__all__ = ["Sketch", "kept_rows", "nearest_kept", "plan", "sketch"]

CODE_BITS = 1024
FILTER_BITS = 512
"""Signs compared first; what passes is compared in all of them before a product is worth its memory traffic."""


_SPAN = 8192  # rows a thread takes at a time
_LANES = 64  # rows transformed together, side by side: long runs of equal work for vector registers
_ROUNDS = 3
_LEAF = 2048  # below this comparing all codes is cheaper than sorting bands
_MAX_BANDS = 128
_MAX_BITS = 16
_RECALL = 0.999
_TASKS = 8  # groups of bands that run side by side; each has results of its own, so more would cost memory
_SIGMAS = 3.5


@dataclass(frozen=True)
class Sketch:
    """Signs of every row, and the limits that belong to them."""

    keys: NDArray[np.uint16]
    """uint16[n, bands]: ``bits`` signs each."""
    columns: NDArray[np.uint16]
    """uint16[bands, n]: the same, for going through one band."""
    filters: NDArray[np.uint64]
    """uint64[n, 8]: the first 512 signs; a cache line, as are the others."""
    codes: NDArray[np.uint64]
    """uint64[n, 8]: the next 512 signs."""
    bits: int
    enough: tuple[int, ...]
    """Bands needed where only so many bits of their keys are used."""
    most_different: tuple[int, int]
    """How many signs of the filters, and of filters and codes, may differ for a close pair."""


def _angle(threshold: float) -> float:
    """Share of random hyperplanes that part two vectors at the threshold; at 1 a little is left for rounding."""
    return math.acos(min(threshold, 0.9999)) / math.pi


def bands_for(bits: int, threshold: float, recall: float = _RECALL) -> int:
    """Bands of ``bits`` signs that a pair exactly at ``threshold`` needs to share one with chance ``recall``."""
    return math.ceil(math.log(1 - recall) / math.log(1 - (1 - _angle(threshold)) ** bits))


def plan(n: int, threshold: float) -> tuple[int, int]:
    """Bits per band and number of bands for ``n`` rows.

    Going through a band costs more than a comparison of signs, so the bands are few and their keys short: some 64
    rows a key. There are at most 128 bands.
    """
    bits = min(_MAX_BITS, max(4, round(math.log2(max(n, 1))) - 6))
    while bits > 1 and bands_for(bits, threshold) > _MAX_BANDS:
        bits -= 1
    return bits, bands_for(bits, threshold)


def sketch(rows: FixedRows, threshold: float, *, seed: int, workers: int = 1) -> Sketch:
    """Signs of ``rows`` for finding pairs with cosine at or above ``threshold``.

    Args:
        rows: int32[n, d] of :func:`~curation.algorithms.vectors.to_fixed`.
        threshold: cosine in (0, 1].
        seed: of the projections.
        workers: threads; they do not change the result.
    """
    n, d = rows.shape
    bits, bands = plan(n, threshold)
    width = max(64, 1 << (d - 1).bit_length())
    repeats = -(-max(bits * bands, CODE_BITS) // width)
    # The raw stream of a bit generator never changes; what numpy's distributions make of it may.
    raw = np.random.PCG64(seed).random_raw(repeats * _ROUNDS * width)
    signs = ((raw >> np.uint64(63)).astype(np.float32) * 2 - 1).reshape(repeats, _ROUNDS, width)
    keys = np.empty((n, bands), dtype=np.uint16)
    columns = np.empty((bands, n), dtype=np.uint16)
    filters = np.empty((n, FILTER_BITS // 64), dtype=np.uint64)
    codes = np.empty((n, (CODE_BITS - FILTER_BITS) // 64), dtype=np.uint64)
    known = (rows, signs, bits, keys, columns, filters, codes)
    run_chunks(lambda first, last: _signs(first, last, *known), spans(n, _SPAN), workers)
    enough = tuple(min(bands, bands_for(max(1, size), threshold)) for size in range(bits + 1))
    most_different = (_most(FILTER_BITS, threshold), _most(CODE_BITS, threshold))
    return Sketch(keys, columns, filters, codes, bits, enough, most_different)


def _most(size: int, threshold: float) -> int:
    """Bits of ``size`` that differ at the threshold at most, but for one pair in four thousand."""
    differ = _angle(threshold)
    return math.ceil(size * differ + _SIGMAS * math.sqrt(size * differ * (1 - differ)))


@njit(cache=True, nogil=True)
def _two(p: NDArray[np.float32], q: NDArray[np.float32]) -> None:
    for c in range(len(p)):
        a, b = p[c], q[c]
        p[c], q[c] = a + b, a - b


@njit(cache=True, nogil=True)
def _four(p: NDArray[np.float32], q: NDArray[np.float32], r: NDArray[np.float32], s: NDArray[np.float32]) -> None:
    for c in range(len(p)):
        a, b, d, e = p[c] + q[c], p[c] - q[c], r[c] + s[c], r[c] - s[c]
        p[c], q[c], r[c], s[c] = a + d, b + e, a - d, b - e


@njit(cache=True, nogil=True)
def _transform(block: NDArray[np.float32]) -> None:
    """Walsh-Hadamard transform of each column of float32[width, lanes], in place, two of its stages at a time."""
    width, h = block.shape[0], 1
    while 4 * h <= width:
        for at in range(0, width, 4 * h):
            _four(
                block[at : at + h].reshape(-1),
                block[at + h : at + 2 * h].reshape(-1),
                block[at + 2 * h : at + 3 * h].reshape(-1),
                block[at + 3 * h : at + 4 * h].reshape(-1),
            )
        h *= 4
    if h < width:
        _two(block[:h].reshape(-1), block[h:].reshape(-1))


@njit(cache=True, nogil=True)
def _signs(
    start: int,
    stop: int,
    rows: FixedRows,
    signs: NDArray[np.float32],
    bits: int,
    keys: NDArray[np.uint16],
    columns: NDArray[np.uint16],
    filters: NDArray[np.uint64],
    codes: NDArray[np.uint64],
) -> None:
    d = rows.shape[1]
    repeats, rounds, width = signs.shape
    bands = keys.shape[1]
    used = bits * bands
    for first in range(start, stop, _LANES):
        lanes = min(_LANES, stop - first)
        block = np.empty((width, _LANES), dtype=np.float32)
        # Lanes side by side, as in the block, so that gathering signs is vector work as well.
        key = np.zeros((bands, _LANES), dtype=np.uint32)
        code = np.zeros((CODE_BITS // 64, _LANES), dtype=np.uint64)
        for repeat in range(repeats):
            block[d:] = 0
            for lane in range(_LANES):
                row = first + min(lane, lanes - 1)
                for c in range(d):
                    block[c, lane] = np.float32(rows[row, c]) * signs[repeat, 0, c]
            _transform(block)
            for r in range(1, rounds):
                for c in range(width):
                    for lane in range(_LANES):
                        block[c, lane] *= signs[repeat, r, c]
                _transform(block)
            for c in range(width):
                p = repeat * width + c
                if p < CODE_BITS:
                    for lane in range(_LANES):
                        code[p // 64, lane] |= np.uint64(block[c, lane] > 0) << np.uint64(p % 64)
                if p < used:
                    for lane in range(_LANES):
                        key[p // bits, lane] |= np.uint32(block[c, lane] > 0) << np.uint32(p % bits)
        for lane in range(lanes):
            for band in range(bands):
                keys[first + lane, band] = columns[band, first + lane] = key[band, lane]
            for w in range(FILTER_BITS // 64):
                filters[first + lane, w] = code[w, lane]
            for w in range(FILTER_BITS // 64, CODE_BITS // 64):
                codes[first + lane, w - FILTER_BITS // 64] = code[w, lane]


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
        marks: their :func:`sketch`.
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
