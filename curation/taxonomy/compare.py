"""What changed between two versions, node by node."""

from __future__ import annotations

from dataclasses import dataclass

from curation.domain.model import Taxonomy
from curation.taxonomy.versions import History

__all__ = ["CHANGES", "Change", "changes", "compare", "tracked"]

CHANGES = ("added", "removed", "renamed", "moved", "described", "examples")
"""What may happen to a node."""


@dataclass(frozen=True)
class Change:
    """One change of one node.

    Attributes:
        node_id: The node as the later version calls it; as the earlier one does if it is removed.
        change: One of :data:`CHANGES`; a node may have several.
        before: The earlier value (of a removed node: its description).
        after: The later value (of an added node: its description).
    """

    node_id: str
    change: str
    before: str | None
    after: str | None


def compare(history: History, first: str, second: str) -> list[Change]:
    """Changes from version ``first`` to version ``second``, whichever is the older."""
    same = tracked(history, first, second)
    return changes(history.get(first).taxonomy, history.get(second).taxonomy, same)


def tracked(history: History, first: str, second: str) -> dict[str, str]:
    """Nodes of version ``first`` that version ``second`` still has, with their ids there.

    A node is followed through the versions, whatever its id was on the way.
    """
    one, two = history.lineage(first), history.lineage(second)
    shared = 0
    while shared < min(len(one), len(two)) and one[shared].name == two[shared].name:
        shared += 1
    origin = one[shared - 1].taxonomy.by_id
    ways = []
    for lineage in (one, two):
        at: dict[str, str | None] = {node: node for node in origin}
        for version in lineage[shared:]:
            at = {node: version.nodes.get(now) if now else None for node, now in at.items()}
        ways.append(at)
    return {a: b for node in origin if (a := ways[0][node]) and (b := ways[1][node])}


def changes(old: Taxonomy, new: Taxonomy, same: dict[str, str]) -> list[Change]:
    """Changes from `old` to `new`, whose nodes correspond as `same` says, in the order of the trees."""
    found = []
    for node_id, node in old.by_id.items():
        if node_id not in same:
            found.append(Change(node_id, "removed", node.description, None))
            continue
        later = new.node(same[node_id])
        if node.name != later.name:
            found.append(Change(later.node_id, "renamed", node.name, later.name))
        if (same.get(node.parent_id, "") if node.parent_id else None) != later.parent_id:
            found.append(Change(later.node_id, "moved", node.parent_id, later.parent_id))
        if node.description != later.description and not node.is_other:
            found.append(Change(later.node_id, "described", node.description, later.description))
        if node.examples != later.examples:
            found.append(Change(later.node_id, "examples", " | ".join(node.examples), " | ".join(later.examples)))
    known = set(same.values())
    found += [
        Change(node.node_id, "added", None, node.description) for node in new.nodes if node.node_id not in known
    ]
    return found
