from __future__ import annotations

import numpy as np
import pytest

from curation.algorithms.bands import LOWEST, by_key, candidates, earlier_lanes, gather
from curation.algorithms.signs import sketch
from curation.algorithms.vectors import to_fixed
from tests.algorithms.clouds import clouds


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
            count = candidates(
                marks.codes,
                i,
                words,
                marks.codes,
                0,
                100,
                earlier_lanes(band),
                np.uint64(mask) * LOWEST,
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


def sorted_by_key(column, mask, chosen, level):
    start, places = np.empty(mask + 2, np.int32), np.empty((len(chosen), 2), np.int32)
    count = by_key(column, mask, chosen, level, start, places)
    return start, places[:count]


def test_rows_lie_by_key_and_else_in_their_order():
    column = np.array([5, 1, 0, 5, 9, 1], np.uint16)  # 9 is 1 in its lowest three bits
    start, places = sorted_by_key(column, 7, np.array([5, 4, 3, 1, 0]), np.empty(0, np.int64))
    assert places.tolist() == [[0, 5], [1, 4], [3, 1], [2, 3], [4, 0]]
    assert start.tolist() == [0, 0, 3, 3, 3, 3, 5, 5, 5]


def test_rows_with_a_level_are_left_out():
    column = np.array([2, 2, 1], np.uint16)
    start, places = sorted_by_key(column, 3, np.array([0, 1, 2]), np.array([-1, 70, -1]))
    assert places.tolist() == [[2, 2], [0, 0]]
    assert start.tolist() == [0, 0, 1, 2, 2]
    assert len(sorted_by_key(column, 3, np.array([0]), np.array([0]))[1]) == 0


def test_codes_are_gathered_in_the_order_of_places():
    codes = np.arange(4 * 18, dtype=np.uint64).reshape(4, 18)
    out = np.zeros((3, 18), np.uint64)
    gather(codes, np.array([[0, 3], [1, 1], [7, 7]], np.int32), 2, out)
    assert out[:2].tolist() == codes[[3, 1]].tolist()
    assert not out[2].any()
