"""From steps to numbered calls, and the three formulas by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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

FEEDERS = {"route": frozenset({"search"}), "along": frozenset({"search"})}


def test_a_step_waits_for_the_steps_that_feed_it() -> None:
    steps = [Step("route", "route", 1, None), Step("search", "search", 1, None)]
    assert unfold(steps, FEEDERS) == (Call(1, "search", ()), Call(2, "route", (1,)))


def test_copies_run_beside_each_other_and_all_feed_a_single_step() -> None:
    steps = [Step("search", "search", 2, None), Step("route", "route", 1, None)]
    assert unfold(steps, FEEDERS) == (Call(1, "search", ()), Call(2, "search", ()), Call(3, "route", (1, 2)))


def test_as_many_copies_pair_off() -> None:
    steps = [Step("search", "search", 2, None), Step("route", "route", 2, None)]
    assert [call.depends_on for call in unfold(steps, FEEDERS)] == [(), (), (1,), (2,)]


def test_explicit_waiting_replaces_feeding_and_absent_names_are_ignored() -> None:
    steps = [
        Step("search", "search", 1, None),
        Step("route", "route", 1, ("gone",)),
        Step("web", "web", 1, ("route",)),
    ]
    assert unfold(steps, FEEDERS) == (Call(1, "search", ()), Call(2, "route", ()), Call(3, "web", (2,)))


def test_feeding_never_closes_a_circle() -> None:
    steps = [Step("search", "search", 1, ("route",)), Step("route", "route", 1, None)]
    assert unfold(steps, FEEDERS) == (Call(1, "route", ()), Call(2, "search", (1,)))


def test_nothing_to_unfold() -> None:
    assert unfold([], {}) == ()
    assert longest_chain(()) == 0


@st.composite
def plans(draw: st.DrawFn) -> list[Step]:
    names = [f"s{i}" for i in range(draw(st.integers(0, 7)))]
    steps = []
    for name in names:
        after = draw(st.none() | st.lists(st.sampled_from(names), max_size=3, unique=True).map(tuple))
        steps.append(Step(name, draw(st.sampled_from("abc")), draw(st.integers(1, 3)), after))
    return steps


@given(plans(), st.dictionaries(st.sampled_from("abc"), st.frozensets(st.sampled_from("abc"))))
def test_any_plan_unfolds_to_calls_that_only_look_back(steps: list[Step], feeders: dict[str, frozenset[str]]) -> None:
    calls = unfold(steps, feeders)
    assert [call.step for call in calls] == list(range(1, len(calls) + 1))
    assert sorted(call.tool for call in calls) == sorted(step.tool for step in steps for _ in range(step.times))
    assert all(other < call.step for call in calls for other in call.depends_on)
    assert longest_chain(calls) <= len(steps)


def test_longest_chain_counts_calls_on_the_path() -> None:
    assert longest_chain((Call(1, "a", ()), Call(2, "b", (1,)), Call(3, "c", ()), Call(4, "d", (2, 3)))) == 3


@pytest.mark.parametrize(
    ("calls", "kinds", "depth", "expected"),
    [
        (0, 0, 0, 0.0),
        (1, 1, 1, 1.0),  # E = 1
        (2, 2, 2, 1 + 1.2 * math.log2(2.25)),
        (3, 2, 2, 1 + 1.2 * math.log2(2 + 0.35 + 0.25)),
        (2, 1, 1, 1 + 1.2 * math.log2(1.35)),
        (40, 5, 20, 5.0),  # never above 5
    ],
)
def test_chain_depth_by_hand(calls: int, kinds: int, depth: int, expected: float) -> None:
    assert chain_depth(calls, kinds, depth) == pytest.approx(expected)


def test_a_dependent_call_is_deeper_than_one_beside() -> None:
    sequential, parallel = chain_depth([2, 2], [1, 1], [2, 1])
    assert sequential > parallel > chain_depth(1, 1, 1)


@pytest.mark.parametrize(
    ("weight", "joint", "density", "expected"),
    [
        (0, 0, 0, 0.0),
        (1, 0, 0.5, 5 * (1 - math.exp(-1 / 3))),  # a constraint in half of the letters counts 1
        (2, 1, 1.0, 5 * (1 - math.exp(-(2 * 1.2 + 0.5) / 3))),
        (2, 0, 7.0, 5 * (1 - math.exp(-2.4 / 3))),  # density is at most 1
    ],
)
def test_constraint_complexity_by_hand(weight: float, joint: float, density: float, expected: float) -> None:
    assert constraint_complexity(weight, joint, density) == pytest.approx(expected)


@given(st.floats(0, 50), st.floats(0, 20), st.floats(0, 1))
def test_constraint_complexity_stays_on_the_scale_and_grows(weight: float, joint: float, density: float) -> None:
    value = float(constraint_complexity(weight, joint, density))
    assert 0 <= value <= 5
    assert value <= constraint_complexity(weight + 1, joint, density)
    assert value <= constraint_complexity(weight, joint + 1, density)


SCALE = {"weights": (0.35, 0.45, 0.20), "emphasis": 0.2, "thresholds": (1.5, 2.1, 2.7, 3.4)}


def test_difficulty_by_hand() -> None:
    # 0.8 * (0.35 * 1 + 0.45 * 1) + 0.2 * 1 = 0.84; 0.8 * (1.05 + 1.08 + 0.2) + 0.2 * 3 = 2.464; all 5
    assert combine([1, 3, 5], [1, 2.4, 5], [0, 1, 5], **SCALE).tolist() == [1, 3, 5]


def test_a_score_on_a_threshold_reaches_it() -> None:
    level = combine([1.5], [1.5], [1.5], **SCALE)  # mean and maximum are 1.5, the sum of floats is a hair off
    assert level.tolist() == [2]
    assert level.dtype == np.int8


def test_one_hard_side_lifts_a_query_above_its_mean() -> None:
    flat = combine([1.7], [1.7], [1.7], **{**SCALE, "emphasis": 0.5})
    sharp = combine([1.0], [1.0], [4.5], **{**SCALE, "emphasis": 0.5})  # the same weighted mean
    assert sharp > flat


def test_entropy_of_a_label() -> None:
    assert binary_entropy([1.0, 0.5, 0.3]).tolist() == [0.0, 1.0, 1.0]
    assert binary_entropy([0.9])[0] == pytest.approx(0.4690, abs=1e-4)
