"""Another domain through the product: CLINC150, 20 seeds an intent, measured on its validation part.

``python -m tests.benchmarks clinc PATH_OF_CLINC``. A domain (ten level-1 categories, 150 leaves), a seeds file and a
recipe are written to a directory of their own, and ``curate run`` does the rest. Rows of `val` must get their intent;
rows of `oos_val` and `oos_train` have none, and should be told apart by their confidence. No row but the seeds is
learnt from.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from tests.benchmarks import scores as s
from tests.benchmarks.measure import ROOT, print_table, run_process

__all__ = ["auroc", "domain_of", "main", "measured_rows", "scores_of", "write_workspace"]

GOLD = ROOT.parent / "shared/data/clinc"
_OUT = pl.col("intent") == "oos"


def domain_of(domains: dict[str, list[str]]) -> dict[str, str]:
    """Leaf by intent, ``banking.balance`` by ``balance``."""
    return {intent: f"{name}.{intent}" for name, intents in domains.items() for intent in intents}


def draw_seeds(rows: pl.DataFrame, per_intent: int, draw: int) -> pl.DataFrame:
    """``per_intent`` rows of each intent of the part `train`; which, ``draw`` decides."""
    train = rows.filter(pl.col("part") == "train").sort("intent", "query")
    order = np.random.default_rng(draw).permutation(train.height)
    drawn = train.with_columns(order=pl.Series(order)).filter(
        pl.col("order").rank("ordinal").over("intent") <= per_intent
    )
    return drawn.drop("order").sort("intent", "query")


def measured_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """The log: what is measured on, in order."""
    return rows.filter(pl.col("part").is_in(["val", "oos_val", "oos_train"])).select("query", "intent")


def write_workspace(root: Path, rows: pl.DataFrame, domains: dict[str, list[str]], seeds: pl.DataFrame) -> None:
    """Recipe, domain directory, seeds file and log, as a user would write them."""
    (root / "clinc").mkdir(parents=True)
    leaves = domain_of(domains)
    tree = {
        name: {
            "description": f"Requests about {name.replace('_', ' ')}.",
            "children": {intent: {"description": f"{intent.replace('_', ' ')}."} for intent in intents},
        }
        for name, intents in domains.items()
    }
    taxonomy = {"title": "Assistant requests", "languages": ["en"], "version": "1", "taxonomy": tree}
    (root / "clinc/taxonomy.yaml").write_text(json.dumps(taxonomy, indent=1), encoding="utf-8")
    seeds.select(text="query", primary=pl.col("intent").replace_strict(leaves)).write_csv(root / "seeds.csv")
    measured_rows(rows).select("query").write_parquet(root / "log.parquet")
    recipe = {
        "log": {"path": str(root / "log.parquet"), "text": "query"},
        "domain": str(root / "clinc"),
        "seeds": {"file": str(root / "seeds.csv")},
    }
    (root / "recipe.yaml").write_text(json.dumps(recipe, indent=1), encoding="utf-8")


def scores_of(annotations: pl.DataFrame, domains: dict[str, list[str]]) -> list[s.Score]:
    """Scores of ``intent``, ``primary`` and ``confidence``, one row a measured row; an unlabelled row is wrong."""
    leaf = pl.col("intent").replace_strict(domain_of(domains), default=None)
    inside = annotations.filter(~_OUT).with_columns(leaf=leaf)
    level1 = [pl.col(name).str.split(".").list.first() for name in ("primary", "leaf")]
    right = inside.filter(pl.col("primary") == pl.col("leaf")).height
    tops = inside.filter(level1[0] == level1[1]).height
    out = annotations.filter(_OUT)
    value = auroc(inside["confidence"].fill_null(0).to_numpy(), out["confidence"].fill_null(0).to_numpy())
    sure = inside["confidence"].fill_null(0).to_numpy()
    hit = (inside["primary"] == inside["leaf"]).fill_null(False).to_numpy()
    return [
        s.share("clinc", "leaf accuracy", right, inside.height),
        s.share("clinc", "level1 accuracy", tops, inside.height),
        s.Score("clinc", "out-of-scope AUROC of confidence", value, annotations.height),
        s.Score("clinc", "expected calibration error", s.calibration_error(sure, hit), inside.height),
    ]


def auroc(inside: np.ndarray, out: np.ndarray) -> float:
    """Probability that a row inside scores above a row out of scope, ties counting half (Mann-Whitney)."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([inside, out]))[: len(inside)]
    return float((ranks.sum() - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(out)))


def _labelled(root: Path, rows: pl.DataFrame) -> pl.DataFrame:
    """Measured rows with what their lexical representative was labelled with."""
    from curation import Workspace

    workspace = Workspace(root)
    places = workspace.table("occurrences").select("row", "query_id").collect()
    groups = workspace.table("lexical_groups").select("query_id", "representative_id").collect()
    labels = workspace.table("annotations").select("query_id", "primary", "confidence").collect()
    return (
        measured_rows(rows)
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.UInt64))
        .join(places, on="row", how="left")
        .join(groups, on="query_id", how="left")
        .join(labels.rename({"query_id": "representative_id"}), on="representative_id", how="left")
    )


def main(arguments: list[str] | None = None) -> int:
    """Write a workspace a draw, run ``curate``, score, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks clinc", description=__doc__.split("\n")[0])
    parser.add_argument("path", nargs="?", type=Path, default=GOLD, help="holds dev.parquet and domains.json")
    parser.add_argument("--per-intent", type=int, default=20, help="seeds of each intent")
    parser.add_argument("--draws", type=int, default=1, help="different seed sets, a workspace each")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    options = parser.parse_args(arguments)
    if not (options.path / "dev.parquet").is_file():
        raise SystemExit(f"there is no {options.path / 'dev.parquet'}")
    rows = pl.read_parquet(options.path / "dev.parquet")
    domains = json.loads((options.path / "domains.json").read_text("utf-8"))
    table = []
    for draw in range(options.draws):
        with tempfile.TemporaryDirectory(prefix="clinc-") as folder:
            root = Path(folder)
            seeds = draw_seeds(rows, options.per_intent, draw)
            write_workspace(root, rows, domains, seeds)
            command = "from curation.cli import main; main()"
            run_process([sys.executable, "-c", command, "run", str(root), "--select", "+annotations"])
            found = scores_of(_labelled(root, rows), domains)
        table += [[draw, score.name, f"{score.value:.3f}", score.of] for score in found]
    print_table(["draw", "score", "value", "of"], table, as_json=options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
