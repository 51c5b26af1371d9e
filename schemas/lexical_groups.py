"""The contract of `lexical_groups`."""

from __future__ import annotations

import dataframely as dy
import polars as pl


class LexicalGroups(dy.Schema):
    """A row is a query and the near-duplicate string that represents it after the lexical level."""

    query_id = dy.UInt64(primary_key=True, description="`queries.query_id`")
    representative_id = dy.UInt64(description="the kept query that stands for it; itself when it is kept")
    similarity = dy.Float32(
        min=0, max=1.0001, description="Jaccard similarity of the shingle sets to the representative; 1 for itself"
    )
    group_count = dy.Int64(min=0, description="raw rows the representative's whole group stands for")
    kept = dy.Bool(description="whether it goes on: it stands for itself, and no earlier day kept it already")

    @dy.rule()
    def kept_is_itself(cls) -> pl.Expr:
        """A kept query stands for itself, with similarity 1."""
        itself = (pl.col("query_id") == pl.col("representative_id")) & (pl.col("similarity") > 0.999)
        return itself | ~pl.col("kept")
