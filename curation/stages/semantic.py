"""Semantic: inside each bucket <primary, secondary> a query goes when a kept query is close enough in meaning.

Queries are gone through by weight (raw rows behind them), confidence of the label, then id, so the most frequent
wording with the surest label stays. Queries that could not be labelled are not taken in; `annotate` has accounted for
them.

Metrics: `buckets` with at least one query, `largest_bucket` in rows, `similarity_mean` of merged queries to their
representatives.

Where the recipe names an earlier workspace, a query that is close enough to one of its survivors, of the same bucket
and with the same numbers, goes to that one.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Stage
from curation.errors import CurationError

__all__ = ["STAGE", "SemanticParams"]

_WRITE = 1_000_000


class SemanticParams(Params):
    """How close two queries of a bucket must be for one to stand for the other."""

    threshold: float = Field(0.92, gt=0, le=1, description="cosine similarity from which on a query is merged")
    digits: Literal["content", "ignore"] = Field(
        "content", description="content: queries whose numbers or model names differ are never merged"
    )
    method: Literal["auto", "products", "projections", "faiss", "faiss-ivf"] = Field(
        "auto",
        description="auto: all products in buckets of up to 2,000 queries, sign projections (recall .999) beyond; "
        "products and faiss compare all, faiss-ivf searches inverted lists",
    )
    earlier: Literal["survivors", "ignore"] = Field(
        "survivors",
        description="where the recipe names an earlier workspace: whether its survivors represent queries",
    )


def _rows(ctx: Context) -> pl.DataFrame:
    """Labelled queries by id: ``query_id``, ``bucket``, ``weight``, ``quality``."""
    from curation.algorithms.labels import bucket_name

    weights = (
        ctx.scan("lexical_groups", ["query_id", "kept", "group_count"])
        .filter("kept")
        .select("query_id", weight="group_count")
    )
    rows = (
        ctx.scan("annotations", ["query_id", "primary", "secondary", "confidence", "error"])
        .filter(pl.col("error").is_null())
        .select(
            "query_id",
            bucket=bucket_name(pl.col("primary"), pl.col("secondary")),
            # In hundredths: the last bits of a confidence are no reason to prefer a query.
            quality=(pl.col("confidence") * 100).round().cast(pl.Int64),
        )
        .join(weights, on="query_id", how="left")
        .sort("query_id")
        .collect()
    )
    if strays := rows["weight"].null_count():
        raise CurationError(
            f"{strays:,} annotated queries are not representatives of lexical_groups", "Run the annotate stage again."
        )
    return rows


def run(ctx: Context) -> None:
    """Group every bucket and write one row a labelled query."""
    rows = _rows(ctx)
    known = _known(ctx, rows)
    elsewhere, rows = rows.join(known, on="query_id", how="inner"), rows.join(known, on="query_id", how="anti")
    names = rows["bucket"].unique().sort()
    bucket = rows["bucket"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    weight = rows["weight"].to_numpy()
    representative, similarity = _group(ctx, rows, _cells(ctx, rows, bucket))
    counts = np.zeros(rows.height, dtype=np.int64)
    np.add.at(counts, representative, weight)
    ids = rows["query_id"].to_numpy()
    groups = rows.select("query_id", "bucket").with_columns(
        representative_id=pl.Series(ids[representative], dtype=pl.UInt64),
        similarity=pl.Series(similarity, dtype=pl.Float32),
        group_count=pl.Series(counts[representative], dtype=pl.Int64),
    )
    earlier = elsewhere.select(
        "query_id",
        "bucket",
        "representative_id",
        "similarity",
        group_count=pl.col("weight").sum().over("representative_id"),
    )
    groups = pl.concat([groups, earlier]).sort("query_id")
    kept = int((representative == np.arange(rows.height)).sum())
    merged = similarity[representative != np.arange(rows.height)]
    with ctx.part() as part:
        for first in range(0, max(groups.height, 1), _WRITE):
            part.write("semantic_groups", groups.slice(first, _WRITE))
        total, gone = int(weight.sum()), int(elsewhere["weight"].sum())
        part.account(
            Account(
                rows_in=groups.height,
                kept=kept,
                merged=groups.height - kept,
                weight_in=total + gone,
                weight_out=total,
                weight_earlier=gone,
            )
        )
        part.metric("earlier", elsewhere.height, "rows")
        part.metric("buckets", len(names), "buckets")
        part.metric("largest_bucket", int(np.bincount(bucket).max()) if len(bucket) else 0, "rows")
        part.metric("similarity_mean", float(merged.mean(dtype=np.float64)) if len(merged) else 1.0, "cosine")


def _known(ctx: Context, rows: pl.DataFrame) -> pl.DataFrame:
    """``query_id``, ``representative_id`` and ``similarity`` of rows that a survivor of an earlier day represents.

    The most similar one, of two equally similar ones that of the lower id.
    """
    from curation.algorithms.survivors_index import FILE_NAME, SurvivorsIndex
    from curation.spill import vector_batches

    none = pl.DataFrame(schema={"query_id": pl.UInt64, "representative_id": pl.UInt64, "similarity": pl.Float32})
    survivors = ctx.earlier("survivors", ["query_id", "bucket", "numbers"])
    if survivors is None or ctx.params.earlier == "ignore" or rows.is_empty():
        return none
    path = ctx.earlier_companion("survivors", FILE_NAME)
    if path is None:
        raise CurationError(
            "the earlier workspace has no index of its survivors",
            "Set `survivors: {index: always}` in its recipe and run it again, or `semantic: {earlier: ignore}` here.",
        )
    index = SurvivorsIndex.load(path)
    theirs = survivors.rename({"query_id": "representative_id"}).collect()
    ours = rows.select("query_id", "bucket", numbers=pl.Series(_numbers(ctx, rows)))
    on = ["bucket", "numbers"] if ctx.params.digits == "content" else ["bucket"]
    found = [none]
    for ids, vectors in vector_batches(ctx.files("embeddings")):
        if vectors.shape[1] != index.dimensions:
            raise CurationError(
                f"the vectors of the earlier workspace have {index.dimensions} numbers, these {vectors.shape[1]}",
                "Name the same encoder in both recipes (embed.encoder), or set `semantic: {earlier: ignore}`.",
            )
        near = index.query(vectors, threshold=ctx.params.threshold, workers=ctx.workers)
        pairs = pl.DataFrame(
            {
                "query_id": np.repeat(ids, np.diff(near.starts)),
                "representative_id": near.ids,
                "similarity": near.similarity,
            }
        )
        same = pairs.join(ours, on="query_id").join(theirs, on=["representative_id", *on])
        best = same.sort("query_id", -pl.col("similarity"), "representative_id").unique("query_id", keep="first")
        found.append(best.select(none.columns).sort("query_id"))
    return pl.concat(found)


def _numbers(ctx: Context, rows: pl.DataFrame) -> np.ndarray:
    """uint32[n]: hash of the numbers and model names of each row, which stand by query id."""
    from curation.algorithms.digits import number_hashes

    norms = rows.lazy().select("query_id").join(ctx.scan("queries", ["query_id", "norm"]), on="query_id", how="left")
    texts = norms.sort("query_id").collect()["norm"].to_arrow(compat_level=pl.CompatLevel.oldest())
    return number_hashes(texts, ctx.workers)


def _cells(ctx: Context, rows: pl.DataFrame, bucket: np.ndarray) -> np.ndarray:
    """Rows that may be merged: those of a bucket, with the same numbers where these are content.

    Sentence vectors hardly tell line 4 from line 1, so numbers are compared as they stand.
    """
    if ctx.params.digits == "ignore" or rows.is_empty():
        return bucket
    cells = pl.DataFrame({"bucket": bucket, "numbers": _numbers(ctx, rows)})
    return cells.select(pl.struct("bucket", "numbers").rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()


def _group(ctx: Context, rows: pl.DataFrame, bucket: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Representative (a row number) and similarity of every row, one partition of buckets after the other."""
    from curation.algorithms.semantic import semantic_groups
    from curation.algorithms.vectors import to_fixed
    from curation.spill import plan_partitions, regroup, vector_batches

    n = rows.height
    representative, similarity = np.arange(n), np.ones(n, dtype=np.float32)
    if n == 0:
        return representative, similarity
    ids = rows["query_id"].to_numpy()
    files = ctx.files("embeddings")
    width = next((vectors.shape[1] for _, vectors in vector_batches(files)), 1)
    # A partition is in memory twice (read and reordered), next to signs and labels.
    most = max(1, ctx.memory // 4 // (4 * width))
    partition = plan_partitions(np.bincount(bucket), most)[bucket]
    parts = regroup(
        vector_batches(files), ids, partition, ctx.scratch, convert=lambda v: to_fixed(v, workers=ctx.workers)
    )
    weight, quality = rows["weight"].to_numpy(), rows["quality"].to_numpy()
    done = 0
    for number in range(int(partition.max()) + 1):
        members = np.flatnonzero(partition == number)
        order = np.lexsort((members, -quality[members], -weight[members], bucket[members]))
        members = members[order]
        closest, cosine = semantic_groups(
            parts.load(number, order, most),
            np.arange(len(members)),
            bucket[members].astype(np.int32),
            threshold=ctx.params.threshold,
            method=ctx.params.method,
            seed=ctx.seed,
            workers=ctx.workers,
        )
        representative[members] = members[closest]
        similarity[members] = cosine
        done += len(members)
        ctx.progress(done, n, "grouping")
    return representative, similarity


STAGE = Stage(
    name="semantic",
    run=run,
    params=SemanticParams,
    reads=("annotations", "embeddings", "lexical_groups", "queries"),
    makes=("semantic_groups",),
    earlier=("survivors",),
    title="Merge queries of a bucket that mean the same",
    after="annotate",
    libraries=("faiss-cpu",),
)
