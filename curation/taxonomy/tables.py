"""The history of a taxonomy as tables.

Three tables hold it: `taxonomy` (the nodes of every version), `taxonomy_changes` (what changed) and
`taxonomy_migrations` (what becomes of labels). Other stages know only these, see :mod:`curation.taxonomy.lineage`.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from curation.domain.model import Taxonomy
from curation.taxonomy.compare import Change, changes, compare
from curation.taxonomy.versions import History

__all__ = ["changes_frame", "migrations_frame", "nodes_frame"]

_NODES: dict[str, Any] = {
    "version": pl.String,
    "is_current": pl.Boolean,
    "node_id": pl.String,
    "parent_id": pl.String,
    "level": pl.Int32,
    "name": pl.String,
    "description": pl.String,
    "is_other": pl.Boolean,
    "is_leaf": pl.Boolean,
    "examples": pl.List(pl.String),
}
_MIGRATIONS: dict[str, Any] = {
    "version": pl.String,
    "from_version": pl.String,
    "leaf": pl.String,
    "becomes": pl.String,
    "again": pl.Boolean,
}


def nodes_frame(history: History, current: str) -> pl.DataFrame:
    """Rows of the table `taxonomy`; ``current`` is the version that rows are labelled with."""
    rows = [
        (
            name,
            name == current,
            node.node_id,
            node.parent_id,
            node.level,
            node.name,
            node.description,
            node.is_other,
            node.is_leaf,
            list(node.examples),
        )
        for name, version in history.versions.items()
        for node in version.taxonomy.nodes
    ]
    return pl.DataFrame(rows, schema=_NODES, orient="row")


def changes_frame(history: History) -> pl.DataFrame:
    """Rows of the table `taxonomy_changes`: each version against the one before it, the first against nothing."""
    rows = []
    for name, version in history.versions.items():
        before = version.record.from_ if version.record else None
        found: list[Change] = (
            changes(Taxonomy("", ()), version.taxonomy, {}) if before is None else compare(history, before, name)
        )
        rows += [(name, before, one.node_id, one.change, one.before, one.after) for one in found]
    names = ("version", "from_version", "node_id", "change", "before", "after")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def migrations_frame(history: History) -> pl.DataFrame:
    """Rows of the table `taxonomy_migrations`."""
    rows = [
        (name, version.labels_from, leaf, fate.becomes, fate.again)
        for name, version in history.versions.items()
        for leaf, fate in version.carried.items()
    ]
    return pl.DataFrame(rows, schema=_MIGRATIONS, orient="row")
