"""Clusters by direction."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.clusters import cluster, mean_of_nearest, spherical_kmeans


def bundles(groups=5, size=40, d=16, spread=0.05, seed=0):
    random = np.random.default_rng(seed)
    middles = random.normal(size=(groups, d))
    rows = np.repeat(middles / np.linalg.norm(middles, axis=1, keepdims=True), size, axis=0)
    return (rows + random.normal(size=rows.shape) * spread).astype(np.float32), np.repeat(np.arange(groups), size)


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
