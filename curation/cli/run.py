"""Commands that build or explain: run, plan, status, why, diff."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from curation.cli.console import console, duration, size, table_of
from curation.errors import CurationError

__all__ = ["register"]

Target = Annotated[Path, typer.Argument(help="A recipe file, or a workspace directory with `recipe.yaml`.")]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select", "-s", help="Stages or tables: `name`, `+name` with all it needs, `name+` with all that needs it."
    ),
]


def _session(target: Path, select: list[str] | None = None, workers: int | None = None, observer: Any = None) -> Any:
    from curation.engine.recipe import Recipe
    from curation.engine.session import Session

    return Session(Recipe.load(target).with_workers(workers), select=select or (), observer=observer)


def run(
    target: Target = Path(),
    select: Select = None,
    workers: Annotated[
        int | None, typer.Option(min=0, help="Threads; 0 takes all cores. Never changes a result.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be built, and why.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")] = False,
) -> None:
    """Build what is stale, publish all tables together, and show the funnel.

    A run that is killed goes on where it stopped. A run with nothing to do says so.
    """
    if dry_run:
        return plan(target, select)
    from curation.taxonomy.rounds import settle

    outcome = None
    while outcome is None or outcome.state == "accepted":
        session, workspace, document = _built(target, select, workers, quiet)
        if "proposals" not in session.selected or "proposals" not in document["tables"]:
            break
        outcome = settle(target)
        if outcome.state == "accepted" and not quiet:
            console.print(escape(outcome.sentence), highlight=False, soft_wrap=True)
    if quiet:
        return None
    if not document["published"]:
        console.print("Nothing to do: every table is fresh.")
    console.print(_funnel(workspace))
    left_out = [name for name in session.graph.order if name not in document["stages"]]
    if left_out:
        console.print(
            f"Left out of this run, since they are stale and were not selected: {', '.join(left_out)}. "
            "Earlier runs keep theirs."
        )
    _closing(workspace, document)
    if outcome is not None and outcome.sentence:
        console.print(escape(outcome.sentence), highlight=False, soft_wrap=True)
    return None


def _built(target: Path, select: list[str] | None, workers: int | None, quiet: bool) -> tuple[Any, Any, Any]:
    """One run: its session, the workspace with the catalogue written, and the run document."""
    from curation.cli.progress import observer as make_observer
    from curation.engine.workspace import Workspace
    from curation.report.catalogue import CATALOGUE_NAME, write_catalogue

    observer = make_observer(quiet)
    try:
        with _session(target, select, workers, observer) as session:
            document = session.run()
            workspace = Workspace(session.store.root)
            if document["published"] or not (workspace.root / CATALOGUE_NAME).exists():
                write_catalogue(workspace)
    finally:
        observer.close()
    return session, workspace, document


def _closing(workspace: Any, document: dict[str, Any]) -> None:
    if "candidate_pool" in document["tables"]:
        metrics = workspace.manifest("candidate_pool")["metrics"]
        rows = workspace.rows("candidate_pool")
        asked = int(metrics["asked"][0])
        short = "" if rows >= asked else f" of {asked:,} asked for: no more rows came so far"
        console.print(f"[bold]{rows:,} candidates[/]{short} in {workspace.root}", highlight=False, soft_wrap=True)
    failed = workspace.manifest("annotations")["account"]["failed"] if "annotations" in document["tables"] else 0
    if failed:
        console.print(
            f"[red]{failed:,} queries have no label[/]: `curate show annotations --where 'error is not null'`",
            highlight=False,
            soft_wrap=True,
        )
    shown = "candidate_pool" if "candidate_pool" in document["tables"] else next(iter(document["tables"]))
    console.print(f"Look: `curate show {shown}`, `curate report`, `duckdb catalogue.duckdb`", highlight=False)


def _funnel(workspace: Any) -> Any:
    """The ledger as a table; columns without any number are left away, so that it fits a narrow terminal."""
    from curation.report.funnel import funnel_rows

    columns = {"rows_in": "in", "kept": "kept", "merged": "merged", "rejected": "rejected", "failed": "failed"}
    columns |= {"added": "added", "weight_earlier": "to earlier", "weight_out": "raw rows"}
    rows = funnel_rows(workspace)
    shown = [name for name in columns if any(row[name] for row in rows)]
    cells = [[row["stage"], *(row[name] or "" for name in shown), duration(row["seconds"])] for row in rows]
    cells.append(["total", *[""] * len(shown), duration(sum(row["seconds"] for row in rows))])
    headings = {"stage": "left"} | {columns[name]: "right" for name in shown} | {"time": "right"}
    return table_of(headings, cells, wrap=False)


def plan(target: Target = Path(), select: Select = None) -> None:
    """Show what a run would build and why, and what it would ask of an LLM, without doing it."""
    session = _session(target, select)
    steps = session.plan()
    words = {
        "fresh": "[dim]fresh[/]",
        "restored": "[cyan]restore[/]",
        "stale": "[yellow]build[/]",
        "left out": "skip",
    }
    cells = [
        [
            step.stage.name,
            words[step.status],
            ", ".join(step.stage.makes),
            "; ".join(step.why[:3]) if step.why else "",
        ]
        for step in steps
    ]
    console.print(table_of({"stage": "left", "action": "left", "makes": "left", "why": "left"}, cells))
    stale = sum(step.status == "stale" for step in steps)
    console.print(f"{stale} of {len(steps)} stages to build." if stale else "Nothing to do: every table is fresh.")
    _show_estimates(session, steps)
    try:
        session.check_ready()
    except CurationError as error:
        told = f"[bold red]A run would be refused:[/] {escape(error.message)}"
        console.print(told, highlight=False, soft_wrap=True)
        if error.hint:
            console.print(escape(error.hint), highlight=False, soft_wrap=True)


def _show_estimates(session: Any, steps: list[Any]) -> None:
    """What stages will ask of an LLM; nothing where none does."""
    from curation.engine.estimates import estimates

    found = estimates(session, steps)
    cells = [
        [
            one.stage,
            one.ask.rows,
            one.ask.calls,
            one.ask.tokens,
            "no price set" if one.ask.money is None else f"{one.ask.money:,.2f} {one.ask.currency}",
            duration(one.ask.seconds),
        ]
        for one in found
        if one.ask is not None
    ]
    if cells:
        console.print("Asked of an LLM, about:")
        headings = {"stage": "left", "rows": "right", "calls": "right", "tokens": "right", "money": "right"}
        console.print(table_of(headings | {"time": "right"}, cells))
    for one in found:
        if one.missing is not None:
            console.print(
                f"{one.stage} will ask an LLM; how much can be told when {one.missing} is built: "
                f"curate run --select +{one.missing}",
                highlight=False,
                soft_wrap=True,
            )


def status(target: Target = Path()) -> None:
    """Show the published run and its tables."""
    from curation.engine.workspace import Workspace

    workspace = Workspace(target if target.is_dir() else target.parent)
    document = workspace.run()
    console.print(f"run {document['id']} of {len(workspace.store.runs())} in {workspace.root}", highlight=False)
    cells = []
    for name in workspace.tables():
        manifest = workspace.manifest(name)
        files = manifest["tables"][name]
        rows = sum(entry["rows"] for entry in files.values())
        weight = size(sum(entry["bytes"] for entry in files.values()))
        cells.append([name, rows, weight, manifest["stage"], manifest.get("created", "")])
    headings = {"table": "left", "rows": "right", "size": "right", "made by": "left", "built": "left"}
    console.print(table_of(headings, cells))
    faults = workspace.store.verify()
    for fault in faults:
        console.print(f"[red]{escape(fault)}[/]")
    if faults:
        raise CurationError(
            "some files are not what their manifests say",
            "Remove the directory of that stage under objects/ and type `curate run`: it is built again.",
        )


def why(
    table: Annotated[str, typer.Argument(help="A table or a stage.")],
    target: Target = Path(),
) -> None:
    """Say why a table is stale, or why it was last built."""
    session = _session(target)
    name = session.graph.stage_of(table)
    step = next(step for step in session.plan() if step.stage.name == name)
    if step.status == "fresh":
        manifest = session.store.manifest(name, step.key)
        console.print(f"{table} is fresh. It was built because:", highlight=False)
        reasons = manifest["why"]
    else:
        verb = "would be restored from an earlier run" if step.status == "restored" else "is stale"
        console.print(f"{table} {verb}:", highlight=False)
        reasons = step.why
    for reason in dict.fromkeys(reasons):
        console.print(f"  - {escape(reason)}", highlight=False, soft_wrap=True)


def diff(
    first: Annotated[str, typer.Argument(help="A run, as `curate status` names it.")],
    second: Annotated[str, typer.Argument(help="The run to compare it with.")] = "latest",
    target: Target = Path(),
) -> None:
    """Compare two runs: rows of every table, and what made the difference."""
    from curation.engine.keys import differences
    from curation.engine.workspace import Workspace

    workspace = Workspace(target if target.is_dir() else target.parent)
    before, after = workspace.run(first), workspace.run(second)
    cells: list[list[Any]] = []
    for name in dict.fromkeys([*workspace.tables(first), *workspace.tables(second)]):
        a, b = before["tables"].get(name), after["tables"].get(name)
        if a == b:
            continue
        old = workspace.rows(name, first) if a else None
        new = workspace.rows(name, second) if b else None
        change = "" if old is None or new is None else f"{new - old:+,}"
        cells.append([name, "-" if old is None else old, "-" if new is None else new, change])
    if not cells:
        console.print("The two runs hold the same tables.")
        return
    console.print(table_of({"table": "left", first: "right", second: "right", "change": "right"}, cells))
    for name, key in after["stages"].items():
        other = before["stages"].get(name)
        if other == key:
            continue
        new_manifest = workspace.store.manifest(name, key) or {"key_document": {}}
        old_manifest = workspace.store.manifest(name, other) if other else None
        reasons = differences(old_manifest and old_manifest["key_document"], new_manifest["key_document"])
        console.print(f"{name}: {escape('; '.join(reasons))}", highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    for command in (run, plan, status, why, diff):
        app.command()(command)
