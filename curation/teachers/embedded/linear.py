"""Linear heads over dense and sparse features, learnt together in one pass after another over many rows.

Softmax heads are learnt from distributions, logistic heads from probabilities, both by the cross entropy with them
(distillation: Hinton, Vinyals and Dean 2015). Steps are those of AdaGrad (Duchi, Hazan and Singer 2011), one row at a
time in a fixed order on one thread, so the same rows give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from curation.teachers.embedded.ngrams import Sparse

__all__ = ["LOGISTIC", "SOFTMAX", "Head", "Linear", "fit_linear"]

Floats = NDArray[np.float32]

SOFTMAX, LOGISTIC = 0, 1
_RATE = np.float32(0.2)
_PASSES = 4
_SEED = 1
_TILE = 96


@dataclass(frozen=True)
class Head:
    """Targets of one head.

    Attributes:
        kind: `SOFTMAX` (each row of the targets sums to 1) or `LOGISTIC` (every target a probability of its own).
        targets: float32[n, k].
        weight: float32[n], how much a row counts for this head.
    """

    kind: int
    targets: Floats
    weight: Floats


@dataclass(frozen=True)
class Linear:
    """scores = vectors @ on_vectors + words @ on_ngrams + bias, the heads side by side."""

    on_vectors: Floats
    on_ngrams: Floats
    bias: Floats

    def scores(self, vectors: Floats, words: Sparse) -> Floats:
        """float32[n, all k]; each row's depends on it alone. Call it with single-threaded BLAS."""
        n = len(vectors)
        # Products of a height that is a multiple of a tile: the same bits for a row, whatever stands beside it.
        rows = np.zeros((max(_TILE, -(-n // _TILE) * _TILE), vectors.shape[1]), np.float32)
        rows[:n] = vectors
        out = (rows @ self.on_vectors)[:n]
        out += words.times(self.on_ngrams)
        out += self.bias
        return out


def fit_linear(vectors: Floats, words: Sparse, width: int, heads: list[Head]) -> Linear:
    """Learn all heads.

    Args:
        vectors: float32[n, d].
        words: n rows of sparse features.
        width: Number of sparse features there can be.
        heads: Targets; n rows each.

    Some 40 CPU-seconds for 100,000 rows, 512 numbers and 70 columns.
    """
    n, d = vectors.shape
    targets = np.hstack([head.targets for head in heads])
    bounds = np.cumsum([0, *(head.targets.shape[1] for head in heads)])
    kinds = np.array([head.kind for head in heads])
    weights = np.stack([head.weight for head in heads], axis=1)
    # The last row of the dense weights is the bias.
    dense = np.zeros((d + 1, targets.shape[1]), np.float32)
    sparse = np.zeros((width, targets.shape[1]), np.float32)
    seen = np.full_like(dense, 1e-6), np.full_like(sparse, 1e-6)
    random = np.random.default_rng(_SEED)
    for _ in range(_PASSES):
        order = random.permutation(n)
        _learn(
            order, vectors, words.starts, words.columns, words.values, targets, weights, bounds, kinds, dense, sparse,
            *seen, _RATE,
        )  # fmt: skip
    return Linear(np.ascontiguousarray(dense[:d]), sparse, dense[d].copy())


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _learn(  # type: ignore[no-untyped-def]
    order, vectors, starts, columns, values, targets, weights, bounds, kinds, dense, sparse, seen_dense, seen_sparse,
    rate,
):  # fmt: skip
    """One pass over the rows in the given order; changes weights and sums of squared slopes in place."""
    d, k = vectors.shape[1], targets.shape[1]
    slope = np.empty(k, np.float32)
    for i in order:
        slope[:] = dense[d]
        for j in range(d):
            _add(slope, dense[j], vectors[i, j])
        for at in range(starts[i], starts[i + 1]):
            _add(slope, sparse[columns[at]], values[at])
        for head in range(len(kinds)):
            low, high = bounds[head], bounds[head + 1]
            if kinds[head] == SOFTMAX:
                part = np.exp(slope[low:high] - slope[low:high].max())
                part /= part.sum()
            else:
                part = np.float32(1) / (np.float32(1) + np.exp(-slope[low:high]))
            slope[low:high] = (part - targets[i, low:high]) * weights[i, head]
        for j in range(d):
            _step(dense[j], seen_dense[j], slope, vectors[i, j], rate)
        _step(dense[d], seen_dense[d], slope, np.float32(1), rate)
        for at in range(starts[i], starts[i + 1]):
            _step(sparse[columns[at]], seen_sparse[columns[at]], slope, values[at], rate)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"}, inline="always")
def _add(out, row, value):  # type: ignore[no-untyped-def]
    for c in range(len(out)):
        out[c] += row[c] * value


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"}, inline="always")
def _step(row, seen, slope, value, rate):  # type: ignore[no-untyped-def]
    for c in range(len(row)):
        move = slope[c] * value
        seen[c] += move * move
        row[c] -= rate * move / np.sqrt(seen[c])
