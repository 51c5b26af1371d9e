from __future__ import annotations

import math

import numpy as np
import pytest

from curation.algorithms import products
from curation.algorithms.vectors import FIXED, to_fixed
from tests.algorithms.clouds import clouds, groups_by_definition, unit

LEAST = math.ceil((0.92 - 1e-5) * FIXED * FIXED)


def groups(vectors):
    rows = to_fixed(vectors)
    kept = products.kept_rows(rows, LEAST)
    representative = np.arange(len(rows))
    at = np.flatnonzero(kept)
    representative[~kept] = at[products.nearest_kept(rows, LEAST, at, np.flatnonzero(~kept))]
    return representative


def test_blocks_do_not_show(monkeypatch):
    vectors = clouds(700, 16, seed=1)
    expected = groups_by_definition(vectors, np.arange(700), np.zeros(700), 0.92)
    for rows, columns in ((1024, 4096), (64, 17), (1, 1)):
        monkeypatch.setattr(products, "_ROWS", rows)
        monkeypatch.setattr(products, "_COLUMNS", columns)
        assert np.array_equal(groups(vectors), expected)


@pytest.mark.parametrize("error", [-5e-5, 5e-5])
def test_errors_of_the_blas_do_not_show(monkeypatch, error):
    vectors = clouds(600, 16, seed=2)
    expected = groups(vectors)
    monkeypatch.setattr(products, "units", lambda rows: unit(rows).astype(np.float32) * np.float32(1 + error / 2))
    assert np.array_equal(groups(vectors), expected)


def test_no_kept_row_is_close():
    rows = to_fixed(np.eye(3, dtype=np.float32))
    assert products.kept_rows(rows, LEAST).all()
    assert products.nearest_kept(rows, LEAST, np.array([0, 1]), np.array([2])).tolist() == [-1]
