"""A log of any size through the product: ``python -m tests.benchmarks scale --rows 3e7 --until lexical_groups``.

Makes the log with ``sample_data/make_log.py``, runs ``curate run`` as a process of its own, and prints where each
minute went. ``--rows`` may be given several times, to see how the cost of a row grows.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from tests.benchmarks.measure import print_table, run_process

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, make the logs, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks scale", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, action="append", help="raw rows; may be repeated (default 3e6)")
    parser.add_argument("--pool", type=int, default=200_000, help="candidates asked for")
    parser.add_argument("--until", default="", help="table to stop at; the whole pool when not given")
    parser.add_argument("--dir", type=Path, required=True, help="where logs and workspaces go (some GB)")
    parser.add_argument("--memory", type=float, default=8.0, help="run.memory_gb of the recipe")
    parser.add_argument("--keep", action="store_true", help="keep the workspace")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    for rows in options.rows or [3e6]:
        _one(int(rows), options)


def _one(rows: int, options: argparse.Namespace) -> None:
    log, workspace = options.dir / f"log-{rows}", options.dir / f"work-{rows}"
    if not (log / "log").is_dir():
        cost, printed = run_process(
            [sys.executable, "sample_data/make_log.py", "--rows", str(rows), "--out", str(log), "--no-truth"]
        )
        print(printed.strip())
    shutil.rmtree(workspace, ignore_errors=True)
    workspace.mkdir(parents=True)
    (workspace / "recipe.yaml").write_text(
        f"log: {{path: {(log / 'log').resolve()}, text: query, time: ts, source: source}}\n"
        f"run: {{memory_gb: {options.memory}}}\npool: {{size: {options.pool}}}\n",
        encoding="utf-8",
    )
    select = ["--select", f"+{options.until}"] if options.until else []
    command = [sys.executable, "-c", "from curation.cli import main; main()", "run", str(workspace), *select]
    cost, printed = run_process(command)
    from curation.engine.workspace import Workspace
    from curation.report.funnel import funnel_rows

    table = [
        [
            row["stage"],
            row["rows_in"],
            row["kept"],
            row["seconds"] / 60,
            1e6 * row["seconds"] / max(row["rows_in"], 1),
            row["peak_memory"] / 1e9,
        ]
        for row in funnel_rows(Workspace(workspace))
    ]
    table.append(["all", rows, table[-1][2], cost.wall / 60, 1e6 * cost.wall / rows, cost.memory / 1e9])
    print(
        f"\n{rows:,} raw rows: {cost.wall / 60:.1f} min wall, {cost.cpu / 60:.1f} CPU-min, {cost.memory / 1e9:.1f} GB"
    )
    print_table(["stage", "rows in", "kept", "minutes", "µs/row", "peak GB so far"], table, options.json)
    if not options.keep:
        shutil.rmtree(workspace)
