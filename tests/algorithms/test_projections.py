from __future__ import annotations

import math

import numpy as np
import pytest

from curation.algorithms import products
from curation.algorithms.projections import _candidates, _earlier_lanes, kept_rows, nearest_kept
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


@pytest.mark.parametrize("threshold", [0.6, 0.92])
def test_candidates_agree_in_enough_signs_and_in_no_earlier_band(threshold):
    rows = to_fixed(clouds(12_000, 48, seed=3))
    marks = sketch(rows, threshold, seed=0)
    words = np.ascontiguousarray(marks.codes[:100, :16].T)
    mask, last = (1 << marks.bits) - 1, len(marks.columns) - 1
    keys = marks.columns.T & mask
    met_any, found_any = 0, 0
    for band in (0, 3, last):
        for i in range(100, 400):
            near = np.empty(100, np.int32)
            count = _candidates(
                marks.codes[i],
                words,
                marks.codes[:100],
                100,
                _earlier_lanes(band),
                np.uint64(mask * 0x0001_0001_0001_0001),
                marks.most_different,
                np.empty(100, np.int32),
                near,
            )
            differ = np.bitwise_count(marks.codes[i, :16] ^ marks.codes[:100, :16]).astype(int)
            close = differ.sum(axis=1) <= marks.most_different[1]
            if (differ[:, :8].sum(axis=1) > marks.most_different[0]).all():
                close[:] = False
            met = (keys[i, :band] == keys[:100, :band]).any(axis=1)
            assert near[:count].tolist() == np.flatnonzero(close & ~met).tolist()
            met_any, found_any = met_any + (close & met).sum(), found_any + count
    assert met_any > 100 and found_any > 100
    assert threshold == 0.92 or last > 64  # bands beyond the signs that are counted


def test_sides_of_very_different_size_are_searched_with_shorter_keys():
    rows = to_fixed(clouds(6000, 24, seed=4))
    marks = sketch(rows, 0.92, seed=0)
    least = math.ceil(0.92 * FIXED * FIXED)
    exact = products.kept_rows(rows, least)
    kept, gone = np.flatnonzero(exact), np.flatnonzero(~exact)[:20]
    expected = products.nearest_kept(rows, least, kept, gone)
    assert (expected >= 0).all()
    assert np.array_equal(nearest_kept(rows, marks, least, kept, gone), expected)
