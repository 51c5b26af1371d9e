"""Connected components by union-find, with the smallest member as the name of each."""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = ["components", "join", "root"]


@njit(nogil=True, cache=True)
def root(parents, row):
    """The smallest row known to be connected with ``row``; halves the path on the way."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@njit(nogil=True, cache=True)
def join(parents, left, right):
    """Connect two rows."""
    left, right = root(parents, left), root(parents, right)
    if left < right:
        parents[right] = left
    else:
        parents[left] = right


@njit(nogil=True, cache=True)
def _flatten(parents):
    for row in range(parents.size):
        parents[row] = root(parents, row)


@njit(nogil=True, cache=True)
def _join_all(parents, left, right):
    for pair in range(left.size):
        join(parents, left[pair], right[pair])


def components(rows: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """int32 of length ``rows``: the smallest row of each row's component under the edges ``left[k] - right[k]``."""
    parents = np.arange(rows, dtype=np.int32)
    _join_all(parents, left, right)
    _flatten(parents)
    return parents
