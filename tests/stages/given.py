"""Small tables for the semantic and geometric stages, and stages that bring them into the real engine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl

from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.stage import Account, Params, Stage
from curation.stages import geometric, pool, semantic
from tests.algorithms.clouds import clouds

LEAVES = ("discovery.area", "discovery.poi", "planning.route", "rules.travel", "other")


def tables(n: int = 600, d: int = 16, seed: int = 0, *, failed: int = 0) -> dict[str, pl.DataFrame]:
    """annotations, embeddings, queries and lexical_groups of n queries, each standing for two strings."""
    random = np.random.default_rng(seed)
    ids = np.sort(random.choice(2**62, n, replace=False)).astype(np.uint64)
    primary = random.choice(LEAVES, n, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    secondary = [["rules.travel", "discovery.poi"][: random.integers(0, 3)] for _ in range(n)]
    error = [None] * (n - failed) + ["the model answered in prose"] * failed
    annotations = pl.DataFrame(
        {
            "query_id": ids,
            "primary": [p if e is None else None for p, e in zip(primary, error, strict=True)],
            "secondary": [sorted(set(s) - {p}) for s, p in zip(secondary, primary, strict=True)],
            "constraints": [[]] * n,
            "confidence": random.uniform(0, 1, n).astype(np.float32),
            "teacher": ["embedded"] * n,
            "taxonomy_version": ["1"] * n,
            "unsolvable": pl.Series([None] * n, dtype=pl.String),
            "unsolvable_confidence": np.zeros(n, dtype=np.float32),
            "error": pl.Series(error, dtype=pl.String),
        },
        schema_overrides={
            "primary": pl.String,
            "secondary": pl.List(pl.String),
            "teacher": pl.String,
            "taxonomy_version": pl.String,
            "constraints": pl.List(
                pl.Struct(
                    {
                        "dimension": pl.String,
                        "value": pl.String,
                        "text": pl.String,
                        "start": pl.Int32,
                        "end": pl.Int32,
                    }
                )
            ),
        },
    )
    vectors = clouds(n, d, seed=seed)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    embeddings = pl.DataFrame({"query_id": ids, "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, d))})
    weights = random.integers(2, 40, n)
    lexical = pl.DataFrame(
        {
            "query_id": np.concatenate([ids, ids + np.uint64(2**63)]),
            "representative_id": np.concatenate([ids, ids]),
            "similarity": np.ones(2 * n, dtype=np.float32),
            "group_count": np.concatenate([weights, weights]),
            "kept": np.arange(2 * n) < n,
        }
    ).sort("query_id")
    queries = pl.DataFrame({"query_id": ids}).select(
        "query_id",
        text=pl.lit("text"),
        norm=pl.lit("text"),
        count=pl.lit(1, pl.Int64),
        first_seen=pl.lit(None, pl.Datetime("us")),
        last_seen=pl.lit(None, pl.Datetime("us")),
        lang=pl.lit("en"),
        script=pl.lit("Latn"),
        n_chars=pl.lit(4, pl.Int32),
        masked=pl.lit([], pl.List(pl.String)),
        sources=pl.lit([], pl.List(pl.String)),
    )
    return {"annotations": annotations, "embeddings": embeddings, "lexical_groups": lexical, "queries": queries}


def scored(survivors: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    """difficulty of the survivors of semantic_groups."""
    random = np.random.default_rng(seed)
    n = survivors.height
    difficulty = random.choice(np.arange(-1, 6), n, p=[0.15, 0.1, 0.3, 0.2, 0.15, 0.07, 0.03]).astype(np.int8)
    plan = [[{"step": 1, "tool": "web_search", "depends_on": []}] if level > 0 else [] for level in difficulty]
    return pl.DataFrame(
        {
            "query_id": survivors["query_id"],
            "difficulty": difficulty,
            **{name: np.ones(n, np.float32) for name in ("cognitive_load", "chain_depth", "constraint_complexity")},
            "tool_plan": plan,
            "reason": ["missing_tool" if level <= 0 else None for level in difficulty],
            "teacher": ["embedded"] * n,
        },
        schema_overrides={
            "tool_plan": pl.List(pl.Struct({"step": pl.Int32, "tool": pl.String, "depends_on": pl.List(pl.Int32)})),
            "reason": pl.String,
        },
    )


class FolderParams(Params):
    folder: str = "."


def give(ctx: Any) -> None:
    folder = Path(ctx.params.folder)
    with ctx.part() as part:
        for table in ctx.stage.makes:
            part.write(table, pl.read_parquet(folder / f"{table}.parquet"))
        annotations = pl.read_parquet(folder / "annotations.parquet", columns=["query_id", "error"])
        weights = pl.read_parquet(folder / "lexical_groups.parquet").unique("representative_id")
        both = annotations.join(weights, left_on="query_id", right_on="representative_id")
        good = both.filter(pl.col("error").is_null())
        total, fine = int(both["group_count"].sum()), int(good["group_count"].sum())
        part.account(
            Account(
                rows_in=both.height,
                kept=good.height,
                failed=both.height - good.height,
                weight_in=total,
                weight_out=fine,
                weight_failed=total - fine,
            )
        )


def score(ctx: Any) -> None:
    groups = ctx.read("semantic_groups").filter(pl.col("query_id") == pl.col("representative_id"))
    weight = int(groups["group_count"].sum())
    with ctx.part() as part:
        part.write("difficulty", scored(groups))
        part.account(Account(rows_in=groups.height, kept=groups.height, weight_in=weight, weight_out=weight))


def no_synthesis(ctx: Any) -> None:
    import schemas

    with ctx.part() as part:
        part.write("synthetic", schemas.load("synthetic").schema.create_empty())


def no_pool(ctx: Any) -> None:
    import schemas

    with ctx.part() as part:
        part.write("pool_shares", schemas.load("pool_shares").schema.create_empty())


STAGES = {
    "annotate": Stage(
        "annotate", give, FolderParams, makes=("annotations", "embeddings", "lexical_groups", "queries")
    ),
    "semantic": semantic.STAGE,
    "difficulty": Stage(
        "difficulty", score, Params, reads=("semantic_groups",), makes=("difficulty",), after="semantic"
    ),
    "synthesis": Stage("synthesis", no_synthesis, Params, reads=("difficulty",), makes=("synthetic",)),
    "geometric": geometric.STAGE,
    "pool": Stage("pool", no_pool, pool.PoolParams, reads=("selection",), makes=("pool_shares",)),
}


def build(root: Path, given: dict[str, pl.DataFrame], *, workers: int = 2, memory_gb: float = 8.0, **sections) -> Any:
    """Run both stages in the real engine: their tables, the ledger and the hashes of the files."""
    folder = root / "given"
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in given.items():
        frame.write_parquet(folder / f"{name}.parquet")
    document = {
        "log": {"path": str(folder)},
        "run": {"workers": workers, "memory_gb": memory_gb},
        "annotate": {"folder": str(folder)},
        **sections,
    }
    workspace = root / "out"
    with Session(Recipe.from_dict(document, root=root, stages=STAGES), workspace, stages=STAGES) as session:
        run = session.run()
        manifests = {name: session.store.manifest(name, run["stages"][name]) for name in ("semantic", "geometric")}
    names = ("semantic_groups", "difficulty", "selection", "geometric_groups", "metrics", "ledger")
    return SimpleNamespace(
        **{name: pl.read_parquet(workspace / "latest" / name / "*.parquet") for name in names},
        hashes={
            (table, file): entry["sha256"]
            for manifest in manifests.values()
            for table, files in manifest["tables"].items()
            for file, entry in files.items()
        },
    )
