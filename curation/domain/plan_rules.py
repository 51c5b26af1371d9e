"""Plan rules: which tools a query needs, as rules over its labels, its constraints and its words.

The code says nothing about any domain. ``plans.yaml`` (read by ``plans.py``) names *cues* (regular expressions over
the normal form), *measures* (numbers read from it), a default plan for each node of the taxonomy, and *rules* that
change plan, cognitive load and solvability where their condition holds. The embedded teacher carries them out.

A node without an entry of its own takes that of its nearest ancestor, at last that of ``other`` (the root). So a
taxonomy that grew since the file was written still has plans.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from curation.domain.model import OTHER

__all__ = [
    "BUILT_IN_MEASURES",
    "Condition",
    "Evidence",
    "Measure",
    "NodePlan",
    "PlanStep",
    "Plans",
    "Rule",
    "Slot",
    "Weight",
]

BUILT_IN_MEASURES = ("secondaries", "constraints")
"""Measures that need no regular expression: how many further leaves, and how many constraints, a query has."""


@dataclass(frozen=True)
class Measure:
    """A number read from the normal form of a query.

    Attributes:
        name: Its name.
        kind: ``number`` reads group 1 of the regex, ``matches`` adds the number of matches to ``default``, ``rest``
            counts the letters that are left when all matches and white space are taken away.
        patterns: ``(language, regex)``; ``matches`` and ``rest`` use them together, ``number`` the first
            that matches.
        default: Value where nothing matches (``number``, ``matches``).
        most: Larger values count as this one.
        words: Number words for ``number``, e.g. ``{"two": 2}``; digits are read by themselves.
    """

    name: str
    kind: Literal["number", "matches", "rest"]
    patterns: tuple[tuple[str, str], ...]
    default: int
    most: int
    words: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Condition:
    """A test of a query: a leaf of the tree (``kind`` and its arguments) or ``all`` / ``any`` / ``not`` of others.

    ``cue``: ``name`` is found. ``dimension``: a constraint of dimension ``name`` (or below it, ``name.x``) whose
    value matches ``regex`` if one is given. ``secondary``: a further leaf at or below node ``name``. ``measure``:
    ``name`` is at least ``least``.
    """

    kind: Literal["cue", "dimension", "secondary", "measure", "all", "any", "not"]
    name: str = ""
    regex: str | None = None
    least: int = 0
    parts: tuple[Condition, ...] = ()

    @cached_property
    def key(self) -> str:
        """Names a test without parts: the same text for the same test."""
        return f"{self.kind}|{self.name}|{self.regex or ''}"

    def atoms(self) -> Iterator[Condition]:
        """The tests without parts, from left to right."""
        if self.parts or self.kind in ("all", "any", "not"):
            for part in self.parts:
                yield from part.atoms()
        else:
            yield self


@dataclass(frozen=True)
class PlanStep:
    """A call of ``tool``.

    Attributes:
        name: What other steps and rules call it; the tool's name unless the file gives another.
        tool: The tool.
        times: How often it is called, in parallel: a number or the name of a measure.
        after: Steps it waits for; None for those whose tools feed it (``Plans.feeds``).
    """

    name: str
    tool: str
    times: int | str = 1
    after: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Evidence:
    """How many times likelier a query is unsolvable for ``reason``; for solvability when ``reason`` is None."""

    reason: str | None
    odds: float


@dataclass(frozen=True)
class Slot:
    """Information a query must hold: ``when`` tells that it does, ``odds`` what its lack says for missing_info."""

    name: str
    when: Condition
    odds: float


@dataclass(frozen=True)
class NodePlan:
    """Default plan of a node.

    Attributes:
        node_id: The node; it stands for all nodes below it that have no plan of their own.
        load: Cognitive load of choosing the tools, 1 (said outright) to 5 (to be inferred).
        steps: The calls.
        needs: Names of slots.
        optional: Tools without which the query can still be answered.
        evidence: What the label alone says of solvability.
    """

    node_id: str
    load: float
    steps: tuple[PlanStep, ...]
    needs: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Weight:
    """How much a constraint of ``dimension`` (or below it) binds, of any value or of those ``regex`` matches."""

    dimension: str
    regex: str | None
    weight: float


@dataclass(frozen=True)
class Rule:
    """What changes where ``when`` holds and a label lies at or below one of ``nodes`` (anywhere if empty).

    ``use`` replaces tools, then ``drop`` removes steps (by name or tool), ``add`` appends a step unless the plan has
    one of its name (or, for a step without a name of its own, one that calls its tool), ``repeat`` sets how often a
    step (name or tool) is called.
    """

    name: str
    when: Condition
    nodes: tuple[str, ...] = ()
    load: float = 0.0
    use: tuple[tuple[str, str], ...] = ()
    drop: tuple[str, ...] = ()
    add: tuple[PlanStep, ...] = ()
    repeat: tuple[tuple[str, int | str], ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class Plans:
    """The plan rules of a domain; all empty for a domain without ``plans.yaml``."""

    cues: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    measures: Mapping[str, Measure] = field(default_factory=dict)
    feeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    substitutes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    weights: tuple[Weight, ...] = ()
    joint: tuple[tuple[str, str], ...] = ()
    objectives: str | None = None
    slots: Mapping[str, Slot] = field(default_factory=dict)
    nodes: Mapping[str, NodePlan] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.nodes)

    def of(self, node_id: str) -> NodePlan | None:
        """The plan of a node: its own, its nearest ancestor's, or that of ``other``; None where there is none."""
        parts = node_id.split(".")
        while parts:
            plan = self.nodes.get(".".join(parts))
            if plan is not None:
                return plan
            parts.pop()
        return self.nodes.get(OTHER)

    def weight(self, dimension: str, value: str) -> float:
        """How much a constraint binds: the first entry of :attr:`weights` that fits it; 1 where none does."""
        for entry in self.weights:
            below = dimension == entry.dimension or dimension.startswith(f"{entry.dimension}.")
            if below and (entry.regex is None or re.search(entry.regex, value)):
                return entry.weight
        return 1.0

    def removal(self, tool: str) -> tuple[str, ...]:
        """``tool`` and all tools that could do its work, directly or through each other; sorted, ``tool`` first."""
        found = {tool}
        stack = [tool]
        while stack:
            for other in self.substitutes.get(stack.pop(), ()):
                if other not in found:
                    found.add(other)
                    stack.append(other)
        return (tool, *sorted(found - {tool}))

    def essential(self, node_id: str, tools: tuple[str, ...]) -> tuple[str, ...]:
        """Those of ``tools`` (a plan of ``node_id``) that the query cannot be answered without, order kept."""
        plan = self.of(node_id)
        optional = plan.optional if plan else ()
        return tuple(tool for tool in tools if tool not in optional)

    def reachable(self, node_id: str) -> frozenset[str]:
        """Every tool that some query labelled ``node_id`` may need: those of its plan and of the rules for it."""
        plan = self.of(node_id)
        tools = {step.tool for step in plan.steps} if plan else set()
        for rule in self.rules:
            if not rule.nodes or any(node_id == node or node_id.startswith(f"{node}.") for node in rule.nodes):
                tools |= {new for old, new in rule.use if old in tools} | {step.tool for step in rule.add}
        return frozenset(tools)

    @cached_property
    def feeders(self) -> dict[str, frozenset[str]]:
        """Tool to the tools whose answers it takes."""
        result: dict[str, set[str]] = {}
        for tool, fed in self.feeds.items():
            for other in fed:
                result.setdefault(other, set()).add(tool)
        return {tool: frozenset(others) for tool, others in result.items()}
