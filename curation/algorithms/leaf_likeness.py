"""How like every labelled row is to the other rows of each leaf: who is taken for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.vectors import GRID, FloatRows, to_grid

__all__ = ["Likeness", "likeness"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NEAREST = 3


@dataclass(frozen=True)
class Likeness:
    """Likeness of n rows to k leaves.

    Attributes:
        leaves: Sorted.
        own: int64[n], the leaf of each row.
        scores: float64[n, k], mean cosine to the nearest other rows of the leaf; -1 for a leaf without another row.
    """

    leaves: tuple[str, ...]
    own: Ints
    scores: Floats

    @cached_property
    def taken(self) -> Ints:
        """int64[n], the likeliest leaf of each row."""
        return self.scores.argmax(axis=1) if self.leaves else np.empty(0, np.int64)

    @cached_property
    def sizes(self) -> Ints:
        """int64[k], rows of each leaf."""
        return np.bincount(self.own, minlength=len(self.leaves))

    def counts(self) -> Ints:
        """int64[k, k], rows of a leaf that another takes."""
        out = np.zeros((len(self.leaves), len(self.leaves)), np.int64)
        np.add.at(out, (self.own, self.taken), 1)
        return out

    def shares(self) -> Floats:
        """:meth:`counts` as shares of the rows of the leaf."""
        return self.counts() / np.maximum(self.sizes, 1)[:, None]

    def confusion(self) -> Floats:
        """float64[k, k]: of the rows of a leaf that it or another takes, the share the other takes; 1/2 is chance."""
        counts = self.counts()
        pairs = counts + np.diag(counts)[:, None]
        return np.divide(counts, pairs, out=np.zeros(counts.shape), where=pairs > 0)

    def two_best(self) -> tuple[Ints, Ints, Floats]:
        """The two likeliest leaves of each row, and the lead of the first; there must be two leaves."""
        order = np.argsort(-self.scores, axis=1, kind="stable")[:, :2]
        best = np.take_along_axis(self.scores, order, axis=1)
        return order[:, 0], order[:, 1], best[:, 0] - best[:, 1]

    def swapped(self, first: int, second: int) -> Ints:
        """Rows of two leaves that the other takes, the largest lead first."""
        rows = np.flatnonzero(
            ((self.own == first) & (self.taken == second)) | ((self.own == second) & (self.taken == first))
        )
        lead = self.scores[rows, self.taken[rows]] - self.scores[rows, self.own[rows]]
        return rows[np.lexsort((rows, -lead))]


def likeness(vectors: FloatRows, labels: Sequence[str]) -> Likeness:
    """Score every row against every leaf, itself left out.

    Args:
        vectors: float32[n, d], not zero.
        labels: The leaf of each row.
    """
    leaves = tuple(sorted(set(labels)))
    place = {leaf: at for at, leaf in enumerate(leaves)}
    own = np.array([place[label] for label in labels], np.int64)
    scores = np.full((len(own), len(leaves)), -1.0)
    if not len(own):
        return Likeness(leaves, own, scores)
    grid = to_grid(vectors)
    for at in range(len(leaves)):
        members = np.flatnonzero(own == at)
        products = (grid @ grid[members].T).astype(np.float64) / GRID**2
        products[members, np.arange(len(members))] = -np.inf
        best = -np.sort(-products, axis=1)[:, :_NEAREST]
        there = np.isfinite(best)
        number = there.sum(axis=1)
        total = np.where(there, best, 0).sum(axis=1)
        scores[:, at] = np.divide(total, number, out=np.full(len(own), -1.0), where=number > 0)
    return Likeness(leaves, own, scores)
