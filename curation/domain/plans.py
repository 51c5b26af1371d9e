"""Reading ``plans.yaml``: names checked against the domain, every mistake told with its line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from curation.domain.document import Document
from curation.domain.model import REASONS, DomainParts
from curation.domain.plan_rules import (
    BUILT_IN_MEASURES,
    Condition,
    Evidence,
    Measure,
    NodePlan,
    Plans,
    PlanStep,
    Rule,
    Slot,
    Weight,
)

__all__ = ["Plans", "parse_plans"]

_KEYS = (
    "cues",
    "measures",
    "feeds",
    "substitutes",
    "weights",
    "joint",
    "objectives",
    "slots",
    "nodes",
    "rules",
)


def parse_plans(document: Document, path: Path, parts: DomainParts) -> Plans:
    """Read ``plans.yaml``.

    Args:
        document: The opened file.
        path: Where it lies; errors name it.
        parts: Taxonomy, tools and dimensions that the rules may name.

    Raises:
        CurationError: For the first name, number or regex that is wrong, with its line.
    """
    return _Parser(document, parts).parse()


_MEASURE_KEYS = ("kind", "default", "most", "words")


class _Parser:
    """One pass over the file, names checked against ``parts`` and against what was read before."""

    def __init__(self, document: Document, parts: DomainParts) -> None:
        self.document = document
        self.parts = parts
        self.cues: dict[str, tuple[tuple[str, str], ...]] = {}
        self.measures: dict[str, Measure] = {}
        self.slots: dict[str, Slot] = {}

    def parse(self) -> Plans:
        document, root = self.document, self.document.root
        document.keys(root, _KEYS, ("nodes",), "the file")
        for name in self._section("cues"):
            self.cues[name] = self._patterns(self._section("cues"), name, f"the cue {name}")
        for name in self._section("measures"):
            self.measures[name] = self._measure(name)
        slots = self._section("slots")
        for name in slots:
            body = document.mapping(slots, name, f"the slot {name}")
            document.keys(body, ("when", "odds"), ("when", "odds"), f"the slot {name}")
            self.slots[name] = Slot(name, self._condition(body, "when"), self._number(body, "odds", 1e-3, 1e3))
        nodes = self._section("nodes")
        plans = {node_id: self._node(nodes, node_id) for node_id in nodes}
        items = document.sequence(root, "rules", "rules") if "rules" in root else []
        return Plans(
            self.cues,
            self.measures,
            self._feeds(),
            self._tool_lists("substitutes"),
            tuple(self._weights()),
            tuple(self._joint()),
            self._objectives(),
            self.slots,
            plans,
            tuple(self._rule(items, index) for index in range(len(items))),
        )

    def _section(self, key: str) -> dict[str, Any]:
        root = self.document.root
        return self.document.mapping(root, key, key) if key in root else {}

    def _number(self, owner: Any, key: Any, least: float, most: float) -> float:
        value = owner[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.document.error(f"{key} must be a number from {least:g} to {most:g}, not {value!r}", owner, key)
        return float(value)

    def _whole(self, owner: Any, key: Any, least: int, most: int) -> int:
        value = self._number(owner, key, least, most)
        if value != int(value):
            raise self.document.error(f"{key} must be a whole number, not {value!r}", owner, key)
        return int(value)

    def _names(self, owner: Any, key: Any, known: Any, what: str) -> tuple[str, ...]:
        """One name or a list of names, all of them in ``known``."""
        value = owner[key]
        names = [(value, owner, key)] if isinstance(value, str) else []
        if not names:
            names = [(text, value, index) for text, index in self.document.texts(owner, key, str(key))]
        for name, where, at in names:
            if name not in known:
                raise self.document.error(f"there is no {what} {name!r}", where, at)
        return tuple(name for name, _, _ in names)

    def _patterns(self, owner: Any, key: str, what: str) -> tuple[tuple[str, str], ...]:
        """``{lang: regex}`` or ``{lang: [regexes]}``, in the order of the file."""
        body = self.document.mapping(owner, key, what)
        patterns = []
        for lang in body:
            if lang in _MEASURE_KEYS:
                continue
            if self.parts.languages and lang not in self.parts.languages:
                known = ", ".join(self.parts.languages)
                raise self.document.error(f"unknown language {lang!r} in {what}", body, lang, f"There are {known}.")
            if isinstance(body[lang], str):
                patterns.append((lang, self._regex(body, lang, what)))
                continue
            regexes = self.document.sequence(body, lang, f"the {lang} regexes of {what}")
            patterns.extend((lang, self._regex(regexes, index, what)) for index in range(len(regexes)))
        if not patterns:
            raise self.document.error(f"{what} has no pattern", owner, key)
        return tuple(patterns)

    def _regex(self, owner: Any, key: Any, what: str) -> str:
        import polars as pl

        regex = self.document.text(owner, key, what)
        try:
            pl.Series([""]).str.contains(regex, strict=True)
        except pl.exceptions.ComputeError as error:
            reason = str(error).strip().splitlines()[-1]
            raise self.document.error(
                f"{what} has a regex that cannot be used: {reason}", owner, key, "Lookaround is not possible."
            ) from None
        return regex

    def _measure(self, name: str) -> Measure:
        section = self._section("measures")
        what = f"the measure {name}"
        if name in BUILT_IN_MEASURES:
            raise self.document.error(f"{name} is a measure that is always there", section, name, "Rename it.")
        body = self.document.mapping(section, name, what)
        kind = self.document.text(body, "kind", f"kind of {what}") if "kind" in body else ""
        if kind not in ("number", "matches", "rest"):
            raise self.document.error(f"{what} must have a kind: number, matches or rest", section, name)
        default = self._whole(body, "default", 0, 1000) if "default" in body else 0
        most = self._whole(body, "most", 1, 1000) if "most" in body else 1000
        words = self.document.mapping(body, "words", f"words of {what}") if "words" in body else {}
        numbers = tuple((word, self._whole(words, word, 0, 1000)) for word in words)
        return Measure(name, kind, self._patterns(section, name, what), default, most, numbers)  # type: ignore[arg-type]

    def _feeds(self) -> dict[str, tuple[str, ...]]:
        feeds = self._tool_lists("feeds")
        state: dict[str, int] = {}

        def visit(tool: str) -> None:
            state[tool] = 1
            for other in feeds.get(tool, ()):
                if state.get(other) == 1:
                    raise self.document.error(
                        f"{tool} and {other} feed each other", self._section("feeds"), tool, "Remove one direction."
                    )
                if other not in state:
                    visit(other)
            state[tool] = 2

        for tool in feeds:
            if tool not in state:
                visit(tool)
        return feeds

    def _tool_lists(self, key: str) -> dict[str, tuple[str, ...]]:
        section = self._section(key)
        for tool in section:
            self._tool(section, tool, tool)
        return {tool: self._names(section, tool, self.parts.tools, "tool") for tool in section}

    def _tool(self, owner: Any, key: Any, name: str) -> str:
        if name not in self.parts.tools:
            raise self.document.error(
                f"there is no tool {name!r}", owner, key, f"The tools are {', '.join(self.parts.tools) or 'none'}."
            )
        return name

    def _dimension(self, owner: Any, key: Any, name: str) -> str:
        if not any(other == name or other.startswith(f"{name}.") for other in self.parts.dimensions):
            raise self.document.error(
                f"there is no dimension {name!r}",
                owner,
                key,
                f"They are {', '.join(self.parts.dimensions) or 'none'}.",
            )
        return name

    def _node_id(self, owner: Any, key: Any, name: str) -> str:
        if name not in self.parts.taxonomy.by_id:
            raise self.document.error(f"there is no category {name!r} in the taxonomy", owner, key)
        return name

    def _weights(self) -> Iterator[Weight]:
        root = self.document.root
        items = self.document.sequence(root, "weights", "weights") if "weights" in root else []
        for index in range(len(items)):
            body = self.document.mapping(items, index, "an entry of weights")
            self.document.keys(body, ("dimension", "value", "weight"), ("dimension", "weight"), "an entry of weights")
            name = self._dimension(body, "dimension", self.document.text(body, "dimension", "a dimension"))
            regex = self._regex(body, "value", "an entry of weights") if "value" in body else None
            yield Weight(name, regex, self._number(body, "weight", 0, 10))

    def _joint(self) -> Iterator[tuple[str, str]]:
        root = self.document.root
        pairs = self.document.sequence(root, "joint", "joint") if "joint" in root else []
        for index in range(len(pairs)):
            pair = [text for text, _ in self.document.texts(pairs, index, "a pair of joint")]
            if len(pair) != 2:
                raise self.document.error("a pair of joint must name two dimensions", pairs, index)
            for at, name in enumerate(pair):
                self._dimension(pairs[index], at, name)
            yield pair[0], pair[1]

    def _objectives(self) -> str | None:
        root = self.document.root
        return self._names(root, "objectives", self.measures, "measure")[0] if "objectives" in root else None

    def _evidence(self, owner: Any) -> tuple[Evidence, ...]:
        found = []
        if "unsolvable" in owner:
            body = self.document.mapping(owner, "unsolvable", "unsolvable")
            for reason in body:
                if reason not in REASONS:
                    raise self.document.error(
                        f"{reason!r} is not a reason", body, reason, f"Reasons are {', '.join(REASONS)}."
                    )
                found.append(Evidence(reason, self._number(body, reason, 1e-3, 1e3)))
        if "solvable" in owner:
            found.append(Evidence(None, self._number(owner, "solvable", 1e-3, 1e3)))
        return tuple(found)

    def _steps(self, owner: Any, key: str) -> tuple[PlanStep, ...]:
        items = self.document.sequence(owner, key, key)
        steps: dict[str, PlanStep] = {}
        for index in range(len(items)):
            step = self._step(items, index)
            if step.name in steps:
                raise self.document.error(f"two steps are called {step.name!r}", items, index, "Give one a name.")
            steps[step.name] = step
        return tuple(steps.values())

    def _step(self, items: list[Any], index: int) -> PlanStep:
        """A tool's name, or ``{tool, name, times, after}``."""
        if isinstance(items[index], str):
            tool = self._tool(items, index, self.document.text(items, index, "a step"))
            return PlanStep(tool, tool)
        body = self.document.mapping(items, index, "a step")
        self.document.keys(body, ("tool", "name", "times", "after"), ("tool",), "a step")
        tool = self._tool(body, "tool", self.document.text(body, "tool", "a tool"))
        name = self.document.text(body, "name", "the name of a step") if "name" in body else tool
        times = self._times(body, "times") if "times" in body else 1
        after = tuple(text for text, _ in self.document.texts(body, "after", "after")) if "after" in body else None
        return PlanStep(name, tool, times, after)

    def _times(self, owner: Any, key: str) -> int | str:
        if isinstance(owner[key], str):
            return self._names(owner, key, (*self.measures, *BUILT_IN_MEASURES), "measure")[0]
        return self._whole(owner, key, 1, 20)

    def _node(self, nodes: dict[str, Any], node_id: str) -> NodePlan:
        self._node_id(nodes, node_id, node_id)
        body = self.document.mapping(nodes, node_id, node_id)
        allowed = ("load", "steps", "needs", "optional", "unsolvable", "solvable")
        self.document.keys(body, allowed, ("load", "steps"), node_id)
        steps = self._steps(body, "steps")
        names = {step.name for step in steps}
        for index, step in enumerate(steps):
            for other in step.after or ():
                if other not in (*names, *self.parts.tools) or other == step.name:
                    raise self.document.error(
                        f"{step.name} waits for {other!r}, which is no step", body["steps"], index
                    )
        if not steps:
            raise self.document.error(f"{node_id} has no steps", body, "steps", "Name at least one tool.")
        return NodePlan(
            node_id,
            self._number(body, "load", 1, 5),
            steps,
            self._names(body, "needs", self.slots, "slot") if "needs" in body else (),
            self._names(body, "optional", self.parts.tools, "tool") if "optional" in body else (),
            self._evidence(body),
        )

    def _rule(self, items: list[Any], index: int) -> Rule:
        body = self.document.mapping(items, index, "a rule")
        allowed = ("name", "when", "nodes", "load", "use", "drop", "add", "repeat", "unsolvable", "solvable")
        self.document.keys(body, allowed, ("name", "when"), "a rule")
        name = self.document.text(body, "name", "the name of a rule")
        use = self.document.mapping(body, "use", f"use of {name}") if "use" in body else {}
        for tool in use:
            self._tool(use, tool, tool)
            self._tool(use, tool, self.document.text(use, tool, f"use of {name}"))
        repeat = self.document.mapping(body, "repeat", f"repeat of {name}") if "repeat" in body else {}
        drop = tuple(text for text, _ in self.document.texts(body, "drop", "drop")) if "drop" in body else ()
        return Rule(
            name,
            self._condition(body, "when"),
            self._names(body, "nodes", self.parts.taxonomy.by_id, "category") if "nodes" in body else (),
            self._number(body, "load", -5, 5) if "load" in body else 0.0,
            tuple((str(old), str(new)) for old, new in use.items()),
            drop,
            self._steps(body, "add") if "add" in body else (),
            tuple((step, self._times(repeat, step)) for step in repeat),
            self._evidence(body),
        )

    def _condition(self, owner: Any, key: Any) -> Condition:
        body = self.document.mapping(owner, key, "a condition")
        allowed = ("cue", "dimension", "value", "secondary", "measure", "least", "all", "any", "not")
        self.document.keys(body, allowed, (), "a condition")
        parts = []
        if "cue" in body:
            parts.append(_either("cue", self._names(body, "cue", self.cues, "cue")))
        if "dimension" in body:
            parts.append(self._dimension_test(body))
        if "secondary" in body:
            names = self._names(body, "secondary", self.parts.taxonomy.by_id, "category")
            parts.append(_either("secondary", names))
        if "measure" in body:
            names = self._names(body, "measure", (*self.measures, *BUILT_IN_MEASURES), "measure")
            if "least" not in body:
                raise self.document.error("a condition over a measure has no 'least'", body, "measure")
            parts.append(Condition("measure", names[0], least=self._whole(body, "least", 0, 1000)))
        for group in ("all", "any"):
            if group in body:
                items = self.document.sequence(body, group, group)
                tests = tuple(self._condition(items, index) for index in range(len(items)))
                parts.append(Condition(group, parts=tests))  # type: ignore[arg-type]
        if "not" in body:
            parts.append(Condition("not", parts=(self._condition(body, "not"),)))
        if not parts or any(test.kind in ("all", "any") and not test.parts for test in parts):
            raise self.document.error("a condition is empty", owner, key)
        return parts[0] if len(parts) == 1 else Condition("all", parts=tuple(parts))

    def _dimension_test(self, body: dict[str, Any]) -> Condition:
        value = body["dimension"]
        if isinstance(value, str):
            names = [self._dimension(body, "dimension", value)]
        else:
            names = [
                self._dimension(value, index, text)
                for text, index in self.document.texts(body, "dimension", "dimension")
            ]
        regex = self._regex(body, "value", "a condition") if "value" in body else None
        tests = tuple(Condition("dimension", name, regex) for name in names)
        return tests[0] if len(tests) == 1 else Condition("any", parts=tests)


def _either(kind: Literal["cue", "secondary"], names: tuple[str, ...]) -> Condition:
    tests = tuple(Condition(kind, name) for name in names)
    return tests[0] if len(tests) == 1 else Condition("any", parts=tests)
