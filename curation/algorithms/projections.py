"""Near neighbours by sign random projections: which rows keep none within the threshold before them.

Rows whose angle is small agree on most signs of random projections (Charikar 2002). The signs are cut into bands;
rows that share a band are candidates, a 256-bit Hamming filter drops most of them, an exact product decides the rest.

Two things differ from the usual construction. The projections are three rounds of random sign flips and a
Walsh-Hadamard transform (as in cross-polytope hashing; Andoni et al. 2015, section 5): far cheaper than a matrix
product, and made of float additions in one fixed order, so that no sign depends on threads or BLAS. And no list of
pairs is ever built: rows come in order of priority, halves are solved one after the other, and a row is compared with
*kept* rows only, so that fifty thousand copies cost fifty thousand comparisons and memory does not depend on how
dense the data are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.vectors import FixedRows, dot, step

__all__ = ["Sketch", "kept_rows", "nearest_kept", "plan", "sketch"]

CODE_BITS = 256

_SPAN = 8192  # rows a thread takes at a time
_LANES = 16  # rows transformed together: one vector register per butterfly
_ROUNDS = 3
_LEAF = 2048  # below this comparing all codes is cheaper than sorting bands
_MAX_BANDS = 128
_TASKS = 8  # groups of bands that run side by side; each has results of its own, so more would cost memory
_SIGMAS = 4.0


class Sketch:
    """Signs of every row: ``keys`` uint32[n, bands], ``codes`` uint64[n, 4], and the limits that belong to them."""

    def __init__(self, keys: NDArray[np.uint32], codes: NDArray[np.uint64], bits: int, most_different: int) -> None:
        self.keys, self.codes, self.bits, self.most_different = keys, codes, bits, most_different


def _angle(threshold: float) -> float:
    """Share of random hyperplanes that part two vectors at the threshold; at 1 a little is left for rounding."""
    return math.acos(min(threshold, 0.9999)) / math.pi


def plan(n: int, threshold: float, recall: float = 0.999) -> tuple[int, int]:
    """Bits per band and number of bands so that a pair exactly at ``threshold`` shares a band with chance ``recall``.

    As many bits as rows make worth while, as long as the bands do not become more than 128.
    """
    agree = 1 - _angle(threshold)
    for bits in range(min(16, max(4, round(math.log2(max(n, 16))) - 3)), 1, -1):
        bands = math.ceil(math.log(1 - recall) / math.log(1 - agree**bits))
        if bands <= _MAX_BANDS:
            return bits, bands
    return 1, math.ceil(math.log(1 - recall) / math.log(1 - agree))


def sketch(rows: FixedRows, threshold: float, *, seed: int, recall: float = 0.999, workers: int = 1) -> Sketch:
    """Signs of ``rows`` for finding pairs with cosine at or above ``threshold``."""
    n, d = rows.shape
    bits, bands = plan(n, threshold, recall)
    width = max(64, 1 << (d - 1).bit_length())
    repeats = -(-max(bits * bands, CODE_BITS) // width)
    # The raw stream of a bit generator never changes; what numpy's distributions make of it may.
    raw = np.random.PCG64(seed).random_raw(repeats * _ROUNDS * width)
    signs = ((raw >> np.uint64(63)).astype(np.float32) * 2 - 1).reshape(repeats, _ROUNDS, width)
    keys = np.zeros((n, bands), dtype=np.uint32)
    codes = np.zeros((n, CODE_BITS // 64), dtype=np.uint64)
    run_chunks(lambda first, last: _signs(first, last, rows, signs, bits, keys, codes), spans(n, _SPAN), workers)
    differ = _angle(threshold)
    spread = math.sqrt(CODE_BITS * differ * (1 - differ))
    return Sketch(keys, codes, bits, math.ceil(CODE_BITS * differ + _SIGMAS * spread))


@njit(cache=True, nogil=True)
def _transform(block: NDArray[np.float32]) -> None:
    """Walsh-Hadamard transform of each column of float32[width, lanes], in place."""
    width, half = block.shape[0], 1
    while half < width:
        for start in range(0, width, 2 * half):
            for c in range(start, start + half):
                for lane in range(_LANES):
                    a, b = block[c, lane], block[c + half, lane]
                    block[c, lane] = a + b
                    block[c + half, lane] = a - b
        half *= 2


@njit(cache=True, nogil=True)
def _signs(
    start: int,
    stop: int,
    rows: FixedRows,
    signs: NDArray[np.float32],
    bits: int,
    keys: NDArray[np.uint32],
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
                keys[first + lane, band] = key[band, lane]
            for w in range(CODE_BITS // 64):
                codes[first + lane, w] = code[w, lane]


def _count_ones(typingctx: Any, x: Any) -> Any:
    """Number of ones in a uint64, as the processor's own instruction."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), build


_ones: Any = intrinsic(_count_ones)


@njit(cache=True, nogil=True)
def _differences(code: NDArray[np.uint64], codes: NDArray[np.uint64], size: int, out: NDArray[np.uint64]) -> None:
    """Hamming distances of one code to ``codes[:, :size]`` (word by word, so that the compiler can vectorise)."""
    a, b, c, d = code[0], code[1], code[2], code[3]
    for v in range(size):
        out[v] = _ones(a ^ codes[0, v]) + _ones(b ^ codes[1, v]) + _ones(c ^ codes[2, v]) + _ones(d ^ codes[3, v])


@njit(cache=True, nogil=True)
def _by_key(
    keys: NDArray[np.uint32], band: int, mask: int, chosen: NDArray[np.int64], start: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Counting sort of ``chosen`` rows by their masked key of a band; ``start`` becomes the offsets of the keys."""
    start[:] = 0
    own = np.empty(len(chosen), dtype=np.uint32)
    for u in range(len(chosen)):
        own[u] = keys[chosen[u], band] & np.uint32(mask)
        start[own[u] + 1] += 1
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
def _widest(start: NDArray[np.int32]) -> int:
    widest = 0
    for key in range(len(start) - 1):
        widest = max(widest, start[key + 1] - start[key])
    return widest


@njit(cache=True, nogil=True)
def _met_before(keys: NDArray[np.uint32], i: int, j: int, band: int, mask: int) -> bool:
    """Whether two rows share an earlier band: then the pair has been checked there."""
    met = False
    for earlier in range(band):  # without an early end, so that the compiler can vectorise
        met |= (keys[i, earlier] ^ keys[j, earlier]) & np.uint32(mask) == 0
    return met


@njit(cache=True, nogil=True)
def _leaf(
    rows: FixedRows,
    codes: NDArray[np.uint64],
    most_different: int,
    least: int,
    first: int,
    last: int,
    gone: NDArray[np.uint8],
) -> None:
    """Rows first..last in order of priority: each is gone when a kept one before it in this range is close."""
    kept = np.empty(last - first, dtype=np.int64)
    words = np.empty((4, last - first), dtype=np.uint64)
    differences = np.empty(last - first, dtype=np.uint64)
    size = 0
    for i in range(first, last):
        if gone[i]:
            continue
        _differences(codes[i], words, size, differences)
        for v in range(size):
            if differences[v] <= np.uint64(most_different) and dot(rows, i, rows, kept[v]) >= least:
                gone[i] = 1
                break
        if not gone[i]:
            for w in range(4):
                words[w, size] = codes[i, w]
            kept[size] = i
            size += 1


@njit(cache=True, nogil=True)
def _drop(
    task: int,
    rows: FixedRows,
    keys: NDArray[np.uint32],
    codes: NDArray[np.uint64],
    mask: int,
    most_different: int,
    least: int,
    kept: NDArray[np.int64],
    open_: NDArray[np.int64],
    gone: NDArray[np.uint8],
) -> None:
    """Mark the open rows that are close to a kept row. Tasks run side by side: a mark is only ever set."""
    for band in range(task, keys.shape[1], _TASKS):
        start = np.empty(mask + 2, dtype=np.int32)
        order = _by_key(keys, band, mask, kept, start)
        open_start = np.empty(mask + 2, dtype=np.int32)
        open_order = _by_key(keys, band, mask, open_, open_start)
        widest = _widest(start)
        words = np.empty((4, widest), dtype=np.uint64)
        differences = np.empty(widest, dtype=np.uint64)
        for key in range(mask + 1):
            begin, size = start[key], start[key + 1] - start[key]
            if size == 0 or open_start[key] == open_start[key + 1]:
                continue
            for v in range(size):
                for w in range(4):
                    words[w, v] = codes[kept[order[begin + v]], w]
            for u in range(open_start[key], open_start[key + 1]):
                i = open_[open_order[u]]
                if gone[i]:
                    continue
                _differences(codes[i], words, size, differences)
                for v in range(size):
                    if differences[v] <= np.uint64(most_different):
                        j = kept[order[begin + v]]
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
            _leaf(rows, marks.codes, marks.most_different, least, first, last, gone)
            return
        middle = first + _LEAF * (-(-(last - first) // _LEAF) // 2)
        solve(first, middle)
        kept = first + np.flatnonzero(gone[first:middle] == 0)
        open_ = middle + np.flatnonzero(gone[middle:last] == 0)
        # Fewer bits for fewer rows: emptying the table must not cost more than filling it, and recall only rises.
        bits = min(marks.bits, int(len(kept) + len(open_)).bit_length())
        limits = ((1 << bits) - 1, marks.most_different, least)
        known = (rows, marks.keys, marks.codes, *limits, kept, open_, gone)
        run_chunks(lambda task: _drop(task, *known), [(task,) for task in range(_TASKS)], workers)
        solve(middle, last)

    solve(0, len(rows))
    return gone == 0


@njit(cache=True, nogil=True)
def _closest(
    task: int,
    rows: FixedRows,
    keys: NDArray[np.uint32],
    codes: NDArray[np.uint64],
    mask: int,
    most_different: int,
    least: int,
    kept: NDArray[np.int64],
    gone: NDArray[np.int64],
    best: NDArray[np.int64],
    level: NDArray[np.int64],
) -> None:
    """Best kept row per gone row among the pairs of a task's bands; ``best`` holds indices into ``kept``."""
    start = np.empty(mask + 2, dtype=np.int32)
    gone_start = np.empty(mask + 2, dtype=np.int32)
    for band in range(task, keys.shape[1], _TASKS):
        order = _by_key(keys, band, mask, kept, start)
        gone_order = _by_key(keys, band, mask, gone, gone_start)
        widest = _widest(start)
        words = np.empty((4, widest), dtype=np.uint64)
        differences = np.empty(widest, dtype=np.uint64)
        for key in range(mask + 1):
            begin, size = start[key], start[key + 1] - start[key]
            if size == 0 or gone_start[key] == gone_start[key + 1]:
                continue
            for v in range(size):
                for w in range(4):
                    words[w, v] = codes[kept[order[begin + v]], w]
            for u in range(gone_start[key], gone_start[key + 1]):
                at = gone_order[u]
                i = gone[at]
                _differences(codes[i], words, size, differences)
                for v in range(size):
                    if differences[v] > np.uint64(most_different):
                        continue
                    choice = order[begin + v]
                    if _met_before(keys, i, kept[choice], band, mask):
                        continue
                    product = dot(rows, i, rows, kept[choice])
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
    limits = ((1 << marks.bits) - 1, marks.most_different, least)
    known = (rows, marks.keys, marks.codes, *limits, kept, gone)
    run_chunks(lambda task: _closest(task, *known, best[task], level[task]), [(t,) for t in range(_TASKS)], workers)
    top = level.max(axis=0)
    choice = np.where((level == top) & (best >= 0), best, len(kept)).min(axis=0, initial=len(kept))
    return np.where(top >= 0, choice, -1)
