"""Several people who label the same queries: one label of theirs, and how far they agree."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import polars as pl

__all__ = ["Difference", "differences", "has_label", "label_sets", "settled"]


def settled(rows: pl.DataFrame) -> pl.DataFrame:
    """One row a query.

    The primary leaf, with reason and version, is the one that most labellers gave; where two are given equally often
    it is null, and ``disputed`` is set. A further leaf counts when more than half of those who gave that label gave
    it; tags are all that anyone gave.

    Args:
        rows: A row for each query and labeller, as :func:`curation.teachers.seeds_file.read_seeds_file` gives them.

    Returns:
        The columns of `rows`, ``labelled_by`` with all names, and ``disputed``; queries in the order of `rows`.
    """
    by_query: dict[int, list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        by_query.setdefault(row["query_id"], []).append(row)
    schema: dict[str, Any] = {**rows.schema, "disputed": pl.Boolean}
    return pl.DataFrame([_one(several) for several in by_query.values()], schema=schema, orient="row")


def _one(several: list[dict[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(row["labelled_by"] for row in several if row["labelled_by"])
    tags = dict.fromkeys(tag for row in several for tag in row["tags"])
    said = several[0] | {"labelled_by": ", ".join(names) or None, "tags": list(tags)}
    given = [row for row in several if row["primary"] is not None]
    if not given:
        return said | {"disputed": False}
    votes = Counter((row["primary"], row["reason"], row["version"]) for row in given).most_common()
    if len(votes) > 1 and votes[0][1] == votes[1][1]:
        return said | {"primary": None, "secondary": [], "reason": None, "disputed": True}
    (primary, reason, version), count = votes[0]
    sure = [row for row in given if (row["primary"], row["reason"], row["version"]) == votes[0][0]]
    further = Counter(leaf for row in sure for leaf in row["secondary"])
    said |= {"primary": primary, "reason": reason, "version": version, "disputed": False}
    return said | {"secondary": sorted(leaf for leaf, times in further.items() if 2 * times > count)}


def has_label() -> pl.Expr:
    """Whether a row says anything: a leaf, or tags."""
    return pl.col("primary").is_not_null() | (pl.col("tags").list.len() > 0)


class Difference(NamedTuple):
    """A query that people label differently.

    Attributes:
        text: The query.
        said: For each of them, where the row stands, who labelled, and the leaves or tags given.
        is_settled: Whether one label was given more often than any other, so that it counts.
    """

    text: str
    said: list[tuple[str, str, str]]
    is_settled: bool


def differences(rows: pl.DataFrame) -> list[Difference]:
    """The queries that people label differently, those first that nothing settles, else in the order of `rows`.

    Args:
        rows: As for :func:`settled`, with ``place``.
    """
    by_query: dict[int, list[dict[str, Any]]] = {}
    for row in rows.iter_rows(named=True):
        if _given(row):
            by_query.setdefault(row["query_id"], []).append(row)
    found = []
    for several in by_query.values():
        if len({(frozenset(_given(row)), row["reason"]) for row in several}) > 1:
            said = []
            for row in several:
                label = [*_given(row), *([row["reason"]] if row["reason"] else [])]
                said.append((row["place"] or "", row["labelled_by"] or "?", "; ".join(label)))
            found.append(Difference(several[0]["text"], said, not _one(several)["disputed"]))
    return sorted(found, key=lambda one: one.is_settled)


def _given(row: dict[str, Any]) -> list[str]:
    """The leaves given, the primary first, or the tags where no leaf is."""
    return [row["primary"], *row["secondary"]] if row["primary"] is not None else row["tags"]


def label_sets(rows: pl.DataFrame) -> dict[str, dict[int, frozenset[str]]]:
    """What each labeller said of each query: the leaves given, or the tags where no leaf is; unlabelled rows are out.

    Args:
        rows: As for :func:`settled`; rows without a labeller count as one who is called ``?``.
    """
    found: dict[str, dict[int, frozenset[str]]] = {}
    for row in rows.iter_rows(named=True):
        if leaves := _given(row):
            found.setdefault(row["labelled_by"] or "?", {})[row["query_id"]] = frozenset(leaves)
    return found
