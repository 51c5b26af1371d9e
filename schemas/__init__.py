"""Contracts: one module and one dataframely class per table, the single source for validation and for the docs.

``CONTRACTS[name]`` gives the contract of a table: its column classes, the order its rows are written in, and what the
engine does with a row that breaks a rule (``stop`` the stage, or send the row to ``rejects``).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

import dataframely as dy

__all__ = ["CONTRACTS", "TABLES", "Contract", "load"]


@dataclass(frozen=True)
class Contract:
    """What the engine needs to know of a table beyond its columns."""

    name: str
    class_name: str
    sort_by: tuple[str, ...]
    on_invalid: Literal["stop", "reject"] = "stop"

    @property
    def schema(self) -> type[dy.Schema]:
        """The dataframely class; imported on first use, since importing them all costs a second."""
        return getattr(import_module(f"schemas.{self.name}"), self.class_name)

    @property
    def description(self) -> str:
        """The first paragraph of the class docstring."""
        return " ".join((self.schema.__doc__ or "").split("\n\n")[0].split())

    def columns(self) -> dict[str, dy.Column]:
        """Column name to column class, in table order."""
        return dict(self.schema.columns())


TABLES = (
    Contract("queries", "Queries", ("query_id",)),
    Contract("occurrences", "Occurrences", ("file", "row")),
    Contract("lexical_groups", "LexicalGroups", ("query_id",)),
    Contract("lexical_index", "LexicalIndex", ("query_id",)),
    Contract("embeddings", "Embeddings", ("query_id",)),
    Contract("seeds", "Seeds", ("query_id",)),
    Contract("taxonomy", "Taxonomy", ("version", "node_id")),
    Contract("taxonomy_changes", "TaxonomyChanges", ("version", "node_id", "change")),
    Contract("taxonomy_migrations", "TaxonomyMigrations", ("version", "leaf")),
    Contract("annotations", "Annotations", ("query_id",)),
    Contract("proposals", "Proposals", ("proposal_id",)),
    Contract("semantic_groups", "SemanticGroups", ("query_id",)),
    Contract("survivors", "Survivors", ("query_id",)),
    Contract("difficulty", "Difficulty", ("query_id",)),
    Contract("selection", "Selection", ("rank",)),
    Contract("geometric_groups", "GeometricGroups", ("query_id",)),
    Contract("irrelevance", "Irrelevance", ("candidate_id",)),
    Contract("synthetic", "Synthetic", ("query_id",)),
    Contract("candidate_pool", "CandidatePool", ("candidate_id",)),
    Contract("pool_shares", "PoolShares", ("share_of", "name")),
    Contract("rejects", "Rejects", ("stage", "reason")),
    Contract("ledger", "Ledger", ("position",)),
    Contract("metrics", "Metrics", ("stage", "name")),
    Contract("teacher_calls", "TeacherCalls", ("stage", "request_key")),
)
CONTRACTS: dict[str, Contract] = {contract.name: contract for contract in TABLES}


def load(name: str) -> Contract:
    """The contract of table ``name``; ``KeyError`` names the tables there are."""
    if name not in CONTRACTS:
        raise KeyError(f"there is no table {name!r}; the tables are {', '.join(CONTRACTS)}")
    return CONTRACTS[name]
