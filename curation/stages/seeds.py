"""Seeds: the domain's labelled queries, a person's labels, and proposals from the log for labelling (D_seed).

Proposals cover the space of meanings: half of the places go by K-Center-Greedy over the vectors, so that rare kinds come
in, half to the most frequent representatives of the parts that are covered worst; languages share the places by the
square root of their rows. A text that is labelled already is not proposed again, and a person's label of a text wins
over the domain's.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Stage

__all__ = ["STAGE", "SeedsParams"]

_SAMPLE = 50_000
_SCHEMA = {
    "text": pl.String,
    "lang": pl.String,
    "tags": pl.List(pl.String),
    "primary": pl.String,
    "secondary": pl.List(pl.String),
    "reason": pl.String,
    "labelled_by": pl.String,
    "origin": pl.String,
}


class SeedsParams(Params):
    """Which labels there are besides the domain's, and how many rows to propose for labelling."""

    file: str | None = Field(
        None,
        description="CSV or JSON lines with labels: text, lang, tags, primary, secondary, reason, labelled_by",
        json_schema_extra={"input_file": True},
    )
    propose: int = Field(200, ge=0, description="queries of the log to propose for labelling")


def _labelled(ctx: Context) -> pl.DataFrame:
    """Labelled seeds with their ids; of one text the person's row is kept, else the first."""
    from pathlib import Path

    import pyarrow as pa

    from curation.algorithms.language import detect
    from curation.algorithms.normalise import normalise, query_ids
    from curation.algorithms.scripts import DEFAULT_LANGUAGES
    from curation.teachers.seeds_file import read_seeds_file

    rows = [
        {
            "text": seed.text,
            "lang": seed.lang,
            "tags": [],
            "primary": seed.primary,
            "secondary": sorted(seed.secondary),
            "reason": seed.reason,
            "labelled_by": "domain",
            "origin": "domain",
        }
        for seed in ctx.domain.seeds
    ]
    frames = [pl.DataFrame(rows, schema=_SCHEMA)]
    if ctx.params.file is not None:
        found = read_seeds_file(Path(ctx.params.file), ctx.domain.taxonomy)
        frames.insert(0, found.with_columns(origin=pl.lit("file")).select(list(_SCHEMA)).cast(_SCHEMA))
    seeds = pl.concat(frames)
    norms = normalise(pa.array(seeds["text"].to_list(), pa.large_string()))
    seeds = seeds.with_columns(query_id=pl.Series(query_ids(norms), dtype=pl.UInt64))
    seeds = seeds.unique("query_id", keep="first", maintain_order=True)
    unknown = seeds["lang"].is_null()
    if unknown.any():
        langs, _ = detect(seeds["text"], DEFAULT_LANGUAGES, ctx.workers)
        seeds = seeds.with_columns(lang=pl.coalesce(pl.col("lang"), langs))
    return seeds


def _candidates(ctx: Context, known: pl.Series) -> tuple[pl.DataFrame, np.ndarray]:
    """A seeded sample of representatives with vectors: at most `_SAMPLE` rows, sorted by id."""
    from curation.algorithms.identity import seeded_order
    from curation.spill import vector_batches

    groups = ctx.scan("lexical_groups", ["query_id", "representative_id", "group_count"])
    rows = (
        groups.filter(pl.col("query_id") == pl.col("representative_id"))
        .join(ctx.scan("embeddings", ["query_id"]), on="query_id", how="semi")
        .filter(~pl.col("query_id").is_in(known.implode()))
        .select("query_id", weight="group_count")
        .sort("query_id")
        .collect()
    )
    if rows.height > _SAMPLE:
        chosen = np.sort(seeded_order(rows["query_id"].to_numpy(), ctx.seed)[:_SAMPLE])
        rows = rows[chosen]
    ids, vectors = rows["query_id"].to_numpy(), []
    for batch_ids, batch in vector_batches(ctx.files("embeddings")):
        vectors.append(batch[np.isin(batch_ids, ids, assume_unique=True)])
    texts = ctx.scan("queries", ["query_id", "text", "lang"])
    described = rows.lazy().join(texts, on="query_id", how="left", maintain_order="left").collect()
    return described, np.concatenate(vectors) if vectors else np.empty((0, 1), np.float32)


def _propose(ctx: Context, known: pl.Series) -> pl.DataFrame:
    from curation.algorithms.apportion import apportion
    from curation.algorithms.kcenter import kcenter

    rows, vectors = _candidates(ctx, known)
    langs = rows.group_by("lang").agg(pl.col("weight").sum(), rows=pl.len()).sort("lang")
    places = apportion(
        np.sqrt(langs["weight"].to_numpy().astype(float)),
        min(ctx.params.propose, rows.height),
        capacity=langs["rows"].to_numpy().astype(np.int64),
    )
    chosen: list[int] = []
    for lang, wanted in zip(langs["lang"].to_list(), places.tolist(), strict=True):
        at = np.flatnonzero((rows["lang"] == lang).to_numpy())
        weights = rows["weight"].to_numpy()[at]
        diverse = (
            np.asarray(kcenter(vectors[at], wanted // 2, weights=weights)[0]) if wanted > 1 else np.empty(0, int)
        )
        rest = np.setdiff1d(np.arange(len(at)), diverse)
        frequent = rest[np.lexsort((at[rest], -weights[rest]))][: wanted - len(diverse)]
        chosen += at[np.concatenate([diverse, frequent]).astype(int)].tolist()
    proposed = rows[sorted(chosen)]
    return proposed.select(
        "query_id",
        "text",
        "lang",
        tags=pl.lit([], pl.List(pl.String)),
        primary=pl.lit(None, pl.String),
        secondary=pl.lit([], pl.List(pl.String)),
        reason=pl.lit(None, pl.String),
        labelled_by=pl.lit(None, pl.String),
        origin=pl.lit("proposed"),
    )


def run(ctx: Context) -> None:
    """Gather labelled seeds, add proposals."""
    labelled = _labelled(ctx)
    frames = [labelled]
    if ctx.params.propose:
        frames.append(_propose(ctx, labelled["query_id"]))
    columns = ["query_id", *_SCHEMA]
    seeds = pl.concat([frame.select(columns) for frame in frames])
    with ctx.part() as part:
        part.write("seeds", seeds)
        part.account(Account(rows_in=seeds.height, kept=seeds.height))
        part.metric("labelled", labelled.filter(pl.col("primary").is_not_null()).height, "seeds")
        part.metric("proposed", seeds.height - labelled.height, "seeds")


STAGE = Stage(
    name="seeds",
    run=run,
    params=SeedsParams,
    reads=("queries", "lexical_groups", "embeddings"),
    makes=("seeds",),
    title="Gather labelled seeds and propose more",
    uses_domain=True,
    libraries=("numpy", "polars-hash"),
)
