"""Consoles and small ways of showing numbers that all commands share."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["console", "counted", "duration", "errors", "size", "table_of"]

console = Console()
errors = Console(stderr=True)


def counted(number: int, what: str, many: str = "") -> str:
    """A number with what it counts, ``1 row`` or ``2 rows``; ``many`` where that is not ``what`` with an s."""
    return f"{number:,} {what if number == 1 else many or what + 's'}"


def duration(seconds: float) -> str:
    """Seconds as ``0.4 s``, ``12 s`` or ``3m 05s``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{int(seconds // 60)}m {int(seconds % 60):02d}s"


def size(count: float) -> str:
    """Bytes as ``812 B``, ``3.4 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


def table_of(columns: dict[str, str], rows: list[list[Any]], wrap: bool = True) -> Table:
    """A rich table; ``columns`` maps a heading to its justification (``left`` or ``right``)."""
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2 if wrap else 1, 0, 0))
    for heading, justify in columns.items():
        table.add_column(heading, justify=justify, overflow="fold", no_wrap=not wrap)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    return table
