"""After a review: what a person decided becomes a version of the taxonomy, and the run goes on from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import State, flow, get_run_logger

from curation.taxonomy.review import Review
from flows.curate import built, ended

__all__ = ["apply_review"]


@flow(name="apply-review", flow_run_name="{recipe}", log_prints=False)
def apply_review(recipe: str, by: str | None = None, workers: int | None = None) -> State[dict[str, Any]]:
    """Carry the decisions of a workspace out, build what that makes stale, and publish.

    Fails, with the line, where the decisions file is wrong or decides nothing; nothing has changed then. Ends as
    `Awaiting review` again where the new version brings new proposals.

    Args:
        recipe: Path of a recipe file or of a workspace directory, as the worker sees it.
        by: Who decided, for the record.
        workers: Threads; the recipe's own setting when not given.
    """
    review = Review(Path(recipe))
    if (before := review.finish()) is not None:  # a run of this flow was stopped when the version was made
        get_run_logger().info("version %s carries the decisions out already", before.version)
        return ended(*built(recipe, workers=workers))
    preview = review.apply(by)
    made = f"version {preview.version.name} of the taxonomy" if preview.version else "no new version"
    get_run_logger().info(
        "%d proposals accepted, %d rejected: %s, some %d rows are annotated again",
        len(preview.plan.accepted),
        len(preview.plan.rejected),
        made,
        preview.again,
    )
    return ended(*built(recipe, workers=workers))
