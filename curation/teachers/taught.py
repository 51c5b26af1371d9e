"""Who labels the rows of a run: the embedded teacher itself, or a student that it taught on rows of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from curation.engine.stage import Context
from curation.teachers.fitting import Encode, encoder_of_run, fitted_teacher

if TYPE_CHECKING:
    from curation.taxonomy.lineage import Lineage
    from curation.teachers.embedded.labelling import Labeller
    from curation.teachers.embedded.student import Lesson

__all__ = ["labeller_of_run", "lesson_of_run", "taught_by_log"]


def taught_by_log(ctx: Context) -> bool:
    """Whether a student labels: `auto` means where the vectors are not those of the better encoder.

    ``ctx`` is of the stage `annotate`, reads `lexical_groups` and `embeddings` and shares the section `embed`. Fewer
    rows than a lesson needs are labelled by the teacher.
    """
    from curation.teachers.embedded.student import HELD_OUT

    wanted = ctx.params.student == "always" or (ctx.params.student == "auto" and _better_encoder(ctx) is not None)
    return wanted and ctx.scan("embeddings", ["query_id"]).select(pl.len()).collect().item() > HELD_OUT


def _better_encoder(ctx: Context) -> str | None:
    """Name of the encoder that the teacher reads with; None where the table `embeddings` is of it."""
    from curation.teachers.encoders import resolve_encoder

    embed = ctx.shared["embed"]
    kept = ctx.scan("lexical_groups", ["kept"]).filter("kept").select(pl.len()).collect().item()
    better = resolve_encoder(embed, 0)
    return better if better != resolve_encoder(embed, kept) else None


def labeller_of_run(ctx: Context, lineage: Lineage | None = None, version: str | None = None) -> Labeller:
    """The teacher fitted on the run's seeds, or its student.

    ``ctx`` is of the stage `annotate` and reads what :func:`fitted_teacher` needs, `embeddings` and `queries`.

    Args:
        ctx: The context of the stage.
        lineage, version: As for :func:`fitted_teacher`.
    """
    if not taught_by_log(ctx):
        return fitted_teacher(ctx, None, lineage, version)
    from curation.teachers.embedded.student import Student

    encode, lesson = lesson_of_run(ctx)
    teacher = fitted_teacher(ctx, encode, lineage, version)
    return Student.taught(teacher, lesson, ctx.params.student_rereads)


def lesson_of_run(ctx: Context) -> tuple[Encode, Lesson]:
    """Rows of the log that a student is taught on, or that an LLM may be asked about, and the teacher's encoder.

    ``ctx`` is of the stage `annotate`. Where no student is taught the two kinds of vectors are the same.
    """
    from curation.teachers.embedded.student import Lesson, lesson_places
    from curation.teachers.encoders import load_encoder

    weights = (
        ctx.scan("lexical_groups", ["query_id", "group_count"])
        .join(ctx.scan("embeddings", ["query_id"]), on="query_id", how="semi")
        .sort("query_id")
        .collect()
    )
    places, typical = lesson_places(weights["group_count"].to_numpy(), ctx.params.lesson)
    chosen = weights[places].select("query_id").lazy()
    rows = (
        ctx.scan("queries", ["query_id", "text", "norm", "lang"])
        .join(chosen, on="query_id", how="semi")
        .join(_vectors(ctx, chosen), on="query_id", how="left")
        .sort("query_id")
        .collect()
    )
    own = rows["vector"].to_numpy()
    rows = rows.drop("vector")
    better = _better_encoder(ctx) if taught_by_log(ctx) else None
    if better is None:
        return encoder_of_run(ctx), Lesson(rows, typical, own, own)
    encoder = load_encoder(better, ctx.workers)
    return encoder.encode, Lesson(rows, typical, encoder.encode(rows["text"].to_list()), own, encoder.quick().encode)


def _vectors(ctx: Context, chosen: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of `embeddings`; only these may stay in memory."""
    return ctx.scan("embeddings").join(chosen, on="query_id", how="semi").collect(engine="streaming").lazy()
