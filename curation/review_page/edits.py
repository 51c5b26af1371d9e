"""What a person changed of a proposal on the page: checked as the entry of a decisions file is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.domain.model import Taxonomy
from curation.errors import CurationError
from curation.review_page import inputs
from curation.taxonomy.decisions import EDITABLE, Planner, operation_of
from curation.taxonomy.proposal import Proposal

__all__ = ["check_unchanged", "edits_of"]

_FIELDS = frozenset(name for names in EDITABLE.values() for name in names)


def check_unchanged(body: Mapping[str, Any], decision: str | None) -> None:
    """Refuse fields of a proposal beside a decision that takes it as it is, or turns it down."""
    if fields := sorted(body.keys() & _FIELDS):
        what = f"{decision} takes a proposal as it is" if decision else "nothing is decided"
        raise CurationError(f"{what}, and this changes {', '.join(fields)}", "Decide `edit` to change it.")


def edits_of(proposal: Proposal, body: Mapping[str, Any], taxonomy: Taxonomy) -> dict[str, Any]:
    """The fields of ``body`` that differ from those of the proposal.

    Raises:
        CurationError: A proposal of this kind has no such field, or it cannot be carried out so on ``taxonomy``.
    """
    allowed = EDITABLE[proposal.kind]
    if foreign := sorted(body.keys() & _FIELDS - set(allowed)):
        raise CurationError(
            f"a proposal to {proposal.kind} has no {', '.join(foreign)}",
            f"It can change: {', '.join(allowed) or 'nothing'}.",
        )
    given: dict[str, Any] = {name: inputs.text(body, name) or "" for name in ("name", "description") if name in body}
    if "target" in body:
        given["target"] = inputs.text(body, "target")
    for name in ("examples", "again"):
        if name in body:
            given[name] = inputs.texts(body, name)
    if body.get("parts"):
        given["parts"] = body["parts"]
    plain = operation_of(proposal)
    edits = {name: said for name, said in given.items() if operation_of(proposal, {name: said}) != plain}
    Planner(taxonomy).take(operation_of(proposal, edits))
    return edits
