"""The contract of `ledger`."""

from __future__ import annotations

import dataframely as dy
import polars as pl


class Ledger(dy.Schema):
    """A row is the accounting of one stage of a run: in = kept + merged + rejected + failed, rows and weights."""

    position = dy.Int32(primary_key=True, description="order of the stages in the run")
    stage = dy.String(unique=True, description="the stage")
    after = dy.String(nullable=True, description="the stage whose kept rows it took in; null where it starts a chain")
    rows_in = dy.Int64(min=0, description="rows it took in")
    kept = dy.Int64(min=0, description="rows it passed on")
    merged = dy.Int64(min=0, description="rows that a kept row now stands for")
    rejected = dy.Int64(min=0, description="rows it refused; each stands in `rejects`")
    failed = dy.Int64(min=0, description="rows it could not do, with their error in its table")
    added = dy.Int64(min=0, description="rows it made itself, on top of those kept")
    weight_in = dy.Int64(min=0, description="raw rows behind the rows in")
    weight_out = dy.Int64(min=0, description="raw rows behind the rows kept, those of merged rows included")
    weight_rejected = dy.Int64(min=0, description="raw rows behind the rows rejected")
    weight_failed = dy.Int64(min=0, description="raw rows behind the rows failed")
    weight_earlier = dy.Int64(min=0, description="raw rows behind rows merged into a query of an earlier workspace")

    @dy.rule()
    def rows_balance(cls) -> pl.Expr:
        """rows in = kept + merged + rejected + failed."""
        return pl.col("rows_in") == pl.col("kept") + pl.col("merged") + pl.col("rejected") + pl.col("failed")

    @dy.rule()
    def weights_balance(cls) -> pl.Expr:
        """weight in = weight out + rejected + failed + earlier."""
        return pl.col("weight_in") == pl.sum_horizontal(
            "weight_out", "weight_rejected", "weight_failed", "weight_earlier"
        )
