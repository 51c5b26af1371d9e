"""Unattended rounds: what a run may accept by itself, and when it stops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from curation.errors import CurationError
from curation.taxonomy.decisions import Plan, Planner, operation_of
from curation.taxonomy.review import Review, locked

__all__ = ["Outcome", "settle"]


@dataclass(frozen=True)
class Outcome:
    """How the proposals of a run stand.

    Attributes:
        state: ``accepted``: a version was made, run again; ``waiting``: a person is asked; ``settled``: nothing is.
        sentence: What to tell a person; empty when nothing is asked of them.
        waiting: Proposals that wait.
    """

    state: Literal["accepted", "waiting", "settled"]
    sentence: str
    waiting: int = 0


def settle(directory: Path) -> Outcome:
    """Look at the proposals of the published run, and accept what the recipe lets a run accept by itself.

    A run makes no version by itself when the recipe gives no ``proposals.accept_above``, when it keeps to a version,
    when ``proposals.rounds`` versions were made so already, or when the last two of them hardly differ.
    """
    params: Any = Review(directory).recipe.sections.get("proposals")
    if params is None or params.accept_above is None:
        return _waiting(Review(directory), "")
    return locked(directory, lambda review: _accept(review, params))


def _accept(review: Review, params: Any) -> Outcome:
    if review.section.version is not None:
        return _waiting(review, "The recipe keeps to a version, so the run accepts none by itself.")
    made = _made_unattended(review)
    sure = [one for one in review.waiting.values() if one.confidence >= params.accept_above]
    if not sure:
        return _waiting(review, f"None of them is as sure as {params.accept_above:g}." if review.waiting else "")
    if len(made) >= params.rounds:
        return _waiting(
            review, f"Runs made {len(made)} versions by themselves, as many as proposals.rounds lets them."
        )
    if made and (apart := (made[-1].convergence or {}).get("total")) is not None and apart < params.converged_below:
        return _waiting(review, f"The last two versions hardly differ ({apart:g}): the taxonomy has converged.")
    plan = _plan(review, sure)
    if not plan.operations:
        return _waiting(review, "Those that are sure enough contradict each other.")
    record = review.accept(plan, "unattended", f"accepted from a confidence of {params.accept_above:g} on")
    left = f"; {len(plan.left_out)} more contradict them" if plan.left_out else ""
    many = f"{len(plan.accepted)} proposals" if len(plan.accepted) > 1 else "1 proposal"
    return Outcome("accepted", f"The run accepted {many} by itself{left}: version {record.version} of the taxonomy.")


def _made_unattended(review: Review) -> list[Any]:
    """Records of the versions before the current one that runs made, up to the last that a person made."""
    found = []
    for version in reversed(review.history.lineage(review.current.name)):
        if version.record is None or not version.record.auto:
            break
        found.append(version.record)
    return found[::-1]


def _plan(review: Review, sure: list[Any]) -> Plan:
    """The surest first; what contradicts one before it is left out."""
    planner, plan = Planner(review.current.taxonomy), Plan()
    for proposal in sorted(sure, key=lambda one: (-one.confidence, one.proposal_id)):
        try:
            planner.take(operation_of(proposal, None, review.places))
            plan.accepted.append(proposal.proposal_id)
        except CurationError as error:
            plan.left_out.append((proposal, error.message))
    plan.operations = planner.operations
    return plan


def _waiting(review: Review, why: str) -> Outcome:
    count = len(review.waiting)
    if not count:
        return Outcome("settled", why)
    plural = "s for the taxonomy wait" if count > 1 else " for the taxonomy waits"
    said = f"{count:,} proposal{plural} for review: curate review {review.root} --web (or --file)."
    return Outcome("waiting", f"{said} {why}".strip(), count)
