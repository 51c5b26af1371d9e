"""What a domain is made of. Everything is frozen: a loaded domain never changes while a run uses it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from curation.domain.grammar import Grammar
    from curation.domain.plans import Plans

__all__ = [
    "OTHER",
    "REASONS",
    "Dimension",
    "Domain",
    "DomainParts",
    "LexiconEntry",
    "Node",
    "Pattern",
    "SeedQuery",
    "Taxonomy",
    "Tool",
    "Wording",
    "other_description",
]

OTHER = "other"
"""Name of the child that every inner node keeps for what no sibling takes."""

REASONS = ("missing_tool", "missing_info", "no_actionable", "no_tool_needed")
"""Why a query cannot be solved, or needs no tool."""


def other_description(parent: str | None) -> str:
    """What is said of the Other of a node (None: of the root)."""
    return f"What belongs to {parent or 'the taxonomy'} but to none of its other categories."


@dataclass(frozen=True)
class Node:
    """A node of the taxonomy.

    Attributes:
        node_id: Dotted path from the root, e.g. ``discovery.poi_search``.
        parent_id: ``node_id`` of the parent; None at level 1.
        level: Depth, 1 at the top.
        name: Last part of ``node_id``.
        description: What belongs here, and what belongs to a sibling instead.
        is_other: The Other child of its parent.
        is_leaf: Whether labels may use it (Other nodes are leaves).
        examples: Example queries, all languages, in the order of the file.
    """

    node_id: str
    parent_id: str | None
    level: int
    name: str
    description: str
    is_other: bool
    is_leaf: bool
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Taxonomy:
    """One version of the taxonomy: its nodes in document order, every Other after its siblings."""

    version: str
    nodes: tuple[Node, ...]

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Ids that labels may use, in document order, Other nodes among them."""
        return tuple(node.node_id for node in self.nodes if node.is_leaf)

    @cached_property
    def leaf_set(self) -> frozenset[str]:
        """:attr:`leaves` for membership tests."""
        return frozenset(self.leaves)

    @cached_property
    def by_id(self) -> dict[str, Node]:
        """Node by id, in document order."""
        return {node.node_id: node for node in self.nodes}

    @cached_property
    def _children(self) -> dict[str | None, tuple[Node, ...]]:
        children: dict[str | None, list[Node]] = {}
        for node in self.nodes:
            children.setdefault(node.parent_id, []).append(node)
        return {parent: tuple(nodes) for parent, nodes in children.items()}

    def node(self, node_id: str) -> Node:
        """The node with that id; ``KeyError`` when there is none."""
        return self.by_id[node_id]

    def children(self, node_id: str | None) -> tuple[Node, ...]:
        """Children of a node in document order; of the root for None; empty for a leaf."""
        return self._children.get(node_id, ())

    def level1(self, node_id: str) -> str:
        """Id of the level-1 node at or above ``node_id``; it need not be in this version."""
        return node_id.split(".", 1)[0]

    def other_of(self, node_id: str) -> str:
        """The nearest Other at or above the parent of ``node_id``: where the labels of a removed leaf fall.

        ``node_id`` and its parents need not be in this version any more.
        """
        parts = node_id.split(".")[:-1]
        while parts:
            candidate = ".".join([*parts, OTHER])
            if candidate in self.leaf_set:
                return candidate
            parts.pop()
        return OTHER


@dataclass(frozen=True)
class Tool:
    """A tool of the agent; ``parameters`` is a JSON Schema object, as an MCP server's ``inputSchema`` takes it."""

    name: str
    group: str
    description: str
    parameters: dict[str, Any]
    required: tuple[str, ...]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of all arguments, in the order of the file."""
        return tuple(self.parameters.get("properties", {}))


@dataclass(frozen=True)
class LexiconEntry:
    """Words that state a constraint: ``text`` in language ``lang`` means ``value``."""

    value: str
    lang: str
    text: str


@dataclass(frozen=True)
class Pattern:
    """A regular expression that states a constraint; its fragments are already in place.

    ``value`` is a template over the named groups of ``regex`` (see ``curation/teachers/embedded/values.py``). A group
    called ``span`` narrows the words the constraint is read from; without it they are the whole match.
    """

    value: str
    lang: str
    regex: str


@dataclass(frozen=True)
class Dimension:
    """A constraint dimension, e.g. ``budget`` or ``time.departure``, and how it is worded.

    ``negatable``: a negation right before the words belongs to them, and turns the value ``x`` into ``not_x``.
    """

    name: str
    description: str
    lexicon: tuple[LexiconEntry, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    negatable: bool = False


@dataclass(frozen=True)
class Wording:
    """What the dimensions share: how a domain's languages word negation, units and composed values.

    Attributes:
        fold: Character to character, applied before matching (variants of script and punctuation).
        negation: Language to the regular expression of a negation that ends where a constraint begins.
        ignore: Words and patterns that look like a constraint and are none; the longest match decides.
        tables: Name to words and what they stand for, for the templates of values.
        compose: Name to rules that make one value of several words, in the order of the result.
    """

    fold: dict[str, str] = field(default_factory=dict)
    negation: dict[str, str] = field(default_factory=dict)
    ignore: Dimension = field(default_factory=lambda: Dimension("", ""))
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    compose: dict[str, tuple[Pattern, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class SeedQuery:
    """A labelled example query; ``reason`` is one of :data:`REASONS` for one that cannot be solved, else None."""

    text: str
    lang: str
    primary: str
    secondary: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class DomainParts:
    """The parts that plan rules and grammar may name, for checking them."""

    taxonomy: Taxonomy
    tools: dict[str, Tool]
    dimensions: dict[str, Dimension]
    languages: tuple[str, ...]


@dataclass(frozen=True)
class Domain:
    """A loaded domain; ``fingerprint`` is the SHA-256 over the names and bytes of its files."""

    name: str
    title: str
    languages: tuple[str, ...]
    taxonomy: Taxonomy
    tools: dict[str, Tool]
    dimensions: dict[str, Dimension]
    seeds: tuple[SeedQuery, ...]
    plans: Plans
    grammar: Grammar
    fingerprint: str
    wording: Wording = field(default_factory=Wording)
