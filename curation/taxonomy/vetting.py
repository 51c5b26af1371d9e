"""Which proposals can be carried out, and which were settled before: a teacher that goes round in circles is told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from curation.errors import CurationError
from curation.taxonomy.decisions import Planner, operation_of
from curation.taxonomy.operations import document
from curation.taxonomy.proposal import Proposal
from curation.taxonomy.versions import History

__all__ = ["Vetted", "vetted"]


@dataclass(frozen=True)
class Vetted:
    """Proposals after a look at the history.

    Attributes:
        proposals: All that were not declined before, with ``problem`` set where one cannot be carried out.
        declined: How many were declined before and are left out.
    """

    proposals: list[Proposal]
    declined: int

    @property
    def impossible(self) -> int:
        """How many cannot be carried out."""
        return sum(proposal.problem is not None for proposal in self.proposals)


def vetted(proposals: Iterable[Proposal], history: History, current: str) -> Vetted:
    """Look at proposals for version ``current``, each by itself."""
    tree = history.get(current).taxonomy
    done = [
        _asked(document(operation))
        for version in history.lineage(current)
        if version.record
        for operation in version.record.operations
    ]
    kept, declined = [], 0
    for proposal in proposals:
        if proposal.gist in history.declined:
            declined += 1
            continue
        kept.append(replace(proposal, problem=_problem(proposal, Planner(tree), current, done)))
    return Vetted(kept, declined)


def _problem(proposal: Proposal, planner: Planner, current: str, done: list[dict[str, Any]]) -> str | None:
    if proposal.base_version != current:
        return f"it speaks of version {proposal.base_version}, the taxonomy is at version {current}"
    try:
        operation = operation_of(proposal)
        planner.take(operation)
    except CurationError as error:
        return error.message
    if _asked(document(operation)) in done:
        return "an earlier version carried out the same, and it is proposed again: the teacher goes round in circles"
    return None


def _asked(operation: dict[str, Any]) -> dict[str, Any]:
    """An operation without the texts that differ from run to run."""
    return {
        name: value for name, value in operation.items() if name not in ("description", "examples", "parts", "again")
    }
