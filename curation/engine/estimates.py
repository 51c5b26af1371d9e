"""Estimates before a run: what stages will ask of teachers outside this process, from the tables that are there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from curation.engine.stage import Ask
from curation.errors import CurationError

if TYPE_CHECKING:
    from curation.engine.build import InputTable
    from curation.engine.session import Session
    from curation.engine.step import Step

__all__ = ["Estimated", "Glimpse", "estimates"]


class _NotBuiltError(Exception):
    """A table that an estimate needs is not there yet; ``str()`` is its name."""


@dataclass(frozen=True)
class Estimated:
    """The estimate for a stage: ``ask``, or the table that has to be ``missing`` no longer for there to be one."""

    stage: str
    ask: Ask | None
    missing: str | None = None


class Glimpse:
    """What the ``estimate`` of a stage sees: the part of :class:`curation.engine.stage.Context` that reads.

    A table that is still to be built anew is shown as it is published: rows that a run will change are few, or the
    estimate is a rough one.
    """

    def __init__(self, session: Session, step: Step) -> None:
        recipe, stage = session.recipe, step.stage
        self.params = recipe.sections[stage.name]
        self.shared = {name: recipe.sections[name] for name in (*stage.shared, *stage.sections)}
        self.seed, self.workers = recipe.seed, recipe.run.threads
        self.cache: Path = session.store.root / "cache"
        self._session, self._stage = session, stage

    @property
    def domain(self) -> Any:
        """The loaded domain."""
        return self._session.domain

    def _table(self, name: str) -> InputTable:
        if name not in self._stage.reads:
            raise CurationError(f"stage {self._stage.name} reads {name}, which it does not declare to read")
        table = self._session.table(name)
        if table is None:
            raise _NotBuiltError(name)
        return table

    def scan(self, table: str, columns: list[str] | None = None) -> pl.LazyFrame:
        """See :meth:`curation.engine.stage.Context.scan`."""
        frame = self._table(table).scan(table)
        return frame if columns is None else frame.select(columns)

    def read(self, table: str, columns: list[str] | None = None) -> pl.DataFrame:
        """See :meth:`curation.engine.stage.Context.read`."""
        return self.scan(table, columns).collect()

    def rows(self, table: str) -> int:
        """See :meth:`curation.engine.stage.Context.rows`."""
        return self._table(table).rows


def estimates(session: Session, steps: Iterable[Step]) -> list[Estimated]:
    """Estimates of the stages that would be built and ask somebody outside, in their order.

    Args:
        session: Whose :meth:`~curation.engine.session.Session.plan` made the steps.
        steps: What it plans.
    """
    found = []
    for step in steps:
        if step.status != "stale" or step.stage.estimate is None:
            continue
        try:
            ask = step.stage.estimate(Glimpse(session, step))
        except _NotBuiltError as error:
            found.append(Estimated(step.stage.name, None, str(error)))
        else:
            if ask is not None:
                found.append(Estimated(step.stage.name, ask))
    return found
