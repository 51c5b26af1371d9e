"""The contract of `queries`."""

from __future__ import annotations

import dataframely as dy
import polars as pl


class Queries(dy.Schema):
    """A row is one distinct normalised query of the log."""

    query_id = dy.UInt64(primary_key=True, description="xxh3_64 of `norm`: the same text has the same id everywhere")
    text = dy.String(
        min_length=1, description="most frequent surface form, personal data masked; ties go to the smallest"
    )
    norm = dy.String(min_length=1, description="normal form: NFKC, casefold, punctuation folded")
    count = dy.Int64(min=1, description="raw rows with this normal form")
    first_seen = dy.Datetime(
        time_unit="us", nullable=True, description="earliest time stamp (UTC); null without a time column"
    )
    last_seen = dy.Datetime(
        time_unit="us", nullable=True, description="latest time stamp (UTC); null without a time column"
    )
    lang = dy.String(description="ISO 639-1 code of the language, or `und`")
    script = dy.String(
        description="ISO 15924 code of the prevailing script: Latn, Hans, Arab ..., `Zyyy` for symbols"
    )
    n_chars = dy.Int32(min=1, description="code points of `norm`")
    masked = dy.List(dy.String(), description="kinds of personal data masked in `text`, sorted, distinct")
    sources = dy.List(
        dy.String(), description="distinct values of the mapped source column, sorted; empty without one"
    )

    @dy.rule()
    def seen_in_order(cls) -> pl.Expr:
        """`first_seen` is not after `last_seen`."""
        return pl.col("first_seen").le(pl.col("last_seen")) | pl.col("first_seen").is_null()
