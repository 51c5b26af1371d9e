"""The contract of `lexical_index`."""

from __future__ import annotations

import dataframely as dy
import polars as pl


class LexicalIndex(dy.Schema):
    """A row is a query seen up to this day, those of earlier workspaces included: where a later day looks first."""

    query_id = dy.UInt64(primary_key=True, description="id from the normal form, as in `queries`")
    representative_id = dy.UInt64(description="the kept query that stands for it; itself when it is kept")
    similarity = dy.Float32(
        min=0, max=1.0001, description="Jaccard similarity of the shingle sets to the representative; 1 for itself"
    )
    place = dy.Int64(nullable=True, min=0, description="order in which it was kept; null for a merged query")
    norm = dy.String(nullable=True, description="its normal form; null for a merged query")

    @dy.rule()
    def kept_has_place_and_norm(cls) -> pl.Expr:
        """A query is kept, with place and normal form, or merged, with neither."""
        kept = pl.col("query_id") == pl.col("representative_id")
        return (pl.col("place").is_not_null() == kept) & (pl.col("norm").is_not_null() == kept)
