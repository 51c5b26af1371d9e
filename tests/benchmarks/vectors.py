"""Vectors to measure with: clusters of uneven size and spread, or those of a workspace."""

from __future__ import annotations

from pathlib import Path

import numpy as np

__all__ = ["real_vectors", "synthetic_vectors"]


def synthetic_vectors(n: int, dim: int, seed: int = 0) -> np.ndarray:
    """float32[n, dim] unit vectors in some sqrt(n) clusters; sizes fall as rank to the .8, spreads from .3 to 1."""
    random = np.random.default_rng(seed)
    count = max(20, int(n**0.5))
    centres = random.standard_normal((count, dim), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    share = 1 / np.arange(1, count + 1) ** 0.8
    label = random.choice(count, n, p=share / share.sum())
    out = np.empty((n, dim), np.float32)
    for start in range(0, n, 100_000):
        at = slice(start, min(start + 100_000, n))
        size = at.stop - at.start
        spread = random.uniform(0.3, 1.0, (size, 1)).astype(np.float32) / np.float32(np.sqrt(dim))
        rows = centres[label[at]] + random.standard_normal((size, dim), dtype=np.float32) * spread
        out[at] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return out


def real_vectors(workspace: Path, most: int) -> np.ndarray:
    """float32[n, d]: the first ``most`` rows of a workspace's `embeddings`, by id, so a random sample."""
    from curation.engine.workspace import Workspace
    from curation.spill import vector_batches

    found, total = [], 0
    for _, batch in vector_batches(Workspace(workspace).files("embeddings")):
        found.append(batch)
        total += len(batch)
        if total >= most:
            break
    return np.concatenate(found)[:most]
