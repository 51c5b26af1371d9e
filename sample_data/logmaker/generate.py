"""Makes a log of any size: plans the files, draws and writes each on its own, joins the truth."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from logmaker.families import FAMILIES
from logmaker.sampler import SOURCES, Drawn, Family, sample_rows

__all__ = ["LogFile", "generate", "plan"]

MONTHS = ((2026, 7), (2026, 8), (2026, 9))
MONTH_SHARES = (0.325, 0.34, 0.335)
ROWS_PER_FILE = 1_000_000
SMALL = 2_000_000  # rows up to which ids are dense and files are packed hard
SCHEMA = pa.schema(
    [("query", pa.string()), ("ts", pa.timestamp("us")), ("session", pa.string()), ("source", pa.string())]
)


@dataclass(frozen=True)
class LogFile:
    """A file to make: name, rows, its stretch of time in microseconds since 1970, and its place in the log."""

    name: str
    rows: int
    start: int
    end: int
    number: int


def plan(rows: int) -> list[LogFile]:
    """The files of a log of ``rows`` rows: one a month, or parts of a month of at most a million rows."""
    files: list[LogFile] = []
    left = rows
    for (year, month), share in zip(MONTHS, MONTH_SHARES, strict=True):
        n = left if (year, month) == MONTHS[-1] else round(rows * share)
        left -= n
        start, end = _micros(year, month), _micros(year, month + 1)
        parts = max(1, -(-n // ROWS_PER_FILE))
        edges = np.linspace(start, end, parts + 1).astype(np.int64).tolist()
        counts = np.diff(np.linspace(0, n, parts + 1).astype(np.int64)).tolist()
        for part in range(parts):
            name = f"{year}-{month:02d}.parquet" if parts == 1 else f"{year}-{month:02d}-{part:03d}.parquet"
            files.append(LogFile(name, counts[part], edges[part], edges[part + 1], len(files)))
    return files


def generate(out: Path, rows: int, family: str, seed: int, with_truth: bool, processes: int) -> None:
    """Write ``out/log/*.parquet`` and, if asked for, ``out/truth.parquet``.

    The bytes depend on rows, family and seed alone: every file has a random stream of its own.
    """
    (out / "log").mkdir(parents=True, exist_ok=True)
    files = plan(rows)
    job = _Job(rows, family, seed, with_truth, out)
    if processes == 1 or len(files) == 1:
        _prepare(job)
        parts = [_make(file) for file in files]
    else:
        # Spawned, not forked: a fork in a process where polars has threads may never wake up.
        context = get_context("spawn")
        with ProcessPoolExecutor(processes, context, initializer=_prepare, initargs=(job,)) as pool:
            parts = list(pool.map(_make, files))
    if with_truth:
        _join_truth([part for part in parts if part is not None], out / "truth.parquet", rows)


@dataclass(frozen=True)
class _Job:
    rows: int
    family: str
    seed: int
    with_truth: bool
    out: Path


_PREPARED: list[tuple[_Job, Family]] = []
"""What this process works on: the job and its family, which takes a second to build."""


def _prepare(job: _Job) -> None:
    _PREPARED[:] = [(job, FAMILIES[job.family](job.rows, job.seed))]


def _make(file: LogFile) -> Path | None:
    job, family = _PREPARED[0]
    rng = np.random.default_rng([job.seed, ord(job.family), file.number])
    drawn = sample_rows(family, file.rows, file.start, file.end, rng)
    level = 12 if job.rows <= SMALL else 1
    pq.write_table(_table(drawn), job.out / "log" / file.name, compression="zstd", compression_level=level)
    if not job.with_truth:
        return None
    from logmaker.truth import truth_frame

    path = job.out / f"truth-{file.number:03d}.part"
    truth_frame(family, drawn, file.name).write_parquet(path)
    return path


def _table(drawn: Drawn) -> pa.Table:
    source = pa.array(SOURCES).take(pa.array(drawn.source))
    query = drawn.texts.take(pa.array(drawn.variant)).cast(pa.string())
    return pa.table([query, pa.array(drawn.ts, pa.timestamp("us")), drawn.session, source], schema=SCHEMA)


def _join_truth(parts: list[Path], path: Path, rows: int) -> None:
    from logmaker.truth import dense

    if rows <= SMALL:
        frame = dense(pl.concat([pl.read_parquet(part) for part in parts]))
        _write_truth(iter([frame]), path, 19)
    else:
        _write_truth((pl.read_parquet(part) for part in parts), path, 3)
    for part in parts:
        part.unlink()


def _write_truth(frames: Iterator[pl.DataFrame], path: Path, level: int) -> None:
    writer: pq.ParquetWriter | None = None
    for frame in frames:
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        if writer is None:
            # Row numbers count up: differences of nothing but ones take no room.
            writer = pq.ParquetWriter(
                path,
                table.schema,
                compression="zstd",
                compression_level=level,
                use_dictionary=[name for name in table.column_names if name != "row"],
                column_encoding={"row": "DELTA_BINARY_PACKED"},
            )
        writer.write_table(table, row_group_size=len(table) or 1)
    if writer is not None:
        writer.close()


def _micros(year: int, month: int) -> int:
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp()) * 1_000_000
