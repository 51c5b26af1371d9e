"""What open-ended tags say of queries, when several people tag in their own words and leave much out.

A tag is as good as it is *coherent*: the queries that carry it are more alike than any two queries. "question" stands
on anything and says nothing; "lock account" stands on queries that are near each other. The tags of a query are
completed by those of its neighbours, so that a missing or mistaken one does little harm. A tag is the more *general*,
the more clusters it is spread over: leaves are found by coherent tags, what joins leaves by general ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.vectors import GRID, FloatRows, to_grid

__all__ = ["Tagging", "coherence", "count_tags", "generality", "neighbours", "tag_profiles", "tagged_distances"]

Floats = NDArray[np.float64]

_SHRINK = 2.0
"""Queries that a tag must stand on for half of its coherence to count: two may be alike by chance."""


@dataclass(frozen=True)
class Tagging:
    """Counts of tags.

    Attributes:
        names: The tags, sorted; those that stand on one query only are left out, since they join nothing.
        counts: float64[n, tags], how many labellers gave the tag.
    """

    names: tuple[str, ...]
    counts: Floats


def count_tags(tags: Sequence[Sequence[str]], owner: NDArray[np.int64], n: int) -> Tagging:
    """Count tags.

    Args:
        tags: Of each labelling.
        owner: int64[labellings], the query it is of, 0 to n - 1; several labellers may tag one query.
        n: Queries.
    """
    found: dict[str, dict[int, int]] = {}
    for row, names in zip(owner.tolist(), tags, strict=True):
        for name in set(names):
            of = found.setdefault(name, {})
            of[row] = of.get(row, 0) + 1
    names = tuple(sorted(name for name, rows in found.items() if len(rows) > 1))
    counts = np.zeros((n, len(names)))
    for column, name in enumerate(names):
        rows = found[name]
        counts[list(rows), column] = list(rows.values())
    return Tagging(names, counts)


def coherence(tagging: Tagging, grid: FloatRows) -> Floats:
    """How much more alike the queries of each tag are than any queries, float64[tags] in [0, 1].

    Args:
        tagging: Of n queries.
        grid: float32[n, d] of :func:`~curation.algorithms.vectors.to_grid`.
    """
    n = len(grid)
    there = (tagging.counts > 0).astype(np.float64)
    rows = grid.astype(np.float64)
    # Whole numbers below 2 ** 53, exact in any order.
    number, sums, everything = there.sum(axis=0), there.T @ rows, rows.sum(axis=0)
    pairs = np.maximum(number * (number - 1), 1)
    alike = ((sums**2).sum(axis=1) / GRID**2 - number) / pairs
    base = ((everything**2).sum() / GRID**2 - n) / max(1, n * (n - 1))
    return np.clip((alike - base) / max(1 - base, 1e-9), 0, 1) * number / (number + _SHRINK)


def neighbours(grid: FloatRows, k: int) -> NDArray[np.int64]:
    """int64[n, min(k, n - 1)]: the nearest other rows of each row, ties by index."""
    n = len(grid)
    out = np.empty((n, max(0, min(k, n - 1))), np.int64)
    for start in range(0, n, 1024):
        products = grid[start : start + 1024] @ grid.T
        products[np.arange(len(products)), np.arange(start, start + len(products))] = -np.inf
        out[start : start + 1024] = np.argsort(-products, axis=1, kind="stable")[:, : out.shape[1]]
    return out


def tag_profiles(tagging: Tagging, weights: Floats, near: NDArray[np.int64], own: float = 0.5) -> FloatRows:
    """Weighted tags of each query, completed by those of its neighbours; float32[n, tags] unit rows, or zero ones.

    Args:
        tagging: Of n queries.
        weights: float64[tags].
        near: int64[n, k] of :func:`neighbours`.
        own: Share of a query's own tags.
    """
    weighted = tagging.counts * weights
    mean = np.zeros_like(weighted)
    for column in near.T:
        mean += weighted[column]
    rows = own * weighted + (1 - own) * mean / max(1, near.shape[1])
    length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0).astype(np.float32)


def tagged_distances(grid: FloatRows, profiles: FloatRows, tag_weight: float = 1.0) -> Floats:
    """Euclidean distances of text vector and ``tag_weight`` times tag profile set side by side; float64[n, n].

    Products are exact on the grid, so threads do not matter.
    """
    there = np.flatnonzero(profiles.any(axis=1))
    squares = np.zeros(len(grid))
    squares[there] = 1
    tags = np.zeros((len(grid), max(1, profiles.shape[1])), np.float32)
    if len(there):
        tags[there] = to_grid(profiles[there])
    square = 2 - 2 * (grid @ grid.T).astype(np.float64) / GRID**2
    square += tag_weight**2 * (squares[:, None] + squares - 2 * (tags @ tags.T).astype(np.float64) / GRID**2)
    np.maximum(square, 0, out=square)
    np.fill_diagonal(square, 0)
    return np.sqrt(square)


def generality(shares: Floats) -> Floats:
    """Logarithm of the number of clusters that each tag is spread over (inverse Simpson index), float64[tags].

    Args:
        shares: float64[clusters, tags], how much of each cluster carries the tag.
    """
    total = shares.sum(axis=0)
    parts = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    spread = (parts**2).sum(axis=0)
    return np.log(np.divide(1, spread, out=np.ones_like(spread), where=spread > 0))
