"""A tree of groups grown from tagged texts: leaves first, then what joins them, level by level.

1. *Leaves*: Ward's clusters of text vector and completed tag profile (:mod:`curation.algorithms.tagging`); the mean
   silhouette says how many.
2. *Levels above*: a leaf is its mean vector and the general tags of its rows. What twenty rows say in sum is far
   surer than what each says, so single missing and mistaken tags hardly matter here. Leaves are joined as rows were;
   a group is divided again as long as depth allows and it is too broad or clearly falls into parts.

Depth is ragged: a leaf that nothing joins stands at level 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.hierarchy import best_cut, cut, pair_distances, ward
from curation.algorithms.tagging import (
    Tagging,
    coherence,
    generality,
    neighbours,
    tag_profiles,
    tagged_distances,
)
from curation.algorithms.vectors import GRID, FloatRows, to_grid

__all__ = ["Group", "Grown", "Shape", "between", "grow", "overlaps"]

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

_NEIGHBOURS = 10
_TAG_WEIGHT = 1.0
"""Of the tag profile of a row against its text vector."""
_GENERAL_WEIGHT = 0.7
"""Of the general tags of a leaf against its mean vector."""
_WEAK = 0.5
"""Part of the median amount of general tags under which a leaf's tags count for less: they are few by chance."""
_CLEAR = 0.25
"""Mean silhouette from which a group that is not too broad is divided once more."""
_FINER = 1.08
"""Ratio of successive numbers of leaves that are tried."""


@dataclass(frozen=True)
class Shape:
    """Limits of a tree.

    Attributes:
        depth: Levels at most, at least 1.
        breadth: Children of a node at most, at least 2.
        least: Rows that a leaf must hold.
    """

    depth: int = 3
    breadth: int = 20
    least: int = 3


@dataclass
class Group:
    """A node: the rows of a leaf, or the children of an inner node and the rows that none of them takes."""

    rows: list[int] = field(default_factory=list)
    children: list[Group] = field(default_factory=list)

    def all_rows(self) -> list[int]:
        """Rows of the node and of all below it, ascending."""
        return sorted(self.rows + [row for child in self.children for row in child.all_rows()])


@dataclass(frozen=True)
class Grown:
    """A tree and what it was grown from.

    Attributes:
        root: Children by their first row.
        distances: float64[n, n] of the rows, text and tags together.
        tag_weights: float64[tags], how coherent each tag is.
    """

    root: Group
    distances: Floats
    tag_weights: Floats


def grow(vectors: FloatRows, tagging: Tagging, shape: Shape) -> Grown:
    """Grow a tree.

    Args:
        vectors: float32[n, d], not zero.
        tagging: Of the n rows.
        shape: Limits.

    Work and memory grow with n ** 2: some 4 CPU-seconds and 0.3 GB for 3,000 rows.
    """
    n = len(vectors)
    grid = to_grid(vectors)
    weights = coherence(tagging, grid)
    distances = tagged_distances(grid, tag_profiles(tagging, weights, neighbours(grid, _NEIGHBOURS)), _TAG_WEIGHT)
    most = min(n // max(1, shape.least), shape.breadth**shape.depth)
    if most < 2:
        return Grown(Group(list(range(n))), distances, weights)
    leaves, _ = best_cut(ward(distances), distances, _sizes(most))
    profiles = _leaf_profiles(grid, tagging, weights, leaves)
    members = [np.flatnonzero(leaves == leaf).tolist() for leaf in range(leaves.max() + 1)]
    return Grown(_joined(np.arange(len(members)), members, profiles, shape, 1), distances, weights)


def between(distances: Floats, members: Sequence[Sequence[int]]) -> Floats:
    """Mean distance of the rows of each two siblings, float64[k, k]."""
    return np.array([[distances[np.ix_(list(own), list(other))].mean() for other in members] for own in members])


def overlaps(distances: Floats, members: Sequence[Sequence[int]]) -> Floats:
    """How far siblings overlap, float64[k, k]: share of the rows of one that are nearer to another than to its own.

    Args:
        distances: float64[n, n].
        members: Rows of each of the k siblings. A row's distance to its own is the mean to the others of it.
    """
    k = len(members)
    out = np.zeros((k, k))
    for at, own in enumerate(members):
        if len(own) < 2:
            continue
        mean = np.stack([distances[np.ix_(own, list(other))].mean(axis=1) for other in members], axis=1)
        mean[:, at] *= len(own) / (len(own) - 1)
        out[at] = (mean < mean[:, at, None]).mean(axis=0)
    return out


def _sizes(most: int) -> list[int]:
    """Numbers of leaves to try, in steps of some percent."""
    sizes, size = [], 2.0
    while size < most:
        sizes.append(int(size))
        size = max(size + 1, size * _FINER)
    return [*sizes, most]


def _leaf_profiles(grid: FloatRows, tagging: Tagging, weights: Floats, leaves: Labels) -> Floats:
    """float64[leaves, d + tags]: unit mean vector, and the general tags weighted."""
    k = leaves.max() + 1
    size = np.bincount(leaves, minlength=k)[:, None]
    rows = grid.astype(np.float64) / GRID
    means, counts = np.zeros((k, rows.shape[1])), np.zeros((k, tagging.counts.shape[1]))
    np.add.at(means, leaves, rows)
    np.add.at(counts, leaves, tagging.counts)
    means = _unit(means / size - rows.mean(axis=0))
    tags = counts / size * generality(counts) * np.sqrt(weights)
    amount = np.sqrt((tags**2).sum(axis=1))
    enough = _WEAK * np.median(amount[amount > 0]) if (amount > 0).any() else 1.0
    return np.hstack([means, _GENERAL_WEIGHT * tags / np.maximum(amount, enough)[:, None]])


def _joined(leaves: Labels, members: list[list[int]], profiles: Floats, shape: Shape, level: int) -> Group:
    """The node above some leaves, its children at ``level``."""
    labels = _divided(profiles[leaves], shape, level)
    parts = [leaves[labels == part] for part in range(labels.max() + 1)] if labels is not None else leaves[:, None]
    node = Group()
    for part in parts:
        if len(part) == 1 or level == shape.depth:
            child = Group(sorted(row for leaf in part.tolist() for row in members[leaf]))
        else:
            child = _joined(part, members, profiles, shape, level + 1)
        if not child.children and len(child.rows) < shape.least:
            node.rows += child.rows
        else:
            node.children.append(child)
    # A single child says no more than the node itself.
    return Group(node.all_rows()) if len(node.children) == 1 and level > 1 else node


def _divided(profiles: Floats, shape: Shape, level: int) -> Labels | None:
    """Part of each leaf of a node, or None where each is a child of its own."""
    n = len(profiles)
    broad = n > shape.breadth
    if n < 2 or (level == shape.depth and not broad):
        return None
    distances = pair_distances(profiles)
    merges = ward(distances)
    if level == shape.depth:
        return cut(merges, shape.breadth)
    labels, score = best_cut(merges, distances, range(2, min(shape.breadth, n - 1) + 1))
    # At the top a grouping is what is asked for; below, only a group that falls into parts is worth a level.
    worth = broad or score >= (_CLEAR if level > 1 else 0.0)
    return labels if worth and labels.max() > 0 else None


def _unit(rows: Floats) -> Floats:
    return rows / np.maximum(np.sqrt((rows**2).sum(axis=1, keepdims=True)), 1e-9)
