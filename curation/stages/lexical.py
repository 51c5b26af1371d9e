"""Lexical: near-duplicate strings of the whole corpus go to a kept representative.

See :mod:`curation.algorithms.lexical` for what makes two strings near-duplicates. Metrics: `candidate_pairs` that
shared a bucket, `compared_pairs` of them whose shingle sets were compared, `similar_pairs` found similar; `bands` and
`permutations_per_band` that candidates came from; `groups` of more than one query and the queries of the
`largest_group`.
"""

from __future__ import annotations

from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field, PositiveInt

from curation.engine.stage import Account, Context, Params, Part, Stage

if TYPE_CHECKING:
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
        None, description="bands and permutations a band of the hashing; chosen for `jaccard` when null"
    )
    limit: int = Field(16, ge=1, description="most kept queries of one bucket that a query is compared with")


def run(ctx: Context) -> None:
    """Group all queries at once, write them in parts."""
    queries = ctx.read("queries", ["query_id", "norm", "count"])
    ids, counts = queries["query_id"].to_numpy(), queries["count"].to_numpy()

    @cache
    def grouped() -> tuple[Groups, np.ndarray]:
        ctx.progress(0, queries.height, "grouping")
        groups = _group(ctx, queries["norm"], counts, ids)
        weights = np.zeros(queries.height, np.int64)
        np.add.at(weights, groups.representative, counts)
        return groups, weights

    for number, first in enumerate(range(0, max(1, queries.height), ROWS_PER_PART)):
        rows = slice(first, min(first + ROWS_PER_PART, queries.height))
        with ctx.part(f"{number:04d}") as part:
            if not part.done:
                groups, weights = grouped()
                _write(part, rows, groups, weights, ids, counts)
                if number == 0:
                    _measure(part, groups)
        ctx.progress(rows.stop, queries.height, "written")


def _group(ctx: Context, norms: pl.Series, counts: np.ndarray, ids: np.ndarray) -> Groups:
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


def _write(part: Part, rows: slice, groups: Groups, weights: np.ndarray, ids: np.ndarray, counts: np.ndarray) -> None:
    representative = groups.representative[rows]
    part.write(
        "lexical_groups",
        pl.DataFrame(
            {
                "query_id": ids[rows],
                "representative_id": ids[representative],
                "similarity": groups.similarity[rows],
                "group_count": weights[representative],
            }
        ),
    )
    kept = int((representative == np.arange(rows.start, rows.stop)).sum())
    weight = int(counts[rows].sum())
    part.account(
        Account(
            rows_in=len(representative),
            kept=kept,
            merged=len(representative) - kept,
            weight_in=weight,
            weight_out=weight,
        )
    )


def _measure(part: Part, groups: Groups) -> None:
    sizes = np.bincount(groups.representative, minlength=1)
    part.metric("candidate_pairs", groups.tally.candidates, "pairs")
    part.metric("compared_pairs", groups.tally.compared, "pairs")
    part.metric("similar_pairs", groups.tally.similar, "pairs")
    part.metric("bands", groups.bands[0], "bands")
    part.metric("permutations_per_band", groups.bands[1], "permutations")
    part.metric("groups", int((sizes > 1).sum()), "groups")
    part.metric("largest_group", int(sizes.max()), "rows")


STAGE = Stage(
    name="lexical",
    run=run,
    params=LexicalParams,
    reads=("queries",),
    makes=("lexical_groups",),
    title="Merge near-duplicate strings",
    after="ingest",
    libraries=("numba", "numpy"),
    seeded=False,
)
