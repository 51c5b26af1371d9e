"""Signs of random projections: short codes whose agreement tells the angle between vectors (Charikar 2002).

The projections are three rounds of random sign flips and a Walsh-Hadamard transform (as in cross-polytope hashing;
Andoni et al. 2015, section 5): far cheaper than a matrix product, and made of float additions in one fixed
order, so that no sign depends on threads or BLAS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.vectors import FixedRows, to_bytes

__all__ = ["CODE_BITS", "FILTER_BITS", "LANE", "Sketch", "bands_for", "plan", "sketch"]

CODE_BITS = 1024
"""Signs compared before a product is worth its memory traffic."""

FILTER_BITS = 512
"""Of these, the signs compared first."""

LANE = 16
"""Signs a band has a place for; the key of a band is the first few of its lane."""

_SPAN = 8192  # rows a thread takes at a time
_ABREAST = 64  # rows transformed together, side by side: long runs of equal work for vector registers
_ROUNDS = 3
_MAX_BANDS = 128
_MAX_BITS = 16
_RECALL = 0.999
_SIGMAS = 3.5


@dataclass(frozen=True)
class Sketch:
    """Signs of every row, and the limits that belong to them."""

    codes: NDArray[np.uint64]
    """uint64[n, 16 or more]: all signs, 64 a word; lane b (bits 16 b to 16 b + 15) belongs to band b."""
    columns: NDArray[np.uint16]
    """uint16[bands, n]: the lanes of the bands, for going through one band."""
    bits: int
    """Signs of a lane that are its key, at the most."""
    enough: tuple[int, ...]
    """Bands needed where only so many bits of their keys are used."""
    most_different: tuple[int, int]
    """How many of the first 512, and of the first 1,024 signs may differ for a close pair."""
    rough: NDArray[np.int8]
    """int8[n, d]: the rows themselves in bytes."""
    length: NDArray[np.float32]
    """float32[n]: lengths of the rows of bytes."""


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
    words = max(CODE_BITS, LANE * bands) + 63 >> 6
    repeats = -(-64 * words // width)
    # The raw stream of a bit generator never changes; what numpy's distributions make of it may.
    raw = np.random.PCG64(seed).random_raw(repeats * _ROUNDS * width)
    signs = ((raw >> np.uint64(63)).astype(np.float32) * 2 - 1).reshape(repeats, _ROUNDS, width)
    codes = np.empty((n, words), dtype=np.uint64)
    columns = np.empty((bands, n), dtype=np.uint16)
    run_chunks(lambda first, last: _signs(first, last, rows, signs, codes, columns), spans(n, _SPAN), workers)
    enough = tuple(min(bands, bands_for(max(1, size), threshold)) for size in range(bits + 1))
    most_different = (_most(FILTER_BITS, threshold), _most(CODE_BITS, threshold))
    return Sketch(codes, columns, bits, enough, most_different, *to_bytes(rows, workers=workers))


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
    codes: NDArray[np.uint64],
    columns: NDArray[np.uint16],
) -> None:
    d = rows.shape[1]
    repeats, rounds, width = signs.shape
    for first in range(start, stop, _ABREAST):
        lanes = min(_ABREAST, stop - first)
        block = np.empty((width, _ABREAST), dtype=np.float32)
        # Rows side by side, as in the block, so that gathering signs is vector work as well.
        code = np.zeros((codes.shape[1], _ABREAST), dtype=np.uint64)
        for repeat in range(repeats):
            block[d:] = 0
            for lane in range(_ABREAST):
                row = first + min(lane, lanes - 1)
                for c in range(d):
                    block[c, lane] = np.float32(rows[row, c]) * signs[repeat, 0, c]
            _transform(block)
            for r in range(1, rounds):
                for c in range(width):
                    for lane in range(_ABREAST):
                        block[c, lane] *= signs[repeat, r, c]
                _transform(block)
            for p in range(repeat * width, min((repeat + 1) * width, 64 * len(code))):
                for lane in range(_ABREAST):
                    code[p // 64, lane] |= np.uint64(block[p % width, lane] > 0) << np.uint64(p % 64)
        for lane in range(lanes):
            for w in range(len(code)):
                codes[first + lane, w] = code[w, lane]
        for band in range(len(columns)):
            for lane in range(lanes):
                columns[band, first + lane] = code[band // 4, lane] >> np.uint64(LANE * (band % 4))
