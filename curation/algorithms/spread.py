"""Choosing rows so that they spread over groups, and groups within groups, as evenly as the rows allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["round_robin"]


def round_robin(outer: ArrayLike, inner: ArrayLike, total: int) -> NDArray[np.int64]:
    """Pick rows by turns: outer groups in order, in each the inner groups in order, in each the first row left.

    Args:
        outer: int[n], outer group of each row; lower numbers come first in every turn.
        inner: int[n], inner group.
        total: rows to pick; all are picked when there are fewer.

    Returns:
        int64[min(n, total)], positions in the order of picking. Rows of one pair of groups keep their order.
    """
    first = np.asarray(outer, dtype=np.int64)
    second = np.asarray(inner, dtype=np.int64)
    rows = np.arange(len(first))
    in_pair = _rank((second, first), rows)
    in_outer = _rank((first,), np.lexsort((rows, second, in_pair)))
    return np.lexsort((rows, first, in_outer))[:total]


def _rank(keys: tuple[NDArray[np.int64], ...], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """0-based place of each row among the rows with the same keys, when they stand in ``order``."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    grouped = np.lexsort((place, *keys))
    starts = np.ones(len(order), dtype=bool)
    if len(order):
        same = [key[grouped][1:] == key[grouped][:-1] for key in keys]
        starts[1:] = ~np.logical_and.reduce(same)
    begin = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    rank = np.empty(len(order), dtype=np.int64)
    rank[grouped] = np.arange(len(order)) - begin
    return rank
