"""Clusters of vectors by direction: many small ones first, then those that lie close are joined.

Faiss finds the small ones (spherical k-means, seeded, one thread, so that the same rows give the same clusters);
average linkage of their centres joins them (``scipy.cluster.hierarchy``), which needs no number of clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.vectors import GRID, FloatRows, to_grid

__all__ = ["Clusters", "agreeing", "closer_than_known", "clusterings", "mean_of_nearest", "spherical_kmeans"]

Labels = NDArray[np.int64]

_ROUNDS = 8


@dataclass(frozen=True)
class Clusters:
    """Clusters of n rows.

    Attributes:
        labels: int64[n], 0 to k - 1, numbered by their first row.
        sizes: int64[k], rows.
        nearness: float64[n], cosine of each row to the mean of its cluster.
        cohesion: float64[k], mean `nearness`.
    """

    labels: Labels
    sizes: Labels
    nearness: NDArray[np.float64]
    cohesion: NDArray[np.float64]


def spherical_kmeans(vectors: FloatRows, k: int, *, weights: NDArray[np.float64], seed: int) -> Labels:
    """Cluster of each row, int64[n] in 0 to k - 1 (some may be empty).

    Args:
        vectors: float32[n, d], not zero.
        k: Clusters, at least 1; min(k, n) are made.
        weights: float64[n], positive, of the rows in the means.
        seed: Of the rows that the search begins with.
    """
    import faiss

    rows = to_grid(vectors) / np.float32(GRID)
    k = max(1, min(k, len(rows)))
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        means = faiss.Kmeans(
            rows.shape[1],
            k,
            niter=_ROUNDS,
            seed=seed % 2**31,
            spherical=True,
            min_points_per_centroid=1,
            max_points_per_centroid=len(rows),
        )
        means.train(rows, weights=np.asarray(weights, np.float32))
        _, nearest = means.index.search(rows, 1)
    finally:
        faiss.omp_set_num_threads(before)
    return nearest[:, 0].astype(np.int64)


def clusterings(
    vectors: FloatRows, small: int, *, weights: NDArray[np.float64], joined_from: Sequence[float], seed: int
) -> list[Clusters]:
    """Clusters made of the same small ones, joined the more the lower the bar.

    Args:
        vectors: float32[n, d], not zero.
        small: Number of small clusters to begin with.
        weights: float64[n], positive.
        joined_from: Bars: mean cosine of two clusters' small ones from which they are one.
        seed: Of the k-means.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    labels = _numbered(spherical_kmeans(vectors, small, weights=weights, seed=seed))
    tree = linkage(_centres(vectors, labels)[0], "average", metric="cosine") if labels.max() > 0 else None
    found = []
    for bar in joined_from:
        joined = labels
        if tree is not None:
            joined = _numbered(fcluster(tree, 1 - bar, "distance")[labels].astype(np.int64))
        _, nearness = _centres(vectors, joined)
        sizes = np.bincount(joined)
        found.append(Clusters(joined, sizes, nearness, np.bincount(joined, nearness) / sizes))
    return found


def agreeing(found: Sequence[Sequence[Labels]], overlap: float) -> list[list[tuple[int, int]]]:
    """Which sets of rows were found more than once: groups of alike ones, of each search at most one.

    Args:
        found: By search, the sets it found, the best first: rows without repetition.
        overlap: Jaccard similarity with one of a group from which on a set belongs to it.

    Returns:
        Groups of (search, place of the set there), the one most like the rest of its group first; every set is in
        one, the first that it fits.
    """
    groups: list[list[tuple[int, int]]] = []
    for search, sets in enumerate(found):
        for place, rows in enumerate(sets):
            for group in groups:
                others = (found[other][at] for other, at in group)
                if group[-1][0] != search and any(_jaccard(rows, other) >= overlap for other in others):
                    group.append((search, place))
                    break
            else:
                groups.append([(search, place)])
    return [_middle_first(group, found) for group in groups]


def _middle_first(group: list[tuple[int, int]], found: Sequence[Sequence[Labels]]) -> list[tuple[int, int]]:
    sets = [found[search][place] for search, place in group]
    alike = [sum(_jaccard(one, other) for other in sets) for one in sets]
    middle = group[alike.index(max(alike))]
    return [middle, *(member for member in group if member != middle)]


def _jaccard(one: Labels, other: Labels) -> float:
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


def closer_than_known(
    vectors: FloatRows, to_known: NDArray[np.float64], *, neighbours: tuple[int, int], most: int
) -> NDArray[np.float64]:
    """How much closer rows are to their like than to what is known: float64[n], a difference of cosines.

    Rows of a class that no known row stands for are as close to each other as those of any class, but not to a known
    row (the idea of the local outlier factor, Breunig et al. 2000, between two sets).

    Args:
        vectors: float32[n, d], not zero, in an order that is as good as chance.
        to_known: float64[n], mean cosine of each row to its nearest known rows.
        neighbours: From which to which nearest of the other rows the mean cosine is taken; fewer of fewer rows.
        most: Rows that neighbours are looked for among; of more, so many, evenly spread.
    """
    n = len(vectors)
    places = np.linspace(0, n, min(n, most), endpoint=False).astype(np.int64)
    columns = to_grid(vectors[places])
    share = len(places) / n
    high = min(max(2, round(neighbours[1] * share)), len(places) - 1)
    low = min(max(1, round(neighbours[0] * share)), high - 1)
    if low < 0 or high < 1:
        return np.zeros(n)
    mean = np.empty(n)
    for start in range(0, n, 2048):
        at = slice(start, start + 2048)
        products = to_grid(vectors[at]) @ columns.T
        own = np.flatnonzero((places >= start) & (places < start + 2048))
        products[places[own] - start, own] = -np.inf
        nearest = -np.sort(-np.partition(products, len(places) - high, axis=1)[:, len(places) - high :], axis=1)
        mean[at] = nearest[:, low:].astype(np.float64).mean(axis=1) / GRID**2
    return mean - to_known


def mean_of_nearest(vectors: FloatRows, known: FloatRows, k: int) -> tuple[NDArray[np.float64], Labels]:
    """Mean cosine of each row to its k nearest known rows, and which these are.

    Args:
        vectors: float32[n, d], not zero.
        known: float32[m, d], m > 0, not zero.
        k: At most m are taken.

    Returns:
        float64[n]; int64[n, min(k, m)] places in `known`, the nearest first, ties by place.
    """
    columns = to_grid(known)
    k = min(k, len(columns))
    mean, which = np.empty(len(vectors)), np.empty((len(vectors), k), np.int64)
    for start in range(0, len(vectors), 2048):
        at = slice(start, start + 2048)
        products = to_grid(vectors[at]) @ columns.T
        # Whole numbers: a product and its place make one number without ties.
        keys = products.astype(np.int64) * len(columns) + np.arange(len(columns) - 1, -1, -1)
        best = -np.sort(-np.partition(keys, len(columns) - k, axis=1)[:, len(columns) - k :], axis=1)
        which[at] = len(columns) - 1 - best % len(columns)
        mean[at] = (best // len(columns)).sum(axis=1) / (k * GRID**2)
    return mean, which


def _centres(vectors: FloatRows, labels: Labels) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Unit means of the clusters, float64[k, d], and the cosine of each row to its own."""
    rows = to_grid(vectors).astype(np.float64)
    rows /= np.sqrt((rows**2).sum(axis=1, keepdims=True))
    sums = np.zeros((labels.max() + 1, rows.shape[1]))
    np.add.at(sums, labels, rows)
    sums /= np.maximum(np.sqrt((sums**2).sum(axis=1, keepdims=True)), 1e-9)
    nearness = np.empty(len(rows))
    for start in range(0, len(rows), 4096):
        at = slice(start, start + 4096)
        nearness[at] = (rows[at] * sums[labels[at]]).sum(axis=1)
    return sums, np.minimum(nearness, 1.0)


def _numbered(labels: Labels) -> Labels:
    """The same clusters, numbered by their first row, without empty ones."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which]
