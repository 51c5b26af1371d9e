"""Difficulty: every survivor of the semantic level is scored by execution simulation on the tools of the domain."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from pydantic import Field, field_validator

from curation.engine.stage import Account, Context, Params, Stage

__all__ = ["STAGE", "DifficultyParams"]

ROWS_PER_PART = 250_000


class DifficultyParams(Params):
    """How the three dimensions, each 0 to 5, become one difficulty."""

    weights: tuple[float, float, float] = Field(
        (0.30, 0.50, 0.20), description="of cognitive load, chain depth and constraint complexity in their mean"
    )
    emphasis: float = Field(
        0.1, ge=0, le=1, description="share of the hardest dimension in the score; the weighted mean has the rest"
    )
    thresholds: tuple[float, float, float, float] = Field(
        (1.5, 2.1, 2.7, 3.4), description="scores from which difficulty is 2, 3, 4 and 5"
    )
    unsolvable_threshold: float = Field(
        0.5, gt=0, lt=1, description="probability of being unsolvable from which a query gets -1 or 0"
    )

    @field_validator("weights")
    @classmethod
    def _weights(cls, weights: tuple[float, float, float]) -> tuple[float, float, float]:
        if min(weights) < 0 or sum(weights) <= 0:
            raise ValueError("weights must not be negative and one must be positive")
        return weights

    @field_validator("thresholds")
    @classmethod
    def _thresholds(cls, thresholds: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
        if list(thresholds) != sorted(set(thresholds)):
            raise ValueError("thresholds must ascend")
        return thresholds


def _survivors(ctx: Context) -> pl.DataFrame:
    groups = ctx.scan("semantic_groups", ["query_id", "representative_id", "group_count"])
    return groups.filter(pl.col("query_id") == pl.col("representative_id")).drop("representative_id").collect()


def _chunks(ctx: Context, survivors: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Names of parts and their survivors; at least one part, so that the table is there when nothing survived."""
    total = survivors.height
    for number, start in enumerate(range(0, max(total, 1), ROWS_PER_PART)):
        ctx.progress(start, total, "simulating")
        yield f"{number:04d}", survivors.slice(start, ROWS_PER_PART)
    ctx.progress(total, total, "simulating")


def _labelled(ctx: Context, ids: pl.DataFrame) -> pl.DataFrame:
    """Texts and labels of the survivors ``ids``, sorted by id; only their range of the tables is read."""
    span = pl.col("query_id").is_between(ids["query_id"].min(), ids["query_id"].max())
    labels = ["primary", "secondary", "constraints", "confidence", "unsolvable", "unsolvable_confidence"]
    return (
        ids.lazy()
        .select("query_id")
        .join(ctx.scan("queries", ["query_id", "text", "norm"]).filter(span), on="query_id")
        .join(ctx.scan("annotations", ["query_id", *labels]).filter(span), on="query_id")
        .sort("query_id")
        .collect()
    )


def run(ctx: Context) -> None:
    """Score the survivors part by part."""
    from curation.teachers.embedded.scorer import PlanScorer, Scale

    params: DifficultyParams = ctx.params
    scorer = PlanScorer(ctx.domain, Scale(**params.model_dump()))
    for name, ids in _chunks(ctx, _survivors(ctx)):
        with ctx.part(name) as part:
            if part.done:
                continue
            rows = _labelled(ctx, ids)
            part.write("difficulty", scorer.score(rows))
            weight = int(ids["group_count"].sum())
            part.account(
                Account(rows_in=ids.height, kept=rows.height, weight_in=weight, weight_out=weight),
            )


STAGE = Stage(
    name="difficulty",
    run=run,
    params=DifficultyParams,
    reads=("semantic_groups", "annotations", "queries"),
    makes=("difficulty",),
    title="Simulate the tool calls a query needs and grade it",
    after="semantic",
    uses_domain=True,
    libraries=("polars",),
    seeded=False,
)
