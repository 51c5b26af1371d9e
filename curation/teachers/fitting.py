"""The teacher of a run, as the stages that label need it: the same seeds and the same encoder for all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import fields
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.engine.stage import Context
from curation.taxonomy.seeds import carried

if TYPE_CHECKING:
    from curation.taxonomy.lineage import Lineage
    from curation.teachers.embedded.teacher import EmbeddedTeacher

__all__ = ["Encode", "encoder_of_run", "fitted_teacher"]

_last: dict[str, EmbeddedTeacher] = {}
_lock = Lock()

Encode = Callable[[list[str]], NDArray[np.float32]]


def encoder_of_run(ctx: Context) -> Encode:
    """The function that made the table `embeddings`.

    ``ctx`` reads `lexical_groups` and shares the section `embed`.
    """
    from curation.teachers.encoders import load_encoder, resolve_encoder

    kept = ctx.scan("lexical_groups", ["kept"]).filter("kept").select(pl.len()).collect().item()
    return load_encoder(resolve_encoder(ctx.shared["embed"], kept), ctx.workers).encode


def fitted_teacher(
    ctx: Context,
    encode: Encode | None = None,
    lineage: Lineage | None = None,
    version: str | None = None,
    learnt: pl.DataFrame | None = None,
) -> EmbeddedTeacher:
    """The teacher fitted on the run's seeds.

    ``ctx`` also reads `seeds` and `taxonomy`, and is of the stage `annotate` or shares its section. The last teacher
    of a current version is kept in memory: the stages of a run that need the same one fit it once.

    Args:
        ctx: The context of a stage.
        encode: Makes the vectors; that of the run when not given.
        lineage, version: Fit on the tree and the labels of this version; of the current one when not given.
        learnt: Further labelled rows, with columns of `seeds`; they win over seeds of the same text.
    """
    from curation.teachers.embedded.teacher import Choice, EmbeddedTeacher

    section = ctx.shared.get("annotate", ctx.params)
    choice = Choice(**{field.name: getattr(section, field.name) for field in fields(Choice)})
    seeds = ctx.read("seeds")
    is_current = lineage is None or version is None or version == lineage.current
    if lineage is None or version is None or is_current:
        taxonomy = ctx.read("taxonomy").filter("is_current")
    else:
        taxonomy, seeds = lineage.nodes(version), carried(seeds, lineage, version).select(seeds.columns)
    seeds = seeds.filter(pl.col("primary").is_not_null())
    if learnt is not None:
        seeds = pl.concat([seeds.join(learnt, on="query_id", how="anti"), learnt], how="diagonal")
    encode = encode or encoder_of_run(ctx)
    fingerprint = getattr(getattr(encode, "__self__", None), "fingerprint", None)
    digest = hashlib.sha256(repr((fingerprint, ctx.domain.fingerprint, choice, ctx.workers)).encode())
    for frame in (seeds, taxonomy):
        digest.update(frame.write_ndjson().encode())
    key = digest.hexdigest()
    with _lock:
        teacher = _last.get(key)
        if teacher is None:
            teacher = EmbeddedTeacher.fit(seeds, taxonomy, ctx.domain, encode, choice, ctx.workers)
            if is_current:
                _last.clear()
            if is_current and fingerprint is not None:
                _last[key] = teacher
        return teacher
