"""The embedded teacher's way to grow a taxonomy: clusters of tagged seeds, named by what tells them from siblings.

The tree comes from :mod:`curation.algorithms.induction`. A node is called after the tag that marks it most against
its siblings, or where no tag does, after such a term of its texts; its description lists what marks it, and what
marks the sibling nearest to it instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.induction import Group, Grown, Shape, between, grow, overlaps
from curation.algorithms.tagging import Tagging, count_tags
from curation.domain.model import OTHER, Node, Taxonomy, other_description
from curation.errors import CurationError
from curation.teachers.embedded.naming import Namer
from curation.teachers.induction import Induced, Limits, Overlap, TaggedSeed

__all__ = ["induce"]

Floats = NDArray[np.float64]

_EVIDENCE = 10
"""Examples of a leaf at most; an inner node has as many, from its children by turns."""


def induce(
    seeds: Sequence[TaggedSeed],
    vectors: NDArray[np.float32],
    limits: Limits | None = None,
    *,
    version: str = "1",
) -> Induced:
    """Induce a taxonomy.

    Args:
        seeds: Tagged seeds; a query that several people tagged comes several times. Their order means nothing. Seeds
            without tags are placed by their text.
        vectors: float32[n, d], sentence vectors of the seeds, row by row.
        limits: Breadth, depth and evidence.
        version: Of the taxonomy that is made.

    Raises:
        CurationError: There are too few seeds, or they are too much alike, for two categories.
    """
    limits = limits or Limits()
    ids, first, owner = np.unique(
        np.array([seed.query_id for seed in seeds], np.uint64), return_index=True, return_inverse=True
    )
    if len(ids) < 2 * limits.evidence:
        raise CurationError(
            f"there are {len(ids)} tagged seeds, too few for 2 categories with {limits.evidence} seeds each",
            "Tag more seeds (`curate review`), or lower the limits.",
        )
    tagging = count_tags([seed.tags for seed in seeds], owner.astype(np.int64), len(ids))
    shape = Shape(limits.depth, limits.most, limits.evidence)
    grown = grow(vectors[first], tagging, shape)
    if len(grown.root.children) < 2:
        raise CurationError(
            f"the {len(ids)} tagged seeds fall into no two categories",
            "Tag seeds that differ more, or lower the seeds that a leaf must rest on.",
        )
    texts = [seeds[at].text for at in first.tolist()]
    return _Writer(texts, ids.tolist(), tagging, grown).write(version)


class _Writer:
    """Turns groups of rows into nodes."""

    def __init__(self, texts: list[str], ids: list[int], tagging: Tagging, grown: Grown) -> None:
        self._texts, self._ids, self._grown = texts, ids, grown
        self._namer = Namer(texts, tagging, grown.tag_weights)
        self._nodes: list[Node] = []
        self._members: dict[str, tuple[int, ...]] = {}
        self._overlaps: list[Overlap] = []

    def write(self, version: str) -> Induced:
        self._below(self._grown.root, None)
        found = sorted(self._overlaps, key=lambda one: (-one.share, one.node_id, one.sibling))
        return Induced(Taxonomy(version, tuple(self._nodes)), self._members, tuple(found))

    def _below(self, group: Group, parent: str | None) -> None:
        level = 1 if parent is None else parent.count(".") + 2
        rows = [child.all_rows() for child in group.children]
        shares = overlaps(self._grown.distances, rows)
        above = parent.split(".") if parent else []
        parts = [[below.all_rows() for below in child.children] for child in group.children]
        names = self._namer.name(rows, between(self._grown.distances, rows), above, parts)
        ids = [name.name if parent is None else f"{parent}.{name.name}" for name in names]
        for at, (child, name, node_id) in enumerate(zip(group.children, names, ids, strict=True)):
            leaf = not child.children
            examples = tuple(self._texts[row] for row in self._evidence(child))
            self._nodes.append(Node(node_id, parent, level, name.name, name.description, False, leaf, examples))
            self._overlaps += [
                Overlap(node_id, ids[other], float(share)) for other, share in enumerate(shares[at]) if share > 0
            ]
            if leaf:
                self._members[node_id] = self._of(child.rows)
            else:
                self._below(child, node_id)
        other = OTHER if parent is None else f"{parent}.{OTHER}"
        self._nodes.append(Node(other, parent, level, OTHER, other_description(parent), True, True))
        self._members[other] = self._of(group.rows)

    def _of(self, rows: list[int]) -> tuple[int, ...]:
        return tuple(self._ids[row] for row in sorted(rows))

    def _evidence(self, group: Group) -> list[int]:
        """Rows that show what a node is, the most central first."""
        if not group.children:
            rows = np.array(group.rows)
            central = self._grown.distances[np.ix_(rows, rows)].sum(axis=1)
            return rows[np.argsort(central, kind="stable")][:_EVIDENCE].tolist()
        shown = [self._evidence(child) for child in group.children]
        turns = [few[turn] for turn in range(_EVIDENCE) for few in shown if turn < len(few)]
        return turns[:_EVIDENCE]
