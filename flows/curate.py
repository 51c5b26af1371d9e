"""The full run as a Prefect flow: one task a stage, the same session and so the same bytes as ``curate run``.

Human review is data: where the taxonomy needs a person the run ends as `Awaiting review`, no process waits for them;
``flows/review.py`` goes on from what they decided.

Tasks get names, never frames. What is fresh is found by the store's own keys; Prefect's result cache is off,
since it returns stale results after a called helper changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import State, flow, get_run_logger, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.states import Completed

from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.step import Step
from curation.engine.workspace import Workspace
from curation.report.catalogue import CATALOGUE_NAME, write_catalogue
from curation.taxonomy.review import Review
from curation.taxonomy.review_file import summary
from curation.taxonomy.rounds import Outcome, settle

__all__ = ["build_stage", "built", "curate", "ended", "review_page"]


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
def curate(recipe: str, select: str = "", workers: int | None = None) -> State[dict[str, Any]]:
    """Build what is stale and publish all tables together.

    The run ends as `Awaiting review` where proposals for the taxonomy wait for a person; the artifact `review` says
    which and where to decide. It ends as `Completed` where nothing does.

    Args:
        recipe: Path of a recipe file or of a workspace directory, as the worker sees it.
        select: Selection as in ``curate run --select``; empty for everything.
        workers: Threads; the recipe's own setting when not given.

    Returns:
        ``run`` (name of the published run), ``published`` (False when nothing was stale), ``rows`` by table and
        ``waiting``, the proposals that wait.
    """
    return ended(*built(recipe, select, workers))


def built(
    recipe: str, select: str = "", workers: int | None = None
) -> tuple[Workspace, dict[str, Any], Outcome | None]:
    """Build and publish, again after each version of the taxonomy that the run accepts by itself.

    Returns:
        The workspace, the run document, and how the proposals stand; None where the run made none.
    """
    while True:
        session = Session(Recipe.load(recipe).with_workers(workers), select=select.split())
        with session:
            session.check_sources()
            for name in session.graph.order:
                build_stage(session, name)
            document = session.publish()
            workspace = Workspace(session.store.root)
            if document["published"] or not (workspace.root / CATALOGUE_NAME).exists():
                write_catalogue(workspace)
        if "proposals" not in session.selected or "proposals" not in document["tables"]:
            return workspace, document, None
        outcome = settle(Path(recipe))
        if outcome.state != "accepted":
            return workspace, document, outcome
        get_run_logger().info("%s", outcome.sentence)


def ended(workspace: Workspace, document: dict[str, Any], outcome: Outcome | None) -> State[dict[str, Any]]:
    """The state a flow ends in, with its artifacts made."""
    create_markdown_artifact(_funnel(workspace), key="funnel", description=f"Funnel of run {document['id']}")
    rows = {table: workspace.rows(table) for table in workspace.tables()}
    waiting = outcome.waiting if outcome else 0
    data = {"run": document["id"], "published": document["published"], "rows": rows, "waiting": waiting}
    if outcome is None or outcome.state != "waiting":
        return Completed(data=data, message=outcome.sentence if outcome and outcome.sentence else None)
    review = Review(workspace.root)
    review.write_files(labels=False)  # the labels are an input, so a file of them would make the next run build
    create_markdown_artifact(review_page(review, outcome), key="review", description=outcome.sentence)
    return Completed(name="Awaiting review", message=outcome.sentence, data=data)


def review_page(review: Review, outcome: Outcome, shown: int = 20) -> str:
    """What waits, and how to go on, as Markdown."""
    lines = [
        outcome.sentence,
        "",
        f"Decide in `{review.decisions_file}` or with `curate review {review.root} --web`; then run the deployment "
        f"`apply-review/apply` with the same recipe, or `curate review {review.root} --apply` and this one again.",
        "",
        "| proposal | what | queries | raw rows | confidence |",
        "|---|---|---|---|---|",
    ]
    for key, one in list(review.waiting.items())[:shown]:
        what = summary(one).replace("|", "\\|")
        lines.append(f"| {key} | {what} | {one.rows:,} | {one.weight:,} | {one.confidence:.2f} |")
    more = len(review.waiting) - shown
    return "\n".join([*lines, f"\n... and {more:,} more"] if more > 0 else lines)


def _funnel(workspace: Workspace) -> str:
    """The ledger as a Markdown table."""
    columns = ("stage", "rows_in", "kept", "merged", "rejected", "failed", "added", "weight_out")
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in workspace.table("ledger").collect().sort("position").to_dicts():
        cells = (f"{row[name]:,}" if isinstance(row[name], int) else str(row[name]) for name in columns)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
