"""Sampling by squared distance."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.dsquared import d2_sample


def cloud(n, d=8, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 30), st.integers(0, 40), st.integers(0, 5))
def test_s2_distinct_rows_never_more_than_there_are(n, k, seed):
    picks = d2_sample(cloud(n), k, seed=seed)
    assert len(picks) == len(set(picks.tolist())) == min(n, k)
    assert ((picks >= 0) & (picks < n)).all()


def test_the_seed_decides_and_scale_does_not():
    rows = cloud(200)
    picks = d2_sample(rows, 10, seed=1)
    np.testing.assert_array_equal(picks, d2_sample(rows * np.float32(8), 10, seed=1))
    assert picks.tolist() != d2_sample(rows, 10, seed=2).tolist()


def test_s2_identical_rows_are_drawn_once_each_without_nan():
    assert sorted(d2_sample(np.ones((50, 4), np.float32), 50).tolist()) == list(range(50))


def test_every_far_cluster_is_met_before_a_second_row_of_one():
    centres = np.eye(6, dtype=np.float32)
    rows = np.repeat(centres, 20, axis=0)
    for seed in range(5):
        assert set(d2_sample(rows, 6, seed=seed) // 20) == set(range(6))


def test_rows_near_known_ones_are_not_drawn():
    rows = np.repeat(np.eye(3, dtype=np.float32), 10, axis=0)
    picks = d2_sample(rows, 2, known=np.eye(3, dtype=np.float32)[:2] * 5, seed=3)
    # Two of the three places are taken, so the first draw is at the third; after that all are alike and go by index.
    assert picks[0] // 10 == 2
    assert picks[1] == 0


def test_weight_zero_is_drawn_last():
    weights = np.array([0, 1, 1, 0], float)
    assert set(d2_sample(cloud(4), 2, weights=weights).tolist()) == {1, 2}


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(0, 5), st.floats(0.1, 0.9))
def test_no_two_drawn_rows_say_the_same(k, seed, same_from):
    rows = cloud(30, 3)
    picks = d2_sample(rows, k, known=rows[:2], same_from=same_from, seed=seed)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit[[0, 1, *picks.tolist()]].T
    among = cosines[[0, 1, *picks.tolist()]]
    assert np.triu(among, 1)[:, 2:].max(initial=-1) < same_from + 1e-3
    # Fewer than asked for only where every other row is covered.
    assert len(picks) == k or cosines.max(axis=1).min() >= same_from - 1e-3
