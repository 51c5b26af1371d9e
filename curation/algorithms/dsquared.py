"""Sampling rows that spread: each next one with odds that grow with its squared distance to all before.

Source: Arthur and Vassilvitskii 2007 (k-means++ seeding). Against K-Center-Greedy it is less drawn to lone outliers,
since a dense region holds many rows that can be drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.vectors import GRID, FloatRows, to_grid

__all__ = ["d2_sample"]


def d2_sample(
    vectors: FloatRows,
    k: int,
    *,
    weights: NDArray[np.float64] | None = None,
    known: FloatRows | None = None,
    same_from: float | None = None,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Draw ``k`` distinct rows, odds proportional to weight times squared distance to the nearest row drawn or known.

    Args:
        vectors: float32[n, d], not zero; lengths do not matter.
        k: Rows to draw; min(k, n) are drawn.
        weights: float64[n], not negative; all 1 by default.
        known: float32[m, d], rows that need no further row near them. Without any, the first draw goes by weight.
        same_from: Cosine from which a row says the same as one drawn or known and is not drawn; None for no limit.
        seed: Of the draws.

    Returns:
        int64[min(k, n)] in the order of drawing, fewer where all others say the same as these. Products are exact, so
        threads and BLAS do not matter. Rows at distance or weight 0 come last, by index.
    """
    n = len(vectors)
    k = max(0, min(k, n))
    rows = to_grid(vectors)
    weight = np.ones(n) if weights is None else np.asarray(weights, np.float64)
    nearest = np.full(n, -np.inf)
    if known is not None and len(known):
        centres = to_grid(known)
        for start in range(0, len(centres), 1024):
            np.maximum(nearest, (rows @ centres[start : start + 1024].T).max(axis=1), out=nearest)
    random = np.random.default_rng(seed)
    free = np.ones(n, bool)
    picks = np.empty(k, np.int64)
    for i in range(k):
        # Products of grid rows are cosines times GRID ** 2; without any pick or known row all distances are alike.
        distance = np.clip(2 - 2 * nearest / GRID**2, 0, 4) if np.isfinite(nearest[0]) else np.ones(n)
        if same_from is not None:
            free &= nearest < same_from * GRID**2
            if not free.any():
                return picks[:i]
        odds = np.cumsum(np.where(free, weight * distance, 0))
        pick = int(np.searchsorted(odds, random.random() * odds[-1], side="right")) if odds[-1] > 0 else n
        # Rounding of rows to the grid leaves a small distance between equal rows, never a free row past the end.
        picks[i] = pick if pick < n and free[pick] else int(free.argmax())
        free[picks[i]] = False
        np.maximum(nearest, rows @ rows[picks[i]], out=nearest)
    return picks
