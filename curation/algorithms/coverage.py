"""Which pick covers a row, and how well a selection covers all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.vectors import FloatRows, blas_threads, cosine, to_fixed, to_grid

__all__ = ["nearest", "nearest_pick", "radii"]

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
    if len(picks) == 0:
        raise ValueError("there are no picks to be near to")
    choice = np.zeros(len(vectors), dtype=np.int64)
    similarity = np.empty(len(vectors), dtype=np.float32)
    with blas_threads(workers, vectors.size * len(picks)):
        columns, exact = to_grid(picks), to_fixed(picks)
        for first in range(0, len(vectors), _ROWS):
            at = slice(first, min(first + _ROWS, len(vectors)))
            rows = to_grid(vectors[at])
            best = np.full(len(rows), -np.inf, dtype=np.float32)
            for start in range(0, len(columns), _COLUMNS):
                products = rows @ columns[start : start + _COLUMNS].T
                which = products.argmax(axis=1)
                top = products[np.arange(len(rows)), which]
                closer = top > best
                best[closer] = top[closer]
                choice[at][closer] = start + which[closer]
            similarity[at] = cosine(to_fixed(vectors[at]), exact, np.arange(len(rows)), choice[at])
    return choice, np.clip(similarity, -1.0, 1.0)


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
