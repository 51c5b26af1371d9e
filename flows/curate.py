"""The full run as a Prefect flow: one task a stage, the same session and so the same bytes as ``curate run``.

Tasks get names, never frames. What is fresh is found by the store's own keys; Prefect's result cache is off,
since it returns stale results after a called helper changed.
"""

from __future__ import annotations

from typing import Any

from prefect import flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from curation.engine.recipe import Recipe
from curation.engine.session import Session, Step
from curation.engine.workspace import Workspace

__all__ = ["curate"]


class _LogObserver:
    """Tells Prefect's log what happens, at most every tenth of a stage."""

    def __init__(self) -> None:
        self._logger = get_run_logger()
        self._tenth = -1

    def started(self, step: Step) -> None:
        """Say why the stage runs."""
        self._tenth = -1
        self._logger.info("%s: building, because %s", step.stage.name, "; ".join(step.why[:3]))

    def progress(self, stage: str, done: int, total: int, note: str) -> None:
        """Log every tenth."""
        tenth = 10 * done // total if total else 10
        if tenth > self._tenth:
            self._tenth = tenth
            self._logger.info("%s: %s of %s %s", stage, f"{done:,}", f"{total:,}", note)

    def finished(self, step: Step, manifest: dict[str, Any]) -> None:
        """Log the accounting."""
        if step.status != "stale":
            self._logger.info("%s: %s", step.stage.name, step.status)
            return
        account = manifest["account"]
        parts = ", ".join(f"{account[name]:,} {name}" for name in ("kept", "merged", "rejected", "failed", "added"))
        self._logger.info("%s: %s in %.1f s", step.stage.name, parts, manifest["seconds"])


@task(task_run_name="{name}", cache_policy=NO_CACHE, persist_result=False)
def build_stage(session: Session, name: str) -> str:
    """Build one stage and return the key of its object; an empty string for a stage that is left out."""
    session.observer = _LogObserver()
    manifest = session.ensure(name)
    return manifest["key"] if manifest else ""


@flow(name="curate", flow_run_name="{recipe}", log_prints=False)
def curate(recipe: str, select: str = "", workers: int | None = None) -> dict[str, Any]:
    """Build what is stale and publish all tables together.

    Args:
        recipe: Path of a recipe file or of a workspace directory, as the worker sees it.
        select: Selection as in ``curate run --select``; empty for everything.
        workers: Threads; the recipe's own setting when not given.

    Returns:
        ``run`` (name of the published run), ``published`` (False when nothing was stale) and ``rows`` by table.
    """
    from curation.report.catalogue import write_catalogue

    loaded = Recipe.load(recipe).with_workers(workers)
    session = Session(loaded, select=select.split())
    with session:
        session.check_ready()
        for name in session.graph.order:
            build_stage(session, name)
        document = session.publish()
        workspace = Workspace(session.store.root)
        if document["published"] or not (workspace.root / "catalogue.duckdb").exists():
            write_catalogue(workspace)
    create_markdown_artifact(_funnel(workspace), key="funnel", description=f"Funnel of run {document['id']}")
    rows = {table: workspace.rows(table) for table in workspace.tables()}
    return {"run": document["id"], "published": document["published"], "rows": rows}


def _funnel(workspace: Workspace) -> str:
    """The ledger as a Markdown table."""
    columns = ("stage", "rows_in", "kept", "merged", "rejected", "failed", "added", "weight_out")
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in workspace.table("ledger").collect().sort("position").to_dicts():
        cells = (f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in columns)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
