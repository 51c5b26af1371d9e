"""A taxonomy being edited: nodes as objects, so that a node stays the same node whatever its id becomes.

The editor also follows the labels of rows. A row whose leaf is renamed, moved, merged or dropped keeps a label, the
one that its leaf became; a row whose leaf is split has none; and rows that an operation may have made wrong are to be
annotated again:

| operation | where labels go | annotated again |
|---|---|---|
| add | stay (of a leaf that gets its first child: its Other) | the parent's Other, the leaves beside it, `again` |
| drop | the parent's Other, where nobody is sure of them | - |
| rename, move, merge | with the node | - (a leaf that is moved under a leaf: as for add) |
| split | nowhere | all of the leaf |
| describe, examples | stay | all below the node, its parent's Other, `again` |

An inner node that loses its last child becomes a leaf and takes the labels of its Other.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from curation.domain.model import OTHER, Node, Taxonomy, other_description
from curation.errors import CurationError
from curation.taxonomy import operations as ops
from curation.taxonomy.lineage import Fate

__all__ = ["Editor", "edited"]


@dataclass(eq=False)
class _Branch:
    """A node with its children; ``other`` is there exactly as long as there are children."""

    name: str
    description: str
    examples: tuple[str, ...]
    parent: _Branch | None
    children: list[_Branch]
    other: _Branch | None = None
    gone: bool = False

    @property
    def node_id(self) -> str:
        """Dotted path; empty for the root."""
        above = self.parent.node_id if self.parent else ""
        return f"{above}.{self.name}" if above else self.name

    @property
    def is_other(self) -> bool:
        return self.parent is not None and self.parent.other is self

    def child(self, name: str) -> _Branch | None:
        """The child of that name, Other among them."""
        if name == OTHER:
            return self.other
        return next((child for child in self.children if child.name == name), None)

    def leaves(self) -> Iterator[_Branch]:
        """Itself for a leaf, else all leaves below, Others among them."""
        if not self.children:
            yield self
            return
        for child in self.children:
            yield from child.leaves()
        if self.other:
            yield self.other

    def all(self) -> Iterator[_Branch]:
        """Itself and all below, Others among them."""
        yield self
        for child in self.children:
            yield from child.all()
        if self.other:
            yield self.other

    def above(self) -> Iterator[_Branch]:
        """Itself and all nodes above, the root among them."""
        node: _Branch | None = self
        while node:
            yield node
            node = node.parent


def edited(taxonomy: Taxonomy, operations: Sequence[ops.Operation]) -> Editor:
    """An editor after `operations`."""
    editor = Editor(taxonomy)
    for operation in operations:
        editor.do(operation)
    return editor


class Editor:
    """Applies operations to a copy of `taxonomy`; an operation that fails leaves nothing that may be used further."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._root = _Branch("", "", (), None, [])
        self._first: dict[str, _Branch] = {}
        for node in taxonomy.nodes:
            parent = self._first[node.parent_id] if node.parent_id else self._root
            branch = _Branch(node.name, node.description, node.examples, parent, [])
            if node.is_other:
                parent.other = branch
            else:
                parent.children.append(branch)
            self._first[node.node_id] = branch
        self._at: dict[str, _Branch | None] = {leaf: self._first[leaf] for leaf in taxonomy.leaves}
        self._again: set[str] = set()
        self._dropped: dict[str, tuple[str, ...]] = {}
        self._done = 0

    # -- what came out

    def taxonomy(self, version: str) -> Taxonomy:
        """The tree as it stands, every Other after its siblings."""
        nodes = [
            Node(
                node_id=branch.node_id,
                parent_id=(branch.parent.node_id or None) if branch.parent else None,
                level=branch.node_id.count(".") + 1,
                name=branch.name,
                description=other_description(branch.parent.node_id if branch.parent else None)
                if branch.is_other
                else branch.description,
                is_other=branch.is_other,
                is_leaf=not branch.children,
                examples=branch.examples,
            )
            for branch in self._root.all()
            if branch is not self._root
        ]
        return Taxonomy(version, tuple(nodes))

    def carried(self) -> dict[str, Fate]:
        """What became of the labels of each leaf of the first tree."""
        return {leaf: Fate(at.node_id if at else None, leaf in self._again) for leaf, at in self._at.items()}

    def dropped(self) -> dict[str, tuple[str, ...]]:
        """Each node that was dropped (as the first tree calls it), with the leaves of the first tree whose labels
        went with it; a leaf that went with several nodes stands at the first."""
        return dict(self._dropped)

    def idle(self, operation: ops.Operation) -> str | None:
        """Why an operation that can be carried out would change nothing; None for one that does."""
        self._begin(operation)
        match operation:
            case ops.Rename() if self._find(operation.node).name == operation.name:
                return f"{operation.node} has that name already"
            case ops.Move() if self._find(operation.node).parent is self._place(operation.parent):
                return f"{operation.node} is below {operation.parent or 'the root'} already"
            case ops.Describe() if self._find(operation.node).description == operation.description:
                return f"{operation.node} is described so already"
            case ops.Examples() if not operation.drop and not operation.again:
                new = set(operation.add) - set(self._find(operation.node).examples)
                return None if new else f"{operation.node} has these examples already"
        return None

    def now(self, node_id: str) -> str | None:
        """The id now of a node of the first tree, None if it is gone; of any other id itself."""
        branch = self._first.get(node_id)
        if branch is None:
            return node_id
        return None if branch.gone else branch.node_id

    def ids(self) -> dict[str, str | None]:
        """Each node of the first tree with its id now; None for one that is gone."""
        return {node_id: self.now(node_id) for node_id in self._first}

    # -- operations

    def do(self, operation: ops.Operation) -> None:
        """Carry one operation out.

        Raises:
            CurationError: It is nonsense here.
        """
        self._begin(operation)
        self._done += 1
        match operation:
            case ops.Add():
                parent = self._place(operation.parent)
                self._attach(self._leaf(operation), parent)
                beside = [child for child in parent.children[:-1] if not child.children]
                self._touch(parent.other, *beside, *map(self._any, operation.again))
            case ops.Drop():
                self._drop(self._find(operation.node))
            case ops.Rename():
                self._rename(self._find(operation.node), operation.name)
            case ops.Move():
                self._move(self._find(operation.node), self._place(operation.parent))
            case ops.Merge():
                for node in operation.nodes:
                    self._merge(self._find(node), self._find(operation.into))
            case ops.Split():
                self._split(self._find(operation.node), operation.parts)
            case ops.Describe():
                branch = self._find(operation.node)
                branch.description = operation.description
                self._touch(branch, branch.parent and branch.parent.other)
            case ops.Examples():
                self._examples(self._find(operation.node), operation)

    def _begin(self, operation: ops.Operation) -> None:
        """Errors are about this operation from now on."""
        match operation:
            case ops.Add():
                about = f"{operation.parent}.{operation.name}" if operation.parent else operation.name
            case ops.Merge():
                about = f"{', '.join(operation.nodes)} into {operation.into}"
            case _:
                about = operation.node
        self._what = f"operation {self._done + 1}, {operation.op} {about}"

    def _drop(self, branch: _Branch) -> None:
        parent = branch.parent
        assert parent is not None
        known = {leaf for leaves in self._dropped.values() for leaf in leaves}
        below = set(branch.leaves())
        went = tuple(leaf for leaf, place in self._at.items() if place in below and leaf not in known)
        name = next((first for first, node in self._first.items() if node is branch), branch.node_id)
        self._dropped[name] = went
        self._redirect(branch, parent.other)
        self._detach(branch)
        self._forget(branch)

    def _rename(self, branch: _Branch, name: str) -> None:
        assert branch.parent is not None
        if branch.name != name:
            self._free(branch.parent, name)
            branch.name = name

    def _move(self, branch: _Branch, parent: _Branch) -> None:
        if branch in parent.above():
            raise self._error(f"{parent.node_id} lies below {branch.node_id}: the tree would close in a circle")
        if parent is branch.parent:
            return
        self._detach(branch)
        self._attach(branch, parent)

    def _merge(self, source: _Branch, into: _Branch) -> None:
        if source is into:
            raise self._error(f"{source.node_id} cannot be merged into itself")
        if source in into.above() or into in source.above():
            raise self._error(f"{source.node_id} and {into.node_id} lie one below the other")
        self._take_in(source, into)
        self._detach(source)

    def _take_in(self, source: _Branch, into: _Branch) -> None:
        """Give everything that `source` holds to `into`; `source` itself still stands where it stood."""
        if not into.children:
            new = [text for leaf in source.leaves() for text in leaf.examples if text not in into.examples]
            into.examples += tuple(dict.fromkeys(new))
            self._redirect(source, into)
            self._forget(source)
            return
        if not source.children:
            raise self._error(
                f"{source.node_id} is a leaf and {into.node_id} is none",
                f"Merge it into a leaf of {into.node_id}, or move it there.",
            )
        for child in source.children:
            same = into.child(child.name)
            if same is None:
                child.parent = into
                into.children.append(child)
            else:
                self._take_in(child, same)
        assert source.other is not None
        self._redirect(source.other, into.other)
        source.other.gone = source.gone = True

    def _split(self, branch: _Branch, parts: Sequence[ops.NewLeaf]) -> None:
        parent = branch.parent
        assert parent is not None
        if branch.children:
            raise self._error(f"{branch.node_id} is not a leaf", "Split its leaves, or move some of its children.")
        place = parent.children.index(branch)
        self._touch(branch)
        self._redirect(branch, None)
        parent.children.pop(place)
        branch.gone = True
        for part in parts:
            self._free(parent, part.name)
            parent.children.insert(place, self._leaf(part, parent))
            place += 1

    def _examples(self, branch: _Branch, operation: ops.Examples) -> None:
        for text in operation.drop:
            if text not in branch.examples:
                raise self._error(f"{text!r} is no example of {branch.node_id}")
        kept = [text for text in branch.examples if text not in operation.drop]
        branch.examples = tuple(dict.fromkeys([*kept, *operation.add]))
        self._touch(branch, branch.parent and branch.parent.other, *map(self._any, operation.again))

    # -- moves of the tree

    @staticmethod
    def _leaf(given: ops.Add | ops.NewLeaf, parent: _Branch | None = None) -> _Branch:
        return _Branch(given.name, given.description, tuple(dict.fromkeys(given.examples)), parent, [])

    def _attach(self, branch: _Branch, parent: _Branch) -> None:
        self._free(parent, branch.name)
        if not parent.children and parent is not self._root:
            parent.other = _Branch(OTHER, "", (), parent, [])
            self._touch(parent)
            for leaf, place in self._at.items():
                if place is parent:
                    self._at[leaf] = parent.other
        branch.parent = parent
        parent.children.append(branch)

    def _detach(self, branch: _Branch) -> None:
        parent = branch.parent
        assert parent is not None
        if parent is self._root and len(parent.children) == 1:
            raise self._error("the taxonomy would be left without categories", "Add one first.")
        parent.children.remove(branch)
        if not parent.children:
            assert parent.other is not None
            self._redirect(parent.other, parent)
            parent.other.gone, parent.other = True, None

    # -- labels

    def _redirect(self, branch: _Branch, to: _Branch | None) -> None:
        """Labels at or below `branch` go to the leaf `to`."""
        leaves = set(branch.leaves())
        for leaf, place in self._at.items():
            if place in leaves:
                self._at[leaf] = to

    def _touch(self, *branches: _Branch | None) -> None:
        """Rows labelled with a leaf at or below one of `branches` are annotated again."""
        leaves = {leaf for branch in branches if branch for leaf in branch.leaves()}
        self._again.update(leaf for leaf, place in self._at.items() if place in leaves)

    # -- looking up

    @staticmethod
    def _forget(branch: _Branch) -> None:
        for below in branch.all():
            below.gone = True

    def _place(self, node_id: str | None) -> _Branch:
        return self._root if node_id is None else self._find(node_id)

    def _find(self, node_id: str) -> _Branch:
        """The node of that id, which is no Other."""
        branch = self._any(node_id)
        if branch.is_other:
            raise self._error(f"{node_id} is an Other: it is there as long as its parent has children")
        return branch

    def _any(self, node_id: str) -> _Branch:
        branch: _Branch | None = self._root
        for name in node_id.split("."):
            branch = branch and branch.child(name)
        if branch is None or not node_id:
            known = [node.node_id for node in self._root.all() if node is not self._root]
            near = difflib.get_close_matches(node_id, known, 1)
            raise self._error(f"there is no node {node_id!r}", f"Did you mean {near[0]}?" if near else None)
        return branch

    def _free(self, parent: _Branch, name: str) -> None:
        if parent.child(name) is not None:
            where = f"{parent.node_id} has" if parent.node_id else "level 1 has"
            raise self._error(f"{where} a category {name!r} already")

    def _error(self, message: str, hint: str | None = None) -> CurationError:
        return CurationError(f"{self._what}: {message}", hint)
