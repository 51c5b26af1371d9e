"""Reading a workspace: its tables as lazy frames, its runs, its manifests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

import schemas
from curation.engine.store import Store
from curation.errors import CurationError

__all__ = ["Workspace"]


class Workspace:
    """The tables of a workspace, as published by its runs.

    >>> Workspace("out").table("candidate_pool").filter(pl.col("difficulty") == 5).collect()  # doctest: +SKIP

    Args:
        root: The workspace directory.

    Raises:
        CurationError: The directory does not exist.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise CurationError(f"there is no workspace at {self.root}", "Make one with `curate init DIR`.")
        self.store = Store(self.root)

    def run(self, name: str = "latest") -> dict[str, Any]:
        """The run document of a run: ``id``, ``stages``, ``tables``."""
        document = self.store.run(name) if "/" not in name and ".." not in name else None
        if document is None:
            known = ", ".join(self.store.runs()[-5:])
            if name == "latest":
                raise CurationError(f"the workspace {self.root} has no finished run yet", "Type `curate run`.")
            raise CurationError(f"there is no run {name!r} in {self.root}", f"The last runs are {known or 'none'}.")
        return document

    def tables(self, run: str = "latest") -> list[str]:
        """Names of the tables of a run, in the order of the contracts."""
        present = self.run(run)["tables"]
        return [name for name in schemas.CONTRACTS if name in present]

    def files(self, table: str, run: str = "latest") -> list[Path]:
        """The Parquet files of a table, in order."""
        stage, key = self._place(table, run)
        return sorted(self.store.table_directory(stage, key, table).glob("*.parquet"))

    def table(self, name: str, run: str = "latest") -> pl.LazyFrame:
        """A table as a lazy frame, rows in the contract's order."""
        return pl.scan_parquet(self.files(name, run), hive_partitioning=False, glob=False)

    def manifest(self, table: str, run: str = "latest") -> dict[str, Any]:
        """The manifest of the object that holds a table."""
        stage, key = self._place(table, run)
        manifest = self.store.manifest(stage, key)
        if manifest is None:
            raise CurationError(f"the object {stage}/{key} of table {table} is gone", "Type `curate run`.")
        return manifest

    def place(self, table: str, run: str = "latest") -> tuple[Path, dict[str, Any]]:
        """The directory of a table and, by file name, what its manifest says of its files."""
        stage, key = self._place(table, run)
        return self.store.table_directory(stage, key, table), self.manifest(table, run)["tables"][table]

    def rows(self, table: str, run: str = "latest") -> int:
        """Number of rows of a table, from its manifest."""
        return sum(entry["rows"] for entry in self.manifest(table, run)["tables"][table].values())

    def _place(self, table: str, run: str) -> tuple[str, str]:
        document = self.run(run)
        if table not in document["tables"]:
            what = "was left out of this run" if table in schemas.CONTRACTS else "is not a table"
            raise CurationError(f"{table} {what}", f"The tables are {', '.join(self.tables(run))}.")
        stage, key = document["tables"][table]
        return stage, key
