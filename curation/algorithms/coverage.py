"""Which pick covers a row, and how well a selection covers all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.vectors import GRID, FloatRows, blas_threads, cosine, to_fixed, to_grid

__all__ = ["nearest", "nearest_pick", "nearness", "radii"]

_ROWS = 2048
_COLUMNS = 4096


def nearest(
    vectors: FloatRows, picks: FloatRows, *, workers: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The nearest of ``picks`` to every row, blockwise.

    Args:
        vectors: float32[n, d].
        picks: float32[k, d], k > 0.
        workers: threads; they do not change the result.

    Returns:
        int64[n], index into ``picks`` (ties: the lower); float32[n], cosine to it in [-1, 1].
    """
    choice = np.empty(len(vectors), dtype=np.int64)
    similarity = np.empty(len(vectors), dtype=np.float32)
    exact = to_fixed(picks)
    for at, which, _ in _best(vectors, picks, workers):
        choice[at] = which
        similarity[at] = cosine(to_fixed(vectors[at]), exact, np.arange(len(which)), which)
    return choice, np.clip(similarity, -1.0, 1.0)


def nearness(vectors: FloatRows, picks: FloatRows, *, workers: int = 1) -> NDArray[np.float32]:
    """Cosine of every row to the nearest of ``picks``, within 1e-4; float32[n].

    The maximum of the nearness to parts of ``picks`` is exactly the nearness to all, so parts can come one by one.
    """
    out = np.empty(len(vectors), dtype=np.float32)
    for at, _, top in _best(vectors, picks, workers):
        out[at] = top / np.float32(GRID * GRID)
    return np.clip(out, -1.0, 1.0)


def _best(vectors: FloatRows, picks: FloatRows, workers: int) -> Iterator[tuple[slice, NDArray[np.int64], FloatRows]]:
    """Block by block of the rows: where, the pick with the largest product on the grid, that product."""
    if len(picks) == 0:
        raise ValueError("there are no picks to be near to")
    columns = to_grid(picks)
    with blas_threads(workers, vectors.size * len(picks)):
        for first in range(0, len(vectors), _ROWS):
            at = slice(first, min(first + _ROWS, len(vectors)))
            rows = to_grid(vectors[at])
            choice = np.zeros(len(rows), dtype=np.int64)
            best = np.full(len(rows), -np.inf, dtype=np.float32)
            for start in range(0, len(columns), _COLUMNS):
                products = rows @ columns[start : start + _COLUMNS].T
                which = products.argmax(axis=1)
                top = products[np.arange(len(rows)), which]
                closer = top > best
                best[closer] = top[closer]
                choice[closer] = start + which[closer]
            yield at, choice, best


def nearest_pick(
    vectors: FloatRows, picks: NDArray[np.int64], *, workers: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The pick that covers each row: itself for a pick, else the nearest.

    Args:
        vectors: float32[n, d].
        picks: int64[k], rows of ``vectors``.
        workers: threads; they do not change the result.

    Returns:
        int64[n], a row of ``vectors``; float32[n], cosine to it, exactly 1 for a pick.
    """
    choice, similarity = nearest(vectors, vectors[picks], workers=workers)
    covers = picks[choice]
    covers[picks] = picks
    similarity[picks] = 1.0
    return covers, similarity


def radii(similarity: NDArray[np.float32]) -> NDArray[np.float64]:
    """Euclidean distances between unit vectors of the given cosines."""
    return np.sqrt(np.maximum(0.0, 2.0 - 2.0 * np.asarray(similarity, dtype=np.float64)))
