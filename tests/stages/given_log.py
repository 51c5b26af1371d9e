"""Logs of a few rows, and the ingest stage run on them in the real engine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl

from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.stages.ingest import STAGE

STAGES = {"ingest": STAGE}


def build(workspace: Path, log: Path | dict[str, Any], *, workers: int = 2, memory_gb: float = 8.0, **params) -> Any:
    """Run the stage in the real engine; its tables, metrics and account."""
    source = log if isinstance(log, dict) else {"path": str(log)}
    document = {"log": source, "ingest": params, "run": {"workers": workers, "memory_gb": memory_gb}}
    with Session(Recipe.from_dict(document, root=workspace, stages=STAGES), workspace, stages=STAGES) as session:
        run = session.run()
        manifest = session.store.manifest("ingest", run["stages"]["ingest"])
    tables = workspace / "latest"
    return SimpleNamespace(
        **{
            name: pl.read_parquet(tables / name / "*.parquet")
            for name in ("queries", "occurrences", "rejects", "metrics")
        },
        account=manifest["account"],
        hashes={
            table: {file: entry["sha256"] for file, entry in files.items()}
            for table, files in manifest["tables"].items()
        },
    )


def write(path: Path, texts: list[str | None], **columns) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"query": pl.Series(texts, dtype=pl.String), **columns}).write_parquet(path)
    return path


def ingest_texts(root: Path, texts: list[str | None], **params) -> Any:
    write(root / "log" / "a.parquet", texts)
    return build(root / "out", root / "log", **params)


def counts(built: Any) -> dict[str, int]:
    return dict(built.queries.select("text", "count").iter_rows())
