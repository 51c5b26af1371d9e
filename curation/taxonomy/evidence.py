"""Where the evidence of a new leaf lies, what of it stays there, and which nodes elsewhere a person named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from curation.taxonomy import operations as ops
from curation.taxonomy.proposal import Proposal

__all__ = ["Elsewhere", "Named", "below", "elsewhere", "held", "named"]


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


@dataclass(frozen=True)
class Named:
    """A node that a person named under ``again``.

    Attributes:
        about: What the entry makes or changes.
        node_id: The node, as the current version calls it.
        evidence: Queries of the evidence shown at or below it; None for an entry that is about no proposal.
        is_gone: Whether a decision before takes it away.
    """

    about: str
    node_id: str
    evidence: int | None
    is_gone: bool


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
    return Elsewhere(_about(operation), operation.parent, tuple(sorted(left, key=lambda one: (-one[1], one[0]))))


def named(
    operation: ops.Operation,
    again: Iterable[str],
    is_gone: Callable[[str], bool],
    evidence: Mapping[str, int] | None = None,
) -> list[Named]:
    """The nodes that an entry names under ``again``.

    Args:
        operation: What the entry comes to.
        again: The nodes.
        is_gone: Whether a decision before takes a node away.
        evidence: Of :func:`held`; None for an entry that is about no proposal.
    """
    found = []
    for node_id in dict.fromkeys(again):
        rows = None
        if evidence is not None:
            rows = sum(number for leaf, number in evidence.items() if below(leaf, node_id))
        found.append(Named(_about(operation), node_id, rows, is_gone(node_id)))
    return found


def _about(operation: ops.Operation) -> str:
    if isinstance(operation, ops.Add):
        return f"{operation.parent}.{operation.name}" if operation.parent else operation.name
    return str(getattr(operation, "node", operation.op))
