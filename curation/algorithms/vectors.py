"""Vectors whose products do not depend on threads, block sizes, compiler or the BLAS at hand.

Products of floats depend on the order of addition, so a row on a threshold would fall on either side. Products of
whole numbers do not. Unit vectors are therefore rounded to one of three grids:

* *fixed point* (:func:`to_fixed`): int32 with 28 fractional bits; products are exact int64 and differ from the real
  cosine by some 1e-9. For the products that decide.
* *bytes* (:func:`to_bytes`): fixed point cut down to int8, a quarter of the memory traffic. For products that tell
  what is far from a threshold.
* *grid* (:func:`to_grid`): whole numbers kept as float32, so small that every partial sum of a product stays below
  2**24 and is exact in float32 in any order: a BLAS product of grid vectors is the same number everywhere. Rounding
  moves a cosine by some 1e-4, which is nothing to a radius.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from curation.algorithms.parallel import run_chunks, spans

__all__ = [
    "FIXED",
    "GRID",
    "ROUGH",
    "blas_threads",
    "cosine",
    "distance",
    "dot",
    "step",
    "to_bytes",
    "to_fixed",
    "to_grid",
]

FIXED = 2.0**28
"""Length of a unit vector in fixed point; a product of two is at most 2**56."""

GRID = 4000.0
"""Length of a unit vector on the grid: (GRID + sqrt(d) / 2) ** 2 < 2 ** 24 for every d up to 30,000."""

ROUGH = 0.01
"""How far the cosine of two rows of bytes may be from that of the rows."""

_MAX_DIMENSIONS = 30_000
_MANY = 2**28  # multiplications below which waking threads costs more than it saves
_SPAN = 8192  # rows or pairs a thread takes at a time

FloatRows = NDArray[np.float32]
FixedRows = NDArray[np.int32]


@contextmanager
def blas_threads(workers: int, products: int) -> Iterator[None]:
    """Let BLAS use ``workers`` threads for a while, or one where there are too few ``products`` to share.

    Threads show in the seconds, not in products on the grid.
    """
    with _pools().limit(limits=max(1, int(workers)) if products > _MANY else 1, user_api="blas"):
        yield


@cache
def _pools() -> ThreadpoolController:
    # Finding the libraries takes a millisecond, too long for every one of thousands of small buckets.
    return ThreadpoolController()


@njit(cache=True, nogil=True)
def _scale(first: int, last: int, vectors: FloatRows, scale: float, out: Any, length: NDArray[np.float64]) -> None:
    for i in range(first, last):
        total = 0.0
        for c in range(vectors.shape[1]):
            total += np.float64(vectors[i, c]) * np.float64(vectors[i, c])
        length[i] = np.sqrt(total)
        if length[i] > 0.0 and np.isfinite(length[i]):
            for c in range(vectors.shape[1]):
                out[i, c] = np.rint(scale * (np.float64(vectors[i, c]) / length[i]))


def _scaled(vectors: FloatRows, scale: float, dtype: type, workers: int) -> Any:
    rows = np.ascontiguousarray(vectors, dtype=np.float32)
    if rows.ndim != 2:
        raise ValueError(f"vectors must be a matrix of rows x dimensions, not of shape {rows.shape}")
    if rows.shape[1] > _MAX_DIMENSIONS:
        raise ValueError(f"vectors of {rows.shape[1]} dimensions are too long; {_MAX_DIMENSIONS} are the most")
    out: Any = np.empty(rows.shape, dtype=dtype)
    length = np.empty(len(rows), dtype=np.float64)
    run_chunks(lambda first, last: _scale(first, last, rows, scale, out, length), spans(len(rows), _SPAN), workers)
    bad = np.flatnonzero(~((length > 0) & np.isfinite(length)))
    if len(bad):
        kind = "the zero vector" if length[bad[0]] == 0 else "not finite"
        raise ValueError(f"row {bad[0]} is {kind} ({len(bad)} such rows of {len(rows)}); it has no direction")
    return out


def to_fixed(vectors: FloatRows, *, workers: int = 1) -> FixedRows:
    """Rows scaled to length 1 in fixed point, int32 (n, d).

    Raises:
        ValueError: a row is zero or holds NaN or infinity (the first is named), or there are too many dimensions.
    """
    return _scaled(vectors, FIXED, np.int32, workers)


def to_grid(vectors: FloatRows, *, workers: int = 1) -> FloatRows:
    """Rows scaled to length :data:`GRID` and rounded to whole numbers, float32 (n, d).

    Raises:
        ValueError: a row is zero or holds NaN or infinity (the first is named), or there are too many dimensions.
    """
    return _scaled(vectors, GRID, np.float32, workers)


@njit(cache=True, nogil=True)
def _to_bytes(first: int, last: int, rows: FixedRows, out: NDArray[np.int8], length: NDArray[np.float32]) -> None:
    for i in range(first, last):
        largest = np.int64(1)
        for c in range(rows.shape[1]):
            largest = max(largest, abs(np.int64(rows[i, c])))
        total = 0.0
        for c in range(rows.shape[1]):
            value = np.rint(rows[i, c] * (127.0 / largest))
            out[i, c] = value
            total += value * value
        length[i] = np.sqrt(total)


def to_bytes(rows: FixedRows, *, workers: int = 1) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Rows in a byte a dimension, each scaled so that its largest entry is 127, and their lengths.

    The cosine of two such rows differs from the real one by less than :data:`ROUGH`; the standard deviation of the
    difference is an eighth of that in few dimensions, and a twentieth in 256.

    Returns:
        int8[n, d] and float32[n].
    """
    out = np.empty(rows.shape, dtype=np.int8)
    length = np.empty(len(rows), dtype=np.float32)
    run_chunks(lambda first, last: _to_bytes(first, last, rows, out, length), spans(len(rows), _SPAN), workers)
    return out, length


@njit(cache=True, nogil=True)
def dot(rows: FixedRows, i: int, other: FixedRows, j: int) -> np.int64:
    """Exact product of ``rows[i]`` and ``other[j]``; divide by FIXED**2 for the cosine."""
    total = np.int64(0)
    for c in range(rows.shape[1]):
        total += np.int64(rows[i, c]) * np.int64(other[j, c])
    return total


@njit(cache=True, nogil=True)
def step(product: np.int64) -> np.int64:
    """A product in steps of 2**-14: similarities that noise of 1e-6 must not tell apart become equal."""
    return (product + (1 << 41)) >> 42


@njit(cache=True, nogil=True)
def _cosines(
    first: int,
    last: int,
    rows: FixedRows,
    other: FixedRows,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    for t in range(first, last):
        out[t] = np.float64(dot(rows, i[t], other, j[t])) / (FIXED * FIXED)


@njit(cache=True, nogil=True)
def _distances(
    first: int,
    last: int,
    rows: FixedRows,
    other: FixedRows,
    i: NDArray[np.int64],
    j: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    for t in range(first, last):
        total = np.int64(0)
        for c in range(rows.shape[1]):
            step = np.int64(rows[i[t], c]) - np.int64(other[j[t], c])
            total += step * step
        out[t] = np.sqrt(np.float64(total)) / FIXED


def _pairwise(
    kernel: Any, rows: FixedRows, other: FixedRows, i: NDArray[np.int64], j: NDArray[np.int64], workers: int
) -> NDArray[np.float64]:
    left, right = np.asarray(i, dtype=np.int64), np.asarray(j, dtype=np.int64)
    out = np.empty(len(left), dtype=np.float64)
    run_chunks(
        lambda first, last: kernel(first, last, rows, other, left, right, out), spans(len(left), _SPAN), workers
    )
    return out


def cosine(
    rows: FixedRows, other: FixedRows, i: NDArray[np.int64], j: NDArray[np.int64], *, workers: int = 1
) -> NDArray[np.float64]:
    """Cosines of ``rows[i]`` and ``other[j]``, pair by pair; float64[len(i)] within 1e-8 of [-1, 1]."""
    return _pairwise(_cosines, rows, other, i, j, workers)


def distance(
    rows: FixedRows, other: FixedRows, i: NDArray[np.int64], j: NDArray[np.int64], *, workers: int = 1
) -> NDArray[np.float64]:
    """Euclidean distances of ``rows[i]`` and ``other[j]``, pair by pair; float64[len(i)] in [0, 2], 0 for equal rows.

    Unlike a root taken of the cosine, it is not blurred where rows are close.
    """
    return _pairwise(_distances, rows, other, i, j, workers)
