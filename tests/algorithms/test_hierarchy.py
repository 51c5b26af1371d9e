"""Cuts of a hierarchy and how good they are, against scipy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.hierarchy import best_cut, cut, pair_distances, silhouettes, ward


def blobs(sizes, d=8, apart=12.0, seed=0):
    random = np.random.default_rng(seed)
    middles = np.eye(len(sizes), d) * apart
    rows = [middle + random.normal(size=(size, d)) for middle, size in zip(middles, sizes, strict=True)]
    return np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes)


def same(first, second):
    """Whether two labellings make the same groups."""
    return len(set(zip(first.tolist(), second.tolist(), strict=True))) == len(set(first)) == len(set(second))


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 25), st.integers(1, 25), st.integers(0, 3))
def test_cuts_are_those_of_scipy(n, k, seed):
    from scipy.cluster.hierarchy import fcluster

    merges = ward(pair_distances(np.random.default_rng(seed).normal(size=(n, 3))))
    labels = cut(merges, k)
    assert len(set(labels)) == min(k, n)
    assert same(labels, fcluster(merges, min(k, n), "maxclust"))


def test_equal_rows_make_as_many_clusters_as_asked_for():
    labels = cut(ward(np.zeros((6, 6))), 4)
    assert sorted(set(labels.tolist())) == [0, 1, 2, 3]


def test_clusters_are_numbered_by_their_first_row():
    rows, _ = blobs([3, 3, 3])
    labels = cut(ward(pair_distances(rows[[6, 0, 3, 1, 7]])), 3)
    assert labels.tolist() == [0, 1, 2, 1, 0]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 20))
def test_silhouettes_are_those_of_scikit_learn(seed):
    from sklearn.metrics import silhouette_samples

    random = np.random.default_rng(seed)
    rows = random.normal(size=(20, 3))
    labels = np.concatenate([[0, 1, 2], random.integers(0, 3, 17)])
    np.testing.assert_allclose(silhouettes(pair_distances(rows), labels), silhouette_samples(rows, labels), atol=1e-9)


@pytest.mark.parametrize("sizes", [[10, 10], [5, 20, 9], [6] * 7])
def test_the_best_cut_finds_the_blobs(sizes):
    rows, truth = blobs(sizes)
    distances = pair_distances(rows)
    labels, score = best_cut(ward(distances), distances, range(2, 15))
    assert same(labels, truth)
    assert score == pytest.approx(silhouettes(distances, labels).mean())


def test_no_size_is_one_cluster():
    distances = pair_distances(np.eye(3))
    labels, score = best_cut(ward(distances), distances, [])
    assert labels.tolist() == [0, 0, 0]
    assert score == 0
