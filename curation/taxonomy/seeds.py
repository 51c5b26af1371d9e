"""Seeds in the words of another version of the taxonomy."""

from __future__ import annotations

from typing import Any

import polars as pl

from curation.taxonomy.lineage import Lineage

__all__ = ["carried"]


def carried(seeds: pl.DataFrame, lineage: Lineage, version: str) -> pl.DataFrame:
    """Seeds with ``primary`` and ``secondary`` in ``version``, from the labels as they were given.

    A label goes the way of :meth:`Lineage.carry`. Where that ends at nothing or at an Other, or no label was given,
    and the seed is an example of one leaf of ``version``, it is of that leaf: examples say what a split, a new or an
    induced leaf is about.

    Args:
        seeds: ``query_id``, ``given_primary``, ``given_secondary`` and ``given_version``; other columns stay.
        lineage: The versions.
        version: One of them.
    """
    leaves = lineage.taxonomy(version)
    shown = _examples(lineage, version)
    known: dict[tuple[str, str], str | None] = {}

    def meant(leaf: str, given: str) -> str | None:
        if (leaf, given) not in known:
            known[leaf, given] = lineage.carry(leaf, given, version)
        return known[leaf, given]

    rows: list[tuple[Any, ...]] = []
    for query_id, primary, secondary, given in seeds.select(
        "query_id", "given_primary", "given_secondary", "given_version"
    ).iter_rows():
        leaf = None if primary is None or given is None else meant(primary, given)
        if leaf is None or leaves.node(leaf).is_other:
            leaf = shown.get(query_id, leaf)
        further = {meant(one, given) for one in secondary if given is not None} - {None, leaf}
        rows.append((leaf, sorted(further) if leaf else []))
    schema: dict[str, Any] = {"primary": pl.String, "secondary": pl.List(pl.String)}
    return seeds.drop("primary", "secondary", strict=False).hstack(pl.DataFrame(rows, schema=schema, orient="row"))


def _examples(lineage: Lineage, version: str) -> dict[int, str]:
    """Query id to leaf, of the examples that belong to one leaf only."""
    import pyarrow as pa

    from curation.algorithms.normalise import normalise, query_ids

    rows = lineage.nodes(version).filter("is_leaf").select("node_id", "examples").explode("examples").drop_nulls()
    ids = query_ids(normalise(pa.array(rows["examples"].to_list(), pa.large_string()))).tolist()
    found: dict[int, set[str]] = {}
    for query_id, leaf in zip(ids, rows["node_id"], strict=True):
        found.setdefault(query_id, set()).add(leaf)
    return {query_id: next(iter(leaves)) for query_id, leaves in found.items() if len(leaves) == 1}
