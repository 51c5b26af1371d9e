"""Vectors of rows that also say which labelled rows they are like.

Beside the direction of a row, less that of all rows, stand its scores for each label, by kernel ridge regression on
the labelled rows (Saunders, Gammerman and Vovk 1998; the kernel is exp(2 (cosine - 1))). What labels vary with counts
then more than what they do not, such as names of places: rows of one intent that no label stands for lie between the
same labels. Clusters of such vectors are purer by intent than those of the bare ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from curation.algorithms.spread import round_robin
from curation.algorithms.vectors import GRID, FloatRows, to_grid

__all__ = ["informed"]

Floats = NDArray[np.float64]

_WIDTH = 2.0
_RIDGE = 0.5
_SHARE = 0.4
"""Squared length of the scores against that of a direction."""
_MOST_KNOWN = 3000
_KERNEL, _WEIGHT = 2.0**20, 2.0**17
"""Grids of two factors: their products are whole numbers below 2**37, 2**12 of which are added exactly."""
_BLOCK = 2048


def informed(vectors: FloatRows, known: FloatRows, labels: ArrayLike) -> NDArray[np.float32]:
    """Unit vectors, float32[n, d + labels], of rows that may be compared with each other.

    The same for any number of threads; a row's depends on the others by their mean only. Some 3 CPU-seconds for 2,500
    labelled rows, and 0.1 ms a row.

    Args:
        vectors: float32[n, d], not zero.
        known: float32[m, d], m > 0, labelled rows, not zero; of more than 3,000 a sample balanced over labels counts.
        labels: str[m], of the labelled rows.
    """
    names, which = np.unique(np.asarray(labels, dtype=str), return_inverse=True)
    taken = np.sort(round_robin(which, np.zeros_like(which), _MOST_KNOWN))
    middles, weights = to_grid(known[taken]), _weights(known[taken], which[taken], len(names))
    rows = to_grid(vectors).astype(np.float64) / GRID
    mean = rows.mean(axis=0)
    out = np.empty((len(rows), rows.shape[1] + len(names)), np.float32)
    for start in range(0, len(rows), _BLOCK):
        at = slice(start, start + _BLOCK)
        scores = np.rint(_kernel(to_grid(vectors[at]), middles) * _KERNEL) @ weights / (_KERNEL * _WEIGHT)
        scores -= scores.mean(axis=1, keepdims=True)
        out[at] = _unit(np.hstack([rows[at] - mean, np.sqrt(_SHARE) * _unit(scores)]))
    return out


def _weights(known: FloatRows, which: NDArray[np.int64], labels: int) -> Floats:
    """Whole numbers, float64[m, labels]: the solution of the ridge regression on its grid."""
    grid = to_grid(known)
    with threadpool_limits(limits=1):
        kernel = _kernel(grid, grid) + _RIDGE * np.eye(len(known))
        return np.rint(np.linalg.solve(kernel, np.eye(labels)[which] - 1 / labels) * _WEIGHT)


def _kernel(rows: FloatRows, middles: FloatRows) -> Floats:
    return np.exp(_WIDTH * ((rows @ middles.T).astype(np.float64) / GRID**2 - 1))


def _unit(rows: Floats) -> Floats:
    return rows / np.maximum(np.sqrt((rows**2).sum(axis=1, keepdims=True)), 1e-9)
