"""Difficulty by execution simulation with the domain's plan rules: the embedded teacher's way to score.

For each distinct signature of labels, cues and constraints the rules give a plan, a cognitive load and evidence for
or against solvability; the rest is arithmetic over columns (``curation/algorithms/simulate.py``).

*Solvability* pools what the annotation says with what the rules say, as odds: ``odds = p / (1 - p)`` of the
annotation's ``unsolvable_confidence`` times the odds of every rule, label and empty slot that applies. A query is
unsolvable where the pooled probability reaches the threshold and a reason is known: the annotation's where that alone
reaches the threshold, else the rules' strongest, else the annotation's.

*A domain without plan rules* says nothing of tools. Where it declares tools, a leaf's plan is the one tool whose
description is nearest to the leaf's; where it declares none, plans stay empty and chain depth 0. Cognitive load then
is 1 + 4 times the entropy of the annotation: what is hard to label is hard to choose tools for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from curation.algorithms.simulate import (
    Call,
    Step,
    binary_entropy,
    chain_depth,
    combine,
    constraint_complexity,
    longest_chain,
    unfold,
)
from curation.domain.plan_rules import Evidence, PlanStep, Rule
from curation.teachers.embedded.features import SIGNATURE, Facts, Features

if TYPE_CHECKING:
    from curation.domain.model import Domain

__all__ = ["INPUT_COLUMNS", "Outcome", "PlanScorer", "Scale", "difficulty_of_reason"]

INPUT_COLUMNS = (
    "query_id",
    "text",
    "norm",
    "primary",
    "secondary",
    "constraints",
    "confidence",
    "unsolvable",
    "unsolvable_confidence",
)
"""Columns that :meth:`PlanScorer.score` reads."""

_PLAN_TYPE = pl.List(pl.Struct({"step": pl.Int32, "tool": pl.String, "depends_on": pl.List(pl.Int32)}))
_CERTAIN = 0.995  # an annotation never outweighs every rule
_MULTI_INTENT_LOAD = 0.5


def difficulty_of_reason(reason: pl.Expr) -> pl.Expr:
    """-1 where what is asked cannot be done (missing_tool, missing_info), 0 where no tool has work to do."""
    return pl.when(reason.str.starts_with("missing_")).then(-1).otherwise(0)


@dataclass(frozen=True)
class Scale:
    """How the three dimensions become a difficulty; see :func:`curation.algorithms.simulate.combine`.

    ``unsolvable_threshold`` is the pooled probability from which a query counts as unsolvable.
    """

    weights: tuple[float, float, float]
    emphasis: float
    thresholds: tuple[float, ...]
    unsolvable_threshold: float


@dataclass(frozen=True)
class Outcome:
    """What the rules make of one signature.

    ``log_odds`` is the evidence for unsolvability that is not the annotation's, ``reason`` the rules' strongest
    reason.
    """

    calls: tuple[Call, ...]
    load: float
    joint: float
    log_odds: float
    reason: str | None

    @property
    def tools(self) -> frozenset[str]:
        """The tools of the plan."""
        return frozenset(call.tool for call in self.calls)


@dataclass
class _Draft:
    """A plan in the making: steps by name in order, cognitive load, evidence by reason."""

    steps: dict[str, PlanStep]
    load: float
    evidence: list[Evidence] = field(default_factory=list)

    def named(self, name: str) -> list[str]:
        """Names of the steps that are called ``name`` or call the tool ``name``."""
        return [step.name for step in self.steps.values() if name in (step.name, step.tool)]

    def add(self, step: PlanStep) -> None:
        """Append a step unless its name or tool is there already."""
        if not self.named(step.name) and not self.named(step.tool):
            self.steps[step.name] = step


class PlanScorer:
    """Scores tables of annotated queries; holds the outcomes of the signatures it has seen.

    Args:
        domain: Its plan rules, tools and taxonomy.
        scale: Weights and thresholds.
    """

    name = "embedded"

    def __init__(self, domain: Domain, scale: Scale) -> None:
        self.domain = domain
        self.plans = domain.plans
        self.scale = scale
        self.features = Features(self.plans)
        self._outcomes: dict[tuple[Any, ...], Outcome] = {}
        self._fitted: dict[str, str] = {}

    def score(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The `difficulty` table of annotated queries.

        Args:
            rows: Columns :data:`INPUT_COLUMNS`; no null in ``primary``.

        Returns:
            One row per row, in order, with the columns of the contract of `difficulty`.
        """
        signatures = self.features.signatures(rows)
        keys = signatures.select(SIGNATURE)
        distinct = keys.unique(maintain_order=True).with_row_index("signature")
        outcomes = [self._outcome(key) for key in distinct.drop("signature").iter_rows(named=True)]
        at = keys.join(distinct, on=SIGNATURE, how="left", maintain_order="left")["signature"].to_numpy()
        load = np.array([o.load for o in outcomes])[at] if self.plans else self._load_by_entropy(rows)
        chain = chain_depth(*_shape(outcomes))[at]
        complexity = constraint_complexity(
            signatures["weight"].to_numpy(),
            np.array([o.joint for o in outcomes])[at],
            signatures["stated"].to_numpy() / np.maximum(rows["text"].str.len_chars().to_numpy(), 1),
        )
        reasons = self._reasons(rows, outcomes, at)
        level = combine(
            load,
            chain,
            complexity,
            weights=self.scale.weights,
            emphasis=self.scale.emphasis,
            thresholds=self.scale.thresholds,
        )
        solvable = reasons.is_null()
        plans = _plan_series(outcomes)
        return pl.DataFrame(
            {
                "query_id": rows["query_id"],
                "cognitive_load": pl.Series(load, dtype=pl.Float32),
                "chain_depth": pl.Series(np.where(solvable.to_numpy(), chain, 0.0), dtype=pl.Float32),
                "constraint_complexity": pl.Series(complexity, dtype=pl.Float32),
                "reason": reasons,
                "level": pl.Series(level, dtype=pl.Int8),
                "plan": plans.gather(at),
            }
        ).select(
            "query_id",
            difficulty=pl.when(pl.col("reason").is_null())
            .then("level")
            .otherwise(difficulty_of_reason(pl.col("reason")))
            .cast(pl.Int8),
            cognitive_load="cognitive_load",
            chain_depth="chain_depth",
            constraint_complexity="constraint_complexity",
            tool_plan=pl.when(pl.col("reason").is_null()).then("plan").otherwise(pl.lit([], _PLAN_TYPE)),
            reason="reason",
            teacher=pl.lit(self.name),
        )

    def _outcome(self, signature: dict[str, Any]) -> Outcome:
        key = (*(signature[name] for name in SIGNATURE[:2]), *map(tuple, (signature["tests"], signature["measures"])))
        key = (*key, signature["dimensions"])
        if key not in self._outcomes:
            self._outcomes[key] = self.simulate(self.features.facts(signature))
        return self._outcomes[key]

    def simulate(self, facts: Facts) -> Outcome:
        """Carry the plan rules out for one signature."""
        plan = self.plans.of(facts.primary)
        if plan is None:
            return self._without_rules(facts)
        draft = _Draft({step.name: step for step in plan.steps}, plan.load, list(plan.evidence))
        for leaf in facts.secondary:
            other = self.plans.of(leaf)
            for step in other.steps if other else ():
                draft.add(step)
        draft.load += _MULTI_INTENT_LOAD * min(len(facts.secondary), 2)
        for name in plan.needs:
            slot = self.plans.slots[name]
            if not facts.holds(slot.when):
                draft.evidence.append(Evidence("missing_info", slot.odds))
        for rule in self.plans.rules:
            if _applies(rule, facts) and facts.holds(rule.when):
                _apply(rule, draft)
        if not draft.steps:
            draft.steps = {step.name: step for step in plan.steps}
        steps = [
            Step(s.name, s.tool, max(s.times if isinstance(s.times, int) else facts.measures[s.times], 1), s.after)
            for s in draft.steps.values()
        ]
        return Outcome(
            unfold(steps, self.plans.feeders),
            min(max(draft.load, 1.0), 5.0),
            self._joint(facts),
            *_pool(draft.evidence),
        )

    def _joint(self, facts: Facts) -> float:
        """Points of joint optimisation: half a point for each dimension after the first, one for each declared pair
        and one for each objective after the first."""
        present = facts.dimensions

        def there(name: str) -> bool:
            return any(other == name or other.startswith(f"{name}.") for other in present)

        pairs = sum(there(one) and there(other) for one, other in self.plans.joint)
        objectives = facts.measures[self.plans.objectives] if self.plans.objectives else 0
        return 0.5 * max(len(present) - 1, 0) + pairs + max(objectives - 1, 0)

    def _without_rules(self, facts: Facts) -> Outcome:
        joint = 0.5 * max(len(facts.dimensions) - 1, 0)
        if not self.domain.tools:
            return Outcome((), 1.0, joint, 0.0, None)
        return Outcome((Call(1, self._fitting_tool(facts.primary), ()),), 1.0, joint, 0.0, None)

    def _fitting_tool(self, leaf: str) -> str:
        if leaf not in self._fitted:
            from curation.algorithms.fit import best_match

            node = self.domain.taxonomy.by_id.get(leaf)
            words = " ".join(
                [leaf.replace(".", " "), node.description if node else "", *(node.examples if node else ())]
            )
            tools = list(self.domain.tools.values())
            targets = [f"{tool.name.replace('_', ' ')} {tool.group} {tool.description}" for tool in tools]
            self._fitted[leaf] = tools[best_match([words], targets)[0]].name
        return self._fitted[leaf]

    def _load_by_entropy(self, rows: pl.DataFrame) -> np.ndarray:
        entropy = binary_entropy(rows["confidence"].to_numpy())
        secondaries = np.minimum(rows["secondary"].list.len().to_numpy(), 2)
        return np.clip(1 + 4 * entropy + _MULTI_INTENT_LOAD * secondaries, 1, 5)

    def _reasons(self, rows: pl.DataFrame, outcomes: list[Outcome], at: np.ndarray) -> pl.Series:
        """Why a row cannot be solved; null for a solvable one."""
        said = np.clip(rows["unsolvable_confidence"].to_numpy().astype(np.float64), 1 - _CERTAIN, _CERTAIN)
        said = np.log(said / (1 - said))
        ruled = np.array([o.log_odds for o in outcomes], dtype=np.float64)[at]
        least = math.log(self.scale.unsolvable_threshold / (1 - self.scale.unsolvable_threshold))
        frame = pl.DataFrame(
            {
                "annotated": rows["unsolvable"],
                "alone": said >= least,
                "ruled": pl.Series([o.reason for o in outcomes], dtype=pl.String).gather(at),
                "unsolvable": np.round(said + ruled, 9) >= least,
            },
            schema_overrides={"annotated": pl.String},
        )
        own = pl.when("alone").then("annotated")
        return frame.select(reason=pl.when("unsolvable").then(pl.coalesce(own, "ruled", "annotated")))["reason"]


def _applies(rule: Rule, facts: Facts) -> bool:
    if not rule.nodes:
        return True
    labels = (facts.primary, *facts.secondary)
    return any(label == node or label.startswith(f"{node}.") for node in rule.nodes for label in labels)


def _apply(rule: Rule, draft: _Draft) -> None:
    draft.load += rule.load
    draft.evidence.extend(rule.evidence)
    for old, new in rule.use:
        draft.steps = {
            name: PlanStep(step.name, new, step.times, step.after) if step.tool == old else step
            for name, step in draft.steps.items()
        }
    for name in rule.drop:
        for found in draft.named(name):
            del draft.steps[found]
    for step in rule.add:
        draft.add(step)
    for name, times in rule.repeat:
        for found in draft.named(name):
            step = draft.steps[found]
            draft.steps[found] = PlanStep(step.name, step.tool, times, step.after)


def _pool(evidence: list[Evidence]) -> tuple[float, str | None]:
    """Sum of log odds, and the reason with the largest share; None if none speaks for unsolvability."""
    total = 0.0
    by_reason: dict[str, float] = {}
    for item in evidence:
        total += math.log(item.odds)
        if item.reason is not None:
            by_reason[item.reason] = by_reason.get(item.reason, 0.0) + math.log(item.odds)
    # The order of the file decides between equals, so nothing hangs on the order of a set.
    best = max(by_reason, key=lambda reason: by_reason[reason], default=None)
    if best is None or by_reason[best] <= 0:
        return total, None
    return total, best


def _shape(outcomes: list[Outcome]) -> tuple[list[int], list[int], list[int]]:
    """Calls, kinds and longest chain of every plan."""
    return (
        [len(o.calls) for o in outcomes],
        [len(o.tools) for o in outcomes],
        [longest_chain(o.calls) for o in outcomes],
    )


def _plan_series(outcomes: list[Outcome]) -> pl.Series:
    plans = [[{"step": c.step, "tool": c.tool, "depends_on": list(c.depends_on)} for c in o.calls] for o in outcomes]
    return pl.Series("plan", plans, dtype=_PLAN_TYPE)
