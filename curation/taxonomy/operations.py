"""Operations: the eight ways in which one version of the taxonomy becomes the next.

An operation is data (a mapping in a versions file) and knows nothing of rows. What it does to the tree and to the
labels of rows is in :mod:`curation.taxonomy.editor`; :func:`apply` and :func:`migration` are the two questions that
are asked of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from curation.domain.model import OTHER, Taxonomy

__all__ = [
    "ANY_OPERATION",
    "Add",
    "AnyOperation",
    "Describe",
    "Drop",
    "Examples",
    "Merge",
    "Move",
    "NewLeaf",
    "Operation",
    "Rename",
    "Split",
    "apply",
    "diff",
    "document",
    "migration",
]

_NAME = re.compile(r"[\w-]+")
_LONGEST_NAME = 100


def _legal(name: str) -> str:
    if name == OTHER:
        raise ValueError(f"{OTHER!r} is kept at every inner node by itself; choose another name")
    if not _NAME.fullmatch(name):
        raise ValueError("a name is made of letters, digits, _ and -")
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"a name has at most {_LONGEST_NAME} characters, this one {len(name):,}")
    return name


def _visible(text: str) -> str:
    text = text.strip()
    if not text:
        raise ValueError("the text is empty")
    return text


Name = Annotated[str, AfterValidator(_legal)]
Text = Annotated[str, AfterValidator(_visible)]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class NewLeaf(_Record):
    """A leaf that a split makes."""

    name: Name
    description: Text
    examples: tuple[Text, ...] = ()


class Add(_Record):
    """A new leaf below ``parent`` (None: at level 1). A leaf that gets a child becomes an inner node.

    ``again`` names further nodes whose rows are annotated again: those that hold rows of the new leaf so far.
    """

    op: Literal["add"] = "add"
    parent: str | None = None
    name: Name
    description: Text
    examples: tuple[Text, ...] = ()
    again: tuple[str, ...] = ()


class Drop(_Record):
    """Take a node away with all below it."""

    op: Literal["drop"] = "drop"
    node: str


class Rename(_Record):
    """Give a node another name; the ids below it change with it."""

    op: Literal["rename"] = "rename"
    node: str
    name: Name


class Move(_Record):
    """Put a node below another parent (None: at level 1)."""

    op: Literal["move"] = "move"
    node: str
    parent: str | None = None


class Merge(_Record):
    """Let one node take others in: a leaf all that is below them, an inner node their children."""

    op: Literal["merge"] = "merge"
    nodes: tuple[str, ...] = Field(min_length=1)
    into: str


class Split(_Record):
    """Put several leaves in the place of one."""

    op: Literal["split"] = "split"
    node: str
    parts: tuple[NewLeaf, ...] = Field(min_length=2)


class Describe(_Record):
    """Say anew what belongs to a node."""

    op: Literal["describe"] = "describe"
    node: str
    description: Text


class Examples(_Record):
    """Add example queries to a node, take others away.

    ``again`` names further nodes whose rows are annotated again: an Other, for one, that the new examples speak of.
    """

    op: Literal["examples"] = "examples"
    node: str
    add: tuple[Text, ...] = ()
    drop: tuple[Text, ...] = ()
    again: tuple[str, ...] = ()


Operation = Add | Drop | Rename | Move | Merge | Split | Describe | Examples
AnyOperation = Annotated[Operation, Field(discriminator="op")]
"""As a field of a model: the key ``op`` says which it is."""
ANY_OPERATION: TypeAdapter[Operation] = TypeAdapter(AnyOperation)
"""Reads any operation from a mapping."""


def document(operation: Operation) -> dict[str, Any]:
    """The operation as plain data, fields at their defaults left out."""
    return {"op": operation.op} | operation.model_dump(mode="json", exclude_defaults=True)


def apply(taxonomy: Taxonomy, operations: Sequence[Operation], version: str) -> Taxonomy:
    """The taxonomy that `operations`, one after the other, make of `taxonomy`.

    Raises:
        CurationError: An operation is nonsense there (no such node, a name that is taken, Other touched, a circle);
            the sentence names the operation and the node.
    """
    from curation.taxonomy.editor import edited

    return edited(taxonomy, operations).taxonomy(version)


def migration(taxonomy: Taxonomy, operations: Sequence[Operation]) -> dict[str, str | None]:
    """Each leaf of `taxonomy` with the leaf that its rows go to; None when they must be annotated again."""
    from curation.taxonomy.editor import edited

    carried = edited(taxonomy, operations).carried()
    return {leaf: None if fate.again else fate.becomes for leaf, fate in carried.items()}


def diff(old: Taxonomy, new: Taxonomy) -> list[Operation]:
    """Operations that make `old` the same nodes as `new`, whatever the order of siblings.

    Nodes count as the same when their ids are: a renamed node is one that is gone and one that is new.
    """
    operations: list[Operation] = []
    for node in new.nodes:  # parents stand before their children
        before = old.by_id.get(node.node_id)
        if node.is_other:
            continue
        if before is None:
            operations.append(
                Add(parent=node.parent_id, name=node.name, description=node.description, examples=node.examples)
            )
            continue
        if before.description != node.description:
            operations.append(Describe(node=node.node_id, description=node.description))
        if before.examples != node.examples:
            operations.append(Examples(node=node.node_id, drop=before.examples, add=node.examples))
    for node in old.nodes:
        gone = not node.is_other and node.node_id not in new.by_id
        if gone and (node.parent_id is None or node.parent_id in new.by_id):
            operations.append(Drop(node=node.node_id))
    return operations
