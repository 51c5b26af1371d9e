"""Taxonomy: the domain's tree as tables, Other at every inner node, and what changed since the one before.

A domain file holds one version; a first version is all additions.
"""

from __future__ import annotations

import polars as pl

from curation.engine.stage import Account, Context, Params, Stage

__all__ = ["STAGE", "TaxonomyParams"]


class TaxonomyParams(Params):
    """Nothing to set: the tree is data of the domain."""


def run(ctx: Context) -> None:
    """Write the nodes of the domain's taxonomy."""
    taxonomy = ctx.domain.taxonomy
    nodes = pl.DataFrame(
        [
            {
                "version": taxonomy.version,
                "node_id": node.node_id,
                "parent_id": node.parent_id,
                "level": node.level,
                "name": node.name,
                "description": node.description,
                "is_other": node.is_other,
                "is_leaf": node.is_leaf,
                "examples": list(node.examples),
            }
            for node in taxonomy.nodes
        ],
        schema_overrides={"parent_id": pl.String, "level": pl.Int32, "examples": pl.List(pl.String)},
    )
    changes = nodes.select(
        "version",
        "node_id",
        from_version=pl.lit(None, pl.String),
        change=pl.lit("added"),
        before=pl.lit(None, pl.String),
        after=pl.col("description"),
    )
    with ctx.part() as part:
        part.write("taxonomy", nodes)
        part.write("taxonomy_changes", changes)
        part.account(Account(rows_in=nodes.height, kept=nodes.height))


STAGE = Stage(
    name="taxonomy",
    run=run,
    params=TaxonomyParams,
    makes=("taxonomy", "taxonomy_changes"),
    title="Read the taxonomy of the domain",
    uses_domain=True,
    seeded=False,
)
