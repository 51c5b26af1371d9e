"""Survivors: what the semantic level kept up to this day, and a Faiss index of them, for later days and users.

A recipe whose `earlier` names this workspace merges queries into these survivors. The index, `survivors.faiss` beside
the table, opens with plain Faiss (:mod:`curation.algorithms.survivors_index` says how).

Metrics: `indexed`, vectors in the index; 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Stage

__all__ = ["STAGE", "SurvivorsParams"]


class SurvivorsParams(Params):
    """Whether the vectors are indexed."""

    index: Literal["auto", "always", "never"] = Field(
        "auto", description="auto: an index of up to `auto_limit` survivors, none beyond; it is in memory while made"
    )
    auto_limit: int = Field(
        6_000_000,
        ge=0,
        description="survivors, earlier days included, up to which auto makes one: 1 KB each at 512-d",
    )
    halves_from: int = Field(
        1_000_000,
        ge=1,
        description="survivors from which the index keeps 16 bits of a number, not 32: cosines are then off by "
        ".0003 at the most",
    )


def run(ctx: Context) -> None:
    """Write the table, and the index where it is wanted."""
    from curation.algorithms.survivors_index import FILE_NAME

    rows = _today(ctx)
    before = ctx.earlier("survivors")
    if before is not None:
        then = before.with_columns(earlier=pl.lit(True)).collect()
        rows = pl.concat([then.join(rows, on="query_id", how="anti"), rows])
    rows = rows.sort("query_id")
    wanted = {"auto": rows.height <= ctx.params.auto_limit, "always": True, "never": False}[ctx.params.index]
    with ctx.part() as part:
        part.write("survivors", rows)
        part.account(Account(rows_in=rows.height, kept=rows.height))
        part.metric("indexed", rows.height if wanted else 0, "vectors")
        if wanted:
            part.companion("survivors", FILE_NAME, lambda path: _index(ctx, rows, path))


def _today(ctx: Context) -> pl.DataFrame:
    """Rows of `survivors` that this day's semantic level kept."""
    from curation.algorithms.digits import number_hashes

    kept = (
        ctx.scan("semantic_groups", ["query_id", "representative_id", "bucket"])
        .filter(pl.col("query_id") == pl.col("representative_id"))
        .select("query_id", "bucket")
        .join(ctx.scan("queries", ["query_id", "norm"]), on="query_id", how="left")
        .sort("query_id")
        .collect()
    )
    norms = kept["norm"].to_arrow(compat_level=pl.CompatLevel.oldest())
    return kept.select(
        "query_id", "bucket", numbers=pl.Series(number_hashes(norms, ctx.workers)), earlier=pl.lit(False)
    )


def _index(ctx: Context, rows: pl.DataFrame, path: Path) -> None:
    from curation.algorithms.survivors_index import FILE_NAME, SurvivorsIndex
    from curation.spill import vector_batches

    today = rows.filter(~pl.col("earlier"))["query_id"].to_numpy()
    then = ctx.earlier_companion("survivors", FILE_NAME)

    def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for ids, vectors in vector_batches(ctx.files("embeddings")):
            hit = _among(ids, today)
            yield ids[hit], vectors[hit]
        if then is not None:
            for ids, vectors in SurvivorsIndex.load(then).batches():
                new = ~_among(ids, today)
                yield ids[new], vectors[new]

    if rows.height >= ctx.params.halves_from:
        SurvivorsIndex.build_lean(batches, rows.height, seed=ctx.seed).save(path)
        return
    parts = list(batches())
    width = parts[0][1].shape[1] if parts else 1
    SurvivorsIndex.build(
        np.concatenate([*(ids for ids, _ in parts), np.empty(0, np.uint64)]),
        np.concatenate([*(vectors for _, vectors in parts), np.empty((0, width), np.float32)]),
        seed=ctx.seed,
    ).save(path)


def _among(ids: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which ids are among the known ones, which rise."""
    if not len(known):
        return np.zeros(len(ids), bool)
    return known[np.minimum(np.searchsorted(known, ids), len(known) - 1)] == ids


STAGE = Stage(
    name="survivors",
    run=run,
    params=SurvivorsParams,
    reads=("semantic_groups", "embeddings", "queries"),
    makes=("survivors",),
    title="Index the survivors for later days",
    earlier=("survivors",),
    libraries=("faiss-cpu", "numpy"),
)
