"""Hidden intents of another domain: CLINC150 without one intent's leaf and seeds, its rows left in the log.

The domain has ten level-1 categories with 15 intents each; 20 seeds an intent, the log is all other rows of `train`
and `val`. What counts as found is as in :mod:`tests.benchmarks.evolution_product`, the control being a run that hides
nothing.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from tests.benchmarks.clinc import GOLD, domain_of, draw_seeds
from tests.benchmarks.corpus import CACHE
from tests.benchmarks.evolution_product import SHARED_STAGES, found_of

__all__ = ["hidden_intents", "log_of"]

PLACE = CACHE / "evolution-clinc"


def log_of(rows: pl.DataFrame, seeds: pl.DataFrame) -> pl.DataFrame:
    """The rows of `train` and `val` that are no seeds."""
    return rows.filter(pl.col("part").is_in(["train", "val"])).join(seeds.select("query"), on="query", how="anti")


def _run(domains: dict[str, list[str]], seeds: pl.DataFrame, log: Path, hidden: str | None) -> Any:
    """The workspace that hides an intent, run up to the proposals."""
    from curation import Recipe, Workspace
    from curation.engine.session import Session

    root = PLACE / (hidden or "control")
    (root / "domain").mkdir(parents=True)
    tree = {
        name: {
            "description": f"Requests about {name.replace('_', ' ')}.",
            "children": {one: {"description": f"{one.replace('_', ' ')}."} for one in intents if one != hidden},
        }
        for name, intents in domains.items()
    }
    taxonomy = {"title": "Assistant requests", "languages": ["en"], "version": "1", "taxonomy": tree}
    (root / "domain/taxonomy.yaml").write_text(json.dumps(taxonomy), encoding="utf-8")
    known = seeds.filter(pl.col("intent") != (hidden or ""))
    leaves = domain_of(domains)
    known.select(text="query", primary=pl.col("intent").replace_strict(leaves)).write_csv(root / "seeds.csv")
    recipe = {
        "log": {"path": str(log), "text": "query"},
        "domain": str(root / "domain"),
        "seeds": {"file": str(root / "seeds.csv")},
    }
    (root / "recipe.yaml").write_text(json.dumps(recipe), encoding="utf-8")
    if hidden:
        for stage in SHARED_STAGES:
            shutil.copytree(PLACE / "control/objects" / stage, root / "objects" / stage)
    with Session(Recipe.load(root), root, select=("+proposals",)) as session:
        session.run()
    return Workspace(root)


def hidden_intents(place: int) -> Iterator[list[Any]]:
    """What is proposed of the ``place``-th intent of each domain when it is hidden; at the end how many are found."""
    from curation.taxonomy.review import Review

    rows = pl.read_parquet(GOLD / "dev.parquet")
    domains = json.loads((GOLD / "domains.json").read_text("utf-8"))
    leaves, seeds = domain_of(domains), draw_seeds(rows, 20, 0)
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    log = log_of(rows, seeds)
    log.select("query").write_parquet(PLACE / "log.parquet")
    control = _run(domains, seeds, PLACE / "log.parquet", None)
    occurrences = control.table("occurrences").select("row", "query_id").collect()
    numbered = log.with_row_index("row").with_columns(pl.col("row").cast(pl.UInt64))
    pairs = numbered.join(occurrences, on="row").select("query_id", pl.col("intent").replace_strict(leaves))
    truth = dict(pairs.iter_rows())
    known, hits = Review(control.root).waiting, 0
    for intents in domains.values():
        leaf = leaves[intents[place]]
        waiting = Review(_run(domains, seeds, PLACE / "log.parquet", intents[place]).root).waiting
        found, also = found_of(waiting, leaf, truth), found_of(known, leaf, truth)
        hit = found.right is not None and found.weight > also.weight
        hits += hit
        adding = sum(one.kind == "add" for one in waiting.values())
        row = [leaf, adding, len(found.pure), found.weight, also.weight, found.place or "-", found.parent or "-"]
        yield [*row, "yes" if hit else "no"]
    adding = sum(one.kind == "add" for one in known.values())
    yield [f"found: {hits} of {len(domains)}; proposed with nothing hidden: {adding}", *["-"] * 7]
