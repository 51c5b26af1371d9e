"""A proposal: one change of the taxonomy that a teacher suggests, with the rows that speak for it.

Proposers return lists of :class:`Proposal`; the stage `proposals` writes them as a table (:func:`to_frame`), a person
decides, and what was accepted becomes operations (:mod:`curation.taxonomy.decisions`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import polars as pl

from curation.domain.model import OTHER

__all__ = ["KINDS", "SOURCES", "Evidence", "Part", "Proposal", "from_frame", "to_frame"]

SOURCES = ("induce", "refine", "expand")
"""Which step of the taxonomy's growth a proposal comes from."""

KINDS = ("add", "merge", "split", "rename", "move", "drop", "describe")
"""What a proposal may ask for."""

_DECIMALS = 6


@dataclass(frozen=True)
class Evidence:
    """A row of the log, or a seed, that speaks for a proposal; ``weight`` counts the raw rows behind it."""

    query_id: int
    text: str
    weight: int = 1


@dataclass(frozen=True)
class Part:
    """A leaf that a split makes; ``examples`` are texts that belong to it."""

    name: str
    description: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Proposal:
    """One suggested change of the version ``base_version``.

    Attributes:
        source: One of :data:`SOURCES`.
        kind: One of :data:`KINDS`.
        node_id: The node it is about; for ``add`` the parent. None is the root.
        base_version: Version of the taxonomy that ``node_id`` and ``target`` are ids of.
        reason: A sentence that tells a person why.
        target: ``merge``: the node that takes the other in (a leaf, for rows of an Other); ``move``: the new parent
            (None is the root).
        name: ``add``, ``rename``: the new name.
        description: ``add``, ``describe``: what belongs to the node.
        evidence: Rows that speak for it, the clearest first. An added leaf starts with them as its examples.
        rows: Distinct queries concerned, of which `evidence` shows some.
        weight: Raw rows behind `rows`.
        purity: Cohesion of the evidence, 0 to 1.
        confidence: How sure the proposer is, 0 to 1.
        trend: Share of the weight seen in the last third of the time span, minus a third; None without times.
        parts: ``split``: the leaves that the node becomes.
        problem: Why it cannot be carried out; None for one that waits for a decision. Not part of its content.
    """

    source: str
    kind: str
    node_id: str | None
    base_version: str
    reason: str
    target: str | None = None
    name: str | None = None
    description: str | None = None
    evidence: tuple[Evidence, ...] = ()
    rows: int = 0
    weight: int = 0
    purity: float = 0.0
    confidence: float = 0.0
    trend: float | None = None
    parts: tuple[Part, ...] = ()
    problem: str | None = None

    @cached_property
    def proposal_id(self) -> str:
        """12 hexadecimal digits of the SHA-256 of the content: the same proposal has the same id in every run."""
        content = asdict(self)
        del content["problem"]
        for name in ("purity", "confidence", "trend"):
            value = content[name]
            content[name] = None if value is None else f"{value:.{_DECIMALS}f}"
        text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def takes_examples(self) -> bool:
        """Whether its evidence becomes examples of a leaf when it is accepted."""
        return self.kind == "add" or (self.kind == "merge" and (self.node_id or "").rpartition(".")[2] == OTHER)

    @property
    def gist(self) -> dict[str, Any]:
        """What it asks for, without the evidence: equal for a proposal that comes again from other rows."""
        names = [part.name for part in self.parts]
        asked = {"kind": self.kind, "node": self.node_id, "target": self.target, "name": self.name}
        return {key: value for key, value in (asked | {"parts": names}).items() if value}


_EVIDENCE = pl.List(pl.Struct({"query_id": pl.UInt64, "text": pl.String, "weight": pl.Int64}))
_PARTS = pl.List(pl.Struct({"name": pl.String, "description": pl.String, "examples": pl.List(pl.String)}))
_SCHEMA: dict[str, Any] = {
    "proposal_id": pl.String,
    "source": pl.String,
    "kind": pl.String,
    "node_id": pl.String,
    "target": pl.String,
    "name": pl.String,
    "description": pl.String,
    "evidence": _EVIDENCE,
    "rows": pl.Int64,
    "weight": pl.Int64,
    "purity": pl.Float32,
    "confidence": pl.Float32,
    "trend": pl.Float32,
    "reason": pl.String,
    "parts": _PARTS,
    "base_version": pl.String,
    "problem": pl.String,
}


def to_frame(proposals: Iterable[Proposal]) -> pl.DataFrame:
    """Rows of the table `proposals`, by ``proposal_id``; a proposal made twice is there once."""
    distinct = {proposal.proposal_id: proposal for proposal in proposals}
    rows = [{"proposal_id": key} | asdict(distinct[key]) for key in sorted(distinct)]
    return pl.DataFrame(rows, schema=_SCHEMA)


def from_frame(table: pl.DataFrame) -> dict[str, Proposal]:
    """Proposals by id, of rows of the table `proposals`, in their order.

    The ids are those of the table: its 32-bit numbers need not give the same hash again.
    """
    out = {}
    for row in table.iter_rows(named=True):
        key = row.pop("proposal_id")
        row["evidence"] = tuple(Evidence(**item) for item in row["evidence"])
        row["parts"] = tuple(
            Part(item["name"], item["description"], tuple(item["examples"])) for item in row["parts"]
        )
        out[key] = Proposal(**row)
        out[key].__dict__["proposal_id"] = key
    return out
