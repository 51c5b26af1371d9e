"""The embedded teacher's look at what the taxonomy has no leaf for: groups of rows that it is not sure of.

Looked at are the rows in an Other, and the least certain rows of the leaves: where a category is missing, most of its
rows are pressed into a leaf beside it. They are clustered by what they say and by what the seeds say of them
(:mod:`curation.algorithms.informed`). A cluster is the newer, the less certain the labels of its rows.

* A new cluster becomes a proposal to add a leaf below the deepest node that holds most of its rows and their nearest
  seeds, unless leaves claim it: unless, as their calibrated confidence says, most of its rows are rightly where they
  are.
* Confidence is calibrated on what there are leaves for, and may be high for what there is none for. So a closer
  cluster is new, too, whose rows are closer to each other than to the seeds and less certain than others.
* A cluster of rows in an Other that is not new, and whose nearest seeds are mostly of one leaf, becomes a proposal
  that this leaf takes them in (kind ``merge``, from the Other).
* Small clusters, loose ones and those that are neither are left alone.

What k-means finds depends on the rows it begins with. So it is asked several times, and a cluster that only one of
them finds is left alone too (consensus clustering; Monti et al. 2003, Machine Learning 52, section 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.algorithms.clusters import Clusters, agreeing, closer_than_known, clusterings, mean_of_nearest
from curation.algorithms.dsquared import d2_sample
from curation.algorithms.informed import informed
from curation.algorithms.trend import late_share
from curation.domain.model import OTHER, Taxonomy
from curation.taxonomy.proposal import Evidence, Proposal
from curation.teachers.embedded.naming import Name, Namer

__all__ = ["Expansion", "expand", "looked_at"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_NEAREST = 5
"""Seeds that a row's familiarity is taken from."""
_ROWS_A_CLUSTER = 25
_LEAST_CLUSTERS, _MOST_CLUSTERS = 50, 1000
_JOINED_FROM, _JOINED_CLOSELY_FROM = 0.5, 0.7
_NEIGHBOURS, _MOST_NEIGHBOURS = (10, 25), 16_384
_CLUSTERINGS, _LARGE, _CLUSTERINGS_OF_LARGE = 5, 16_384, 3
"""How often rows are clustered, and more than `_LARGE` rows, where it costs most and chance matters least."""
_AGREE, _ALIKE = 2, 0.5
"""Clusterings that must find a cluster, and the Jaccard similarity from which on two clusters are the same."""
_APART = 0.65
"""Product of the mean ranks of closeness and of doubt from which on a closer cluster is new."""
_LOOSE_A_CLOSE = 4
"""Proposals of the first kind for each of the second, at most; the best of each kind keep their places."""
_CORE = 0.75
"""Share of a cluster's rows, those nearest to its middle, that are shown as evidence."""
_SHOWN = 40
_SAME = 0.95
"""Cosine from which on a row says nothing that evidence before it does not."""
_HELD = 0.6
"""Share of a cluster that a node must hold to be its place, or its nearest seeds to be of one leaf."""
_CLAIMED = 0.55
"""Share of a cluster's rows expected to be right in a leaf from which on it is no new one: a little above half."""
_COHESION = 0.5
"""Of a cluster's cohesion against its newness, in the order of proposals."""


@dataclass(frozen=True)
class Expansion:
    """What is looked at and what is proposed.

    Attributes:
        uncertain: Share of the rows in leaves, the least certain, that are looked at beside those in an Other.
        most_rows: Rows looked at, at most: those in an Other before the least certain.
        least_rows: Distinct queries that a cluster must hold.
        least_weight: Raw rows that a cluster must stand for.
        least_cohesion: Mean cosine to its middle that a cluster must have, in the space that it is found in.
        newer_than: Mean rank of newness, 0 to 1, that the rows of a cluster must have.
        most: Proposals at most, the best, of the first kind; of closer clusters a fourth of that.
    """

    uncertain: float = 0.5
    most_rows: int = 50_000
    least_rows: int = 15
    least_weight: int = 30
    least_cohesion: float = 0.45
    newer_than: float = 0.35
    most: int = 40


def looked_at(rows: pl.DataFrame, limits: Expansion) -> pl.DataFrame:
    """The rows that :func:`expand` takes, so that only their vectors need be read.

    Args:
        rows: All annotated queries: ``query_id``, ``text``, ``weight`` (raw rows), ``primary`` (null for one that
            failed), ``confidence``, ``first_seen`` and ``last_seen``, which may be null. Their order means nothing.
        limits: What is looked at.

    Returns:
        Rows in an Other and the least certain others, by query id, with ``other``, and with ``begin`` and ``end`` in
        place of the times: parts of the whole span, 0 to 1, null where unknown.
    """
    other = (pl.col("primary") == OTHER) | pl.col("primary").str.ends_with(f".{OTHER}")
    span = pl.col("last_seen").max() - pl.col("first_seen").min()
    since = [(pl.col(name) - pl.col("first_seen").min()) / span for name in ("first_seen", "last_seen")]
    place = pl.struct("confidence", "query_id").rank("ordinal").over("other") / pl.len().over("other")
    return (
        rows.with_columns(begin=since[0].cast(pl.Float64), end=since[1].cast(pl.Float64))
        .filter(pl.col("primary").is_not_null())
        .with_columns(other=other)
        .with_columns(place=place)
        .filter(pl.col("other") | (pl.col("place") <= limits.uncertain))
        .sort(pl.col("other").not_(), "confidence", "query_id")
        .head(limits.most_rows)
        .sort("query_id")
        .select("query_id", "text", "weight", "primary", "confidence", "other", "begin", "end")
    )


def expand(
    rows: pl.DataFrame,
    vectors: NDArray[np.float32],
    seeds: pl.DataFrame,
    seed_vectors: NDArray[np.float32],
    taxonomy: Taxonomy,
    limits: Expansion | None = None,
    *,
    seed: int = 0,
) -> list[Proposal]:
    """Propose leaves for what the taxonomy has none for.

    Args:
        rows: Of :func:`looked_at`.
        vectors: float32[n, d], not zero, row by row.
        seeds: Labelled seeds, with ``primary``.
        seed_vectors: float32[m, d], not zero.
        taxonomy: The version that `rows` are labelled with.
        limits: What is proposed.
        seed: Of the clusters.

    Returns:
        Proposals, the best first; none where there are no rows or no seeds.
    """
    limits = limits or Expansion()
    if rows.is_empty() or not len(seed_vectors):
        return []
    labels = seeds["primary"].to_numpy()
    directions = informed(vectors, seed_vectors, labels)
    small = min(_MOST_CLUSTERS, max(_LEAST_CLUSTERS, len(vectors) // _ROWS_A_CLUSTER))
    often = 1 + np.log(np.maximum(rows["weight"].to_numpy(), 1))
    bars = (_JOINED_FROM, _JOINED_CLOSELY_FROM)
    times = _CLUSTERINGS if len(vectors) <= _LARGE else _CLUSTERINGS_OF_LARGE
    found = [
        clusterings(directions, small, weights=often, joined_from=bars, seed=seed + time) for time in range(times)
    ]
    familiar, nearest = mean_of_nearest(vectors, seed_vectors, _NEAREST)
    closer = closer_than_known(vectors, familiar, neighbours=_NEIGHBOURS, most=_MOST_NEIGHBOURS)
    return _Proposer(rows, directions, found, labels[nearest], closer, taxonomy, limits, seed).proposals()


def _rank(values: Floats) -> Floats:
    """Rank of each value from 0 to 1, equal ones alike."""
    ordered = np.sort(values)
    return (np.searchsorted(ordered, values) + np.searchsorted(ordered, values, side="right")) / (2 * len(values))


def _best(found: list[_Found], most: int | None = None) -> list[_Found]:
    return sorted(found, key=lambda one: (-one.score, int(one.rows[0])))[:most]


@dataclass(frozen=True)
class _Found:
    """A cluster worth a proposal."""

    rows: Ints
    shown: Ints
    score: float
    purity: float
    confidence: float
    parent: str | None
    target: str | None


def _agreed(found: list[list[_Found]], adding: bool) -> list[_Found]:
    """What enough clusterings found, as the one that is most like the others found it; new leaves, or the rest."""
    sets = [_best([one for one in ones if (one.target is None) == adding]) for ones in found]
    groups = agreeing([[one.rows for one in ones] for ones in sets], _ALIKE)
    return [sets[group[0][0]][group[0][1]] for group in groups if len(group) >= _AGREE]


class _Proposer:
    """Chooses among clusters and words the proposals."""

    def __init__(
        self,
        rows: pl.DataFrame,
        vectors: NDArray[np.float32],
        found: list[list[Clusters]],
        near_leaves: NDArray,
        closer: Floats,
        taxonomy: Taxonomy,
        limits: Expansion,
        seed: int,
    ) -> None:
        self._rows, self._vectors, self._limits = rows, vectors, limits
        self._clusterings = found
        self._closer = _rank(closer)
        self._taxonomy, self._near, self._seed = taxonomy, near_leaves, seed
        self._primary = rows["primary"].to_list()
        self._ids, self._texts = rows["query_id"].to_list(), rows["text"].to_list()
        self._other = rows["other"].to_numpy()
        self._weight = rows["weight"].to_numpy()
        confidence = rows["confidence"].to_numpy().astype(np.float64)
        self._newness = _rank(-confidence)
        self._right = np.where(self._other, 0.0, confidence)

    def proposals(self) -> list[Proposal]:
        firsts = [list(self._chosen(clusters)) for clusters, _ in self._clusterings]
        closer = [
            list(self._closer_ones(close, first)) for (_, close), first in zip(self._clusterings, firsts, strict=True)
        ]
        first = [one for adding in (True, False) for one in _agreed(firsts, adding)]
        more = self._not_in(first, _agreed(closer, True))
        chosen = _best([*_best(first, self._limits.most), *_best(more, self._limits.most // _LOOSE_A_CLOSE)])
        if not chosen:
            return []
        names = self._names(chosen)
        return [self._worded(one, name) for one, name in zip(chosen, names, strict=True)]

    def _large(self, clusters: Clusters) -> Iterator[tuple[Ints, float]]:
        """Clusters that are large and close enough: their rows and their cohesion."""
        limits = self._limits
        for number, cohesion in enumerate(clusters.cohesion.tolist()):
            rows = np.flatnonzero(clusters.labels == number)
            small = len(rows) < limits.least_rows or self._weight[rows].sum() < limits.least_weight
            if not small and cohesion >= limits.least_cohesion:
                yield rows, cohesion

    def _chosen(self, clusters: Clusters) -> Iterator[_Found]:
        for rows, cohesion in self._large(clusters):
            newness, inside = float(self._newness[rows].mean()), rows[self._other[rows]]
            leaf, share = _most_frequent(self._near[rows].ravel())
            if newness > self._limits.newer_than and self._right[rows].mean() < _CLAIMED:
                yield self._new(clusters, rows, cohesion, newness)
            elif 2 * len(inside) > len(rows) and share >= _HELD and self._is_leaf(leaf):
                place = _most_frequent(np.array([self._primary[row] for row in inside]))[0]
                shown, score = self._evidence_of(clusters, inside), share * (1 - newness)
                yield _Found(inside, shown, score, cohesion, share, place, leaf)

    def _closer_ones(self, close: Clusters, first: list[_Found]) -> Iterator[_Found]:
        """New ones among the closer clusters, but for those that mostly stand in others already."""
        found = []
        for rows, cohesion in self._large(close):
            apart = float(self._newness[rows].mean() * self._closer[rows].mean())
            if apart >= _APART:
                found.append(self._new(close, rows, cohesion, apart**0.5))
        yield from self._not_in(first, found)

    def _not_in(self, first: list[_Found], found: list[_Found]) -> list[_Found]:
        """Those whose rows are not mostly rows of others."""
        taken = np.zeros(len(self._texts), bool)
        for one in first:
            taken[one.rows] = True
        return [one for one in found if taken[one.rows].mean() <= 0.5]

    def _new(self, clusters: Clusters, rows: Ints, cohesion: float, newness: float) -> _Found:
        score = (newness + _COHESION * cohesion) / (1 + _COHESION)
        shown, sure = self._evidence_of(clusters, rows), newness * cohesion
        return _Found(rows, shown, score, cohesion, sure, self._parent(rows), None)

    def _evidence_of(self, clusters: Clusters, rows: Ints) -> Ints:
        """Rows near the middle of their cluster that differ from each other, the nearest first."""
        core = rows[np.lexsort((rows, -clusters.nearness[rows]))][: max(1, int(_CORE * len(rows)))]
        often = 1 + np.log(np.maximum(self._weight[core], 1))
        picks = d2_sample(self._vectors[core], _SHOWN, weights=often, same_from=_SAME, seed=self._seed)
        return core[np.sort(picks)]

    def _is_leaf(self, node_id: str) -> bool:
        return node_id in self._taxonomy.leaf_set and not self._taxonomy.node(node_id).is_other

    def _parent(self, rows: Ints) -> str | None:
        """The deepest inner node that holds most of the rows and of their nearest seeds; None for the root.

        Rows in an Other of the root say nothing, the seeds near them do.
        """
        held: Counter[str] = Counter()
        votes = 0
        for row in rows.tolist():
            placed = [] if self._primary[row] == OTHER else [self._primary[row]] * _NEAREST
            leaves = [*placed, *self._near[row]]
            votes += len(leaves)
            for leaf in leaves:
                parts = leaf.split(".")[:-1]
                held.update(".".join(parts[:depth]) for depth in range(1, len(parts) + 1))
        fit = [node for node, count in held.items() if count >= _HELD * votes and node in self._taxonomy.by_id]
        return max(fit, key=lambda node: (node.count("."), node), default=None)

    def _names(self, chosen: list[_Found]) -> list[Name]:
        """Names against each other and against the rows around, so that a word of all of them is no name."""
        inside = np.concatenate([one.rows for one in chosen])
        outside = np.setdiff1d(np.arange(len(self._texts)), inside)
        groups = [one.rows.tolist() for one in chosen] + ([outside.tolist()] if len(outside) else [])
        taken = {node.name for node in self._taxonomy.nodes}
        apart = np.ones((len(groups), len(groups)))
        return Namer(self._texts).name(groups, apart, taken)[: len(chosen)]

    def _worded(self, one: _Found, name: Name) -> Proposal:
        rows, weight = len(one.rows), int(self._weight[one.rows].sum())
        inside = float(self._other[one.rows].mean())
        place = one.parent or "the root"
        if one.target is None:
            reason = (
                f"{rows:,} queries ({weight:,} raw rows) are close to each other and seem to be of no leaf there is; "
                f"{inside:.0%} of them are in an Other, the rest are uncertain where they are, below {place}."
            )
        else:
            reason = (
                f"{rows:,} queries ({weight:,} raw rows) in {place} have their nearest seeds in {one.target}: "
                "as examples of it they would bring the others there."
            )
        return Proposal(
            source="expand",
            kind="add" if one.target is None else "merge",
            node_id=one.parent,
            base_version=self._taxonomy.version,
            reason=reason,
            target=one.target,
            name=name.name if one.target is None else None,
            description=name.description if one.target is None else None,
            evidence=tuple(self._evidence(row) for row in one.shown.tolist()),
            rows=rows,
            weight=weight,
            purity=round(one.purity, 4),
            confidence=round(min(1.0, one.confidence), 4),
            trend=self._trend(one.rows),
        )

    def _evidence(self, row: int) -> Evidence:
        return Evidence(self._ids[row], self._texts[row], int(self._weight[row]))

    def _trend(self, rows: Ints) -> float | None:
        first, last = (self._rows[name].to_numpy()[rows] for name in ("begin", "end"))
        trend = late_share(first, last, self._weight[rows], (0, 1))
        return None if trend is None else round(trend, 4)


def _most_frequent(values: NDArray) -> tuple[str, float]:
    names, counts = np.unique(values.astype(str), return_counts=True)
    best = int(counts.argmax())
    return str(names[best]), float(counts[best] / counts.sum())
