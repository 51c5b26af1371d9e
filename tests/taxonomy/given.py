"""The tables of a taxonomy, for tests of stages that read them."""

from __future__ import annotations

import polars as pl

from curation.domain.model import Taxonomy
from curation.taxonomy.tables import migrations_frame, nodes_frame
from curation.taxonomy.versions import History


def first_version(taxonomy: Taxonomy) -> dict[str, pl.DataFrame]:
    """`taxonomy` and `taxonomy_migrations` of a tree that nobody changed yet."""
    history = History(taxonomy)
    return {"taxonomy": nodes_frame(history, taxonomy.version), "taxonomy_migrations": migrations_frame(history)}
