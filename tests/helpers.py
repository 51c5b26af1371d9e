"""A context in memory for tests of one stage: the same calls as the engine's, tables as frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

import schemas
from curation.engine.stage import Account, Stage


class FakePart:
    """A part that keeps what it is given."""

    done = False

    def __init__(self, context: FakeContext) -> None:
        self._context = context

    def write(self, table: str, frame: pl.DataFrame) -> None:
        contract = schemas.load(table)
        frame = contract.schema.validate(frame.select(list(contract.columns())))
        self._context.tables.setdefault(table, []).append(frame)

    def reject(self, frame: pl.DataFrame) -> None:
        self._context.rejects.append(frame)

    def companion(self, table: str, name: str, write: Callable[[Path], None]) -> None:
        assert self._context.scratch is not None
        write(self._context.scratch / name)

    def account(self, account: Account) -> None:
        self._context.accounts.append(account)

    def calls(self, frame: pl.DataFrame) -> None:
        self._context.calls.append(schemas.load("teacher_calls").schema.validate(frame))

    def metric(self, name: str, value: float, unit: str) -> None:
        assert name not in self._context.metrics
        self._context.metrics[name] = float(value)


class FakeContext:
    """Runs ``stage`` on frames: ``FakeContext(STAGE, {"queries": frame}, params={...}).run()``."""

    def __init__(
        self,
        stage: Stage,
        inputs: dict[str, pl.DataFrame] | None = None,
        *,
        params: dict[str, Any] | None = None,
        scratch: Path | None = None,
        log: Any = None,
        domain: Any = None,
        shared: dict[str, Any] | None = None,
        seed: int = 7,
        workers: int = 2,
        memory: int = 2 << 30,
        earlier: dict[str, pl.DataFrame] | None = None,
        earlier_companions: dict[str, Path] | None = None,
        previous: dict[str, pl.DataFrame] | None = None,
        cache: Path | None = None,
    ) -> None:
        self.stage = stage
        self.params = stage.params(**(params or {}))
        self.shared = shared or {}
        self.seed, self.workers, self.memory = seed, workers, memory
        self.scratch, self.log, self.domain = scratch, log, domain
        self.inputs = inputs or {}
        self._earlier, self._previous, self.cache = earlier, previous or {}, cache
        self._earlier_companions = earlier_companions or {}
        self.calls: list[pl.DataFrame] = []
        self.tables: dict[str, list[pl.DataFrame]] = {}
        self.rejects: list[pl.DataFrame] = []
        self.accounts: list[Account] = []
        self.metrics: dict[str, float] = {}

    def run(self) -> FakeContext:
        self.stage.run(self)
        return self

    def out(self, table: str) -> pl.DataFrame:
        return pl.concat(self.tables[table])

    def scan(self, table: str, columns: list[str] | None = None) -> pl.LazyFrame:
        assert table in self.stage.reads, f"{table} is not declared in reads"
        frame = self.inputs[table].lazy()
        return frame if columns is None else frame.select(columns)

    def read(self, table: str, columns: list[str] | None = None) -> pl.DataFrame:
        return self.scan(table, columns).collect()

    def earlier(self, table: str, columns: list[str] | None = None) -> pl.LazyFrame | None:
        assert table in self.stage.earlier, f"{table} is not declared in earlier"
        if self._earlier is None:
            return None
        frame = self._earlier[table].lazy()
        return frame if columns is None else frame.select(columns)

    def earlier_companion(self, table: str, name: str) -> Path | None:
        return None if self._earlier is None else self._earlier_companions.get(name)

    def previous(self, table: str) -> pl.LazyFrame | None:
        return self._previous[table].lazy() if table in self._previous else None

    def rows(self, table: str) -> int:
        return self.inputs[table].height

    def files(self, table: str) -> list[Path]:
        assert self.scratch is not None
        path = self.scratch / f"{table}.parquet"
        self.inputs[table].write_parquet(path)
        return [path]

    @contextmanager
    def part(self, name: str = "0000") -> Iterator[FakePart]:
        yield FakePart(self)

    def progress(self, done: int, total: int, note: str = "") -> None:
        assert 0 <= done <= total

    def track(self, items: list[Any], note: str = "") -> Iterator[Any]:
        yield from items
