"""Where the evidence of a new leaf lies, and what of it stays there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from curation.taxonomy import operations as ops
from curation.taxonomy.proposal import Proposal

__all__ = ["Elsewhere", "below", "elsewhere", "held"]


@dataclass(frozen=True)
class Elsewhere:
    """Evidence of a new leaf that lies outside its parent, and keeps its labels.

    Attributes:
        leaf: The new leaf.
        parent: Where it is added; None for the root, below which everything lies.
        held: Labels of that evidence with the number of its queries, the most frequent first.
    """

    leaf: str
    parent: str | None
    held: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        """A sentence for a person."""
        count = sum(number for _, number in self.held)
        many = "1 query of the evidence shown lies" if count == 1 else f"{count:,} queries of the evidence shown lie"
        keep = "keeps its label" if count == 1 else "keep their labels"
        listed = ", ".join(f"{leaf} ({number:,})" for leaf, number in self.held)
        return (
            f"{self.leaf}: {many} outside {self.parent} and {keep}: {listed}. "
            f"To have such leaves annotated again too, name them in its entry: again: [{self.held[0][0]}]."
        )


def held(proposal: Proposal, places: Mapping[int, str] | None) -> Counter[str]:
    """Leaves that hold evidence of a proposal, with the number of its rows."""
    return Counter(places[row.query_id] for row in proposal.evidence if places and row.query_id in places)


def below(node: str, parent: str | None) -> bool:
    """Whether a node is at or below another; everything is below None, the root."""
    return parent is None or f"{node}.".startswith(f"{parent}.")


def elsewhere(
    proposal: Proposal, operation: ops.Operation, places: Mapping[int, str] | None = None
) -> Elsewhere | None:
    """Evidence of a new leaf that lies where nothing is annotated again; None where there is none.

    Args:
        proposal: A proposal.
        operation: What it comes to, of :func:`operation_of`.
        places: As there.
    """
    if not isinstance(operation, ops.Add):
        return None
    again = (operation.parent, *operation.again)
    left = [(leaf, rows) for leaf, rows in held(proposal, places).items() if not any(below(leaf, n) for n in again)]
    if not left:
        return None
    name = f"{operation.parent}.{operation.name}" if operation.parent else operation.name
    return Elsewhere(name, operation.parent, tuple(sorted(left, key=lambda one: (-one[1], one[0]))))
