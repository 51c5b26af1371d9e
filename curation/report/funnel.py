"""The funnel: what each stage of a run did to the rows."""

from __future__ import annotations

from typing import Any

from curation.engine.workspace import Workspace

__all__ = ["funnel_rows"]


def funnel_rows(workspace: Workspace, run_name: str = "latest") -> list[dict[str, Any]]:
    """The ledger's rows with each stage's seconds, in the order of the run."""
    document = workspace.run(run_name)
    rows = workspace.table("ledger", run_name).collect().sort("position").to_dicts()
    for row in rows:
        manifest = workspace.store.manifest(row["stage"], document["stages"][row["stage"]]) or {}
        row["seconds"] = manifest.get("seconds", 0.0)
        row["peak_memory"] = manifest.get("peak_memory", 0)
    return rows
