"""Who labels the rows of a run: the embedded teacher itself, or a student that it taught on rows of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.engine.stage import Context
from curation.teachers.fitting import Encode, encoder_of_run, fitted_teacher

if TYPE_CHECKING:
    from curation.taxonomy.lineage import Lineage
    from curation.teachers.embedded.labelling import Labeller

__all__ = ["labeller_of_run", "lesson_of_run", "taught_by_log"]


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
    from curation.teachers.embedded.student import Student

    encode, rows, own, theirs = lesson_of_run(ctx)
    return Student.taught(fitted_teacher(ctx, encode, lineage, version), rows, theirs, own)


def lesson_of_run(ctx: Context) -> tuple[Encode, pl.DataFrame, NDArray[np.float32], NDArray[np.float32]]:
    """Rows of the log that a student is taught on, or that an LLM may be asked about.

    ``ctx`` is of the stage `annotate`.

    Returns:
        The encoder of the teacher; ``query_id``, ``text``, ``norm`` and ``lang`` of n rows, by id; float32[n, d],
        their vectors in the table `embeddings`; float32[n, e], those of the teacher's encoder, the same where no
        student is taught.
    """
    from curation.teachers.embedded.student import lesson_places
    from curation.teachers.encoders import load_encoder, resolve_encoder

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
        .join(_vectors(ctx, chosen), on="query_id", how="left")
        .sort("query_id")
        .collect()
    )
    own = rows["vector"].to_numpy()
    if not taught_by_log(ctx):
        return encoder_of_run(ctx), rows.drop("vector"), own, own
    encode = load_encoder(resolve_encoder(ctx.shared["embed"], 0), ctx.workers).encode
    return encode, rows.drop("vector"), own, encode(rows["text"].to_list())


def _vectors(ctx: Context, chosen: pl.LazyFrame) -> pl.LazyFrame:
    """Rows of `embeddings`; only these may stay in memory."""
    return ctx.scan("embeddings").join(chosen, on="query_id", how="semi").collect(engine="streaming").lazy()
