"""The contract of `taxonomy_migrations`."""

from __future__ import annotations

import dataframely as dy
import polars as pl


class TaxonomyMigrations(dy.Schema):
    """A row is what becomes of the labels of one leaf when a version of the taxonomy follows on another."""

    version = dy.String(primary_key=True, description="the version that labels are carried to")
    from_version = dy.String(
        description="the version they come from: the one before, or the one that `version` returns to"
    )
    leaf = dy.String(primary_key=True, description="a leaf of `from_version`")
    becomes = dy.String(nullable=True, description="the leaf of `version` it means there; null when it was split")
    again = dy.Bool(description="whether rows with this label are annotated again")

    @dy.rule()
    def lost_labels_are_made_again(cls) -> pl.Expr:
        """Rows whose label means nothing any more are annotated again."""
        return pl.col("becomes").is_not_null() | pl.col("again")
