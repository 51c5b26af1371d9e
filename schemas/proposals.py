"""The contract of `proposals`."""

from __future__ import annotations

import dataframely as dy
import polars as pl

_KINDS = ("add", "merge", "split", "rename", "move", "drop", "describe")


class Proposals(dy.Schema):
    """A row is a change of the taxonomy that a teacher proposes, with the rows that speak for it."""

    proposal_id = dy.String(
        primary_key=True, regex=r"^[0-9a-f]{12}$", description="first digits of the SHA-256 of the content"
    )
    source = dy.String(
        check=lambda c: c.is_in(["refine", "expand", "induce"]),
        description="what proposes it: refine, expand, induce",
    )
    kind = dy.String(check=lambda c: c.is_in(list(_KINDS)), description=", ".join(_KINDS))
    node_id = dy.String(nullable=True, description="the node it is about, for `add` the parent; null for the root")
    target = dy.String(
        nullable=True, description="`merge`: the node that takes it in; `move`: the new parent, null for the root"
    )
    name = dy.String(nullable=True, description="`add`, `rename`: the new name")
    description = dy.String(nullable=True, description="`add`, `describe`: what belongs to the node")
    evidence = dy.List(
        dy.Struct(
            {
                "query_id": dy.UInt64(description="`queries.query_id`"),
                "text": dy.String(description="the query"),
                "weight": dy.Int64(description="raw rows behind it"),
            }
        ),
        description="rows that speak for it, the clearest first",
    )
    rows = dy.Int64(min=0, description="queries concerned, of which `evidence` shows some")
    weight = dy.Int64(min=0, description="raw rows behind `rows`")
    purity = dy.Float32(min=0, max=1, description="cohesion of the evidence")
    confidence = dy.Float32(min=0, max=1, description="how sure the teacher is")
    trend = dy.Float32(
        nullable=True,
        min=-1,
        max=1,
        description="share of `weight` seen in the last third of the log's time, less a third; null without times",
    )
    reason = dy.String(min_length=1, description="why, as a sentence")
    parts = dy.List(
        dy.Struct(
            {
                "name": dy.String(description="name of the leaf"),
                "description": dy.String(description="what belongs to it"),
                "examples": dy.List(dy.String(), description="queries that belong to it"),
            }
        ),
        description="`split`: the leaves that the node becomes",
    )
    base_version = dy.String(description="version of the taxonomy that it would change")
    problem = dy.String(
        nullable=True, description="why it cannot be carried out; null for a proposal that waits for a decision"
    )

    @dy.rule()
    def named(cls) -> pl.Expr:
        """What is added or renamed has a name."""
        return ~pl.col("kind").is_in(["add", "rename"]) | pl.col("name").is_not_null()
