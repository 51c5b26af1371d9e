"""Clusters by direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.clusters import (
    agreeing,
    closer_than_known,
    clusterings,
    mean_of_nearest,
    spherical_kmeans,
)


def bundles(groups=5, size=40, d=16, spread=0.05, seed=0):
    random = np.random.default_rng(seed)
    middles = random.normal(size=(groups, d))
    rows = np.repeat(middles / np.linalg.norm(middles, axis=1, keepdims=True), size, axis=0)
    return (rows + random.normal(size=rows.shape) * spread).astype(np.float32), np.repeat(np.arange(groups), size)


def cluster(rows, small, *, joined_from, **more):
    return clusterings(rows, small, joined_from=(joined_from,), **more)[0]


def groups_of(labels):
    return {frozenset(np.flatnonzero(labels == label).tolist()) for label in set(labels.tolist())}


def test_small_clusters_that_lie_close_are_joined():
    rows, truth = bundles()
    found = cluster(rows, 20, weights=np.ones(len(rows)), joined_from=0.8, seed=1)
    assert groups_of(found.labels) == groups_of(truth)
    assert found.sizes.tolist() == [40] * 5
    assert (found.cohesion > 0.9).all()
    assert found.labels[0] == 0


def test_scale_and_repetition_change_nothing():
    rows, _ = bundles()
    first, again = (
        spherical_kmeans(vectors, 7, weights=np.ones(len(rows)), seed=3) for vectors in (rows, rows * np.float32(4))
    )
    np.testing.assert_array_equal(first, again)


def test_s2_fewer_rows_than_clusters():
    rows, _ = bundles(1, 3)
    found = cluster(rows, 50, weights=np.ones(3), joined_from=0.5, seed=0)
    assert found.sizes.tolist() == [3]
    alone = cluster(rows[:1], 4, weights=np.ones(1), joined_from=0.5, seed=0)
    assert alone.labels.tolist() == [0]
    assert alone.cohesion[0] == pytest.approx(1)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 6), st.integers(1, 9), st.integers(0, 4))
def test_nearest_known_rows_against_sorting(k, m, seed):
    random = np.random.default_rng(seed)
    rows, known = (random.normal(size=(n, 6)).astype(np.float32) for n in (7, m))
    mean, which = mean_of_nearest(rows, known, k)
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (rows, known)]
    cosines = unit[0] @ unit[1].T
    expected = -np.sort(-cosines, axis=1)[:, :k]
    np.testing.assert_allclose(mean, expected.mean(axis=1), atol=1e-3)
    np.testing.assert_allclose(np.take_along_axis(cosines, which, axis=1), expected, atol=1e-3)


def test_of_equally_near_rows_the_first_is_named():
    known = np.repeat(np.eye(2, dtype=np.float32), 3, axis=0)
    _, which = mean_of_nearest(np.eye(2, dtype=np.float32), known, 2)
    assert which.tolist() == [[0, 1], [3, 4]]


def test_bars_join_the_same_small_clusters():
    rows, truth = bundles()
    args = {"weights": np.ones(len(rows)), "seed": 1}
    loose, close = clusterings(rows, 20, joined_from=(0.8, 0.9999), **args)
    assert groups_of(loose.labels) == groups_of(truth)
    assert len(close.sizes) > 5
    for group in groups_of(close.labels):
        assert any(group <= whole for whole in groups_of(loose.labels))
    assert np.array_equal(loose.labels, cluster(rows, 20, joined_from=0.8, **args).labels)
    (alone,) = clusterings(rows[:1], 20, joined_from=(0.5,), weights=np.ones(1), seed=1)
    assert alone.labels.tolist() == [0]


def plainly(rows, to_known, low, high):
    """Mean cosine to the neighbours from the ``low``-th to before the ``high``-th, less that to what is known."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit.astype(np.float64) @ unit.T.astype(np.float64)
    np.fill_diagonal(cosines, -2)
    return np.sort(cosines, axis=1)[:, ::-1][:, low:high].mean(axis=1) - to_known


def test_closeness_is_to_the_neighbours_less_that_to_what_is_known():
    rows, _ = bundles()
    to_known = np.random.default_rng(1).random(len(rows))
    found = closer_than_known(rows, to_known, neighbours=(10, 25), most=1000)
    np.testing.assert_allclose(found, plainly(rows, to_known, 10, 25), atol=0.02)


def test_a_group_that_nothing_known_stands_for_is_closer():
    rows, truth = bundles()
    known = np.concatenate([rows[truth == group][:5] for group in range(4)])
    to_known, _ = mean_of_nearest(rows, known, 5)
    found = closer_than_known(rows, to_known, neighbours=(10, 25), most=1000)
    assert found[truth == 4].min() > found[truth != 4].max() + 0.3
    some = closer_than_known(rows, to_known, neighbours=(10, 25), most=100)  # neighbours among half of the rows
    assert some[truth == 4].min() > some[truth != 4].max() + 0.3


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_rows_have_few_neighbours(n):
    rows, _ = bundles()
    found = closer_than_known(rows[:n], np.zeros(n), neighbours=(10, 25), most=1000)
    assert found.shape == (n,) and np.isfinite(found).all()


def test_sets_found_more_than_once_are_together_the_one_in_their_middle_first():
    def rows(*numbers):
        return np.array(numbers, np.int64)

    found = [
        [rows(1, 2, 3), rows(7, 8)],
        [rows(1, 2, 3, 4), rows(20, 21), rows(1, 2, 3)],
        [rows(1, 2, 3, 4, 5, 6), rows(8, 7)],
    ]
    assert agreeing(found, 0.5) == [
        [(1, 0), (0, 0), (2, 0)],  # 3/4 + 4/6 alike, against 3/4 + 3/6 and 4/6 + 3/6
        [(0, 1), (2, 1)],
        [(1, 1)],
        [(1, 2)],  # its search is in the first group already
    ]
    assert agreeing([], 0.5) == []


@given(st.lists(st.lists(st.sets(st.integers(0, 8), min_size=1), max_size=4), max_size=4))
def test_every_set_is_in_one_group_and_a_group_has_a_search_once(sets):
    found = [[np.array(sorted(one), np.int64) for one in search] for search in sets]
    groups = agreeing(found, 0.5)
    members = [member for group in groups for member in group]
    assert sorted(members) == [(search, place) for search, ones in enumerate(sets) for place in range(len(ones))]
    assert all(len({search for search, _ in group}) == len(group) for group in groups)
