"""Commands that show: show, describe, trace, report, catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from curation.cli.console import console, table_of
from curation.errors import CurationError

__all__ = ["register"]

Directory = Annotated[Path, typer.Argument(help="The workspace directory.")]


def _workspace(directory: Path) -> Any:
    from curation.engine.workspace import Workspace

    return Workspace(directory if directory.is_dir() or not directory.exists() else directory.parent)


_CELL = 300
"""Characters of a cell shown at most; the tables hold the whole."""


def _cell(value: Any) -> str:
    """A value as it stands in a cell: never markup, whatever people typed."""
    text = _plain(value)
    return escape(text if len(text) <= _CELL else text[:_CELL] + " ...")


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list):
        if value and isinstance(value[0], dict):
            return "; ".join(" ".join(str(v) for v in item.values() if v not in (None, [])) for item in value)
        return ", ".join(str(item) for item in value[:6]) + (" ..." if len(value) > 6 else "")
    return str(value)


def show(
    table: Annotated[str, typer.Argument(help="The table; `curate status` lists them.")],
    directory: Directory = Path(),
    where: Annotated[str | None, typer.Option(help="A SQL condition, such as `difficulty = 5`.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns to show, separated by commas.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Rows to show at most.")] = 20,
    run: Annotated[str, typer.Option(help="The run to look at.")] = "latest",
) -> None:
    """Show rows of a table."""
    import polars as pl

    workspace = _workspace(directory)
    frame = workspace.table(table, run)
    known = frame.collect_schema().names()
    chosen = [name.strip() for name in columns.split(",")] if columns else known
    unknown = [name for name in chosen if name not in known]
    twice = [name for name in chosen if chosen.count(name) > 1]
    if twice:
        raise CurationError(f"the column {twice[0]!r} is asked for twice")
    if unknown:
        raise CurationError(f"{table} has no column {unknown[0]!r}", f"Its columns are {', '.join(known)}.")
    try:
        if where:
            frame = pl.SQLContext({table: frame}).execute(f"SELECT * FROM {table} WHERE {where}")
        rows = frame.select(chosen).head(limit).collect(engine="streaming").to_dicts()
    except pl.exceptions.PolarsError as error:
        raise CurationError(
            f"the condition {where!r} does not work on {table}: {str(error).splitlines()[0]}",
            f"Its columns are {', '.join(known)}.",
        ) from None
    if not rows:
        console.print("No row." if where else f"{table} is empty.")
        return
    if len(chosen) > 9:
        for row in rows:
            console.print(table_of({"": "left", " ": "left"}, [[name, _cell(row[name])] for name in chosen]))
            console.print()
    else:
        console.print(
            table_of(dict.fromkeys(chosen, "left"), [[_cell(row[name]) for name in chosen] for row in rows])
        )


def describe(
    table: Annotated[str | None, typer.Argument(help="The table; all of them when not given.")] = None,
) -> None:
    """Show the contract of a table: columns, types, meaning, rules."""
    import schemas

    if table is None:
        cells = [[contract.name, contract.description] for contract in schemas.TABLES]
        console.print(table_of({"table": "left", "a row is": "left"}, cells))
        return
    if table not in schemas.CONTRACTS:
        raise CurationError(f"there is no table {table!r}", f"The tables are {', '.join(schemas.CONTRACTS)}.")
    contract = schemas.load(table)
    console.print(f"[bold]{table}[/]: {contract.description} Sorted by {', '.join(contract.sort_by)}.")
    cells = []
    for name, column in contract.columns().items():
        notes = ["key"] if column.primary_key else []
        notes += ["may be null"] if column.nullable else []
        cells.append(
            [
                name,
                str(column.dtype) if name != "vector" else "Array(Float32)",
                ", ".join(notes),
                column.description or "",
            ]
        )
    console.print(table_of({"column": "left", "type": "left", "": "left", "meaning": "left"}, cells))


def trace(
    name: Annotated[str, typer.Argument(help="A query or candidate id, or a raw row as `FILE:ROW`.")],
    directory: Directory = Path(),
    limit: Annotated[int, typer.Option(min=1, help="Raw rows to list at most.")] = 10,
) -> None:
    """Follow a candidate back to its raw rows, or a raw row forward to what became of it."""
    from curation.report.trace import trace_query, trace_row

    workspace = _workspace(directory)
    if name.isascii() and name.isdecimal():
        found = trace_query(workspace, int(name), limit)
    else:
        file, _, row = name.rpartition(":")
        if not file or not (row.isascii() and row.isdecimal()):
            raise CurationError(f"{name!r} is neither an id nor FILE:ROW")
        found = trace_row(workspace, file, int(row), limit)
    _print_trace(workspace, found)


def _earlier_text(workspace: Any, query_id: int) -> str:
    """Where an earlier day keeps a query, looked for from the workspace backwards."""
    from curation.engine.recipe import Recipe
    from curation.engine.workspace import Workspace

    seen = {workspace.root}
    place = Recipe.load(workspace.root).earlier
    while place is not None and place.resolve() not in seen:
        seen.add(place.resolve())
        before = Workspace(place)
        kept = before.table("queries").filter(query_id=query_id).collect()["text"]
        if len(kept) and before.table("lexical_groups").filter(query_id=query_id).collect()["kept"].item():
            return f"“{escape(kept.item())}” of the earlier workspace: `curate trace {query_id} {place}`"
        place = Recipe.load(place).earlier
    return "of an earlier workspace"


def _print_trace(workspace: Any, found: Any) -> None:
    import polars as pl

    console.print(f"[bold]{escape(str(found.query.get('text')))}[/]", highlight=False, soft_wrap=True)
    for reject in found.rejects:
        console.print(f"rejected by {reject['stage']}: {reject['reason']}", highlight=False, soft_wrap=True)
    queries = workspace.table("queries").select("query_id", "text")
    for level, row in found.path.items():
        own, representative = row["query_id"], row["representative_id"]
        if own == representative and row.get("kept", True):
            stands = f"kept, stands for {row['group_count']:,} raw rows"
        else:
            text = queries.filter(pl.col("query_id") == representative).collect()["text"]
            known = own != representative and len(text)
            other = f"“{escape(text.item())}”" if known else _earlier_text(workspace, representative)
            stands = f"merged into {representative} {other} (similarity {row['similarity']:.3f})"
        console.print(f"{level.removesuffix('_groups'):<10} {stands}", highlight=False, soft_wrap=True)
    for candidate in found.candidates:
        console.print(
            f"candidate  {candidate['candidate_id']} {candidate['origin']}, {candidate['primary']}, "
            f"difficulty {candidate['difficulty']}, split {candidate['split']}",
            highlight=False,
            soft_wrap=True,
        )
        if candidate["removed_tools"]:
            console.print(f"           without {', '.join(candidate['removed_tools'])}", highlight=False)
    if "tool_chain" in found.query:
        console.print(
            f"written for {' → '.join(found.query['tool_chain'])}: {found.query['verdict']}", highlight=False
        )
        parents = queries.filter(pl.col("query_id").is_in(found.query["parents"])).collect()
        for parent in parents.to_dicts():
            console.print(
                f"modelled on {parent['query_id']} “{escape(parent['text'])}”", highlight=False, soft_wrap=True
            )
    if not found.candidates and not found.rejects:
        console.print("candidate  none")
    if found.raw:
        console.print(f"{found.raw_total:,} raw rows:")
        for raw in found.raw:
            console.print(f"  {escape(raw['file'])}:{raw['row']}", highlight=False, soft_wrap=True)
        if found.raw_total > len(found.raw):
            console.print(f"  ... and {found.raw_total - len(found.raw):,} more (--limit)")


def report(
    directory: Directory = Path(),
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write one self-contained HTML file about the latest run."""
    from curation.report.page import write_report

    path = write_report(_workspace(directory))
    console.print(f"report: {path}", highlight=False, soft_wrap=True)
    if open_it:
        import webbrowser

        webbrowser.open(path.as_uri())


def catalogue(directory: Directory = Path()) -> None:
    """Write the DuckDB catalogue anew, for instance after the folder moved."""
    from curation.report.catalogue import write_catalogue

    console.print(f"catalogue: {write_catalogue(_workspace(directory))}", highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    for command in (show, describe, trace, report, catalogue):
        app.command()(command)
