"""Intent and solvability of a query from its sentence vector and its words, learnt from labelled examples.

One kernel, exp(2 * (cosine - 1)) of the vectors plus a share of the product of the n-gram features plus 1, and three
heads of kernel ridge regression on it, all solved in closed form:

* *primary*: one score a leaf; probabilities are a softmax whose temperature is fitted on the leave-one-out scores,
  as are the share of the n-grams and the ridge. The level-1 category with the largest summed probability is taken
  first, then its best leaf. How often such a leaf is right, given its probability, a logistic curve tells that is
  fitted on the leave-one-out predictions too (a softmax is too sure of itself): the confidence.
* *presence*: one score a leaf, learnt from primary and secondary labels together and from pairs of examples put into
  one text, since labelled queries with two intents are few; a logistic curve fitted on the leave-one-out scores turns
  it into the probability that the leaf is a further intent.
* *reason*: why the query cannot be solved, or that it can, classes weighted to count alike.

The bell-shaped kernel makes scores small far from every example, so that an unfamiliar query gets flat probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from curation.teachers.embedded.ngrams import Ngrams, Sparse, fit_ngrams
from curation.teachers.embedded.ridge import (
    Logistic,
    fit_logistic,
    fit_temperature,
    log_loss,
    logit,
    softmax,
    solve,
    solve_subset,
)

__all__ = ["Classifier", "Examples", "Pairs", "Prediction", "best_leaf", "fit", "joined"]

Floats = NDArray[np.float32]

_WIDTH = 2.0
_NGRAM_WEIGHTS = (0.25, 0.5)
_RIDGES = (0.5, 0.25, 1.0, 2.0)
_RIDGE_OF_MANY = 1.0
"""With so many examples that some are no centres, the ridge hardly matters."""
_REASON_RIDGE = 2.0
_PRESENCE_RIDGE = 1.0
MOST_CENTRES = 3000
"""Examples that the kernel is taken with; of more, a sample balanced over leaves, while all are fitted to."""
NEAREST = 5
"""Examples that a query's familiarity is taken from."""
_TILE = 96


@dataclass(frozen=True)
class Examples:
    """Labelled queries, in a fixed order.

    Attributes:
        vectors: float32[n, d], unit rows.
        norms: n normal forms.
        primary: int[n], leaf as a place in ``level1``.
        presence: bool[n, leaves], all leaves of a query, its primary among them.
        reasons: int[n], 0 for a solvable query, else 1 + the place of its reason.
        level1: int[leaves], level-1 category of each leaf.
        n_reasons: Number of reasons there can be.
    """

    vectors: Floats
    norms: pa.LargeStringArray
    primary: NDArray[np.int64]
    presence: NDArray[np.bool_]
    reasons: NDArray[np.int64]
    level1: NDArray[np.int64]
    n_reasons: int


@dataclass(frozen=True)
class Pairs:
    """Texts put together of two examples each.

    Attributes:
        vectors: float32[p, d], unit rows.
        norms: p normal forms.
        members: int64[p, 2], the examples.
    """

    vectors: Floats
    norms: pa.LargeStringArray
    members: NDArray[np.int64]


@dataclass(frozen=True)
class Prediction:
    """What the classifier says of n queries.

    Attributes:
        leaves: float32[n, leaves], probability of each leaf to be the primary intent; rows sum to 1.
        primary: int64[n], the leaf taken.
        confidence: float32[n], probability that it is right.
        presence: float32[n, leaves], probability of each leaf to be a further intent.
        unsolvable: float32[n], probability that the query cannot be solved.
        reason: int64[n], likeliest reason, as if it could not be solved.
        familiarity: float32[n], mean cosine to the `NEAREST` nearest centres.
    """

    leaves: Floats
    primary: NDArray[np.int64]
    confidence: Floats
    presence: Floats
    unsolvable: Floats
    reason: NDArray[np.int64]
    familiarity: Floats


def joined(parts: list[Prediction]) -> Prediction:
    """Predictions one after the other; at least one."""
    names = [field.name for field in fields(Prediction)]
    return Prediction(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


@dataclass(frozen=True)
class Classifier:
    """A fitted classifier; see :func:`fit`."""

    centres: Floats
    ngrams: Ngrams
    on_vectors: Floats
    """float32[m, 2 * leaves + 1 + reasons]: weights of the kernel with the centres."""
    on_ngrams: Floats
    bias: Floats
    level1: NDArray[np.int64]
    temperature: float
    certainty: Logistic | None
    presence: Logistic | None
    unsolvable: Logistic | None

    def predict(self, vectors: Floats, norms: pa.LargeStringArray) -> Prediction:
        """Predictions for float32[n, d] unit vectors and their normal forms; each row's depends on it alone.

        Call it with single-threaded BLAS, with blocks of some thousand rows: it takes n * examples floats.
        """
        n = len(vectors)
        # Products of fixed tile height: the same bits for a row, whatever stands beside it.
        rows = np.zeros((max(_TILE, -(-n // _TILE) * _TILE), vectors.shape[1]), np.float32)
        rows[:n] = vectors
        kernel = rows @ self.centres.T
        familiarity = nearest_mean(kernel[:n])
        kernel -= 1
        kernel *= _WIDTH
        np.exp(kernel, out=kernel)
        scores = (kernel @ self.on_vectors)[:n]
        scores += self.ngrams.transform(norms).times(self.on_ngrams)
        scores += self.bias
        return self._read(scores, familiarity)

    def _read(self, scores: NDArray, familiarity: NDArray) -> Prediction:
        n_leaves = len(self.level1)
        leaf, present, reason = np.split(scores, [n_leaves, 2 * n_leaves], axis=1)
        leaves = softmax(leaf * np.asarray(self.temperature, leaf.dtype))
        primary = best_leaf(leaves, self.level1)
        top = leaves[np.arange(len(leaves)), primary]
        unknown = np.zeros(len(scores), scores.dtype)
        return Prediction(
            leaves=leaves,
            primary=primary,
            confidence=top if self.certainty is None else self.certainty(logit(top)),
            presence=np.zeros_like(present) if self.presence is None else self.presence(present),
            unsolvable=unknown if self.unsolvable is None else self.unsolvable(-reason[:, 0]),
            reason=reason[:, 1:].argmax(axis=1),
            familiarity=familiarity,
        )


def fit(examples: Examples, pairs: Pairs | None = None, workers: int = 1) -> tuple[Classifier, Prediction]:
    """A classifier, and for each example what one fitted without it and its pairs would say.

    The same for any number of `workers`. Call it with single-threaded BLAS.

    Some 15 CPU-seconds for 2,500 examples, memory for `workers` + 4 float64 matrices of n * min(n, `MOST_CENTRES`).
    """
    ngrams = fit_ngrams(examples.norms)
    words = ngrams.transform(examples.norms)
    chosen = _centres(examples.primary)
    centres = examples.vectors[chosen], words.rows(chosen)
    n_leaves, n = len(examples.level1), len(examples.vectors)
    primary = np.eye(n_leaves)[examples.primary]
    reasons = np.eye(1 + examples.n_reasons)[examples.reasons]
    share = np.bincount(examples.reasons, minlength=1 + examples.n_reasons)
    balance = n / (np.count_nonzero(share) * share[examples.reasons])
    all_chosen = len(chosen) == n
    first = _RIDGES[0] if all_chosen else _RIDGE_OF_MANY
    kernel = _kernel((examples.vectors, words), centres, ngrams.width)
    with ThreadPoolExecutor(workers) as pool:

        def solved(share: float, ridges: Sequence[float]) -> list[_Fit]:
            cross = kernel.at(share)
            fits = pool.map(lambda ridge: _solve(cross, chosen, primary, np.full(n, ridge)), ridges)
            return [_Fit(share, *fit, _loss(fit[1], examples.primary)) for fit in fits]

        best = min((fit for share in _NGRAM_WEIGHTS for fit in solved(share, [first])), key=lambda fit: fit.loss)
        others = solved(best.share, _RIDGES[1:] if all_chosen else [])
        best = min([best, *others], key=lambda fit: fit.loss)
        cross = kernel.at(best.share)
        why = pool.submit(_solve, cross, chosen, reasons, _REASON_RIDGE / balance)
        where = _presence(examples, pairs, cross, chosen, centres, ngrams, best.share)
    heads = [(best.weights, best.left_out), where, why.result()]
    weights, left_out = (np.hstack(parts) for parts in zip(*heads, strict=True))
    return _assemble(examples, ngrams, words, chosen, best.share, weights, left_out)


class _Fit(NamedTuple):
    """The head of the primary leaf with some share of the n-grams and some ridge."""

    share: float
    weights: NDArray[np.float64]
    left_out: NDArray[np.float64]
    loss: float


def _presence(
    examples: Examples,
    pairs: Pairs | None,
    cross: NDArray[np.float64],
    chosen: NDArray[np.int64],
    centres: tuple[Floats, Sparse],
    ngrams: Ngrams,
    share: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of the presence head, and its scores of each example without it and the pairs it is part of.

    All zero where no example has a further leaf: then nothing can be said of them.
    """
    n = len(cross)
    targets = examples.presence.astype(np.float64)
    if targets.sum() == n:
        return np.zeros((len(chosen), targets.shape[1])), np.zeros_like(targets)
    if pairs is None:
        return _solve(cross, chosen, targets, np.full(n, _PRESENCE_RIDGE))
    more = _kernel((pairs.vectors, ngrams.transform(pairs.norms)), centres, ngrams.width).at(share)
    together = [[i] for i in range(n)]
    for place, members in enumerate(pairs.members.tolist(), start=n):
        for member in members:
            together[member].append(place)
    first, second = pairs.members.T
    return solve_subset(
        np.vstack([cross, more]),
        cross[chosen],
        np.vstack([targets, targets[first] + targets[second]]),
        np.full(n + len(more), _PRESENCE_RIDGE),
        [np.array(rows) for rows in together],
    )


def _loss(scores: NDArray[np.float64], classes: NDArray[np.int64]) -> float:
    return log_loss(scores, classes, fit_temperature(scores, classes))


def _assemble(
    examples: Examples,
    ngrams: Ngrams,
    words: Sparse,
    chosen: NDArray[np.int64],
    share: float,
    weights: NDArray[np.float64],
    left_out: NDArray[np.float64],
) -> tuple[Classifier, Prediction]:
    n_leaves = len(examples.level1)
    temperature = fit_temperature(left_out[:, :n_leaves], examples.primary)
    leaves = softmax(left_out[:, :n_leaves] * temperature)
    taken = best_leaf(leaves, examples.level1)
    cosines = examples.vectors @ examples.vectors[chosen].T
    cosines[chosen, np.arange(len(chosen))] = -1
    familiarity = nearest_mean(cosines)
    further = np.ones_like(examples.presence)
    further[np.arange(len(taken)), taken] = False
    present = left_out[:, n_leaves : 2 * n_leaves]
    classifier = Classifier(
        centres=examples.vectors[chosen],
        ngrams=ngrams,
        on_vectors=weights.astype(np.float32),
        on_ngrams=(share * words.rows(chosen).dense(ngrams.width).T @ weights).astype(np.float32),
        bias=weights.sum(axis=0).astype(np.float32),
        level1=examples.level1,
        temperature=temperature,
        certainty=fit_logistic(logit(leaves[np.arange(len(taken)), taken]), taken == examples.primary),
        presence=fit_logistic(present[further], examples.presence[further]) if present.any() else None,
        unsolvable=fit_logistic(-left_out[:, 2 * n_leaves], examples.reasons > 0),
    )
    return classifier, classifier._read(left_out, familiarity)


@njit(cache=True, nogil=True)
def nearest_mean(cosines):  # type: ignore[no-untyped-def]
    """float32[n]: mean of the `NEAREST` largest of each row of float32[n, m]."""
    n, m = cosines.shape
    k = min(NEAREST, m)
    out = np.zeros(n, np.float32)
    top = np.empty(k, np.float32)
    for i in range(n):
        top[:] = -np.inf
        for j in range(m):
            value = cosines[i, j]
            if value > top[k - 1]:
                at = k - 1
                while at > 0 and top[at - 1] < value:
                    top[at] = top[at - 1]
                    at -= 1
                top[at] = value
        for j in range(k):
            out[i] += top[j]
        out[i] /= k
    return out


def best_leaf(leaves: NDArray, level1: NDArray[np.int64]) -> NDArray[np.int64]:
    """The best leaf of the level-1 category with the largest summed probability."""
    # Sums, not products: a sum of a row does not depend on the other rows.
    mass = np.stack([leaves[:, level1 == top].sum(axis=1) for top in range(level1.max() + 1)], axis=1)
    return np.where(level1 == mass.argmax(axis=1)[:, None], leaves, -1).argmax(axis=1)


def _centres(primary: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of the examples the kernel is taken with, ascending: all, or by turns from every leaf."""
    if len(primary) <= MOST_CENTRES:
        return np.arange(len(primary))
    from curation.algorithms.spread import round_robin

    return np.sort(round_robin(primary, np.zeros_like(primary), MOST_CENTRES))


class _Kernel(NamedTuple):
    """The two parts of a kernel: of the vectors, and of the n-gram features."""

    of_vectors: NDArray[np.float64]
    of_ngrams: NDArray[np.float64]

    def at(self, share: float) -> NDArray[np.float64]:
        """Their sum, the n-grams weighted."""
        return self.of_vectors + share * self.of_ngrams


def _kernel(rows: tuple[Floats, Sparse], centres: tuple[Floats, Sparse], width: int) -> _Kernel:
    """float64[n, m] parts of the kernel of rows with centres, each given as vectors and n-gram features."""
    from scipy.sparse import csr_array

    (vectors, words), (middle, their) = rows, centres
    first, second = (
        csr_array((part.values.astype(np.float64), part.columns, part.starts), shape=(len(part.starts) - 1, width))
        for part in (words, their)
    )
    cosines = vectors.astype(np.float64) @ middle.astype(np.float64).T
    return _Kernel(np.exp(_WIDTH * (cosines - 1)) + 1, (first @ second.T).toarray())


def _solve(
    cross: NDArray[np.float64], chosen: NDArray[np.int64], targets: NDArray[np.float64], penalty: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(chosen) == len(cross):
        return solve(cross, targets, penalty)
    return solve_subset(cross, cross[chosen], targets, penalty)
