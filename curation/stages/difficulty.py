"""Difficulty: every survivor of the semantic level is scored by execution simulation on the tools of the domain.

A row that an LLM could not score is not in the table: it goes to rejects as ``not_scored``, and what the model said
of it is in `teacher_calls`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field, field_validator

from curation.engine.stage import Account, Ask, Context, Params, Part, Stage
from curation.teachers.llm.settings import LlmSettings

if TYPE_CHECKING:
    from curation.teachers.base import Scorer
    from curation.teachers.embedded.scorer import Scale

__all__ = ["STAGE", "DifficultyParams"]

ROWS_PER_PART = 250_000


class DifficultyParams(Params):
    """Who scores, and how the three dimensions, each 0 to 5, become one difficulty."""

    teacher: Literal["embedded", "llm"] = Field(
        "embedded",
        description="who simulates: the domain's plan rules, or a model, see the section llm",
    )
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
        0.5, gt=0, lt=1, description="embedded: probability of being unsolvable from which a query gets -1 or 0"
    )
    rows_per_request: int = Field(8, ge=1, le=64, description="llm: queries in one request at most")

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

    @property
    def scale(self) -> Scale:
        """How dimensions become a difficulty, for scorers."""
        from curation.teachers.embedded.scorer import Scale

        return Scale(self.weights, self.emphasis, self.thresholds, self.unsolvable_threshold)


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
    from curation.taxonomy.reworded import domain_of_run
    from curation.teachers.embedded.scorer import PlanScorer

    params: DifficultyParams = ctx.params
    scorer = PlanScorer(domain_of_run(ctx), params.scale) if params.teacher == "embedded" else None
    for name, ids in _chunks(ctx, _survivors(ctx)):
        with ctx.part(name) as part:
            if part.done:
                continue
            if scorer is not None:
                _score(ctx, part, ids, scorer)
            else:
                _ask(ctx, part, ids)


def _ask(ctx: Context, part: Part, ids: pl.DataFrame) -> None:
    """Have an LLM score the survivors ``ids``."""
    from curation.teachers.llm.client import open_client
    from curation.teachers.llm.of_run import scorer_of_run

    with open_client(ctx.shared["llm"], ctx.cache, "difficulty") as client:
        told = partial(ctx.progress, note="asking")
        _score(ctx, part, ids, scorer_of_run(ctx, client, ctx.params.scale, told))
        part.calls(client.calls())


def _score(ctx: Context, part: Part, ids: pl.DataFrame, scorer: Scorer) -> None:
    rows = _labelled(ctx, ids)
    scored = scorer.score(rows)
    failed = scored.filter(pl.col("difficulty").is_null())
    part.write("difficulty", scored.filter(pl.col("difficulty").is_not_null()))
    # Rejected, not failed: the table has no place for an error, and a row without a difficulty must not pass for one.
    weights = ids.select("query_id", weight="group_count")
    lost = failed.select("query_id").join(weights, on="query_id").join(rows.select("query_id", "text"), on="query_id")
    part.reject(lost.with_columns(reason=pl.lit("not_scored")))
    weight = int(ids["group_count"].sum())
    kept = ids.height - failed.height
    part.account(
        Account(rows_in=ids.height, kept=kept, weight_in=weight, weight_out=weight - int(lost["weight"].sum()))
    )


def estimate(ctx: Any) -> Ask | None:
    """What an LLM will be asked, see :class:`curation.engine.stage.Stage`."""
    if ctx.params.teacher != "llm":
        return None
    from curation.teachers.llm.of_run import Nobody, ask_of_run, scorer_of_run

    scorer = scorer_of_run(ctx, Nobody(), ctx.params.scale)
    return ask_of_run(ctx, _survivors(ctx), lambda ids: scorer.requests(_labelled(ctx, ids)))


def uses(params: DifficultyParams, shared: Mapping[str, Any]) -> Collection[str]:
    """Sections that belong to no stage and are used."""
    return ("llm",) if params.teacher == "llm" else ()


STAGE = Stage(
    name="difficulty",
    run=run,
    params=DifficultyParams,
    reads=("semantic_groups", "annotations", "queries", "taxonomy", "taxonomy_migrations"),
    makes=("difficulty",),
    title="Simulate the tool calls a query needs and grade it",
    after="semantic",
    uses_domain=True,
    sections={"llm": LlmSettings},
    uses=uses,
    estimate=estimate,
    libraries=("polars",),
    seeded=False,
)
