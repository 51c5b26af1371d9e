"""Execution simulation: from the steps of a plan to numbered calls, and from calls and constraints to difficulty.

Everything lies on one scale of 0 to 5. For a plan of N calls of K different tools whose longest chain of dependent
calls is D long, and for a query with constraints of total weight s, J points of joint optimisation and the share rho
of its letters in constraints::

    effective length   E = D + 0.35 (N - D) + 0.25 (K - 1)
    chain depth        min(5, 1 + 1.2 log2 E)                                   0 without a plan
    constraint complexity  5 (1 - exp(-(s (0.8 + 0.4 rho) + 0.5 J) / 3))

A call that waits for another counts in full, one that can run beside others about a third: it has to be thought of,
but not waited for or steered by an answer. Each further kind of tool costs a quarter: another schema to fill.
The three dimensions are those of arXiv 2512.24957 (difficulty by execution simulation); the formulas are ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Call",
    "Step",
    "binary_entropy",
    "chain_depth",
    "combine",
    "constraint_complexity",
    "longest_chain",
    "unfold",
]

FloatArray = NDArray[np.float64]

PARALLEL_COST = 0.35
KIND_COST = 0.25
LENGTH_SCALE = 1.2
DENSITY_FLOOR, DENSITY_GAIN = 0.8, 0.4
JOINT_COST = 0.5
COMPLEXITY_SCALE = 3.0
TOP = 5.0


class Step(NamedTuple):
    """A step before it is unfolded: called ``times`` in parallel, after the steps named or (None) its feeders."""

    name: str
    tool: str
    times: int
    after: tuple[str, ...] | None


class Call(NamedTuple):
    """A call of a plan: 1-based number, tool, numbers of the calls whose answers it needs (ascending)."""

    step: int
    tool: str
    depends_on: tuple[int, ...]


def unfold(steps: Sequence[Step], feeders: Mapping[str, frozenset[str]]) -> tuple[Call, ...]:
    """Number the calls of ``steps`` so that every call comes after those it depends on.

    Steps with ``after`` wait for the steps named (names that are not there are ignored); the others wait for the
    steps whose tool is among ``feeders[tool]``, except where that would close a circle. Of two steps called equally
    often each copy waits for its own counterpart only; else for all copies.

    Args:
        steps: In the order they were planned; names are distinct.
        feeders: Tool to the tools whose answers it takes.

    Returns:
        The calls, by depth, then in the order of the steps.
    """
    waits = _dependencies(steps, feeders)
    level = [0] * len(steps)
    for index in _topological(waits):
        level[index] = 1 + max((level[other] for other in waits[index]), default=0)
    order = sorted(range(len(steps)), key=lambda index: (level[index], index))
    numbers: dict[int, range] = {}
    used = 0
    for index in order:
        numbers[index] = range(used + 1, used + 1 + steps[index].times)
        used += steps[index].times
    calls = []
    for index in order:
        for copy, number in enumerate(numbers[index]):
            needed: list[int] = []
            for other in waits[index]:
                paired = steps[other].times == steps[index].times
                needed.extend([numbers[other][copy]] if paired else numbers[other])
            calls.append(Call(number, steps[index].tool, tuple(sorted(needed))))
    return tuple(calls)


def _dependencies(steps: Sequence[Step], feeders: Mapping[str, frozenset[str]]) -> list[list[int]]:
    """Indexes of the steps each step waits for."""
    at = {step.name: index for index, step in enumerate(steps)}
    waits: list[list[int]] = [[] for _ in steps]

    def reaches(start: int, goal: int) -> bool:
        return start == goal or any(reaches(other, goal) for other in waits[start])

    def link(index: int, others: list[int]) -> None:
        for other in others:
            if other not in waits[index] and not reaches(other, index):
                waits[index].append(other)

    for index, step in enumerate(steps):
        if step.after is not None:
            link(index, [at[name] for name in step.after if name in at])
    for index, step in enumerate(steps):
        if step.after is None:
            fed_by = feeders.get(step.tool, frozenset())
            link(index, [other for other in range(len(steps)) if other != index and steps[other].tool in fed_by])
    return waits


def _topological(waits: list[list[int]]) -> list[int]:
    done: dict[int, None] = {}

    def visit(index: int) -> None:
        if index not in done:
            for other in waits[index]:
                visit(other)
            done[index] = None

    for index in range(len(waits)):
        visit(index)
    return list(done)


def longest_chain(calls: Sequence[Call]) -> int:
    """Number of calls on the longest path of dependent calls; 0 for no call."""
    depth: dict[int, int] = {}
    for call in calls:
        depth[call.step] = 1 + max((depth[other] for other in call.depends_on), default=0)
    return max(depth.values(), default=0)


def chain_depth(calls: ArrayLike, kinds: ArrayLike, depth: ArrayLike) -> FloatArray:
    """Chain depth on the scale of 0 to 5; see the head of the module.

    Args:
        calls: int[n], N, calls of the plan.
        kinds: int[n], K, different tools.
        depth: int[n], D, longest chain.
    """
    n, k, d = (np.asarray(values, dtype=np.float64) for values in (calls, kinds, depth))
    length = d + PARALLEL_COST * (n - d) + KIND_COST * (k - 1)
    return np.where(n > 0, np.minimum(TOP, 1 + LENGTH_SCALE * np.log2(np.maximum(length, 1.0))), 0.0)


def constraint_complexity(weight: ArrayLike, joint: ArrayLike, density: ArrayLike) -> FloatArray:
    """Constraint complexity on the scale of 0 to 5; see the head of the module.

    Args:
        weight: float[n], s, sum of the weights of the distinct constraints.
        joint: float[n], J, points of joint optimisation.
        density: float[n], rho, share of the letters that state constraints, 0 to 1.
    """
    s, j, rho = (np.asarray(values, dtype=np.float64) for values in (weight, joint, density))
    load = s * (DENSITY_FLOOR + DENSITY_GAIN * np.clip(rho, 0, 1)) + JOINT_COST * j
    return TOP * (1 - np.exp(-load / COMPLEXITY_SCALE))


def combine(
    load: ArrayLike,
    chain: ArrayLike,
    complexity: ArrayLike,
    *,
    weights: tuple[float, float, float],
    emphasis: float,
    thresholds: Sequence[float],
) -> NDArray[np.int8]:
    """Difficulty 1 to 5: ``(1 - emphasis)`` of the weighted mean and ``emphasis`` of the largest dimension.

    The maximum keeps a query that is hard in one way from being averaged into an easy one.

    Args:
        load: float[n], cognitive load.
        chain: float[n], chain depth.
        complexity: float[n], constraint complexity.
        weights: Of the three, in that order; they need not sum to 1.
        emphasis: 0 to 1.
        thresholds: Ascending; difficulty is 1 and one more for every threshold that the score reaches.
    """
    parts = np.stack([np.asarray(values, dtype=np.float64) for values in (load, chain, complexity)])
    share = np.asarray(weights, dtype=np.float64) / sum(weights)
    # Elementwise sums, since a matrix product may round differently from one BLAS to the next.
    mean = parts[0] * share[0] + parts[1] * share[1] + parts[2] * share[2]
    score = np.round((1 - emphasis) * mean + emphasis * parts.max(axis=0), 6)
    return (1 + np.searchsorted(np.asarray(thresholds, dtype=np.float64), score, side="right")).astype(np.int8)


def binary_entropy(probability: ArrayLike) -> FloatArray:
    """Entropy in bits of "right or not" at ``probability``; 1 below one half, where nothing is known."""
    p = np.clip(np.asarray(probability, dtype=np.float64), 0.5, 1.0)
    q = 1 - p
    with np.errstate(divide="ignore", invalid="ignore"):
        bits = -(p * np.log2(p) + np.where(q > 0, q * np.log2(q), 0.0))
    return np.abs(bits)
