"""Lexical: near-duplicate strings of the whole corpus go to a kept representative.

See :mod:`curation.algorithms.lexical` for what makes two strings near-duplicates. Metrics: `candidate_pairs` that shared
a bucket, `compared_pairs` of them whose shingle sets were compared, `similar_pairs` found similar; `bands` and
`permutations_per_band` that candidates came from.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Stage

__all__ = ["STAGE", "LexicalParams"]

_PART = 1_000_000


class LexicalParams(Params):
    """What counts as a near-duplicate string."""

    jaccard: float = Field(0.55, gt=0, le=1, description="least Jaccard similarity of the shingle sets")
    edits: int | None = Field(
        2, ge=0, le=3, description="most edits between similar texts; null lets Jaccard similarity alone decide"
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
    bands: tuple[int, int] | None = Field(
        None, description="bands and permutations a band of the hashing; chosen for `jaccard` when null"
    )


def run(ctx: Context) -> None:
    """Group all queries at once, write them in parts."""
    from curation.algorithms.lexical import COURTESY, lexical_groups

    params: LexicalParams = ctx.params
    queries = ctx.read("queries", ["query_id", "norm", "count"])
    ids, counts = queries["query_id"].to_numpy(), queries["count"].to_numpy()
    ctx.progress(0, queries.height)
    groups = lexical_groups(
        queries["norm"].to_arrow(compat_level=pl.CompatLevel.oldest()),
        counts,
        ids,
        jaccard=params.jaccard,
        edits=params.edits,
        digits=params.digits,
        courtesy=COURTESY if params.courtesy is None else params.courtesy,
        grouping=params.grouping,
        bands=params.bands,
        workers=ctx.workers,
    )
    weight = np.bincount(groups.representative, weights=counts, minlength=len(ids)).astype(np.int64)
    for number, start in enumerate(range(0, max(len(ids), 1), _PART)):
        at = slice(start, start + _PART)
        with ctx.part(f"{number:04d}") as part:
            if part.done:
                continue
            representative = groups.representative[at]
            kept = int((representative == np.arange(start, start + len(representative))).sum())
            total = int(counts[at].sum())
            part.write(
                "lexical_groups",
                pl.DataFrame(
                    {
                        "query_id": ids[at],
                        "representative_id": ids[representative],
                        "similarity": groups.similarity[at],
                        "group_count": weight[representative],
                    }
                ),
            )
            part.account(
                Account(
                    rows_in=len(representative),
                    kept=kept,
                    merged=len(representative) - kept,
                    weight_in=total,
                    weight_out=total,
                )
            )
            if number == 0:
                part.metric("candidate_pairs", groups.tally.candidates, "pairs")
                part.metric("compared_pairs", groups.tally.compared, "pairs")
                part.metric("similar_pairs", groups.tally.similar, "pairs")
                part.metric("bands", groups.bands[0], "bands")
                part.metric("permutations_per_band", groups.bands[1], "permutations")
    ctx.progress(len(ids), len(ids))


STAGE = Stage(
    name="lexical",
    run=run,
    params=LexicalParams,
    reads=("queries",),
    makes=("lexical_groups",),
    title="Merge near-duplicate strings",
    after="ingest",
    libraries=("numba", "datasketch"),
    seeded=False,
)
