"""What all benchmarks share: processes of their own, CPU seconds, peak memory, plain tables."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "Cost", "cpu_seconds", "print_table", "run_process", "spend"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Cost:
    """What a piece of work cost: CPU seconds (children included), wall seconds, peak memory in bytes."""

    cpu: float
    wall: float
    memory: int


def cpu_seconds() -> float:
    """CPU seconds of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class spend:  # noqa: N801  reads as a statement: `with spend() as cost`
    """Context manager whose ``cost`` is filled in at its end."""

    cost: Cost

    def __enter__(self) -> spend:
        self._cpu, self._wall = cpu_seconds(), time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.cost = Cost(cpu_seconds() - self._cpu, time.perf_counter() - self._wall, memory)


def run_process(command: Sequence[str], **environment: str) -> tuple[Cost, str]:
    """Run a command; returns its cost (its whole process tree, as far as it waited for it) and what it printed."""
    started = time.perf_counter()
    with subprocess.Popen(
        list(command), stdout=subprocess.PIPE, env=os.environ | environment, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}\n{output}")
    cost = Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - started, usage.ru_maxrss * 1024)
    return cost, output


def print_table(headings: Sequence[str], rows: Sequence[Sequence[Any]], as_json: bool = False) -> None:
    """Print rows as a Markdown table, or as JSON lines."""
    if as_json:
        for row in rows:
            print(json.dumps(dict(zip(headings, row, strict=True)), ensure_ascii=False))
        return
    cells = [
        [f"{c:,.2f}" if isinstance(c, float) else f"{c:,}" if isinstance(c, int) else str(c) for c in r] for r in rows
    ]
    widths = [max(len(c) for c in column) for column in zip(headings, *cells, strict=True)]
    for line in (list(headings), ["-" * width for width in widths], *cells):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")
    sys.stdout.flush()
