"""Hierarchical clustering with a criterion for how many clusters there are.

Sources: Ward 1963 in the form of Lance and Williams 1967 (``scipy.cluster.hierarchy``); Rousseeuw 1987 (silhouette).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_cut", "cut", "pair_distances", "silhouettes", "ward"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


def pair_distances(rows: Floats) -> Floats:
    """Euclidean distances of float64[n, d] rows, float64[n, n]; no BLAS, so threads do not matter."""
    from scipy.spatial.distance import pdist, squareform

    return squareform(pdist(rows)) if len(rows) > 1 else np.zeros((len(rows), len(rows)))


def ward(distances: Floats) -> Floats:
    """Merges of Ward's method, as ``scipy.cluster.hierarchy.linkage`` gives them.

    Args:
        distances: float64[n, n], Euclidean, symmetric, n > 1.

    Returns:
        float64[n - 1, 4].
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    return linkage(squareform(distances, checks=False), "ward")


def cut(merges: Floats, clusters: int) -> Labels:
    """Cluster of each row after all but the last ``clusters - 1`` merges; int64[n], numbered by their first row."""
    n = len(merges) + 1
    parent = np.arange(2 * n - 1)
    # A merge is undone by leaving it out, so ties in height cannot make fewer clusters than asked for.
    for step in range(n - max(1, min(clusters, n))):
        parent[int(merges[step, 0])] = parent[int(merges[step, 1])] = n + step
    for node in range(2 * n - 2, -1, -1):
        parent[node] = parent[parent[node]]
    _, first, labels = np.unique(parent[:n], return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[labels]


def silhouettes(distances: Floats, labels: Labels) -> Floats:
    """Silhouette of every row, float64[n] in [-1, 1]; 0 for a row alone in its cluster or without another cluster.

    Args:
        distances: float64[n, n].
        labels: int64[n], 0 to k - 1, none empty.
    """
    return _silhouettes(_sums(distances, labels), labels)


def best_cut(merges: Floats, distances: Floats, sizes: Iterable[int]) -> tuple[Labels, float]:
    """The cut with the largest mean silhouette; of equal ones the coarsest.

    Args:
        merges: Of :func:`ward`.
        distances: float64[n, n], the distances it was made from.
        sizes: Numbers of clusters to try, each in 1 to n.

    Returns:
        int64[n] labels and their mean silhouette; all in one cluster, and 0, where no size is given.
    """
    best = np.zeros(len(distances), np.int64), 0.0
    top = -2.0
    finest = None
    for size in sorted(set(sizes), reverse=True):
        labels = cut(merges, size)
        if finest is None:
            finest, sums = labels, _sums(distances, labels)
        # Cuts are nested: sums over a coarser cluster are sums of the sums over its parts.
        parts = np.zeros(finest.max() + 1, np.int64)
        parts[finest] = labels
        score = float(_silhouettes(_gathered(sums, parts), labels).mean())
        if score >= top:
            best, top = (labels, score), score
    return best


def _sums(distances: Floats, labels: Labels) -> Floats:
    """float64[n, k]: sum of the distances of each row to the rows of each cluster."""
    return _gathered(distances, labels)


def _gathered(columns: Floats, groups: Labels) -> Floats:
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    return np.add.reduceat(columns[:, order], starts, axis=1)


def _silhouettes(sums: Floats, labels: Labels) -> Floats:
    rows, count = np.arange(len(labels)), np.bincount(labels)
    if len(count) < 2:
        return np.zeros(len(labels))
    own = sums[rows, labels] / np.maximum(count[labels] - 1, 1)
    others = sums / count
    others[rows, labels] = np.inf
    nearest = others.min(axis=1)
    larger = np.maximum(own, nearest)
    out = np.divide(nearest - own, larger, out=np.zeros(len(labels)), where=larger > 0)
    out[count[labels] == 1] = 0
    return out
