"""What every teacher that grows a taxonomy from tagged seeds takes and gives."""

from __future__ import annotations

from dataclasses import dataclass

from curation.domain.model import Taxonomy

__all__ = ["Induced", "Limits", "Overlap", "TaggedSeed"]


@dataclass(frozen=True)
class TaggedSeed:
    """A seed with the open-ended tags of one labeller."""

    query_id: int
    text: str
    lang: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Limits:
    """How far a taxonomy grows.

    Attributes:
        depth: Levels at most.
        most: Children of a node at most.
        evidence: Seeds that a leaf rests on at least.
    """

    depth: int = 3
    most: int = 20
    evidence: int = 3


@dataclass(frozen=True)
class Overlap:
    """Siblings that are not orthogonal: ``share`` of the seeds of ``node_id`` are nearer to ``sibling``."""

    node_id: str
    sibling: str
    share: float


@dataclass(frozen=True)
class Induced:
    """A taxonomy and the seeds that made it.

    Attributes:
        taxonomy: The nodes, an Other at every inner one; the examples of a node are its evidence.
        members: Query ids of the seeds of each leaf, Other among them.
        overlaps: Of siblings, the largest first.
        problems: What could not be done, a sentence each.
    """

    taxonomy: Taxonomy
    members: dict[str, tuple[int, ...]]
    overlaps: tuple[Overlap, ...] = ()
    problems: tuple[str, ...] = ()
