"""Tables that the engine makes of what every stage reports: rejects, ledger, metrics, teacher calls."""

from __future__ import annotations

import shutil
from pathlib import Path

import polars as pl

import schemas
from curation.engine.graph import Graph
from curation.engine.keys import FORMAT, key_of
from curation.engine.store import Store

__all__ = ["collect"]


def collect(store: Store, graph: Graph, keys: dict[str, str]) -> str:
    """Write the collected tables of the stages in ``keys`` and return the key of the object that holds them.

    Its stage name is ``run``; its key follows from the keys of the stages, so equal runs share one object.
    """
    document = {"format": FORMAT, "stage": "run", "stages": keys}
    key = key_of(document)
    if store.manifest("run", key) is not None:
        return key
    build = store.build_directory("run", key)
    shutil.rmtree(build, ignore_errors=True)
    manifests = {name: store.manifest(name, keys[name]) or {} for name in graph.order if name in keys}
    ledger = [
        {"position": position, "stage": name, "after": graph.stages[name].after, **manifest["account"]}
        for position, (name, manifest) in enumerate(manifests.items())
    ]
    metrics = [
        {"stage": name, "name": metric, "value": value, "unit": unit}
        for name, manifest in manifests.items()
        for metric, (value, unit) in manifest["metrics"].items()
    ]
    _write(build, "ledger", _frame("ledger", ledger))
    _write(build, "metrics", _frame("metrics", metrics).sort("stage", "name"))
    own = {
        table: [
            file
            for name in manifests
            for file in sorted((store.object_directory(name, keys[name]) / "data" / f"_{table}").glob("*.parquet"))
        ]
        for table in ("rejects", "teacher_calls")
    }
    _gather(build, "rejects", own["rejects"])
    _write(build, "teacher_calls", _calls(own["teacher_calls"]))
    manifest = {"stage": "run", "key": key, "key_document": document, "why": [], "account": {}, "metrics": {}}
    store.commit("run", key, manifest | {"tables": store.describe_files(build / "data")})
    return key


def _frame(table: str, rows: list[dict[str, object]]) -> pl.DataFrame:
    schema = schemas.load(table).schema
    frame = pl.DataFrame(rows, schema=schema.create_empty().schema, orient="row", strict=False)
    return schema.validate(frame)


def _calls(files: list[Path]) -> pl.DataFrame:
    """Requests of all stages; one that several parts of a stage share, because their rows are equal, counts once."""
    contract = schemas.load("teacher_calls")
    frames = [contract.schema.create_empty(), *map(pl.read_parquet, files)]
    return pl.concat(frames).unique(["stage", "request_key"], keep="first").sort("stage", "request_key")


def _write(build: Path, table: str, frame: pl.DataFrame) -> None:
    directory = build / "data" / table
    directory.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(directory / "0000.parquet", compression="zstd", compression_level=3)


def _gather(build: Path, table: str, files: list[Path]) -> None:
    """Copy the stages' own files one after the other: the order of stages, and of parts within a stage."""
    if not files:
        _write(build, table, schemas.load(table).schema.create_empty())
        return
    directory = build / "data" / table
    directory.mkdir(parents=True, exist_ok=True)
    for position, file in enumerate(files):
        target = directory / f"{position:04d}.parquet"
        try:
            target.hardlink_to(file)
        except OSError:  # some file systems have no hard links
            shutil.copyfile(file, target)
