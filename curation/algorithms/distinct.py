"""Exact deduplication in two steps: rows of a batch to groups, groups of all batches to distinct queries.

A group is a surface form seen in one source; its columns are ``query_id`` (u64), ``norm``, ``text`` (surface form),
``source`` (nullable), ``count``, ``first`` and ``last`` (int64 µs, see :mod:`curation.algorithms.timestamps` for
"none"). Nothing here depends on the order of rows or on how they are cut into batches.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import polars as pl

from curation.algorithms.timestamps import NO_FIRST, NO_LAST

__all__ = [
    "PARTITION_BITS",
    "Collision",
    "encode",
    "group_rows",
    "merge_groups",
    "partition_of",
    "replace_ids",
    "separate",
]

PARTITION_BITS = 6
"""Groups are merged in 64 partitions by the top bits of their id; their number is fixed, so it shapes no output."""

_LOW_BITS = 64 - PARTITION_BITS


class Collision(NamedTuple):
    """A normal form whose hash another one has, and the id it gets instead."""

    query_id: int
    norm: str
    new_id: int


def partition_of(query_ids: np.ndarray) -> np.ndarray:
    """The partition of each id, 0 to 63."""
    return (query_ids >> np.uint64(_LOW_BITS)).astype(np.int64)


def encode(texts: pl.Series) -> tuple[np.ndarray, pl.Series]:
    """(place of each text among the distinct ones, -1 for null; the distinct texts in order of first appearance)."""
    import pyarrow as pa

    encoded = texts.to_arrow().cast(pa.large_string()).dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy().astype(np.int64), pl.Series(encoded.dictionary)


def group_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Groups of a batch.

    Args:
        rows: One raw row each: ``slot`` (place of its surface form among those of the batch), ``source`` (nullable),
            ``time`` (datetime µs, nullable).

    Returns:
        ``slot``, ``source``, ``count``, ``first``, ``last``, ordered by slot and source.
    """
    time = pl.col("time").cast(pl.Int64)
    return (
        rows.group_by("slot", "source")
        .agg(
            count=pl.len().cast(pl.Int64),
            first=time.min().fill_null(NO_FIRST),
            last=time.max().fill_null(NO_LAST),
        )
        .sort("slot", "source")
    )


def separate(groups: pl.DataFrame) -> tuple[pl.DataFrame, list[Collision]]:
    """Give different normal forms different ids.

    Args:
        groups: All groups of a partition.

    Returns:
        (the groups with the ids of colliding normal forms replaced, the collisions).

    Of the normal forms with one hash the smallest in byte order keeps it; the others get an id of the same partition
    made from a salted hash. Which ones collide depends on the whole log, so only then may an id differ between logs.
    """
    by_id = pl.col("query_id")
    norms = groups.select("query_id", "norm").sort("query_id")
    differs = (by_id == by_id.shift()) & (pl.col("norm") != pl.col("norm").shift())
    shared = norms.filter(differs)["query_id"].unique()
    if not len(shared):
        return groups, []
    taken = set(norms["query_id"].unique().to_list())
    collisions = []
    forms = norms.filter(by_id.is_in(shared.implode())).unique().sort("query_id", "norm")
    for (query_id,), rivals in forms.group_by("query_id", maintain_order=True):
        for norm in rivals["norm"][1:]:
            new_id = _salted_id(int(query_id), norm, taken)
            taken.add(new_id)
            collisions.append(Collision(int(query_id), norm, new_id))
    return replace_ids(groups, collisions), collisions


def _salted_id(query_id: int, norm: str, taken: set[int]) -> int:
    low, salt = (1 << _LOW_BITS) - 1, 0
    while True:
        digest = hashlib.blake2b(norm.encode(), digest_size=8, salt=salt.to_bytes(8, "little")).digest()
        new_id = (query_id & ~low) | (int.from_bytes(digest, "little") & low)
        if new_id not in taken:
            return new_id
        salt += 1


def replace_ids(groups: pl.DataFrame, collisions: list[Collision]) -> pl.DataFrame:
    """``groups`` with the new ids of ``collisions``."""
    if not collisions:
        return groups
    schema = {"query_id": pl.UInt64, "norm": pl.String, "new_id": pl.UInt64}
    changes = pl.DataFrame(collisions, schema=schema, orient="row")
    joined = groups.join(changes, on=["query_id", "norm"], how="left", maintain_order="left")
    return joined.with_columns(query_id=pl.coalesce("new_id", "query_id")).drop("new_id")


def merge_groups(groups: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Distinct queries of the groups of a partition, whose ids must have been separated.

    Returns:
        (queries ordered by id: ``query_id``, ``text`` (the most frequent surface form, of equal ones the smallest in
        byte order), ``norm``, ``count``, ``first_seen``, ``last_seen``, ``sources``; surface forms with ``count``).
    """
    texts = (
        groups.group_by("query_id", "text")
        .agg(pl.col("norm").first(), pl.col("count").sum(), pl.col("first").min(), pl.col("last").max())
        .sort("query_id", "count", "text", descending=[False, True, False])
    )
    ids = texts["query_id"].to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]])) if len(ids) else np.zeros(0, np.int64)

    def reduced(ufunc: np.ufunc, column: str) -> np.ndarray:
        values = texts[column].to_numpy()
        return ufunc.reduceat(values, starts) if len(values) else values

    queries = texts.select("query_id", "text", "norm")[starts].with_columns(
        count=reduced(np.add, "count"), first=reduced(np.minimum, "first"), last=reduced(np.maximum, "last")
    )
    queries = queries.with_columns(
        first_seen=pl.when(pl.col("first") != NO_FIRST).then("first").cast(pl.Datetime("us")),
        last_seen=pl.when(pl.col("last") != NO_LAST).then("last").cast(pl.Datetime("us")),
        sources=_sources(groups, queries["query_id"]),
    )
    return queries.drop("first", "last"), texts.select("text", "count")


def _sources(groups: pl.DataFrame, ids: pl.Series) -> pl.Series:
    """Distinct sources of each id, sorted; an empty list where there is none."""
    column = groups["source"]
    different = column.unique().to_list()
    if len(different) <= 1:
        only = [source for source in different if source is not None]
        return pl.Series("sources", [only], dtype=pl.List(pl.String)).new_from_index(0, len(ids))
    pairs = groups.select("query_id", "source").drop_nulls().unique().sort("query_id", "source")
    lists = pairs.group_by("query_id", maintain_order=True).agg(sources="source")
    joined = ids.to_frame("query_id").join(lists, on="query_id", how="left", maintain_order="left")
    return joined["sources"].fill_null([])
