from __future__ import annotations

import math

import numpy as np

from curation.algorithms import products
from curation.algorithms.projections import kept_rows, nearest_kept
from curation.algorithms.signs import sketch
from curation.algorithms.vectors import FIXED, to_fixed
from tests.algorithms.clouds import clouds


def test_a_kept_row_that_shares_no_band_is_not_found_by_bands():
    rows = to_fixed(np.eye(64, dtype=np.float32)[:2])
    marks = sketch(rows, 0.92, seed=0)
    least = math.ceil(0.92 * FIXED * FIXED)
    assert kept_rows(rows, marks, least).all()
    assert nearest_kept(rows, marks, least, np.array([0]), np.array([1])).tolist() == [-1]


def test_threads_see_the_same_rows_beyond_one_leaf():
    rows = to_fixed(clouds(9000, 24, seed=2))
    marks = sketch(rows, 0.92, seed=0)
    least = math.ceil(0.92 * FIXED * FIXED)
    one, four = (kept_rows(rows, marks, least, workers=w) for w in (1, 4))
    assert np.array_equal(one, four)
    sides = np.flatnonzero(one), np.flatnonzero(~one)
    first, second = (nearest_kept(rows, marks, least, *sides, workers=w) for w in (1, 4))
    assert np.array_equal(first, second)


def test_sides_of_very_different_size_are_searched_with_shorter_keys():
    rows = to_fixed(clouds(6000, 24, seed=4))
    marks = sketch(rows, 0.92, seed=0)
    least = math.ceil(0.92 * FIXED * FIXED)
    exact = products.kept_rows(rows, least)
    kept, gone = np.flatnonzero(exact), np.flatnonzero(~exact)[:20]
    expected = products.nearest_kept(rows, least, kept, gone)
    assert (expected >= 0).all()
    assert np.array_equal(nearest_kept(rows, marks, least, kept, gone), expected)
