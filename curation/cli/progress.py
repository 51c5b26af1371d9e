"""What a person sees while stages run: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from abc import ABC, abstractmethod
from typing import Any

from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from curation.cli.console import console, duration
from curation.engine.step import Step

__all__ = ["Bars", "Lines", "observer"]


class _Shown(ABC, logging.Handler):
    """What shows a person the progress; it also says what the library logs while it is there."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._logger = logging.getLogger("curation")
        self._level = self._logger.level
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self)

    @abstractmethod
    def say(self, text: str) -> None:
        """Put a line among the others."""

    def emit(self, record: logging.LogRecord) -> None:
        """See :meth:`logging.Handler.emit`."""
        self.say(f"{record.name.rpartition('.')[2]}: {record.getMessage()}")

    def close(self) -> None:
        """Listen no more."""
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
        super().close()


class Lines(_Shown):
    """One line when a stage starts, one when it is done: for logs and pipes."""

    def __init__(self, quiet: bool = False) -> None:
        super().__init__()
        self._quiet = quiet

    def say(self, text: str) -> None:
        """Print a line, unless nothing is to be said."""
        if not self._quiet:
            print(text, flush=True)

    def started(self, step: Step) -> None:
        """Say why the stage runs."""
        self.say(f"{step.stage.name}: {step.stage.title or 'building'} ({_because(step)})")

    def progress(self, stage: str, done: int, total: int, note: str) -> None:
        """Nothing: lines would flood a log."""

    def finished(self, step: Step, manifest: dict[str, Any]) -> None:
        """Say what came of the stage."""
        self.say(f"{step.stage.name}: {_outcome(step, manifest)}")


class Bars(_Shown):
    """A live bar for the stage that runs, a line for each that is done."""

    def __init__(self) -> None:
        super().__init__()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}", table_column=Column(no_wrap=True)),
            BarColumn(bar_width=18),
            TextColumn("{task.fields[count]}", justify="right", table_column=Column(no_wrap=True)),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=console,
            transient=True,
        )
        self._task: Any = None
        self._last = 0.0
        self._title = ""
        self._progress.start()

    def say(self, text: str) -> None:
        """Put a line above the bar."""
        self._progress.console.print(escape(text), highlight=False, soft_wrap=True)

    def started(self, step: Step) -> None:
        """Put up a bar."""
        self._title = step.stage.title
        self._task = self._progress.add_task(step.stage.name, total=None, note=escape(_because(step)), count="")

    def progress(self, stage: str, done: int, total: int, note: str) -> None:
        """Move the bar, at most ten times a second."""
        now = time.monotonic()
        if self._task is not None and (now - self._last > 0.1 or done == total):
            self._last = now
            count = f"{done:,}/{total:,}"
            # A little short of the end: rich stops the clock of a full bar, but the stage may have more to do.
            self._progress.update(
                self._task,
                completed=min(done, total - 1e-9) if total else 0,
                total=total or None,
                note=note or self._title,
                count=count,
            )

    def finished(self, step: Step, manifest: dict[str, Any]) -> None:
        """Replace the bar by a line."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._task = None
        mark = {"fresh": "[dim]·[/]", "restored": "[cyan]↺[/]"}.get(step.status, "[green]✓[/]")
        self._progress.console.print(f"{mark} {step.stage.name:<12} {_outcome(step, manifest)}", highlight=False)

    def close(self) -> None:
        """Take the bars down."""
        self._progress.stop()
        super().close()


def _because(step: Step) -> str:
    more = len(step.why) - 1
    return (step.why[0] if step.why else "") + (f" and {more} more" if more > 0 else "")


def _outcome(step: Step, manifest: dict[str, Any]) -> str:
    if step.status == "fresh":
        return "fresh"
    if step.status == "restored":
        return "restored from an earlier run"
    account = manifest["account"]
    parts = [f"{account['kept'] + account['added']:,} rows"]
    parts += [f"{account[name]:,} {name}" for name in ("merged", "rejected", "failed") if account[name]]
    return f"{', '.join(parts)} in {duration(manifest['seconds'])}"


def observer(quiet: bool = False) -> Bars | Lines:
    """Bars on a terminal, lines elsewhere."""
    return Bars() if sys.stdout.isatty() and not quiet else Lines(quiet)
