"""Pool: the candidate pool, one flat row a candidate, and its shares next to their targets.

Observed candidates are the picks of the geometric level, those of the irrelevance set among them; solvable queries
with a tool taken away and verified synthetic queries are added. Nothing is chosen here, it all was before.
"""

from __future__ import annotations

from typing import Any, Literal

import polars as pl
from pydantic import Field, field_validator, model_validator

from curation.engine.stage import Account, Context, Params, Stage

__all__ = ["STAGE", "PoolParams"]


class PoolParams(Params):
    """The asked shape of the pool; the stages that fill it (synthesis, geometric, irrelevance) read it too."""

    size: int = Field(5_000, ge=1, le=1_000_000_000, description="candidates in the pool")
    difficulty: dict[int, float] | None = Field(
        None, description="target share of the pool by difficulty (-1 to 5); unnamed ones share the rest as they come"
    )
    bucket_shares: Literal["proportional", "sqrt", "equal"] = Field(
        "sqrt", description="how places are shared out over buckets: by rows, by their square root, or evenly"
    )
    min_per_bucket: int = Field(1, ge=0, description="places a bucket gets at least, so that rare ones survive")
    tool_removed_share: float = Field(0.02, ge=0, le=0.5, description="share made unexecutable by taking a tool away")
    synthetic_share: float = Field(0.04, ge=0, le=0.5, description="share of synthetic queries, at most")
    tiny_share: float = Field(0.10, ge=0, le=1, description="random share marked `tiny`, for seed fine-tuning")

    @field_validator("difficulty")
    @classmethod
    def _are_shares(cls, shares: dict[int, float] | None) -> dict[int, float] | None:
        if shares is None:
            return None
        total = sum(shares.values())
        if set(shares) - set(range(-1, 6)):
            raise ValueError(f"a difficulty is one of -1 to 5, not {sorted(set(shares) - set(range(-1, 6)))[0]}")
        if any(share < 0 for share in shares.values()):
            raise ValueError("a share is not negative")
        if total > 1 + 1e-6 or (len(shares) == 7 and total < 1 - 1e-6) or total == 0:
            wanted = "1" if len(shares) == 7 else "more than 0 and at most 1"
            raise ValueError(f"the shares sum to {total:.6g}; they must sum to {wanted}")
        return shares

    @model_validator(mode="after")
    def _leave_room(self) -> PoolParams:
        if self.tool_removed_share + self.synthetic_share > 0.9:
            raise ValueError("tool_removed_share and synthetic_share leave less than a tenth for observed queries")
        return self


_LABELS = ("primary", "secondary", "constraints", "confidence")
_SCORES = ("difficulty", "cognitive_load", "chain_depth", "constraint_complexity", "tool_plan", "reason")


def _observed(ctx: Context) -> pl.LazyFrame:
    groups = ctx.scan("geometric_groups", ["query_id", "representative_id", "group_count"]).filter(
        pl.col("query_id") == pl.col("representative_id")
    )
    return (
        ctx.scan("selection", ["query_id", "bucket", "rank"])
        .join(groups.select("query_id", represents="group_count"), on="query_id", how="left")
        .with_columns(
            origin=pl.lit("observed"),
            removed_tools=pl.lit([], pl.List(pl.String)),
            parents=pl.lit([], pl.List(pl.UInt64)),
        )
    )


def _tool_removed(ctx: Context) -> pl.LazyFrame:
    made = ctx.scan("irrelevance").filter(pl.col("origin") == "tool_removed")
    buckets = ctx.scan("semantic_groups", ["query_id", "bucket"])
    return made.join(buckets, on="query_id", how="left").select(
        "query_id",
        "bucket",
        "origin",
        "removed_tools",
        rank=pl.lit(None, pl.Int64),
        represents=pl.lit(0, pl.Int64),
        parents=pl.lit([], pl.List(pl.UInt64)),
        made_difficulty="difficulty",
        made_reason="reason",
    )


def _described(ctx: Context, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Text, labels and scores of candidates that are queries of the log."""
    return (
        rows.join(ctx.scan("queries", ["query_id", "text", "lang", "count"]), on="query_id", how="left")
        .join(ctx.scan("annotations", ["query_id", *_LABELS]), on="query_id", how="left")
        .join(ctx.scan("difficulty", ["query_id", *_SCORES]), on="query_id", how="left")
    )


def _synthetic(ctx: Context) -> pl.LazyFrame:
    from curation.algorithms.labels import bucket_name

    return (
        ctx.scan("synthetic")
        .filter(pl.col("verdict") == "verified")
        .select(
            "query_id",
            "text",
            "lang",
            *_LABELS,
            *(name for name in _SCORES if name != "reason"),
            "parents",
            bucket=bucket_name(pl.col("primary"), pl.col("secondary")),
            reason=pl.lit(None, pl.String),
            origin=pl.lit("synthetic"),
            removed_tools=pl.lit([], pl.List(pl.String)),
            rank=pl.lit(None, pl.Int64),
            count=pl.lit(0, pl.Int64),
            represents=pl.lit(0, pl.Int64),
        )
    )


def _split(pool: pl.DataFrame, share: float, seed: int) -> pl.DataFrame:
    """Mark the ``share`` of candidates whose hash under ``seed`` is smallest: random, yet the same everywhere."""
    from curation.algorithms.identity import seeded_order

    tiny = seeded_order(pool["candidate_id"].to_numpy(), seed)[: round(share * pool.height)]
    marks = pl.Series("split", ["main"] * pool.height).scatter(tiny, "tiny") if len(tiny) else pl.lit("main")
    return pool.with_columns(split=marks)


def _shares(ctx: Context, pool: pl.DataFrame, params: PoolParams) -> pl.DataFrame:
    """One row a share: difficulty, bucket, origin, level-1 category and split, with target and availability."""
    from curation.algorithms.apportion import bucket_weights

    survivors = ctx.scan("semantic_groups", ["query_id", "representative_id", "bucket"]).filter(
        pl.col("query_id") == pl.col("representative_id")
    )
    graded = survivors.join(ctx.scan("difficulty", ["query_id", "difficulty"]), on="query_id").collect()
    buckets = graded.group_by("bucket").len("available").sort("bucket")
    weights = bucket_weights(buckets["available"].to_numpy(), params.bucket_shares)
    targets: dict[str, pl.DataFrame] = {
        "bucket": buckets.select(name="bucket").with_columns(target=pl.Series(weights / weights.sum())),
        "difficulty": pl.DataFrame(
            {"name": [str(d) for d in params.difficulty or {}], "target": list((params.difficulty or {}).values())},
            schema={"name": pl.String, "target": pl.Float64},
        ),
        "origin": pl.DataFrame(
            {"name": ["tool_removed", "synthetic"], "target": [params.tool_removed_share, params.synthetic_share]}
        ),
        "split": pl.DataFrame({"name": ["tiny"], "target": [params.tiny_share]}),
    }
    available = {
        "bucket": buckets.select(name="bucket", available="available"),
        "difficulty": graded.group_by(name=pl.col("difficulty").cast(pl.String)).len("available"),
    }
    frames = []
    for what in ("difficulty", "bucket", "origin", "level1", "split"):
        frame = pool.group_by(name=pl.col(what).cast(pl.String)).len("rows")
        for other in (targets.get(what), available.get(what)):
            if other is not None:
                frame = frame.join(other, on="name", how="full", coalesce=True)
        frames.append(frame.with_columns(share_of=pl.lit(what), rows=pl.col("rows").fill_null(0).cast(pl.Int64)))
    return (
        pl.concat(frames, how="diagonal_relaxed")
        .with_columns(
            share=pl.col("rows") / max(pool.height, 1),
            target=pl.col("target").cast(pl.Float64),
            available=pl.col("available").cast(pl.Int64),
        )
        .select("share_of", "name", "rows", "share", "target", "available")
    )


def run(ctx: Context) -> None:
    """Join everything known of the chosen queries into one flat row each."""
    from curation.algorithms.identity import candidate_ids

    params: PoolParams = ctx.params
    observed = _described(ctx, _observed(ctx)).collect()
    removed = (
        _described(ctx, _tool_removed(ctx))
        .with_columns(difficulty="made_difficulty", reason="made_reason", tool_plan=pl.col("tool_plan").list.head(0))
        .drop("made_difficulty", "made_reason")
        .collect()
    )
    synthetic = _synthetic(ctx).collect()
    columns = sorted(set(observed.columns))
    pool = pl.concat([frame.select(columns) for frame in (observed, removed, synthetic)], how="vertical_relaxed")
    pool = pool.with_columns(
        candidate_id=candidate_ids(pool["query_id"], pool["origin"], pool["removed_tools"]),
        level1=pl.col("primary").replace_strict(_level1(ctx), default=None, return_dtype=pl.String),
    ).sort("candidate_id")
    pool = _split(pool, params.tiny_share, ctx.seed)
    with ctx.part() as part:
        part.write("candidate_pool", pool)
        part.write("pool_shares", _shares(ctx, pool, params))
        weight = int(observed["represents"].sum())
        part.account(
            Account(
                rows_in=observed.height,
                kept=observed.height,
                added=removed.height + synthetic.height,
                weight_in=weight,
                weight_out=weight,
            )
        )
        part.metric("asked", params.size, "rows")
        part.metric("shortfall", max(params.size - pool.height, 0), "rows")


def _level1(ctx: Context) -> dict[str, str]:
    """Node to its level-1 category, by walking up the taxonomy table."""
    nodes: list[dict[str, Any]] = ctx.read("taxonomy", ["node_id", "parent_id", "level"]).sort("level").to_dicts()
    top: dict[str, str] = {}
    for node in nodes:
        top[node["node_id"]] = top.get(node["parent_id"], node["node_id"])
    return top


STAGE = Stage(
    name="pool",
    run=run,
    params=PoolParams,
    reads=(
        "selection",
        "geometric_groups",
        "semantic_groups",
        "difficulty",
        "annotations",
        "queries",
        "taxonomy",
        "irrelevance",
        "synthetic",
    ),
    makes=("candidate_pool", "pool_shares"),
    title="Join the chosen queries into the candidate pool",
    after="geometric",
)
