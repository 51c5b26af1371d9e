"""The embedded teacher's look at seeds that the taxonomy labels badly, and what might mend it.

Every seed is labelled by the other seeds alone: the likeness of a leaf is the mean cosine to its nearest few seeds.
*Ambiguous* are seeds whose two likeliest leaves are close, *uncovered* those in an Other or without a leaf,
*confused* two leaves that take each other's seeds. Proposals follow from that:

| what is seen | proposal |
|---|---|
| two leaves take each other's seeds as often as not | merge the smaller into the larger |
| a leaf's seeds go to the leaves of one other node, hardly to its siblings | move it there |
| two leaves take some of each other's seeds, and the description does not tell them apart | a description that does |
| a leaf's seeds fall into clear parts (not just languages) | split it |
| uncovered seeds lie close together | add a leaf |
| labellers' tags call a leaf by other words than its name | rename it |
| a leaf has neither seed nor example | drop it |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.algorithms.hierarchy import best_cut, pair_distances, ward
from curation.algorithms.leaf_likeness import Likeness, likeness
from curation.algorithms.spread import round_robin
from curation.algorithms.tagging import count_tags
from curation.domain.model import Taxonomy
from curation.taxonomy.proposal import Evidence, Part, Proposal
from curation.teachers.embedded.naming import Namer, told_apart

__all__ = ["Refinement", "ambiguous", "refine"]

Ints = NDArray[np.int64]

_SHOWN = 10
_TAKEN = 3
"""Seeds that two leaves must take of each other to be looked at."""


@dataclass(frozen=True)
class Refinement:
    """When something is proposed.

    Attributes:
        merge_from: Of the seeds of two leaves that either of them takes, the share that the wrong one takes, both
            leaves counting alike; 0.5 is chance.
        tell_apart_from: The same, from which descriptions should tell them apart.
        move_from: Share of a leaf's seeds that leaves below one other node take.
        split_from: Mean silhouette of the parts of a leaf.
        near: Cosine from which uncovered seeds belong together, on average.
        least: Seeds that a leaf or a part must have.
        margin: Difference of likeness under which a seed is ambiguous.
    """

    merge_from: float = 0.4
    tell_apart_from: float = 0.2
    move_from: float = 0.6
    split_from: float = 0.2
    near: float = 0.5
    least: int = 4
    margin: float = 0.02


def refine(
    seeds: pl.DataFrame,
    vectors: NDArray[np.float32],
    taxonomy: Taxonomy,
    limits: Refinement | None = None,
) -> list[Proposal]:
    """Propose changes that would make the seeds easier to label.

    Args:
        seeds: ``query_id``, ``text``, ``lang``, ``tags`` and ``primary`` (null for one without a leaf). Their order
            means nothing.
        vectors: float32[n, d], not zero, row by row.
        taxonomy: The version that ``primary`` speaks of; a seed of a leaf that it has not is without one.
        limits: When something is proposed.

    Returns:
        Proposals, by kind, then node.
    """
    if seeds.is_empty():
        return []
    order = seeds["query_id"].arg_sort().to_numpy()
    found = _Refiner(seeds[order], vectors[order], taxonomy, limits or Refinement())
    return sorted(found.all(), key=lambda one: (one.kind, one.node_id or "", one.target or "", one.name or ""))


def ambiguous(
    seeds: pl.DataFrame, vectors: NDArray[np.float32], taxonomy: Taxonomy, margin: float = 0.02
) -> pl.DataFrame:
    """Seeds whose two likeliest leaves are close, or whose likeliest is not their own.

    Args:
        seeds: As for :func:`refine`.
        vectors: float32[n, d].
        taxonomy: The version.
        margin: Difference of likeness that is close.

    Returns:
        ``query_id``, ``primary``, ``first`` and ``second`` (the likeliest leaves by the other seeds) and ``lead`` of
        the first; the narrowest lead first.
    """
    labelled = seeds.with_row_index("row").filter(pl.col("primary").is_in(taxonomy.leaves))
    found = likeness(vectors[labelled["row"].to_numpy()], labelled["primary"].to_list())
    if len(found.leaves) < 2:
        return _ambiguities([], [], [], [], [])
    first, second, lead = found.two_best()
    names = found.leaves
    doubtful = np.flatnonzero((lead < margin) | (first != found.own))
    return _ambiguities(
        labelled["query_id"].gather(doubtful).to_list(),
        labelled["primary"].gather(doubtful).to_list(),
        [names[i] for i in first[doubtful]],
        [names[i] for i in second[doubtful]],
        np.round(lead[doubtful], 6).tolist(),
    ).sort("lead", "query_id")


def _ambiguities(ids: list, primary: list, first: list, second: list, lead: list) -> pl.DataFrame:
    kinds = {"query_id": pl.UInt64, "primary": pl.String, "first": pl.String, "second": pl.String, "lead": pl.Float64}
    return pl.DataFrame(dict(zip(kinds, (ids, primary, first, second, lead), strict=True)), schema=kinds)


class _Refiner:
    """Looks at the seeds, sorted by query id, one kind of fault after the other."""

    def __init__(
        self, seeds: pl.DataFrame, vectors: NDArray[np.float32], taxonomy: Taxonomy, limits: Refinement
    ) -> None:
        self._seeds, self._vectors, self._taxonomy, self._limits = seeds, vectors, taxonomy, limits
        self._own_leaves = {node.node_id for node in taxonomy.nodes if node.is_leaf and not node.is_other}
        primary = seeds["primary"].to_list()
        self._covered = np.flatnonzero([leaf in self._own_leaves for leaf in primary])
        self._primary = primary
        self._seen: Likeness = likeness(vectors[self._covered], [primary[row] for row in self._covered])
        self._texts = seeds["text"].to_list()
        self._tagging = count_tags(seeds["tags"].to_list(), np.arange(seeds.height), seeds.height)
        self._namer = Namer(self._texts, self._tagging)

    def all(self) -> Iterator[Proposal]:
        if len(self._seen.leaves) > 1:
            yield from self._confused()
        yield from self._parts()
        yield from self._uncovered()
        yield from self._renamed()
        yield from self._empty()

    def _confused(self) -> Iterator[Proposal]:
        seen, limits = self._seen, self._limits
        moved = {one.node_id: one for one in self._moved()}
        yield from moved.values()
        merged: set[int] = set()
        confusion, taken = seen.confusion(), seen.counts()
        # The mean of both is 1/2 for leaves that cannot be told apart, whichever of them is larger.
        pairs = sorted(
            (-(confusion[a, b] + confusion[b, a]) / 2, a, b)
            for a in range(len(taken))
            for b in range(a + 1, len(taken))
            if taken[a, b] + taken[b, a] >= _TAKEN
        )
        for mutual, a, b in pairs:
            small, large = sorted((a, b), key=lambda leaf: (seen.sizes[leaf], seen.leaves[leaf]))
            if -mutual < limits.tell_apart_from:
                break
            if seen.leaves[small] in moved or merged & {small, large}:
                continue
            if -mutual >= limits.merge_from:
                merged |= {small, large}
                yield self._merge(small, large, -mutual)
            else:
                yield from self._told_apart(small, large, -mutual)

    def _merge(self, small: int, large: int, mutual: float) -> Proposal:
        leaves = self._seen.leaves
        return self._proposal(
            "merge",
            leaves[small],
            self._mixed(small, large),
            f"By the other seeds alone, {mutual:.0%} of the seeds of {leaves[small]} and {leaves[large]} are of the "
            "other; half would be chance.",
            target=leaves[large],
            confidence=min(1.0, 2 * mutual),
        )

    def _told_apart(self, small: int, large: int, mutual: float) -> Iterator[Proposal]:
        leaves = self._seen.leaves
        for own, other in ((small, large), (large, small)):
            node = self._taxonomy.node(leaves[own])
            sibling = leaves[other].rpartition(".")[2]
            if sibling in node.description:
                continue
            rows = [self._covered[self._seen.own == leaf].tolist() for leaf in (own, other)]
            marks = [mark for mark in self._namer.marks(rows)[1] if mark != sibling]
            if not marks:
                continue
            contrast = told_apart(marks[:3], sibling)
            yield self._proposal(
                "describe",
                node.node_id,
                self._mixed(own, other),
                f"By the other seeds alone, {mutual:.0%} of the seeds of {leaves[own]} and {leaves[other]} are of "
                "the other, and the description does not tell them apart.",
                description=f"{node.description} {contrast}".strip(),
                confidence=min(1.0, 2 * mutual),
            )

    def _moved(self) -> Iterator[Proposal]:
        seen = self._seen
        shares = seen.shares()
        parents = [leaf.rpartition(".")[0] for leaf in seen.leaves]
        for at, leaf in enumerate(seen.leaves):
            if seen.sizes[at] < self._limits.least:
                continue
            taken: dict[str, float] = {}
            for other, share in enumerate(shares[at]):
                if other != at and parents[other] and parents[other] != parents[at]:
                    taken[parents[other]] = taken.get(parents[other], 0.0) + float(share)
            place = max(taken, key=lambda node: (taken[node], node), default=None)
            name = leaf.rpartition(".")[2]
            if place is None or taken[place] < self._limits.move_from:
                continue
            if place == leaf or f"{place}.{name}" in self._taxonomy.by_id:
                continue
            rows = self._covered[seen.own == at]
            yield self._proposal(
                "move",
                leaf,
                rows,
                f"By the other seeds alone, {taken[place]:.0%} of the seeds of {leaf} are of leaves below {place}.",
                target=place,
                confidence=taken[place],
            )

    def _parts(self) -> Iterator[Proposal]:
        for at, leaf in enumerate(self._seen.leaves):
            rows = self._covered[self._seen.own == at]
            if len(rows) < 2 * self._limits.least:
                continue
            distances = pair_distances(_units(self._vectors[rows]))
            labels, score = best_cut(ward(distances), distances, range(2, 5))
            parts = [rows[labels == part] for part in range(labels.max() + 1)]
            if score < self._limits.split_from or min(map(len, parts)) < self._limits.least:
                continue
            if self._by_language(parts):
                continue
            apart = 1 - np.eye(len(parts))
            above = {node.name for node in self._taxonomy.children(self._taxonomy.node(leaf).parent_id)}
            names = self._namer.name([part.tolist() for part in parts], apart, above)
            yield self._proposal(
                "split",
                leaf,
                rows,
                f"The {len(rows)} seeds of {leaf} fall into {len(parts)} parts (mean silhouette {score:.2f}).",
                confidence=min(1.0, 2 * score),
                parts=tuple(
                    Part(name.name, name.description, tuple(self._texts[row] for row in part[:_SHOWN]))
                    for name, part in zip(names, parts, strict=True)
                ),
            )

    def _by_language(self, parts: list[Ints]) -> bool:
        """Whether the parts are the languages of the seeds: then the vectors are far apart, not the meanings."""
        langs = self._seeds["lang"].to_numpy()
        counts = [Counter(langs[part].tolist()).most_common(1)[0] for part in parts]
        pure = all(count >= 0.9 * len(part) for part, (_, count) in zip(parts, counts, strict=True))
        return pure and len({lang for lang, _ in counts}) > 1

    def _uncovered(self) -> Iterator[Proposal]:
        from scipy.cluster.hierarchy import fcluster, linkage

        rows = np.setdiff1d(np.arange(self._seeds.height), self._covered)
        if len(rows) < self._limits.least:
            return
        units = _units(self._vectors[rows])
        labels = fcluster(linkage(units, "average", metric="cosine"), 1 - self._limits.near, "distance")
        groups = [rows[labels == label] for label in sorted(set(labels.tolist()))]
        groups = [group for group in groups if len(group) >= self._limits.least]
        taken = {node.name for node in self._taxonomy.nodes}
        outside = np.setdiff1d(np.arange(self._seeds.height), np.concatenate([*groups, [-1]]).astype(np.int64))
        every = [group.tolist() for group in groups] + ([outside.tolist()] if len(outside) else [])
        names = self._namer.name(every, np.ones((len(every), len(every))), taken) if groups else []
        for group, name in zip(groups, names, strict=False):
            parents = {self._parent_of(row) for row in group.tolist()}
            yield self._proposal(
                "add",
                parents.pop() if len(parents) == 1 else None,
                group,
                f"{len(group)} seeds that no leaf takes are close to each other.",
                name=name.name,
                description=name.description,
                confidence=self._cohesion(group),
            )

    def _parent_of(self, row: int) -> str | None:
        primary = self._primary[row]
        return primary.rpartition(".")[0] or None if primary in self._taxonomy.leaf_set else None

    def _renamed(self) -> Iterator[Proposal]:
        if not self._tagging.names:
            return
        groups = [self._covered[self._seen.own == at].tolist() for at in range(len(self._seen.leaves))]
        for at, (leaf, marks) in enumerate(zip(self._seen.leaves, self._namer.marks(groups), strict=True)):
            tags = [mark for mark in marks if mark in self._tagging.names]
            counts = self._tagging.counts[groups[at]]
            tagged = int((counts > 0).any(axis=1).sum())
            words = set(leaf.rpartition(".")[2].lower().replace("-", "_").split("_"))
            said = {word for tag in tags for word in tag.lower().replace("-", " ").replace("_", " ").split()}
            if not tags or tagged < self._limits.least or words & said:
                continue
            share = float((counts[:, self._tagging.names.index(tags[0])] > 0).sum()) / tagged
            siblings = {node.name for node in self._taxonomy.children(self._taxonomy.node(leaf).parent_id)}
            (name,) = self._namer.names_for([tags], siblings)
            if share < 0.5:
                continue
            yield self._proposal(
                "rename",
                leaf,
                np.array(groups[at]),
                f"{share:.0%} of the tagged seeds of {leaf} are tagged {tags[0]!r}, none with a word of its name.",
                name=name,
                confidence=share,
            )

    def _empty(self) -> Iterator[Proposal]:
        """Leaves without seed and example, as long as the others have some."""
        if not self._seen.leaves:
            return
        there = set(self._seen.leaves)
        for node in self._taxonomy.nodes:
            if node.node_id in self._own_leaves - there and not node.examples:
                yield self._proposal(
                    "drop",
                    node.node_id,
                    np.empty(0, np.int64),
                    f"No seed and no example says what {node.node_id} is.",
                    confidence=0.5,
                )

    def _mixed(self, own: int, other: int) -> Ints:
        """Seeds of two leaves that the other takes, of both by turns, the surest first."""
        rows = self._seen.swapped(own, other)
        turns = round_robin(np.zeros_like(rows), self._seen.own[rows], len(rows))
        return self._covered[rows[turns]]

    def _cohesion(self, rows: Ints) -> float:
        if not len(rows):
            return 0.0
        return float(np.sqrt((_units(self._vectors[rows]).mean(axis=0) ** 2).sum()))

    def _proposal(self, kind: str, node: str | None, rows: Iterable[int], reason: str, **rest: object) -> Proposal:
        places = np.array(list(rows), np.int64)
        ids = self._seeds["query_id"].to_list()
        confidence = round(float(rest.pop("confidence")), 4)  # type: ignore[arg-type]
        return Proposal(
            source="refine",
            kind=kind,
            node_id=node,
            base_version=self._taxonomy.version,
            reason=reason,
            evidence=tuple(Evidence(ids[row], self._texts[row]) for row in places[:_SHOWN].tolist()),
            rows=len(places),
            weight=len(places),
            purity=round(min(1.0, self._cohesion(places)), 4),
            confidence=confidence,
            **rest,  # type: ignore[arg-type]
        )


def _units(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = vectors.astype(np.float64)
    return rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))
