"""Taxonomy: every version of the tree as tables, Other at each inner node, what changed, and what becomes of labels.

The first version is the domain's tree, or the one in a file; the versions file of the workspace makes all others of
it (:mod:`curation.taxonomy.versions`). Rows are labelled with the newest version, or with the one the recipe names.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from curation.engine.stage import Account, Context, Params, Stage
from curation.taxonomy.base import read_history
from curation.taxonomy.places import BASE_FILE, VERSIONS_FILE
from curation.taxonomy.tables import changes_frame, migrations_frame, nodes_frame

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


def run(ctx: Context) -> None:
    """Write the tables of all versions.

    Metric: ``versions``, how many there are.
    """
    history = read_history(ctx.params, ctx.domain)
    current = history.newest.name if ctx.params.version is None else history.get(ctx.params.version).name
    nodes = nodes_frame(history, current)
    with ctx.part() as part:
        part.write("taxonomy", nodes)
        part.write("taxonomy_changes", changes_frame(history))
        part.write("taxonomy_migrations", migrations_frame(history))
        count = int(nodes["is_current"].sum())
        part.account(Account(rows_in=count, kept=count))
        part.metric("versions", len(history.versions), "versions")


def check(params: TaxonomyParams, domain: Any) -> None:
    """Refuse a wrong versions file, or a version there is not, before any work."""
    history = read_history(params, domain)
    if params.version is not None:
        history.get(params.version)


STAGE = Stage(
    name="taxonomy",
    run=run,
    params=TaxonomyParams,
    makes=("taxonomy", "taxonomy_changes", "taxonomy_migrations"),
    title="Read the versions of the taxonomy",
    uses_domain=True,
    seeded=False,
    check=check,
)
