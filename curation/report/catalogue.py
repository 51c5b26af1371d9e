"""The DuckDB catalogue: a file with one view a table, so that DuckDB alone can read a workspace."""

from __future__ import annotations

import re
from pathlib import Path

import schemas
from curation.engine.workspace import Workspace

__all__ = ["CATALOGUE_NAME", "write_catalogue"]

CATALOGUE_NAME = "catalogue.duckdb"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def write_catalogue(workspace: Workspace) -> Path:
    """Write ``catalogue.duckdb`` with a commented view for each table of the latest run, in place of the old one.

    DuckDB resolves relative paths against the process's directory, so views hold absolute ones: after the folder
    moved, write the catalogue again. They go through ``latest``, so that a new run needs no new catalogue.

    Returns:
        Path of the catalogue file.
    """
    import duckdb

    target = workspace.root / CATALOGUE_NAME
    temporary = workspace.root / f".{CATALOGUE_NAME}.new"
    temporary.unlink(missing_ok=True)
    with duckdb.connect(str(temporary)) as connection:
        for table in workspace.tables():
            contract = schemas.load(table)
            files = re.sub(r"([*?\[])", r"[\1]", str(workspace.root / "latest" / table)) + "/*.parquet"
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({_quoted(files)})")
            connection.execute(f"COMMENT ON VIEW {table} IS {_quoted(contract.description)}")
            for name, column in contract.columns().items():
                if column.description:
                    connection.execute(f'COMMENT ON COLUMN {table}."{name}" IS {_quoted(column.description)}')
    temporary.replace(target)
    return target
