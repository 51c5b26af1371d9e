"""What tags say of queries."""

from __future__ import annotations

import numpy as np
import pytest

from curation.algorithms.tagging import (
    coherence,
    count_tags,
    generality,
    neighbours,
    tag_profiles,
    tagged_distances,
)
from curation.algorithms.vectors import to_grid

TWO_TOPICS = np.repeat(np.eye(2, 8, dtype=np.float32), 10, axis=0)


def test_labellers_are_counted_and_tags_of_one_query_left_out():
    found = count_tags([["a", "b"], ["a"], ["a", "c"]], np.array([0, 0, 1]), 2)
    assert found.names == ("a",)
    assert found.counts.tolist() == [[2], [1]]


def test_a_tag_of_alike_queries_is_coherent_one_of_any_query_is_not():
    tags = [["music"] if row < 10 else [] for row in range(20)]
    tags = [[*own, "question"] if row % 2 else own for row, own in enumerate(tags)]
    found = count_tags(tags, np.arange(20), 20)
    music, question = coherence(found, to_grid(TWO_TOPICS))
    # Ten equal rows: coherence 1, shrunk by 10 / (10 + 2).
    assert music == pytest.approx(10 / 12, abs=1e-3)
    assert question == pytest.approx(0, abs=1e-3)


def test_a_missing_tag_is_completed_by_the_neighbours():
    tags = [["music"] if row in range(9) else [] for row in range(20)]
    found = count_tags(tags, np.arange(20), 20)
    rows = TWO_TOPICS + np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32) * 0.01
    profiles = tag_profiles(found, np.ones(1), neighbours(to_grid(rows), 5))
    assert profiles[:, 0].tolist() == [1.0] * 10 + [0.0] * 10


def test_neighbours_are_other_rows_ties_by_index():
    assert neighbours(to_grid(TWO_TOPICS[:4]), 2).tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]
    assert neighbours(to_grid(TWO_TOPICS[:1]), 3).shape == (1, 0)


def test_distances_are_those_of_text_and_tags_side_by_side():
    random = np.random.default_rng(1)
    text = random.normal(size=(6, 5)).astype(np.float32)
    text /= np.linalg.norm(text, axis=1, keepdims=True)
    tags = np.zeros((6, 3), np.float32)
    tags[:4] = random.random((4, 3))
    tags[:4] /= np.linalg.norm(tags[:4], axis=1, keepdims=True)
    both = np.hstack([text, 0.5 * tags])
    expected = np.linalg.norm(both[:, None] - both[None], axis=2)
    np.testing.assert_allclose(tagged_distances(to_grid(text), tags, 0.5), expected, atol=2e-3)


def test_generality_is_the_log_of_the_clusters_a_tag_is_spread_over():
    shares = np.array([[1.0, 2, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(generality(shares), [np.log(4), 0, 0])
