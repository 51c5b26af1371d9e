"""Near neighbours by all products: exact, blockwise, for small buckets and as the oracle of the faster ways.

Float products from BLAS only sort out what is far from the threshold; what is near it is decided by an exact product,
so the result does not depend on the BLAS.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from curation.algorithms.vectors import FIXED, FixedRows, FloatRows, dot, step

__all__ = ["SLACK", "kept_rows", "nearest_kept", "units"]

SLACK = 1e-4
"""How far below the threshold a float product must be to settle a pair: far more than float32 can be wrong."""

_ROWS = 1024
_COLUMNS = 4096


def units(rows: FixedRows) -> FloatRows:
    """Fixed-point rows as float32 unit vectors."""
    return rows.astype(np.float32) * np.float32(1 / FIXED)


@njit(cache=True, nogil=True)
def _leaders(
    rows: FixedRows, products: FloatRows, floor: float, least: int, first: int, gone: NDArray[np.bool_]
) -> None:
    """Go through a block in order of priority; a row is gone when a kept row before it in the block is close."""
    for u in range(products.shape[0]):
        i = first + u
        for v in range(u):
            if gone[i]:
                break
            if products[u, v] >= floor and not gone[first + v] and dot(rows, i, rows, first + v) >= least:
                gone[i] = True


@njit(cache=True, nogil=True)
def _mark(
    rows: FixedRows,
    products: FloatRows,
    floor: float,
    least: int,
    first: int,
    kept: NDArray[np.int64],
    gone: NDArray[np.bool_],
) -> None:
    """Mark the rows of a block that are close to one of ``kept``."""
    for u in range(products.shape[0]):
        i = first + u
        for v in range(products.shape[1]):
            if gone[i]:
                break
            if products[u, v] >= floor and dot(rows, i, rows, kept[v]) >= least:
                gone[i] = True


@njit(cache=True, nogil=True)
def _improve(
    rows: FixedRows,
    products: FloatRows,
    floor: float,
    least: int,
    kept: NDArray[np.int64],
    offset: int,
    gone: NDArray[np.int64],
    best: NDArray[np.int64],
    level: NDArray[np.int64],
) -> None:
    """Take the most similar of a chunk of kept rows where it beats the best so far; chunks come best first."""
    for u in range(products.shape[0]):
        for v in range(products.shape[1]):
            if products[u, v] >= floor:
                product = dot(rows, gone[u], rows, kept[v])
                if product >= least and step(product) > level[u]:
                    best[u], level[u] = offset + v, step(product)


def _floor(least: int) -> float:
    return least / FIXED**2 - SLACK


def kept_rows(rows: FixedRows, least: int) -> NDArray[np.bool_]:
    """Rows, in order of priority, that no kept row before them is close to.

    Args:
        rows: int32[n, d] of :func:`~curation.algorithms.vectors.to_fixed`, best first.
        least: smallest product that counts as close.

    Returns:
        bool[n].
    """
    n, floor = len(rows), _floor(least)
    gone = np.zeros(n, dtype=np.bool_)
    for first in range(0, n, _ROWS):
        block = units(rows[first : first + _ROWS])
        kept = np.flatnonzero(~gone[:first])
        for at in range(0, len(kept), _COLUMNS):
            chunk = kept[at : at + _COLUMNS]
            _mark(rows, block @ units(rows[chunk]).T, floor, least, first, chunk, gone)
        _leaders(rows, block @ block.T, floor, least, first, gone)
    return ~gone


def nearest_kept(rows: FixedRows, least: int, kept: NDArray[np.int64], gone: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most similar kept row of each row that is gone; ties go to the kept row of higher priority.

    Args:
        rows, least: as in :func:`kept_rows`.
        kept: int64[k], kept rows, best first.
        gone: int64[m], the other rows.

    Returns:
        int64[m], an index into ``kept``, or -1 where none is close.
    """
    best = np.full(len(gone), -1, dtype=np.int64)
    level = np.full(len(gone), -1, dtype=np.int64)
    for first in range(0, len(gone), _ROWS):
        at = slice(first, first + _ROWS)
        block = units(rows[gone[at]])
        for offset in range(0, len(kept), _COLUMNS):
            chunk = kept[offset : offset + _COLUMNS]
            products = block @ units(rows[chunk]).T
            _improve(rows, products, _floor(least), least, chunk, offset, gone[at], best[at], level[at])
    return best
