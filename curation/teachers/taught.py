"""Who labels the rows of a run: the embedded teacher itself, or a student that it taught on rows of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from curation.engine.stage import Context
from curation.teachers.fitting import fitted_teacher

if TYPE_CHECKING:
    from curation.taxonomy.lineage import Lineage
    from curation.teachers.embedded.labelling import Labeller

__all__ = ["labeller_of_run", "taught_by_log"]


def taught_by_log(ctx: Context) -> bool:
    """Whether a student labels: `auto` means where the vectors are not those of the better encoder.

    ``ctx`` is of the stage `annotate`, reads `lexical_groups` and `embeddings` and shares the section `embed`. Fewer
    rows than a lesson needs are labelled by the teacher.
    """
    from curation.teachers.embedded.student import HELD_OUT
    from curation.teachers.encoders import resolve_encoder

    embed = ctx.shared["embed"]
    kept = ctx.scan("lexical_groups", ["kept"]).filter("kept").select(pl.len()).collect().item()
    cheaper = resolve_encoder(embed, kept) != resolve_encoder(embed, 0)
    rows = ctx.scan("embeddings", ["query_id"]).select(pl.len()).collect().item()
    return rows > HELD_OUT and (ctx.params.student == "always" or (ctx.params.student == "auto" and cheaper))


def labeller_of_run(ctx: Context, lineage: Lineage | None = None, version: str | None = None) -> Labeller:
    """The teacher fitted on the run's seeds, or its student.

    ``ctx`` is of the stage `annotate` and reads what :func:`fitted_teacher` needs, `embeddings` and `queries`.

    Args:
        ctx: The context of the stage.
        lineage, version: As for :func:`fitted_teacher`.
    """
    if not taught_by_log(ctx):
        return fitted_teacher(ctx, None, lineage, version)
    from curation.teachers.embedded.student import Student, lesson_places
    from curation.teachers.encoders import load_encoder, resolve_encoder

    encode = load_encoder(resolve_encoder(ctx.shared["embed"], 0), ctx.workers).encode
    teacher = fitted_teacher(ctx, encode, lineage, version)
    weights = (
        ctx.scan("lexical_groups", ["query_id", "group_count"])
        .join(ctx.scan("embeddings", ["query_id"]), on="query_id", how="semi")
        .sort("query_id")
        .collect()
    )
    chosen = weights[lesson_places(weights["group_count"].to_numpy(), ctx.params.lesson)].select("query_id").lazy()
    rows = (
        ctx.scan("queries", ["query_id", "text", "norm", "lang"])
        .join(chosen, on="query_id", how="semi")
        .join(ctx.scan("embeddings"), on="query_id", how="left")
        .sort("query_id")
        .collect()
    )
    vectors = rows["vector"].to_numpy()
    return Student.taught(teacher, rows.drop("vector"), encode(rows["text"].to_list()), vectors)
