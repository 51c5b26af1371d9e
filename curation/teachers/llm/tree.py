"""The taxonomy as prompts show it and answers are checked against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from curation.domain.model import Node, Taxonomy

if TYPE_CHECKING:
    from curation.domain import Domain

__all__ = ["shown_dimensions", "taxonomy_of"]

_VALUES = 24
"""Usual values of a dimension that are shown at most."""


def taxonomy_of(table: pl.DataFrame) -> Taxonomy:
    """The newest version in a `taxonomy` table; parents before children, siblings by name, Other last.

    Raises:
        CurationError: The table is empty.
    """
    from curation.teachers.embedded.teacher import Tree

    version = Tree(table).version
    columns = [
        "node_id", "parent_id", "level", "name", "description", "is_other", "is_leaf", "examples",
    ]  # fmt: skip
    rows = table.filter(pl.col("version") == version).select(columns).iter_rows(named=True)
    nodes = [Node(**(row | {"examples": tuple(row["examples"])})) for row in rows]
    return Taxonomy(version, tuple(sorted(nodes, key=_place)))


def _place(node: Node) -> tuple[tuple[bool, str], ...]:
    parts = node.node_id.split(".")
    return tuple((node.is_other and at == len(parts) - 1, part) for at, part in enumerate(parts))


def shown_dimensions(domain: Domain) -> list[dict[str, object]]:
    """The constraint dimensions of a domain with their usual values, for templates."""
    shown: list[dict[str, object]] = []
    for dimension in domain.dimensions.values():
        values = list(dict.fromkeys(entry.value for entry in dimension.lexicon))
        values = values[:_VALUES] + ["…"] * (len(values) > _VALUES)
        shown.append({"name": dimension.name, "description": dimension.description, "values": values})
    return shown
