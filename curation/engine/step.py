"""A stage as a session sees it, and who is told what becomes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from curation.engine.stage import Stage

__all__ = ["Observer", "Status", "Step"]

Status = Literal["fresh", "restored", "stale", "left out"]


@dataclass(frozen=True)
class Step:
    """A stage as this session sees it.

    Attributes:
        stage: The stage.
        status: ``fresh`` when the published table is the right one, ``restored`` when an earlier one is, ``stale``
            when it must be built, ``left out`` when it is stale and not selected.
        why: What differs from the object that is published now, one line a field.
        key: Key of the object; None while an input is not built.
        document: The key document behind it.
    """

    stage: Stage
    status: Status
    why: list[str]
    key: str | None = None
    document: dict[str, Any] = field(default_factory=dict)


class Observer(Protocol):
    """Whoever shows a person what happens."""

    def started(self, step: Step) -> None:
        """A stage is about to be built."""

    def progress(self, stage: str, done: int, total: int, note: str) -> None:
        """A stage got as far as ``done`` of ``total``."""

    def finished(self, step: Step, manifest: dict[str, Any]) -> None:
        """A stage is built, fresh or restored."""
