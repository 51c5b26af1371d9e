"""Lexical: near-duplicate strings of the whole corpus go to a kept representative.

See :mod:`curation.algorithms.lexical` for what makes two strings near-duplicates. Metrics: `candidate_pairs` that
shared a bucket, `compared_pairs` of them that a bitmap did not refuse, `similar_pairs` found similar; `bands` and
`permutations_per_band` that candidates came from, 0 with the edit rule; `groups` of more than one query and the
queries of the `largest_group`; the queries that went to a representative of an `earlier` workspace.

The table `lexical_index` is for a later day: every query up to this one with its representative, and the normal forms
of those kept. A recipe whose `earlier` names this workspace looks there first.
"""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field, PositiveInt, model_validator

import schemas
from curation.engine.stage import Account, Context, Params, Part, Stage

if TYPE_CHECKING:
    from curation.algorithms.leaders import Tally
    from curation.algorithms.lexical import Allocate, Groups

__all__ = ["STAGE", "LexicalParams"]

ROWS_PER_PART = 1_000_000


class LexicalParams(Params):
    """What counts as a near-duplicate string."""

    jaccard: float = Field(
        0.55, gt=0, le=1, description="least Jaccard similarity of the shingle sets of a query and its representative"
    )
    edits: int | None = Field(
        2,
        ge=0,
        le=3,
        description="most typing edits between them, one for each 8 characters and at least one; null lets Jaccard"
        " similarity alone decide, which wants a jaccard of 0.7 or more",
    )
    digits: Literal["content", "ignore"] = Field(
        "content", description="content: texts whose numbers or model names differ are never merged"
    )
    courtesy: tuple[str, ...] | None = Field(
        None, description="words that do not count at either end of a text; the built-in list when null"
    )
    grouping: Literal["leaders", "components"] = Field(
        "leaders",
        description="leaders: a row goes only if it is itself similar to a kept one; components: chains count too",
    )
    bands: tuple[PositiveInt, PositiveInt] | None = Field(
        None,
        description="bands and permutations a band, with `edits: null`; chosen for `jaccard` when null",
    )
    limit: int = Field(16, ge=1, description="most kept queries of one bucket that a query is compared with")

    @model_validator(mode="after")
    def _bands_without_edits(self) -> LexicalParams:
        if self.bands is not None and self.edits is not None:
            raise ValueError("bands are for `edits: null`; with the edit rule, candidates come from the edits")
        return self


class _Grouped(NamedTuple):
    """The queries of today with their representatives, and all queries up to today."""

    rows: pl.DataFrame
    """By query id: ``query_id``, ``representative_id``, ``similarity``, ``count``, ``group_count``, ``earlier``."""
    known: pl.DataFrame
    """The table `lexical_index`."""
    bands: tuple[int, int]
    tally: Tally


def run(ctx: Context) -> None:
    """Group all queries at once, write them in parts."""
    queries = ctx.read("queries", ["query_id", "norm", "count"])

    @cache
    def grouped() -> _Grouped:
        ctx.progress(0, queries.height, "grouping")
        before = ctx.earlier("lexical_index")
        return _group(ctx, queries, None if before is None else before.collect())

    size = queries.height + (0 if (before := ctx.earlier("lexical_index")) is None else _height(before))
    for number, first in enumerate(range(0, max(1, size), ROWS_PER_PART)):
        with ctx.part(f"{number:04d}") as part:
            if not part.done:
                found = grouped()
                _write(part, found.rows.slice(first, ROWS_PER_PART), found.known.slice(first, ROWS_PER_PART))
                if number == 0:
                    _measure(part, found)
        ctx.progress(min(first + ROWS_PER_PART, queries.height), queries.height, "written")


def _height(frame: pl.LazyFrame) -> int:
    return int(frame.select(pl.len()).collect().item())


def _group(ctx: Context, queries: pl.DataFrame, before: pl.DataFrame | None) -> _Grouped:
    """Representatives of today's queries, those of an earlier workspace first in line.

    A query that an earlier day has seen goes where it went then. What an earlier day kept is listed before all of
    today's, in the order it was kept in: so it meets the lists it met then, and is kept again.
    """
    empty = schemas.load("lexical_index").schema.create_empty()
    before = empty if before is None else before
    seen = before.select("query_id", "representative_id", "similarity")
    rows = queries.join(seen, on="query_id", how="left", maintain_order="left")
    new = rows.filter(pl.col("representative_id").is_null())
    listed = before.filter(pl.col("place").is_not_null()).sort("place")
    ids = pl.concat([listed["query_id"], new["query_id"]])
    top = int(new["count"].max() or 0) + listed.height  # type: ignore[arg-type]
    counts = np.concatenate([top - np.arange(listed.height), new["count"].to_numpy()])
    groups = _lexical_groups(ctx, pl.concat([listed["norm"], new["norm"]]), counts, ids.to_numpy())
    found = pl.DataFrame(
        {
            "query_id": new["query_id"],
            "representative_id": ids.gather(groups.representative[listed.height :]),
            "similarity": groups.similarity[listed.height :],
        }
    )
    rows = rows.update(found, on="query_id").with_columns(
        group_count=pl.col("count").sum().over("representative_id"),
        earlier=pl.col("representative_id").is_in(listed["query_id"].implode()),
    )
    # What an earlier day kept stands for itself there; here it is no new query.
    rows = rows.with_columns(kept=(pl.col("query_id") == pl.col("representative_id")) & ~pl.col("earlier"))
    today = rows.join(before, on="query_id", how="anti", maintain_order="left")
    kept = today.filter("kept").sort(-pl.col("count"), pl.col("norm").str.len_bytes(), "query_id")
    places = kept.select("query_id", place=pl.int_range(pl.len(), dtype=pl.Int64) + listed.height)
    today = today.join(places, on="query_id", how="left", maintain_order="left")
    today = today.with_columns(norm=pl.when("kept").then("norm")).select(empty.columns).cast(empty.schema)
    return _Grouped(rows, pl.concat([before, today]).sort("query_id"), groups.bands, groups.tally)


def _lexical_groups(ctx: Context, norms: pl.Series, counts: np.ndarray, ids: np.ndarray) -> Groups:
    from curation.algorithms.courtesy import COURTESY
    from curation.algorithms.lexical import BYTES_PER_ROW, lexical_groups

    params: LexicalParams = ctx.params
    return lexical_groups(
        norms.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()),
        counts,
        ids,
        jaccard=params.jaccard,
        edits=params.edits,
        digits=params.digits,
        courtesy=COURTESY if params.courtesy is None else params.courtesy,
        grouping=params.grouping,
        bands=params.bands,
        limit=params.limit,
        workers=ctx.workers,
        allocate=_in_files(ctx) if len(norms) * BYTES_PER_ROW > ctx.memory else np.empty,
    )


def _in_files(ctx: Context) -> Allocate:
    """Arrays in files of the scratch directory, for logs that would not fit the memory lent."""
    numbers = count()

    def allocate(length: int, dtype: Any) -> np.ndarray:
        if length == 0:
            return np.empty(0, dtype)
        return np.memmap(ctx.scratch / f"array-{next(numbers)}", dtype, "w+", shape=(length,))

    return allocate


def _write(part: Part, rows: pl.DataFrame, index: pl.DataFrame) -> None:
    part.write("lexical_groups", rows)
    part.write("lexical_index", index)
    kept, weight = int(rows["kept"].sum()), int(rows["count"].sum())
    elsewhere = int(rows.filter("earlier")["count"].sum())
    part.account(
        Account(
            rows_in=rows.height,
            kept=kept,
            merged=rows.height - kept,
            weight_in=weight,
            weight_out=weight - elsewhere,
            weight_earlier=elsewhere,
        )
    )


def _measure(part: Part, found: _Grouped) -> None:
    sizes = found.rows.group_by("representative_id").len()["len"]
    part.metric("candidate_pairs", found.tally.candidates, "pairs")
    part.metric("compared_pairs", found.tally.compared, "pairs")
    part.metric("similar_pairs", found.tally.similar, "pairs")
    part.metric("bands", found.bands[0], "bands")
    part.metric("permutations_per_band", found.bands[1], "permutations")
    part.metric("groups", int((sizes > 1).sum()), "groups")
    part.metric("largest_group", int(sizes.max() or 0), "rows")  # type: ignore[arg-type]
    part.metric("earlier", int(found.rows["earlier"].sum()), "rows")


STAGE = Stage(
    name="lexical",
    run=run,
    params=LexicalParams,
    reads=("queries",),
    makes=("lexical_groups", "lexical_index"),
    earlier=("lexical_index",),
    title="Merge near-duplicate strings",
    after="ingest",
    libraries=("numba", "numpy"),
    seeded=False,
)
