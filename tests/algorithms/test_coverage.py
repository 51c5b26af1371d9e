from __future__ import annotations

import numpy as np
import pytest

from curation.algorithms import coverage
from curation.algorithms.coverage import nearest, nearest_pick, nearness, radii
from tests.algorithms.clouds import clouds, unit


def test_nearest_is_the_nearest(monkeypatch):
    vectors, picks = clouds(900, 24, seed=1), clouds(70, 24, seed=2)
    products = unit(vectors) @ unit(picks).T
    for rows, columns in ((2048, 4096), (100, 9)):
        monkeypatch.setattr(coverage, "_ROWS", rows)
        monkeypatch.setattr(coverage, "_COLUMNS", columns)
        choice, similarity = nearest(vectors, picks, workers=2)
        assert (products[np.arange(900), choice] > products.max(axis=1) - 5e-4).all()
        assert np.allclose(similarity, products[np.arange(900), choice], atol=1e-6)


def test_ties_go_to_the_earlier_pick():
    picks = np.array([[0, 1], [1, 0], [1, 0]], dtype=np.float32)
    assert nearest(np.array([[2, 0.1]], dtype=np.float32), picks)[0].tolist() == [1]


def test_a_pick_covers_itself_even_next_to_a_copy():
    vectors = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    covers, similarity = nearest_pick(vectors, np.array([1, 0]))
    assert covers.tolist() == [0, 1, 1]
    assert similarity.tolist() == [1, 1, 0]


def test_no_picks():
    with pytest.raises(ValueError, match="no picks"):
        nearest(np.ones((1, 2), np.float32), np.empty((0, 2), np.float32))


def test_nearness_is_the_same_however_picks_are_split():
    vectors, picks = clouds(300, 24, seed=1), clouds(70, 24, seed=2)
    whole = nearness(vectors, picks, workers=2)
    parts = np.maximum(nearness(vectors, picks[:13]), nearness(vectors, picks[13:]))
    assert np.array_equal(whole, parts)
    assert np.allclose(whole, (unit(vectors) @ unit(picks).T).max(axis=1), atol=1e-3)


def test_radii():
    assert np.allclose(radii(np.array([1.0, 0.5, 0.0, -1.0, 1.0001])), [0, 1, 2**0.5, 2, 0])
