"""The contract of `annotations`."""

from __future__ import annotations

import dataframely as dy
import polars as pl


class Annotations(dy.Schema):
    """A row is a labelled query: V = <primary, secondary, constraints>."""

    query_id = dy.UInt64(primary_key=True, description="`queries.query_id`")
    primary = dy.String(nullable=True, description="one leaf of the taxonomy; null only for a failed row")
    secondary = dy.List(dy.String(), description="further leaves, sorted, without the primary")
    constraints = dy.List(
        dy.Struct(
            {
                "dimension": dy.String(description="constraint dimension of the domain"),
                "value": dy.String(description="canonical value"),
                "text": dy.String(description="the words it was read from: `queries.text[start:end]`"),
                "start": dy.Int32(description="0-based code point"),
                "end": dy.Int32(description="code point after the last"),
            }
        ),
        description="what limits the answer, in the order of the text",
    )
    confidence = dy.Float32(
        min=0,
        max=1,
        description="probability that `primary` is right, as the teacher sees it; 0 for an Other that no teacher "
        "gave: the row fell to it when its leaf was dropped",
    )
    teacher = dy.String(description="who labelled: `embedded`, or the model's name")
    taxonomy_version = dy.String(description="`taxonomy.version`")
    unsolvable = dy.String(
        nullable=True, description="missing_tool, missing_info, no_actionable or no_tool_needed; null if solvable"
    )
    unsolvable_confidence = dy.Float32(
        min=0, max=1, description="probability that the query cannot be solved with the tools"
    )
    error = dy.String(nullable=True, description="why the row failed; null for a labelled row")

    @dy.rule()
    def labelled_or_failed(cls) -> pl.Expr:
        """A row has a primary leaf or an error, never both or neither."""
        return pl.col("primary").is_null() != pl.col("error").is_null()
