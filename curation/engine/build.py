"""Building one object: the context and the parts that a stage works through."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

import schemas
from curation.engine.stage import Account, Stage
from curation.engine.store import Store, fsync_file, write_json
from curation.errors import CurationError

__all__ = ["ROW_GROUP", "BuildContext", "InputTable", "read_parts"]

ROW_GROUP = {"embeddings": 25_000}
"""Rows of a Parquet row group where it is not the usual 250,000: vectors are wide."""

_REJECT_TEXT = 1_000


@dataclass(frozen=True)
class InputTable:
    """A table that a stage reads: its files in order and their row count."""

    files: tuple[Path, ...]
    rows: int
    digest: str
    directory: Path = Path()

    def scan(self, table: str) -> pl.LazyFrame:
        """The table lazily; one without files has the contract's columns and no rows."""
        if not self.files:
            return schemas.load(table).schema.create_empty().lazy()
        return pl.scan_parquet(list(self.files), hive_partitioning=False, glob=False)


def _validated(stage: str, table: str, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(rows that keep the contract in its column order, rows that break it, with a ``reason``)."""
    contract = schemas.load(table)
    columns = list(contract.columns())
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise CurationError(f"stage {stage} wrote {table} without the column {missing[0]!r} of its contract")
    frame = frame.select(columns)
    try:
        good, failures = contract.schema.filter(frame, cast=False)
    except Exception as error:
        raise CurationError(f"stage {stage} wrote {table} with wrong column types: {error}") from error
    if not len(failures):
        return frame.sort(contract.sort_by), frame.clear()
    counts = failures.counts()
    bad = failures.invalid()
    rule, count = max(counts.items(), key=lambda item: item[1])
    if contract.on_invalid == "stop":
        example = {name: value for name, value in bad.row(0, named=True).items() if not isinstance(value, list)}
        raise CurationError(
            f"stage {stage} made {len(bad):,} rows of {table} that break its contract: rule {rule!r} {count:,} times",
            f"The first such row: {example}",
        )
    bad = bad.with_columns(reason=pl.lit("contract_" + rule.replace("|", "_")))
    return good.sort(contract.sort_by), bad


@dataclass
class _PartRecord:
    """What is remembered of a finished part."""

    accounts: dict[str, int] = field(default_factory=dict)
    metrics: dict[str, tuple[float, str]] = field(default_factory=dict)
    rejected: int = 0
    weight_rejected: int = 0
    edges: dict[str, list[Any]] = field(default_factory=dict)


class _Part:
    """See :class:`curation.engine.stage.Part`."""

    def __init__(self, context: BuildContext, name: str, done: bool) -> None:
        self.done = done
        self._context, self._name = context, name
        self._frames: dict[str, list[pl.DataFrame]] = {}
        self._rejects: list[pl.DataFrame] = []
        self._calls: list[pl.DataFrame] = []
        self.record = _PartRecord()

    def write(self, table: str, frame: pl.DataFrame) -> None:
        if table not in self._context.stage.makes:
            raise CurationError(f"stage {self._context.stage.name} wrote {table}, which it does not declare to make")
        good, bad = _validated(self._context.stage.name, table, frame)
        if len(bad):
            self.reject(bad)
        self._frames.setdefault(table, []).append(good)

    def reject(self, frame: pl.DataFrame) -> None:
        if frame.height == 0:
            return
        types = schemas.load("rejects").schema.create_empty().schema
        frame = frame.with_columns(
            stage=pl.lit(self._context.stage.name),
            **{
                name: pl.lit(None, dtype=types[name])
                for name in ("file", "row", "query_id", "text")
                if name not in frame.columns
            },
            **({"weight": pl.lit(1, dtype=pl.Int64)} if "weight" not in frame.columns else {}),
        )
        frame = frame.with_columns(pl.col("text").str.slice(0, _REJECT_TEXT))
        good, _ = _validated(
            self._context.stage.name, "rejects", frame.cast(dict(types.items()), strict=True).select(list(types))
        )
        self._rejects.append(good.sort(["reason", "file", "row", "query_id"], nulls_last=True))
        self.record.rejected += good.height
        self.record.weight_rejected += int(good["weight"].sum())

    def account(self, account: Account) -> None:
        if self.record.accounts:
            raise CurationError(f"stage {self._context.stage.name} accounted for part {self._name} twice")
        self.record.accounts = asdict(account)

    def metric(self, name: str, value: float, unit: str) -> None:
        self.record.metrics[name] = (float(value), unit)

    def calls(self, frame: pl.DataFrame) -> None:
        good, bad = _validated(self._context.stage.name, "teacher_calls", frame)
        if len(bad):
            raise CurationError(f"stage {self._context.stage.name} recorded calls that break their contract")
        self._calls.append(good)

    def companion(self, table: str, name: str, write: Callable[[Path], None]) -> None:
        if table not in self._context.stage.makes or name.endswith(".parquet"):
            raise CurationError(f"stage {self._context.stage.name} cannot put {name} beside the table {table}")
        temporary = self._context.store.temporary / f"{self._context.stage.name}-{name}"
        write(temporary)
        fsync_file(temporary)
        temporary.replace(self._context.build / "data" / table / name)

    def close(self) -> None:
        """Write everything, then the marker that says the part is whole."""
        for table, frames in self._frames.items():
            contract = schemas.load(table)
            frame = (frames[0] if len(frames) == 1 else pl.concat(frames).sort(contract.sort_by)).rechunk()
            if frame.height:
                ends = frame.select(contract.sort_by)
                self.record.edges[table] = [list(ends.row(0)), list(ends.row(-1))]
            self._context.write_file(table, self._name, frame)
        if self._rejects:
            self._context.write_file("_rejects", self._name, pl.concat(self._rejects).rechunk())
        if self._calls:
            self._context.write_file("_teacher_calls", self._name, pl.concat(self._calls).rechunk())
        write_json(self._context.done_marker(self._name), asdict(self.record))


class BuildContext:
    """See :class:`curation.engine.stage.Context`."""

    def __init__(
        self,
        stage: Stage,
        key: str,
        store: Store,
        *,
        params: Any,
        shared: dict[str, Any],
        seed: int,
        workers: int,
        memory: int,
        inputs: dict[str, InputTable],
        log: Any = None,
        domain: Callable[[], Any] | None = None,
        earlier: dict[str, InputTable] | None = None,
        previous: dict[str, InputTable] | None = None,
        on_progress: Callable[[int, int, str], None] = lambda done, total, note: None,
    ) -> None:
        self.stage, self.key, self.store = stage, key, store
        self.params, self.shared, self.seed = params, shared, seed
        self.workers, self.memory = workers, memory
        self._inputs, self._domain, self._on_progress = inputs, domain, on_progress
        self._earlier, self._previous = earlier or {}, previous or {}
        self.log = log
        self.build = store.build_directory(stage.name, key)
        self.scratch = store.temporary / f"{stage.name}-{key}"
        self.keep = self.build / "_keep"
        self.cache = store.root / "cache"
        self._prepare()

    def _prepare(self) -> None:
        """Drop what an interrupted run left without a marker; what has one is kept."""
        for directory in (
            self.build / "_done",
            self.keep,
            self.scratch,
            self.cache,
            *(self.build / "data" / t for t in self.stage.makes),
        ):
            directory.mkdir(parents=True, exist_ok=True)
        finished = {path.stem for path in (self.build / "_done").glob("*.json")}
        for file in (self.build / "data").rglob("*.parquet"):
            if file.stem not in finished:
                file.unlink()

    # -- what a stage sees

    @property
    def domain(self) -> Any:
        """The loaded domain."""
        if self._domain is None:
            raise CurationError(f"stage {self.stage.name} uses the domain without declaring it (uses_domain)")
        return self._domain()

    def _input(self, table: str) -> InputTable:
        if table not in self._inputs:
            raise CurationError(f"stage {self.stage.name} reads {table}, which it does not declare to read")
        return self._inputs[table]

    def scan(self, table: str, columns: list[str] | None = None) -> pl.LazyFrame:
        frame = self._input(table).scan(table)
        return frame if columns is None else frame.select(columns)

    def read(self, table: str, columns: list[str] | None = None) -> pl.DataFrame:
        return self.scan(table, columns).collect()

    def files(self, table: str) -> list[Path]:
        return list(self._input(table).files)

    def rows(self, table: str) -> int:
        return self._input(table).rows

    def earlier(self, table: str, columns: list[str] | None = None) -> pl.LazyFrame | None:
        if table not in self.stage.earlier:
            raise CurationError(f"stage {self.stage.name} reads an earlier {table} without declaring it")
        if table not in self._earlier:
            return None
        frame = self._earlier[table].scan(table)
        return frame if columns is None else frame.select(columns)

    def previous(self, table: str) -> pl.LazyFrame | None:
        return self._previous[table].scan(table) if table in self._previous else None

    def earlier_companion(self, table: str, name: str) -> Path | None:
        if self.earlier(table) is None:
            return None
        path = self._earlier[table].directory / name
        return path if path.exists() else None

    def progress(self, done: int, total: int, note: str = "") -> None:
        self._on_progress(done, total, note)

    def track(self, items: list[Any], note: str = "") -> Iterator[Any]:
        for done, item in enumerate(items):
            self._on_progress(done, len(items), note)
            yield item
        self._on_progress(len(items), len(items), note)

    @contextlib.contextmanager
    def part(self, name: str = "0000") -> Iterator[_Part]:
        part = _Part(self, name, done=self.done_marker(name).exists())
        yield part
        if not part.done:
            part.close()

    # -- files

    def done_marker(self, part: str) -> Path:
        """The file whose presence says that ``part`` is whole."""
        return self.build / "_done" / f"{part}.json"

    def write_file(self, table: str, part: str, frame: pl.DataFrame) -> None:
        """Write one Parquet file of a part under a private name, then rename it."""
        directory = self.build / "data" / table
        directory.mkdir(parents=True, exist_ok=True)
        temporary = self.store.temporary / f"{self.stage.name}-{table}-{part}.parquet"
        group = ROW_GROUP.get(table, 250_000)
        frame.write_parquet(temporary, compression="zstd", compression_level=3, row_group_size=group, statistics=True)
        fsync_file(temporary)
        temporary.replace(directory / f"{part}.parquet")

    def finish(self) -> dict[str, Any]:
        """Check what was built as a whole and return the part of the manifest that speaks of it."""
        shutil.rmtree(self.scratch, ignore_errors=True)
        records = read_parts(self.build / "_done")
        if not records:
            raise CurationError(f"stage {self.stage.name} wrote no part")
        for table in self.stage.makes:
            self._ensure_table(table, sorted(records)[0])
            self._check_keys_across_parts(table, records)
        totals = {f.name: sum(r["accounts"].get(f.name, 0) for r in records.values()) for f in fields(Account)}
        totals["rejected"] = sum(r["rejected"] for r in records.values())
        totals["weight_rejected"] = sum(r["weight_rejected"] for r in records.values())
        metrics: dict[str, list[Any]] = {}
        for name in sorted(records):
            for metric, (value, unit) in records[name]["metrics"].items():
                if metric in metrics:
                    raise CurationError(f"stage {self.stage.name} reported the metric {metric!r} twice")
                metrics[metric] = [value, unit]
        return {"account": totals, "metrics": metrics, "parts": len(records)}

    def _ensure_table(self, table: str, part: str) -> None:
        """A table that got no rows still has a file with its columns, so that any reader sees its shape."""
        if not any((self.build / "data" / table).glob("*.parquet")):
            self.write_file(table, part, schemas.load(table).schema.create_empty())

    def _check_keys_across_parts(self, table: str, records: dict[str, dict[str, Any]]) -> None:
        """Parts were checked one by one; rows of different parts must not share a key either."""
        contract = schemas.load(table)
        keys = [name for name, column in contract.columns().items() if column.primary_key]
        edges = [records[name]["edges"][table] for name in sorted(records) if table in records[name]["edges"]]
        ordered = all(before[1] < after[0] for before, after in pairwise(edges))
        if not keys or len(edges) < 2 or (ordered and tuple(keys) == tuple(contract.sort_by)):
            return
        files = sorted((self.build / "data" / table).glob("*.parquet"))
        frame = pl.scan_parquet(files, glob=False).select(keys)
        duplicated = (
            frame.group_by(keys).len().filter(pl.col("len") > 1).select(keys).head(1).collect(engine="streaming")
        )
        if duplicated.height:
            raise CurationError(
                f"stage {self.stage.name} made two rows of {table} with the key {duplicated.row(0, named=True)}"
            )


def read_parts(directory: Path) -> dict[str, dict[str, Any]]:
    """Records of the finished parts by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(directory.glob("*.json"))}
