"""Traces: a candidate back to its raw rows, and a raw row forward to what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from curation.engine.workspace import Workspace
from curation.errors import CurationError

__all__ = ["Trace", "trace_query", "trace_row"]

_LEVELS = ("lexical_groups", "semantic_groups", "geometric_groups")


@dataclass
class Trace:
    """What is known of one query.

    Attributes:
        query: Its row of ``queries`` (or of ``synthetic``).
        path: Level to its row there, as far as it came; the last representative is what stands for it.
        candidates: Rows of ``candidate_pool`` of the query it ended in.
        raw: Up to ``limit`` raw rows (``file``, ``row``) behind the query, or behind its whole group.
        raw_total: Number of raw rows behind it, whole group included for a candidate.
        rejects: Rows of ``rejects`` that name it.
    """

    query: dict[str, Any]
    path: dict[str, dict[str, Any]] = field(default_factory=dict)
    candidates: list[dict[str, Any]] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
    raw_total: int = 0
    rejects: list[dict[str, Any]] = field(default_factory=list)


def _rows(workspace: Workspace, table: str, predicate: pl.Expr, limit: int = 50) -> list[dict[str, Any]]:
    if table not in workspace.tables():
        return []
    return workspace.table(table).filter(predicate).head(limit).collect(engine="streaming").to_dicts()


def _members(workspace: Workspace, query_id: int) -> pl.DataFrame:
    """Ids of all queries that ``query_id`` stands for through the levels it was kept at, itself included."""
    members = pl.DataFrame({"query_id": [query_id]}, schema={"query_id": pl.UInt64})
    for level in reversed(_LEVELS):
        if level not in workspace.tables():
            continue
        groups = workspace.table(level).select("query_id", "representative_id")
        grown = groups.join(members.lazy().rename({"query_id": "representative_id"}), on="representative_id")
        members = pl.concat([members, grown.select("query_id").collect(engine="streaming")]).unique().sort("query_id")
    return members


def trace_query(workspace: Workspace, query_id: int, limit: int = 10) -> Trace:
    """Follow a query (or candidate) id both ways.

    Raises:
        CurationError: No table knows the id.
    """
    is_it = pl.col("query_id") == query_id
    found = _rows(workspace, "queries", is_it) or _rows(workspace, "synthetic", is_it)
    if not found:
        by_candidate = _rows(workspace, "candidate_pool", pl.col("candidate_id") == query_id)
        if by_candidate:
            return trace_query(workspace, by_candidate[0]["query_id"], limit)
        raise CurationError(
            f"no query or candidate has the id {query_id}",
            "Find ids with `curate show candidate_pool`, or name a raw row as FILE:ROW.",
        )
    trace = Trace(found[0])
    current = query_id
    for level in _LEVELS:
        rows = _rows(workspace, level, pl.col("query_id") == current)
        if not rows:
            break
        trace.path[level] = rows[0]
        current = rows[0]["representative_id"]
    trace.candidates = _rows(workspace, "candidate_pool", pl.col("query_id") == current)
    trace.rejects = _rows(workspace, "rejects", is_it)
    if "occurrences" in workspace.tables():
        members = _members(workspace, query_id).lazy()
        raw = workspace.table("occurrences").join(members, on="query_id", how="semi")
        trace.raw_total = int(raw.select(pl.len()).collect(engine="streaming").item())
        trace.raw = raw.sort("file", "row").head(limit).collect().to_dicts()
    return trace


def trace_row(workspace: Workspace, file: str, row: int, limit: int = 10) -> Trace:
    """Follow a raw row forward.

    Raises:
        CurationError: The ledger has no such row.
    """
    is_it = (pl.col("file") == file) & (pl.col("row") == row)
    found = _rows(workspace, "occurrences", is_it)
    if found:
        return trace_query(workspace, found[0]["query_id"], limit)
    rejected = _rows(workspace, "rejects", is_it)
    if rejected:
        return Trace({"text": rejected[0]["text"]}, rejects=rejected)
    files = workspace.table("occurrences").select("file").unique().sort("file").head(5).collect()["file"].to_list()
    raise CurationError(f"the ledger has no row {row} of {file!r}", f"The files are called {', '.join(files)} ...")
