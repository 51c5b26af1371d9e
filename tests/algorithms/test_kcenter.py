from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms import kcenter as module
from curation.algorithms.kcenter import by_priority, kcenter
from curation.algorithms.vectors import to_grid
from tests.algorithms.clouds import clouds, picks_by_definition, unit


def ranks(weights, n):
    rank = np.empty(n, dtype=np.int64)
    rank[by_priority(weights, n)] = np.arange(n)
    return rank


@pytest.mark.parametrize(("n", "k"), [(0, 3), (1, 1), (2, 5), (7, 0)])
def test_s2_k_is_at_most_n(n, k):
    picks, radius = kcenter(np.eye(8, dtype=np.float32)[:n], k)
    assert len(picks) == len(radius) == len(set(picks.tolist())) == min(k, n)


def test_s2_identical_vectors():
    picks, radius = kcenter(np.ones((50, 8), dtype=np.float32), 50)
    assert picks.tolist() == list(range(50))
    assert radius.tolist() == [2.0] + [0.0] * 49


def test_s6_the_first_pick_is_fixed_by_rule_and_selected():
    vectors = clouds(100, 8)
    weights = np.ones(100, dtype=np.int64)
    weights[[70, 30]] = 9
    assert kcenter(vectors, 5)[0][0] == 0
    assert kcenter(vectors, 5, weights=weights)[0][0] == 30
    assert kcenter(vectors, 5, first=12)[0][0] == 12
    picks, radius = kcenter(vectors, 40, weights=weights)
    assert len(set(picks.tolist())) == 40
    assert radius[0] == 2 and (np.diff(radius) <= 0).all()


def test_radius_is_the_distance_to_the_nearest_earlier_pick():
    vectors = clouds(300, 16)
    picks, radius = kcenter(vectors, 60)
    rows = unit(vectors)[picks]
    for t in range(1, 60):
        assert abs(np.linalg.norm(rows[:t] - rows[t], axis=1).min() - radius[t]) < 1e-3


def test_every_row_is_within_the_radius_of_the_next_pick():
    vectors = clouds(500, 16)
    picks, radius = kcenter(vectors, 51)
    rows = unit(vectors)
    farthest = np.linalg.norm(rows[:, None] - rows[picks[:50]][None], axis=2).min(axis=1).max()
    assert abs(farthest - radius[50]) < 1e-3


def test_a_square_by_hand():
    # From east: west is opposite; then north and south tie, and the heavier one goes first.
    vectors = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)
    picks, radius = kcenter(vectors, 4, first=0, weights=np.array([1, 1, 1, 5]))
    assert picks.tolist() == [0, 2, 3, 1]
    assert np.allclose(radius, [2, 2, 2**0.5, 2**0.5])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_picks_follow_the_definition(data):
    n, d = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 4))
    entries = data.draw(st.lists(st.integers(-2, 2), min_size=n * d, max_size=n * d))
    vectors = np.array(entries, dtype=np.float32).reshape(n, d)
    vectors[~vectors.any(axis=1), 0] = 1
    weights = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)))
    k = data.draw(st.integers(1, n))
    first = data.draw(st.none() | st.integers(0, n - 1))
    centres = vectors[: data.draw(st.integers(0, min(3, n)))] if data.draw(st.booleans()) else None
    picks, radius = kcenter(vectors, k, weights=weights, first=first, centres=centres)
    earlier = None if centres is None else to_grid(centres)
    expected = picks_by_definition(to_grid(vectors), k, rank=ranks(weights, n), first=first, centres=earlier)
    assert picks.tolist() == expected.tolist()
    assert np.isfinite(radius).all()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_larger_case_follows_the_definition(monkeypatch, workers):
    vectors = clouds(3000, 32, seed=2)
    vectors[1000:1500] = vectors[7]
    weights = np.random.default_rng(0).integers(1, 4, 3000)
    expected = picks_by_definition(to_grid(vectors), 900, rank=ranks(weights, 3000))
    for pool, rows, centres in ((4096, 512, 1024), (100, 7, 13)):
        monkeypatch.setattr(module, "_POOL", pool)
        monkeypatch.setattr(module, "_ROWS", rows)
        monkeypatch.setattr(module, "_CENTRES", centres)
        assert np.array_equal(kcenter(vectors, 900, weights=weights, workers=workers)[0], expected)


def test_rows_near_an_earlier_selection_are_picked_late():
    vectors = np.array([[1, 0], [0.99, 0.1], [0, 1]], dtype=np.float32)
    picks, radius = kcenter(vectors, 3, centres=np.array([[1, 0]], dtype=np.float32), weights=np.array([9, 9, 1]))
    assert picks.tolist() == [2, 1, 0]
    assert radius[2] == 0 and radius[0] == pytest.approx(2**0.5)


def test_s4_noise_of_the_encoder_changes_nothing():
    vectors = unit(clouds(400, 24, seed=3)).astype(np.float32)
    noise = np.random.default_rng(1).uniform(-1e-6, 1e-6, vectors.shape).astype(np.float32)
    assert kcenter(vectors, 40)[0].tolist() == kcenter(vectors + noise, 40)[0].tolist()


def test_t10_row_order_does_not_matter():
    vectors = clouds(2000, 24, seed=4)
    weights = np.random.default_rng(5).permutation(2000)
    shuffle = np.random.default_rng(6).permutation(2000)
    picks, radius = kcenter(vectors, 200, weights=weights)
    moved, radius_moved = kcenter(vectors[shuffle], 200, weights=weights[shuffle])
    assert np.array_equal(shuffle[moved], picks) and np.array_equal(radius, radius_moved)


def test_t13_all_picks_are_picked_again_in_the_same_order():
    vectors = clouds(1000, 24, seed=7)
    picks, radius = kcenter(vectors, 100)
    again, radius_again = kcenter(vectors[picks], 100)
    assert again.tolist() == list(range(100)) and np.array_equal(radius, radius_again)
