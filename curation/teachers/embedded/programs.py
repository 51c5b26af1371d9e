"""The plan rules that matter for one pair of labels, ready to run on the tests and measures of a signature."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from curation.algorithms.simulate import Call, Step, unfold
from curation.domain.plan_rules import Condition, Evidence, NodePlan, Plans, PlanStep, Rule
from curation.teachers.embedded.features import WORD, Features

__all__ = ["Outcome", "Program"]

MULTI_INTENT_LOAD = 0.5
"""Cognitive load that each of the first two further leaves adds."""

_Test = Callable[[int, tuple[int, ...]], bool]


@dataclass(frozen=True)
class Outcome:
    """What the rules make of one signature.

    ``log_odds`` is the evidence for unsolvability that is not the annotation's, ``reason`` the rules' strongest
    reason.
    """

    calls: tuple[Call, ...]
    load: float
    log_odds: float
    reason: str | None


class Program:
    """The rules for ``<primary, secondary>``.

    Attributes:
        masks: Per word of tests, the bits that some rule of these labels asks for.
        asks: Per measure, whether some rule or step of these labels asks for it.
    """

    def __init__(
        self, plans: Plans, features: Features, plan: NodePlan, secondary: tuple[str, ...], label: str
    ) -> None:
        self.plans = plans
        self._features = features
        self._secondary = secondary
        self._plan = plan
        planned = [(leaf, found) for leaf in secondary if (found := plans.of(leaf)) is not None]
        self._others = [found for _, found in planned]
        # Rules of a label change that label's own steps, before the plans of all labels become one.
        labels = (label, *(leaf for leaf, _ in planned))
        scopes = [(rule, [i for i, name in enumerate(labels) if _applies(rule, name)]) for rule in plans.rules]
        self._rules = [(rule, where) for rule, where in scopes if where]
        self._slots = [plans.slots[name] for name in plan.needs]
        self._bits = {test.key: i for i, test in enumerate(features.tests)}
        self._at = {name: i for i, name in enumerate(features.measures)}
        self._when = [self._compile(rule.when) for rule, _ in self._rules]
        self._filled = [self._compile(slot.when) for slot in self._slots]
        self.masks, self.asks = self._relevant()

    def run(self, tests: int, measures: tuple[int, ...]) -> Outcome:
        """Carry the rules out.

        Args:
            tests: Bit i tells whether test i of the features holds.
            measures: Values in the order of the features' measures.
        """
        load = self._plan.load + MULTI_INTENT_LOAD * min(len(self._secondary), 2)
        evidence = list(self._plan.evidence)
        for slot, filled in zip(self._slots, self._filled, strict=True):
            if not filled(tests, measures):
                evidence.append(Evidence("missing_info", slot.odds))
        drafts = [{step.name: step for step in plan.steps} for plan in (self._plan, *self._others)]
        for (rule, where), holds in zip(self._rules, self._when, strict=True):
            if holds(tests, measures):
                load += rule.load
                evidence.extend(rule.evidence)
                for index in where:
                    drafts[index] = _changed(drafts[index], rule)
        # Rules must not leave a query without a plan.
        steps = drafts[0] or {step.name: step for step in self._plan.steps}
        for draft in drafts[1:]:
            for step in draft.values():
                _add(steps, step)
        unfolded = [Step(s.name, s.tool, self._times(s, measures), s.after) for s in steps.values()]
        return Outcome(unfold(unfolded, self.plans.feeders), min(max(load, 1.0), 5.0), *_pool(evidence))

    def _times(self, step: PlanStep, measures: tuple[int, ...]) -> int:
        times = step.times if isinstance(step.times, int) else measures[self._at[step.times]]
        return max(times, 1)

    def _compile(self, condition: Condition) -> _Test:
        parts = [self._compile(part) for part in condition.parts]
        match condition.kind:
            case "all":
                return lambda tests, measures: all(part(tests, measures) for part in parts)
            case "any":
                return lambda tests, measures: any(part(tests, measures) for part in parts)
            case "not":
                return lambda tests, measures: not parts[0](tests, measures)
            case "secondary":
                given = any(_within(leaf, condition.name) for leaf in self._secondary)
                return lambda tests, measures: given
            case "measure":
                at, least = self._at[condition.name], condition.least
                return lambda tests, measures: measures[at] >= least
            case _:
                bit = self._bits[condition.key]
                return lambda tests, measures: bool(tests >> bit & 1)

    def _relevant(self) -> tuple[list[int], list[bool]]:
        """Masks of the tests, and flags of the measures, that can change the outcome."""
        conditions = [rule.when for rule, _ in self._rules] + [slot.when for slot in self._slots]
        atoms = [atom for condition in conditions for atom in condition.atoms()]
        masks = [0] * len(self._features.words)
        for atom in atoms:
            if atom.kind in ("cue", "dimension"):
                bit = self._bits[atom.key]
                masks[bit // WORD] |= 1 << (bit % WORD)
        asked = {atom.name for atom in atoms if atom.kind == "measure"} | set(self._repeats())
        return masks, [name in asked for name in self._features.measures]

    def _repeats(self) -> Iterator[str]:
        """Measures that say how often something is called."""
        steps = [step for plan in (self._plan, *self._others) for step in plan.steps]
        steps += [step for rule, _ in self._rules for step in rule.add]
        times = [step.times for step in steps] + [value for rule, _ in self._rules for _, value in rule.repeat]
        yield from (value for value in times if isinstance(value, str))


def _within(name: str, top: str) -> bool:
    return name == top or name.startswith(f"{top}.")


def _applies(rule: Rule, label: str) -> bool:
    return not rule.nodes or any(_within(label, node) for node in rule.nodes)


def _named(steps: dict[str, PlanStep], name: str) -> list[str]:
    """Names of the steps that are called ``name`` or call the tool ``name``."""
    return [step.name for step in steps.values() if name in (step.name, step.tool)]


def _add(steps: dict[str, PlanStep], step: PlanStep) -> None:
    """Append a step unless there is one of its name or, for a step named like its tool, one that calls its tool."""
    if not _named(steps, step.name):
        steps[step.name] = step


def _changed(steps: dict[str, PlanStep], rule: Rule) -> dict[str, PlanStep]:
    """The steps after ``rule``."""
    used = dict(rule.use)
    steps = {
        name: PlanStep(name, used.get(step.tool, step.tool), step.times, step.after) for name, step in steps.items()
    }
    for name in rule.drop:
        for found in _named(steps, name):
            del steps[found]
    for step in rule.add:
        _add(steps, step)
    for name, times in rule.repeat:
        for found in _named(steps, name):
            steps[found] = PlanStep(found, steps[found].tool, times, steps[found].after)
    return steps


def _pool(evidence: list[Evidence]) -> tuple[float, str | None]:
    """Sum of log odds, and the reason with the largest share; None if none speaks for unsolvability."""
    total = 0.0
    by_reason: dict[str, float] = {}
    for item in evidence:
        total += math.log(item.odds)
        if item.reason is not None:
            by_reason[item.reason] = by_reason.get(item.reason, 0.0) + math.log(item.odds)
    # Reasons stand in the order in which they came up, so nothing hangs on the order of a set.
    best = max(by_reason, key=lambda reason: by_reason[reason], default=None)
    return total, best if best is not None and by_reason[best] > 0 else None
