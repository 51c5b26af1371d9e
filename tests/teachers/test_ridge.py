"""Ridge regression in closed form, against fitting again and again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.teachers.embedded.ridge import (
    fit_logistic,
    fit_temperature,
    log_loss,
    logit,
    softmax,
    solve,
    solve_subset,
)


def problem(n, seed=0, c=3):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, 4))
    kernel = np.exp(-0.5 * ((rows[:, None] - rows) ** 2).sum(-1))
    return kernel, random.normal(size=(n, c)), random.uniform(0.5, 2, n)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 12), st.integers(0, 100))
def test_leaving_out_in_closed_form_is_leaving_out(n, seed):
    kernel, targets, penalty = problem(n, seed)
    weights, left_out = solve(kernel, targets, penalty)
    np.testing.assert_allclose((kernel + np.diag(penalty)) @ weights, targets, atol=1e-9)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        again, _ = solve(kernel[np.ix_(rest, rest)], targets[rest], penalty[rest])
        np.testing.assert_allclose(left_out[i], kernel[i, rest] @ again, atol=1e-9)


def test_a_subset_of_all_rows_is_the_whole():
    kernel, targets, penalty = problem(15)
    whole, whole_out = solve(kernel, targets, penalty)
    part, part_out = solve_subset(kernel, kernel, targets, penalty)
    np.testing.assert_allclose(kernel @ part, kernel @ whole, atol=1e-4)
    np.testing.assert_allclose(part_out, whole_out, atol=1e-4)


def test_leaving_out_with_a_subset_is_leaving_out():
    kernel, targets, penalty = problem(20)
    chosen = np.arange(0, 20, 3)
    _, left_out = solve_subset(kernel[:, chosen], kernel[np.ix_(chosen, chosen)], targets, penalty)
    for i in (1, 5, 19):
        rest = np.delete(np.arange(20), i)
        again, _ = solve_subset(
            kernel[np.ix_(rest, chosen)], kernel[np.ix_(chosen, chosen)], targets[rest], penalty[rest]
        )
        np.testing.assert_allclose(left_out[i], kernel[i, chosen] @ again, atol=1e-6)


def test_rows_that_are_left_out_together():
    kernel, targets, penalty = problem(20)
    chosen = np.arange(0, 20, 3)
    cross, middle = kernel[:, chosen], kernel[np.ix_(chosen, chosen)]
    together = [np.array(rows) for rows in ([0, 12, 15], [1], [2, 19])]
    weights, left_out = solve_subset(cross, middle, targets, penalty, together)
    np.testing.assert_array_equal(weights, solve_subset(cross, middle, targets, penalty)[0])
    assert left_out.shape == (3, 3)
    for i, rows in enumerate(together):
        rest = np.setdiff1d(np.arange(20), rows)
        again, _ = solve_subset(cross[rest], middle, targets[rest], penalty[rest])
        np.testing.assert_allclose(left_out[i], cross[i] @ again, atol=1e-6)


def test_the_temperature_makes_the_loss_least():
    random = np.random.default_rng(1)
    scores = random.normal(size=(500, 4))
    draw = random.random((500, 1))
    classes = (softmax(scores * 3.0).cumsum(axis=1) < draw).sum(axis=1)
    found = fit_temperature(scores, classes)
    assert found == pytest.approx(3, rel=0.2)
    for other in (found * 0.9, found * 1.1):
        assert log_loss(scores, classes, found) <= log_loss(scores, classes, other)


def test_softmax_is_a_distribution_even_of_huge_scores():
    out = softmax(np.array([[1e4, 0, -1e4], [0, 0, 0]], np.float32))
    np.testing.assert_allclose(out, [[1, 0, 0], [1 / 3] * 3], atol=1e-6)


def test_a_logistic_curve_gives_back_the_odds_it_was_made_of():
    random = np.random.default_rng(2)
    scores = random.normal(size=4000)
    truth = random.random(4000) < 1 / (1 + np.exp(-(2 * scores - 1)))
    curve = fit_logistic(scores, truth)
    assert curve.slope == pytest.approx(2, rel=0.15)
    assert curve.offset == pytest.approx(-1, rel=0.2)
    assert curve(scores).mean() == pytest.approx(truth.mean(), abs=0.01)


def test_a_curve_of_separable_scores_is_finite_and_of_one_kind_is_none():
    curve = fit_logistic(np.array([-1.0, -0.9, 0.9, 1.0]), np.array([False, False, True, True]))
    assert 0 < curve(np.array([-1.0]))[0] < 0.5 < curve(np.array([1.0]))[0] < 1
    assert fit_logistic(np.ones(3), np.zeros(3, bool)) is None


def test_logit_is_the_inverse_of_the_logistic_curve_and_stays_finite():
    scores = np.array([-3.0, 0.0, 2.5])
    np.testing.assert_allclose(logit(1 / (1 + np.exp(-scores))), scores, atol=1e-9)
    assert np.isfinite(logit(np.array([0.0, 1.0], np.float32))).all()


def test_a_share_as_truth_counts_as_that_many_of_each():
    # Three quarters true, once as probabilities and once as rows.
    scores = np.repeat([-1.0, 1.0], 40)
    shares = np.repeat([0.25, 0.75], 40)
    rows = np.tile([True, False, False, False], 20)
    rows[40:] = ~rows[40:]
    soft, hard = fit_logistic(scores, shares), fit_logistic(scores, rows)
    assert soft is not None and hard is not None
    assert soft.slope == pytest.approx(hard.slope, rel=1e-6) and soft.offset == pytest.approx(hard.offset, abs=1e-9)


def test_scores_that_mislead_give_the_share_of_the_true():
    found = fit_logistic(np.array([-1.0, -1.0, 1.0, 1.0, 1.0]), np.array([True, True, True, False, False]))
    assert found is not None and found.slope == 0
    np.testing.assert_allclose(found(np.array([-9.0, 9.0])), 4 / 7)
