"""Vectors with near-duplicates, and the definitions of the levels written down naively."""

from __future__ import annotations

import numpy as np

from curation.algorithms.semantic import TOLERANCE


def clouds(n: int, d: int, seed: int = 0, *, groups: int = 20, noise: float = 0.5) -> np.ndarray:
    """float32[n, d]: rows around some centres at all distances, a third of them near copies of other rows."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((groups, d))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    spread = random.uniform(0.2, 1.0, (n, 1)) * noise * 2
    rows = centres[random.integers(0, groups, n)] + spread * random.standard_normal((n, d)) / np.sqrt(d)
    copies = random.permutation(n)[: n // 3]
    near = rows[random.integers(0, n, len(copies))]
    norm = np.linalg.norm(near, axis=1, keepdims=True)
    rows[copies] = near + norm * random.uniform(0, 0.6, (len(copies), 1)) * random.standard_normal(
        near.shape
    ) / np.sqrt(d)
    return rows.astype(np.float32)


def unit(vectors: np.ndarray) -> np.ndarray:
    rows = np.asarray(vectors, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def groups_by_definition(vectors, order, buckets, threshold):
    """Representatives by going through the rows one by one; quadratic."""
    rows, n = unit(vectors), len(vectors)
    representative = np.arange(n)
    kept: dict[int, list[int]] = {}
    for i in order:
        leaders = kept.setdefault(int(buckets[i]), [])
        if any(rows[i] @ rows[j] >= threshold - TOLERANCE for j in leaders):
            representative[i] = -1
        else:
            leaders.append(int(i))
    for i in np.flatnonzero(representative < 0):
        leaders = kept[int(buckets[i])]
        steps = np.floor(rows[leaders] @ rows[i] * 2**14 + 0.5)
        representative[i] = leaders[int(np.argmax(steps))]
    return representative


def picks_by_definition(grid, k, *, rank, first=None, centres=None):
    """K-Center-Greedy on grid vectors, naively."""
    grid = grid.astype(np.int64)
    closest = np.full(len(grid), -(2**40))
    if centres is not None and len(centres):
        closest = (grid @ centres.astype(np.int64).T).max(axis=1)
    elif first is None:
        first = int(np.argmin(rank))
    picks: list[int] = []
    while len(picks) < min(k, len(grid)):
        if first is not None and not picks:
            pick = first
        else:
            far = np.where(np.isin(np.arange(len(grid)), picks), 2**40, closest)
            ties = np.flatnonzero(far == far.min())
            pick = int(ties[np.argmin(rank[ties])])
        picks.append(pick)
        closest = np.maximum(closest, grid @ grid[pick])
    return np.array(picks, dtype=np.int64)
