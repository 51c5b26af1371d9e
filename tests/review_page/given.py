"""A workspace to review, its tables made by hand: seven queries on the shipped domain, seeds, any proposals."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from ruamel.yaml import YAML

from curation.algorithms.normalise import normalise, query_ids
from curation.engine.store import Store
from curation.taxonomy.proposal import Evidence, Part, Proposal, to_frame

HOSTILE = "<script>document.title='owned'</script>\" onload='x' & 北京"
POI = "discovery.poi_search"
QUERIES = [
    # text, leaf, confidence, raw rows, direction of the vector
    ("附近的加油站", f"{POI}.constrained_poi_search", 0.9, 50, (1.0, 0.0, 0.0)),
    ("a quiet cafe", f"{POI}.constrained_poi_search", 0.3, 7, (0.9, 0.1, 0.0)),
    (HOSTILE, f"{POI}.open_ended_poi_exploration", 0.6, 3, (0.8, 0.2, 0.0)),
    ("导航到北京南站", "planning_and_decision.route_planning", 0.99, 90, (0.0, 0.0, 1.0)),
    ("will it rain tomorrow", "dynamic_information.realtime_weather", 0.97, 20, (0.0, 1.0, 0.0)),
    ("明天下雨吗", "dynamic_information.realtime_weather", 0.95, 10, (0.0, 0.9, 0.1)),
    ("周末去哪里露营", "other", 0.2, 5, (0.7, 0.0, 0.7)),
]
SEEDS = ["充电桩在哪里", "book a table; for two", HOSTILE]


def ids_of(texts: Iterable[str]) -> list[int]:
    """Query ids of texts."""
    import pyarrow as pa

    return [int(i) for i in query_ids(normalise(pa.array(list(texts), pa.large_string())))]


def evidence(*texts: str) -> tuple[Evidence, ...]:
    return tuple(Evidence(i, text, 10 - n) for n, (i, text) in enumerate(zip(ids_of(texts), texts, strict=True)))


PROPOSALS = [
    Proposal(
        "expand", "add", None, "1", "42 rows of Other are about camping.", name="camping",
        description="Where and how to camp.", evidence=evidence("周末去哪里露营", "camping near the lake", HOSTILE),
        rows=42, weight=420, purity=0.92, confidence=0.88, trend=0.12,
    ),
    Proposal(
        "refine", "merge", f"{POI}.open_ended_poi_exploration", "1", "Readers mix the two up.",
        target=f"{POI}.constrained_poi_search", evidence=evidence("有什么好玩的"), rows=9, weight=33, purity=0.6,
        confidence=0.55, trend=-0.1,
    ),
    Proposal(
        "refine", "rename", "discovery.area_summaries", "1", "Its rows ask for profiles.", name="area_profiles",
        rows=5, weight=11, purity=0.8, confidence=0.7, trend=0.0,
    ),
    Proposal(
        "refine", "describe", "rules_and_policies.travel_policies", "1", "The description misses visas.",
        description=f"Rules of travel, visas among them. {HOSTILE}", rows=3, weight=4, purity=0.9, confidence=0.35,
    ),
    Proposal(
        "refine", "split", "dynamic_information.realtime_weather", "1", "Two groups that are far apart.",
        parts=(Part("weather_now", "Now.", ("下雨吗",)), Part("forecast", "Coming days.", ("明天",))),
        rows=30, weight=300, purity=0.75, confidence=0.6, trend=0.01,
    ),
]  # fmt: skip
ADD, MERGE, RENAME, DESCRIBE, SPLIT = (one.proposal_id for one in PROPOSALS)


def many(number: int) -> pl.DataFrame:
    """Rows of the table `proposals`: that many additions, no two alike, made at once."""
    i = pl.int_range(number)
    texts = [f"周末去哪里露营 {n}" for n in range(number)]
    rows = pl.select(
        proposal_id=pl.Series([f"{n:012x}" for n in range(number)]),
        source=pl.lit("expand"),
        kind=pl.lit("add"),
        node_id=pl.lit(POI),
        name=pl.format("leaf_{}", i),
        description=pl.format("第{}类：露营与徒步", i),
        reason=pl.format("{} rows of Other belong together.", i % 97 + 3),
        rows=i % 97 + 3,
        weight=i % 1009 + 3,
        purity=(i % 50) / 50,
        confidence=(i % 1000) / 1000,
        base_version=pl.lit("1"),
        evidence=pl.concat_list(
            pl.struct(query_id=i.cast(pl.UInt64), text=pl.Series(texts), weight=pl.lit(3, pl.Int64))
        ),
    )
    empty = to_frame([])
    rows = rows.with_columns(parts=pl.lit([], empty.schema["parts"]))
    return pl.concat([empty, rows], how="diagonal_relaxed").select(empty.columns).cast(empty.schema)


def make_workspace(root: Path, proposals: list[Proposal] | None = None, *, more: pl.DataFrame | None = None) -> Path:
    """A workspace with one run that published these tables; ``proposals`` None leaves that table out."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "recipe.yaml").write_text("log: {path: log.parquet, text: query}\n", encoding="utf-8")
    tables = _tables()
    if proposals is not None:
        tables["proposals"] = pl.concat([to_frame(proposals), *([] if more is None else [more])])
    publish(root, tables)
    return root


def publish(root: Path, tables: dict[str, pl.DataFrame], run: str = "1") -> None:
    """Make ``tables`` the workspace's latest run."""
    store = Store(root)
    with store.lock():
        build = store.build_directory("given", run)
        shutil.rmtree(build, ignore_errors=True)
        for name, frame in tables.items():
            (build / "data" / name).mkdir(parents=True)
            frame.write_parquet(build / "data" / name / "0000.parquet")
        store.commit("given", run, {"tables": store.describe_files(build / "data")})
        places = dict.fromkeys(tables, ("given", run))
        shutil.rmtree(root / "runs" / run, ignore_errors=True)
        store.publish({"id": run, "tables": places}, places)


def decisions(root: Path) -> dict[str, dict[str, Any]]:
    """What the file of decisions says, by proposal."""
    rows = YAML(typ="safe").load((root / "review" / "decisions.yaml").read_text(encoding="utf-8")) or []
    return {row.pop("proposal"): row for row in rows}


def labels(root: Path) -> list[dict[str, str]]:
    """The rows of the file of seeds."""
    text = (root / "review" / "seeds.csv").read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def _tables() -> dict[str, pl.DataFrame]:
    texts, leaves, confidence, weights, vectors = zip(*QUERIES, strict=True)
    ids = ids_of(texts)
    frame = pl.DataFrame({"query_id": pl.Series(ids, dtype=pl.UInt64), "text": texts})
    seed_ids = ids_of(SEEDS)
    none = pl.lit(None, pl.String)
    seed_rows = pl.DataFrame({"query_id": pl.Series(seed_ids, dtype=pl.UInt64), "text": SEEDS})
    known = pl.concat([frame, seed_rows.filter(~pl.col("query_id").is_in(ids))])
    return {
        "queries": known.select("query_id", "text", count=pl.int_range(pl.len()).cast(pl.Int64) + 1),
        "lexical_groups": frame.select(
            "query_id", representative_id="query_id", group_count=pl.Series(weights, dtype=pl.Int64)
        ),
        "annotations": frame.select(
            "query_id",
            primary=pl.Series(leaves),
            secondary=pl.lit([], pl.List(pl.String)),
            confidence=pl.Series(confidence, dtype=pl.Float32),
            taxonomy_version=pl.lit("1"),
        ),
        "embeddings": frame.select(
            "query_id", vector=pl.Series(np.array(vectors, np.float32), dtype=pl.Array(pl.Float32, 3))
        ),
        "candidate_pool": frame.select(primary=pl.Series(leaves)).head(4),
        "seeds": seed_rows.select(
            "query_id", "text", lang=pl.lit("zh"), tags=pl.lit([], pl.List(pl.String)), primary=none,
            secondary=pl.lit([], pl.List(pl.String)), reason=none, given_primary=none,
            given_secondary=pl.lit([], pl.List(pl.String)), given_version=none, labelled_by=none,
            origin=pl.lit("proposed"),
        ),
    }  # fmt: skip
