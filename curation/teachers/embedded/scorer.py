"""Difficulty by execution simulation with the domain's plan rules: the embedded teacher's way to score.

For each distinct signature of labels, cues and constraints the rules give a plan, a cognitive load and evidence for
or against solvability; the rest is arithmetic over columns (``curation/algorithms/simulate.py``).

*Solvability* pools what the annotation says with what the rules say, as odds: ``odds = p / (1 - p)`` of the
annotation's ``unsolvable_confidence`` (taken as .08 to .995, so that it does not outweigh every rule) times the odds
of every rule, label and empty slot that applies. A query is unsolvable where the pooled probability reaches the
threshold and a reason is known: the annotation's where that alone reaches the threshold, else the rules' strongest,
else the annotation's.

*Joint optimisation* counts half a point for each dimension after the first, one for each declared pair of dimensions
and one for each objective after the first.

*A domain without plan rules* says nothing of tools. Where it declares tools, a leaf's plan is the one tool whose
description is nearest to the leaf's; where it declares none, plans stay empty and chain depth 0. Cognitive load then
is 1 + 4 times the entropy of the annotation: what is hard to label is hard to choose tools for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from curation.algorithms.simulate import (
    Call,
    binary_entropy,
    chain_depth,
    combine,
    constraint_complexity,
    longest_chain,
)
from curation.teachers.embedded.features import Features
from curation.teachers.embedded.programs import MULTI_INTENT_LOAD, Outcome, Program

if TYPE_CHECKING:
    from curation.domain.model import Domain

__all__ = ["INPUT_COLUMNS", "PlanScorer", "Scale", "difficulty_of_reason"]

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

PLAN = pl.List(pl.Struct({"step": pl.Int32, "tool": pl.String, "depends_on": pl.List(pl.Int32)}))
"""Type of ``difficulty.tool_plan``."""

# An annotation never outweighs every rule; as it knows the labels and not the tools, it weighs less where it says
# that a query can be solved.
_LEAST_SAID, _MOST_SAID = 0.08, 0.995


def difficulty_of_reason(reason: pl.Expr) -> pl.Expr:
    """0 where the query wants an answer that takes no tool (no_tool_needed), -1 where it cannot be carried out."""
    return pl.when(reason == "no_tool_needed").then(0).otherwise(-1)


@dataclass(frozen=True)
class Scale:
    """How the three dimensions become a difficulty; see :func:`curation.algorithms.simulate.combine`.

    ``unsolvable_threshold`` is the pooled probability from which a query counts as unsolvable.
    """

    weights: tuple[float, float, float]
    emphasis: float
    thresholds: tuple[float, ...]
    unsolvable_threshold: float


class PlanScorer:
    """Scores tables of annotated queries; keeps the outcomes of the signatures it has seen.

    Args:
        domain: Its plan rules, tools and taxonomy.
        scale: Weights and thresholds.
    """

    name = "embedded"

    def __init__(self, domain: Domain, scale: Scale) -> None:
        self.domain = domain
        self.scale = scale
        self._features = Features(domain.plans)
        self._programs: dict[tuple[str, str], Program | None] = {}
        self._outcomes: dict[tuple[int | str, ...], Outcome] = {}
        self._fitting: dict[str, Outcome] = {}

    def score(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The `difficulty` table of annotated queries.

        Args:
            rows: Columns :data:`INPUT_COLUMNS`; no null in ``primary``.

        Returns:
            One row per row, in order, with the columns of the contract of `difficulty`.
        """
        columns = self._features.columns(rows)
        outcomes, at = self._simulate(columns)
        plans, plan_at = _distinct_plans(outcomes)
        plan_at = plan_at[at]
        load = self._load(rows, outcomes, at)
        chain = chain_depth(*_shape(plans))[plan_at]
        complexity = constraint_complexity(
            columns["weight"].to_numpy(),
            self._joint(columns),
            columns["stated"].to_numpy() / np.maximum(rows["text"].str.len_chars().to_numpy(), 1),
        )
        scale = self.scale
        level = combine(
            load, chain, complexity, weights=scale.weights, emphasis=scale.emphasis, thresholds=scale.thresholds
        )
        solvable = pl.col("reason").is_null()
        return pl.DataFrame(
            {
                "query_id": rows["query_id"],
                "cognitive_load": pl.Series(load, dtype=pl.Float32),
                "chain_depth": pl.Series(chain, dtype=pl.Float32),
                "constraint_complexity": pl.Series(complexity, dtype=pl.Float32),
                "tool_plan": _plan_series(plans).gather(plan_at),
                "reason": self._reasons(rows, outcomes, at),
                "level": pl.Series(level, dtype=pl.Int8),
            }
        ).select(
            "query_id",
            difficulty=pl.when(solvable)
            .then("level")
            .otherwise(difficulty_of_reason(pl.col("reason")))
            .cast(pl.Int8),
            cognitive_load="cognitive_load",
            chain_depth=pl.when(solvable).then("chain_depth").otherwise(pl.lit(0, pl.Float32)),
            constraint_complexity="constraint_complexity",
            tool_plan=pl.when(solvable).then("tool_plan").otherwise(pl.lit([], PLAN)),
            reason="reason",
            teacher=pl.lit(self.name),
        )

    def _simulate(self, columns: pl.DataFrame) -> tuple[list[Outcome], np.ndarray]:
        """Outcomes of the distinct signatures, and which of them each row has."""
        words, values = self._features.words, self._features.values
        labels = columns.select("primary", "secondary").unique().sort("primary", "secondary")
        programs = [self._program(primary, secondary) for primary, secondary in labels.iter_rows()]
        masks = [program.masks if program else [0] * len(words) for program in programs]
        asks = [program.asks if program else [False] * len(values) for program in programs]
        labels = labels.with_columns(
            pl.Series("label", range(labels.height), dtype=pl.UInt32),
            *(pl.Series(f"mask{i}", [mask[i] for mask in masks], dtype=pl.UInt64) for i in range(len(words))),
            *(pl.Series(f"asks{i}", [ask[i] for ask in asks], dtype=pl.Boolean) for i in range(len(values))),
        )
        # Only what some rule of its labels asks for tells one signature from another.
        keys = columns.join(labels, on=["primary", "secondary"], how="left", maintain_order="left").select(
            "label",
            *(pl.col(name) & pl.col(f"mask{i}") for i, name in enumerate(words)),
            *(pl.col(name) * pl.col(f"asks{i}").cast(pl.UInt32) for i, name in enumerate(values)),
        )
        distinct = keys.unique(maintain_order=True).with_row_index("signature")
        names = [
            (str(primary), str(secondary)) for primary, secondary in labels.select("primary", "secondary").rows()
        ]
        outcomes = []
        for _, label, *rest in distinct.iter_rows():
            key = (*names[label], *rest)
            if key not in self._outcomes:
                self._outcomes[key] = self._outcome(names[label], programs[label], rest)
            outcomes.append(self._outcomes[key])
        at = keys.join(distinct, on=keys.columns, how="left", maintain_order="left")["signature"].to_numpy()
        return outcomes, at

    def _program(self, primary: str, secondary: str) -> Program | None:
        key = (primary, secondary)
        if key not in self._programs:
            plan = self.domain.plans.of(primary)
            leaves = tuple(secondary.split("+")) if secondary else ()
            self._programs[key] = (
                Program(self.domain.plans, self._features, plan, leaves, primary) if plan is not None else None
            )
        return self._programs[key]

    def _outcome(self, label: tuple[str, str], program: Program | None, numbers: list[int]) -> Outcome:
        if program is None:
            return self._without_rules(label[0])
        n_words = len(self._features.words)
        return program.run(self._features.joined(numbers[:n_words]), tuple(numbers[n_words:]))

    def _without_rules(self, leaf: str) -> Outcome:
        if not self.domain.tools:
            return Outcome((), 1.0, 0.0, None)
        if leaf not in self._fitting:
            from curation.algorithms.fit import best_match

            node = self.domain.taxonomy.by_id.get(leaf)
            words = [leaf.replace(".", " "), *((node.description, *node.examples) if node else ())]
            tools = list(self.domain.tools.values())
            targets = [f"{tool.name.replace('_', ' ')} {tool.group} {tool.description}" for tool in tools]
            tool = tools[best_match([" ".join(words)], targets)[0]].name
            self._fitting[leaf] = Outcome((Call(1, tool, ()),), 1.0, 0.0, None)
        return self._fitting[leaf]

    def _load(self, rows: pl.DataFrame, outcomes: list[Outcome], at: np.ndarray) -> np.ndarray:
        if self.domain.plans:
            return np.array([outcome.load for outcome in outcomes], dtype=np.float64)[at]
        entropy = binary_entropy(rows["confidence"].to_numpy())
        secondaries = np.minimum(rows["secondary"].list.len().to_numpy(), 2)
        return np.clip(1 + 4 * entropy + MULTI_INTENT_LOAD * secondaries, 1, 5)

    def _joint(self, columns: pl.DataFrame) -> np.ndarray:
        """Points of joint optimisation; see the head of the module."""
        plans = self.domain.plans
        sets = columns.select("dimensions").unique()
        points = [_joint_points(names.split("+") if names else [], plans.joint) for names in sets["dimensions"]]
        sets = sets.with_columns(pl.Series("points", points, dtype=pl.Float64))
        joint = columns.join(sets, on="dimensions", how="left", maintain_order="left")["points"].to_numpy()
        if plans.objectives is None:
            return joint
        objectives = columns[f"measure_{plans.objectives}"].to_numpy().astype(np.float64)
        return joint + np.maximum(objectives - 1, 0)

    def _reasons(self, rows: pl.DataFrame, outcomes: list[Outcome], at: np.ndarray) -> pl.Series:
        """Why a row cannot be solved; null for a solvable one."""
        said = np.clip(rows["unsolvable_confidence"].to_numpy().astype(np.float64), _LEAST_SAID, _MOST_SAID)
        said = np.log(said / (1 - said))
        ruled = np.array([outcome.log_odds for outcome in outcomes], dtype=np.float64)[at]
        least = math.log(self.scale.unsolvable_threshold / (1 - self.scale.unsolvable_threshold))
        frame = pl.DataFrame(
            {
                "annotated": rows["unsolvable"],
                "alone": said >= least,
                "ruled": pl.Series([outcome.reason for outcome in outcomes], dtype=pl.String).gather(at),
                "unsolvable": np.round(said + ruled, 9) >= least,
            },
            schema_overrides={"annotated": pl.String},
        )
        own = pl.when("alone").then("annotated")
        return frame.select(reason=pl.when("unsolvable").then(pl.coalesce(own, "ruled", "annotated")))["reason"]


def _joint_points(dimensions: list[str], pairs: tuple[tuple[str, str], ...]) -> float:
    def there(name: str) -> bool:
        return any(other == name or other.startswith(f"{name}.") for other in dimensions)

    return 0.5 * max(len(dimensions) - 1, 0) + sum(there(one) and there(other) for one, other in pairs)


def _distinct_plans(outcomes: list[Outcome]) -> tuple[list[tuple[Call, ...]], np.ndarray]:
    """The different plans, and which of them each outcome has."""
    seen: dict[tuple[Call, ...], int] = {}
    at = [seen.setdefault(outcome.calls, len(seen)) for outcome in outcomes]
    return list(seen), np.array(at, dtype=np.int64)


def _shape(plans: list[tuple[Call, ...]]) -> tuple[list[int], list[int], list[int]]:
    """Calls, kinds and longest chain of every plan."""
    kinds = [len({call.tool for call in plan}) for plan in plans]
    return [len(plan) for plan in plans], kinds, [longest_chain(plan) for plan in plans]


def _plan_series(plans: list[tuple[Call, ...]]) -> pl.Series:
    listed = [[{"step": c.step, "tool": c.tool, "depends_on": list(c.depends_on)} for c in plan] for plan in plans]
    return pl.Series("tool_plan", listed, dtype=PLAN)
