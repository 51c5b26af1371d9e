"""Irrelevance: the negative samples of the pool, seen in the log or made by taking a tool away.

Seen ones are the picks of the geometric level with difficulty -1 or 0. Made ones are solvable survivors whose plan
needs a tool, which is taken away together with every tool that could do its work; no other tool of the domain can
help, so they become unexecutable.
"""

from __future__ import annotations

import polars as pl

from curation.engine.stage import Account, Context, Params, Stage

__all__ = ["STAGE", "IrrelevanceParams"]


class IrrelevanceParams(Params):
    """How many there are follows from the section `pool`: its size and its share of tool-removed rows."""


def _level1(primary: pl.Expr) -> pl.Expr:
    """Level-1 category of a leaf: the first part of its dotted path."""
    return primary.str.split(".").list.first()


def _observed(ctx: Context) -> pl.DataFrame:
    negatives = ctx.scan("difficulty", ["query_id", "difficulty", "reason"]).filter(pl.col("difficulty") <= 0)
    return (
        ctx.scan("selection", ["query_id"])
        .join(negatives, on="query_id")
        .join(ctx.scan("annotations", ["query_id", "primary"]), on="query_id")
        .select(
            "query_id",
            "difficulty",
            "reason",
            origin=pl.lit("observed"),
            removed_tools=pl.lit([], pl.List(pl.String)),
            level1=_level1(pl.col("primary")),
        )
        .sort("query_id")
        .collect()
    )


def _removable(ctx: Context) -> pl.DataFrame:
    """Solvable survivors with a plan, picks first: ``query_id``, ``primary``, ``tools`` of the plan joined by +."""
    tools = pl.col("tool_plan").list.eval(pl.element().struct.field("tool")).list.unique().list.sort().list.join("+")
    survivors = ctx.scan("semantic_groups", ["query_id", "representative_id", "group_count"])
    return (
        ctx.scan("difficulty", ["query_id", "difficulty", "tool_plan"])
        .filter((pl.col("difficulty") >= 1) & (pl.col("tool_plan").list.len() > 0))
        .select("query_id", tools=tools)
        .join(ctx.scan("annotations", ["query_id", "primary"]), on="query_id")
        .join(survivors.filter(pl.col("query_id") == pl.col("representative_id")), on="query_id")
        .join(ctx.scan("selection", ["query_id"]).with_columns(picked=True), on="query_id", how="left")
        .sort(pl.col("picked").fill_null(False), "group_count", "query_id", descending=[True, True, False])
        .select("query_id", "primary", "tools")
        .collect()
    )


def _needed_tool(ctx: Context, rows: pl.DataFrame) -> pl.Series:
    """For each row the tool to take away: of those its plan cannot do without, the one that fewest rows need."""
    from curation.taxonomy.reworded import domain_of_run

    plans = domain_of_run(ctx).plans
    pairs = rows.group_by("primary", "tools").len().sort("primary", "tools")
    needs = []
    for primary, tools in pairs.select("primary", "tools").iter_rows():
        names = tuple(tools.split("+"))
        needs.append(plans.essential(primary, names) or names)
    rows_by_tool: dict[str, int] = {}
    for names, count in zip(needs, pairs["len"], strict=True):
        for name in names:
            rows_by_tool[name] = rows_by_tool.get(name, 0) + count
    rarest = [min(names, key=lambda name: (rows_by_tool[name], name)) for names in needs]
    chosen = pairs.select("primary", "tools").with_columns(pl.Series("tool", rarest, dtype=pl.String))
    return rows.join(chosen, on=["primary", "tools"], how="left", maintain_order="left")["tool"]


def _tool_removed(ctx: Context, rows: pl.DataFrame, total: int) -> pl.DataFrame:
    """``total`` of the removable ``rows``, spread over tools and, within a tool, over level-1 categories."""
    from curation.algorithms.spread import round_robin

    rows = rows.with_columns(tool=_needed_tool(ctx, rows), level1=_level1(pl.col("primary")))
    by_tool, by_level1 = (rows[name].rank("dense").to_numpy() for name in ("tool", "level1"))
    removed = {
        tool: [name for name in ctx.domain.plans.removal(tool) if name in ctx.domain.tools]
        for tool in rows["tool"].unique().sort()
    }
    picked = rows[round_robin(by_tool, by_level1, total)]
    return picked.select(
        "query_id",
        difficulty=pl.lit(-1, pl.Int8),
        reason=pl.lit("missing_tool"),
        origin=pl.lit("tool_removed"),
        removed_tools=pl.Series([removed[tool] for tool in picked["tool"]], dtype=pl.List(pl.String)),
        level1="level1",
    )


def run(ctx: Context) -> None:
    """Collect the negatives among the picks and make those without a tool."""
    from curation.algorithms.apportion import pool_sizes
    from curation.algorithms.identity import candidate_ids

    pool = ctx.shared["pool"]
    observed = _observed(ctx)
    rows = _removable(ctx)
    verified = ctx.scan("synthetic", ["verdict"]).filter(pl.col("verdict") == "verified").select(pl.len())
    sizes = pool_sizes(
        pool.size, pool.tool_removed_share, verified.collect().item(), rows.height, ctx.rows("difficulty")
    )
    removed = _tool_removed(ctx, rows, sizes[1])
    both = pl.concat([observed, removed])
    both = both.with_columns(candidate_id=candidate_ids(both["query_id"], both["origin"], both["removed_tools"]))
    with ctx.part() as part:
        part.write("irrelevance", both.sort("candidate_id"))
        part.account(Account(rows_in=observed.height, kept=observed.height, added=removed.height))
        part.metric("tools_removed", removed["removed_tools"].explode().n_unique() if removed.height else 0, "tools")


STAGE = Stage(
    name="irrelevance",
    run=run,
    params=IrrelevanceParams,
    reads=(
        "selection",
        "semantic_groups",
        "difficulty",
        "annotations",
        "synthetic",
        "taxonomy",
        "taxonomy_migrations",
    ),
    makes=("irrelevance",),
    title="Collect the queries to refuse and make some by taking tools away",
    uses_domain=True,
    shared=("pool",),
    libraries=("polars", "polars-hash"),
    seeded=False,
)
