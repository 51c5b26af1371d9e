from __future__ import annotations

import numpy as np
from numba import njit

from curation.algorithms.processor import fetch, ones


@njit
def count(x: np.ndarray) -> np.ndarray:
    out = np.empty(len(x), np.int64)
    for i in range(len(x)):
        out[i] = ones(x[i])
    return out


@njit
def total_with_fetch(matrix: np.ndarray) -> int:
    total = 0
    for i in range(matrix.shape[0]):
        fetch(matrix, (i + 3) % matrix.shape[0], matrix.shape[1] - 1)
        for c in range(matrix.shape[1]):
            total += matrix[i, c]
    return total


def test_ones_are_counted_over_all_64_bits():
    x = np.concatenate(
        [
            np.array([0, 1, 2**63, 2**64 - 1], np.uint64),
            np.random.default_rng(0).integers(0, 2**64, 200, dtype=np.uint64),
        ]
    )
    assert count(x).tolist() == [int(value).bit_count() for value in x]


def test_a_fetch_changes_nothing_whatever_the_entries():
    for dtype in (np.int8, np.uint64):
        matrix = np.arange(60, dtype=dtype).reshape(20, 3)
        assert total_with_fetch(matrix) == matrix.sum()
        assert np.array_equal(matrix, np.arange(60).reshape(20, 3))
