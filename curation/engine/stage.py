"""What a stage is to the engine: a function, its parameters, and the tables it reads and makes.

A stage module defines ``STAGE = Stage(...)`` and its ``run(ctx)``. It reads tables through ``ctx``, calls algorithms,
writes parts through ``ctx``; it never learns where anything lies.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from curation.engine.settings import Settings

if TYPE_CHECKING:
    from curation.domain import Domain
    from curation.engine.recipe import LogSource

__all__ = ["Account", "Ask", "Context", "Params", "Part", "Stage"]


class Params(Settings):
    """Base of a stage's section in the recipe."""

    def ready(self) -> None:
        """Refuse, before any work, what a stage that uses this section would fail at (a key that is not set).

        Raises:
            CurationError: Says what is missing.
        """


@dataclass(frozen=True)
class Account:
    """Rows and weights (raw rows behind them) that a part of a stage took in and what became of them.

    Rejected rows are counted by the engine from what the stage wrote to ``rejects``. ``weight_out`` is the weight of
    the kept rows with that of the merged rows added, so that it is what the next stage takes in; rows merged into a
    query of an earlier workspace pass no weight on, it is ``weight_earlier``.
    """

    rows_in: int
    kept: int
    merged: int = 0
    failed: int = 0
    added: int = 0
    weight_in: int = 0
    weight_out: int = 0
    weight_failed: int = 0
    weight_earlier: int = 0


@dataclass(frozen=True)
class Ask:
    """What a stage will ask of a teacher outside this process.

    Attributes:
        rows: Rows it will ask about.
        calls: Calls, less those that a cache answers.
        tokens: Tokens sent and received.
        money: In ``currency``; None where no price is known.
        currency: Of the money.
        seconds: Wall time.
    """

    rows: int
    calls: int
    tokens: int
    money: float | None
    currency: str
    seconds: float


class Part(Protocol):
    """One restartable piece of a stage's output; it becomes visible as a whole or not at all."""

    done: bool
    """True when an earlier, interrupted run finished this part: skip the work."""

    def write(self, table: str, frame: pl.DataFrame) -> None:
        """Append ``frame`` to ``table``: validated against its contract, columns put in the contract's order."""

    def reject(self, frame: pl.DataFrame) -> None:
        """Refuse rows: columns ``reason``, ``weight``, and ``query_id`` or ``file`` and ``row``; maybe ``text``."""

    def companion(self, table: str, name: str, write: Callable[[Path], None]) -> None:
        """Put a file that is no Parquet beside a table: ``latest/<table>/<name>``; ``write`` gets a path to fill."""

    def account(self, account: Account) -> None:
        """Say what became of the rows this part took in; called at most once a part."""

    def metric(self, name: str, value: float, unit: str) -> None:
        """Report a number of the stage's own work; names are unique within the stage."""

    def calls(self, frame: pl.DataFrame) -> None:
        """Record requests to a teacher outside this process: the columns of `teacher_calls`."""


class Context(Protocol):
    """What the engine lends a stage for one run."""

    params: Any
    """The stage's section of the recipe, an instance of its ``Stage.params``."""
    seed: int
    """Seed of the recipe; every random choice starts from it. Only for stages that are ``seeded``."""
    workers: int
    """Threads the stage may use. It must not change the result."""
    memory: int
    """Bytes the stage should stay under. It must not change the result."""
    shared: dict[str, Any]
    """The other recipe sections named in ``Stage.shared``, by section name."""
    scratch: Path
    """A private empty directory for spilling; removed when the stage ends."""
    cache: Path
    """A directory of the workspace that all stages share and that outlives runs. What lies in it must be named by
    its content (a hash of all it depends on) and may be deleted at any time."""
    keep: Path
    """A private directory that survives a kill: the same stage with the same key finds it again until it is built."""
    log: LogSource
    """The raw log of the recipe; only for stages with ``source="log"``."""
    domain: Domain
    """The loaded domain; only for stages with ``uses_domain``."""

    def scan(self, table: str, columns: list[str] | None = None) -> pl.LazyFrame:
        """A declared input table, lazily, rows in the contract's order."""

    def read(self, table: str, columns: list[str] | None = None) -> pl.DataFrame:
        """A declared input table in memory, rows in the contract's order."""

    def files(self, table: str) -> list[Path]:
        """The Parquet files of an input table, in order."""

    def earlier(self, table: str, columns: list[str] | None = None) -> pl.LazyFrame | None:
        """A table of the earlier workspace that the recipe names; None when it names none. See ``Stage.earlier``."""

    def rows(self, table: str) -> int:
        """Number of rows of an input table, from its manifest."""

    def part(self, name: str = "0000") -> AbstractContextManager[Part]:
        """Open a part. Parts are concatenated in the order of their names; use zero-padded numbers."""

    def earlier_companion(self, table: str, name: str) -> Path | None:
        """A file beside a table of the earlier workspace; None when there is none."""

    def previous(self, table: str) -> pl.LazyFrame | None:
        """A table that this stage read or made in the run that is published, if only its inputs changed since.

        It may save work and must not shape the output: the same input gives the same bytes without it.
        """

    def progress(self, done: int, total: int, note: str = "") -> None:
        """Tell the person how far the stage is, in rows."""

    def track(self, items: list[Any], note: str = "") -> Iterator[Any]:
        """Iterate over ``items`` while reporting progress."""


@dataclass(frozen=True)
class Stage:
    """Declaration of a stage.

    Attributes:
        name: Name in recipe, ledger and command line.
        run: The work; called with a :class:`Context`.
        params: Pydantic model of its recipe section; every field has a default.
        reads: Tables it needs.
        makes: Tables it writes (``rejects`` and ``metrics`` need not be named).
        title: One line for progress and help.
        after: Stage whose kept rows it takes in; the engine checks that counts and weights agree.
        source: ``"log"`` when it reads the raw log.
        uses_domain: Whether the domain files are an input.
        shared: Recipe sections of other stages it also reads (as ``ctx.shared[name]``).
        sections: Recipe sections that belong to no stage and that it reads (as ``ctx.shared[name]``), with their
            models; several stages may name the same.
        uses: Called with its parameters and the sections it shares, by name: which of ``sections`` it uses. Only
            these are part of its key and have to be ready; all where it is not given.
        earlier: Tables it reads of the earlier workspace, where the recipe names one.
        libraries: Distributions whose version shapes the output, so that it is part of the key.
        version: Raised by hand when the output changes for a reason that the code's hash cannot see.
        seeded: Whether it makes random choices, so that the recipe's seed is part of the key.
        check: Called with the parameters, the domain (or None) and, if it takes a third argument, the shared sections
            before any work, to refuse what would fail later.
        estimate: Called by ``curate plan`` with a :class:`curation.engine.estimates.Glimpse`: what the stage will ask
            of teachers outside this process, as an :class:`Ask`; None for nothing.
        free: Parameters that do not shape the output (batch sizes and the like), left out of the key; a field may
            also say so itself, with ``json_schema_extra={"free": True}``.
    """

    name: str
    run: Callable[[Any], None]
    params: type[Params]
    reads: tuple[str, ...] = ()
    makes: tuple[str, ...] = ()
    title: str = ""
    after: str | None = None
    source: str | None = None
    uses_domain: bool = False
    shared: tuple[str, ...] = ()
    sections: Mapping[str, type[Params]] = field(default_factory=dict)
    earlier: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    version: int = 1
    free: tuple[str, ...] = ()
    seeded: bool = True
    check: Callable[..., None] | None = None
    uses: Callable[[Any, Mapping[str, Any]], Collection[str]] | None = None
    estimate: Callable[[Any], Any] | None = None

    def used(self, sections: Mapping[str, Any]) -> tuple[str, ...]:
        """Those of its ``sections`` that it uses.

        Args:
            sections: Every section of the recipe, by name.
        """
        if self.uses is None:
            return tuple(self.sections)
        wanted = self.uses(sections[self.name], {name: sections[name] for name in self.shared})
        return tuple(name for name in self.sections if name in wanted)
