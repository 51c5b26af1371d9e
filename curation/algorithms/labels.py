"""Buckets: the <primary, secondary> pair that a query's labels put it in."""

from __future__ import annotations

import polars as pl

__all__ = ["bucket_name"]


def bucket_name(primary: pl.Expr, secondary: pl.Expr) -> pl.Expr:
    """``primary|secondary+secondary``, secondaries sorted; just ``primary|`` where there is none."""
    return pl.concat_str(primary, pl.lit("|"), secondary.list.sort().list.join("+"))
