"""The contract of `rejects`."""

from __future__ import annotations

import dataframely as dy
import polars as pl


class Rejects(dy.Schema):
    """A row is something a stage refused, with the reason.

    Raw rows are named by `file` and `row`, later ones by `query_id`."""

    stage = dy.String(description="the stage that refused the row")
    reason = dy.String(
        regex=r"^[a-z][a-z0-9_]*$", description="code of the reason, such as `empty` or `control_characters`"
    )
    file = dy.String(nullable=True, description="file under the log directory")
    row = dy.UInt64(nullable=True, description="0-based row in that file")
    query_id = dy.UInt64(nullable=True, description="`queries.query_id`, where the row had become a query")
    text = dy.String(nullable=True, description="the refused text, masked, cut at 1,000 characters")
    weight = dy.Int64(min=0, description="raw rows that the refused row stood for")

    @dy.rule()
    def is_named(cls) -> pl.Expr:
        """A refused row is named by its file and row or by its query id."""
        return pl.col("query_id").is_not_null() | (pl.col("file").is_not_null() & pl.col("row").is_not_null())
