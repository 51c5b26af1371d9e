"""Kernel ridge regression with its leave-one-out errors in closed form, and probabilities calibrated on them.

Sources: Saunders, Gammerman and Vovk 1998 (dual ridge regression); Allen 1974 (leave-one-out residual = residual
divided by 1 - leverage); Smola and Schoelkopf 2000 (subset of regressors) for many rows; Guo et al. 2017
(temperature); Platt 1999 (logistic calibration of scores).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Logistic", "fit_logistic", "fit_temperature", "log_loss", "logit", "softmax", "solve", "solve_subset"]

Floats = NDArray[np.float64]

_STEPS = 60


def solve(kernel: Floats, targets: Floats, penalty: Floats) -> tuple[Floats, Floats]:
    """Dual weights and leave-one-out predictions.

    Args:
        kernel: float64[n, n], symmetric, positive semi-definite.
        targets: float64[n, c].
        penalty: float64[n], positive: the ridge of each row, smaller for rows that count more.

    Returns:
        float64[n, c] weights ``a`` (predictions are ``kernel(x, rows) @ a``); float64[n, c], for each row what is
        predicted without it.
    """
    from scipy.linalg.blas import dsymm
    from scipy.linalg.lapack import dpotrf, dpotri

    # The transpose of a symmetric matrix is itself, in the column order that LAPACK works in without a copy.
    factor, fault = dpotrf((kernel + np.diag(penalty)).T, lower=1, overwrite_a=1)
    inverse, other = dpotri(factor, lower=1, overwrite_c=1)
    if fault or other:
        raise np.linalg.LinAlgError("the kernel matrix is not positive definite")
    weights = np.ascontiguousarray(dsymm(1.0, inverse, np.asfortranarray(targets), lower=1))
    return weights, targets - weights / np.diag(inverse)[:, None]


def solve_subset(
    cross: Floats,
    kernel: Floats,
    targets: Floats,
    penalty: Floats,
    together: list[NDArray[np.int64]] | None = None,
) -> tuple[Floats, Floats]:
    """As :func:`solve`, with predictions spanned by the kernels of m chosen rows.

    Args:
        cross: float64[n, m], kernel of all rows with the chosen ones.
        kernel: float64[m, m], kernel of the chosen rows.
        targets: float64[n, c].
        penalty: float64[n].
        together: For each of the first rows the rows that are left out with it, itself the first of them; each row
            alone by default.

    Returns:
        Weights, float64[m, c], and for each row (each of the first rows) what is predicted without it.
    """
    from scipy.linalg import cho_factor, cho_solve, solve_triangular

    weighted = cross / penalty[:, None]
    normal = cross.T @ weighted + kernel
    normal[np.diag_indices(len(normal))] += 1e-8 * np.trace(normal) / len(normal)
    factor, lower = cho_factor(normal, lower=True)
    weights = cho_solve((factor, lower), weighted.T @ targets)
    # Column i of `half` gives the leverage of row i on row j: half_j . half_i / penalty_i.
    half = solve_triangular(factor, cross.T, lower=True)
    residual = targets - cross @ weights
    if together is None:
        leverage = (half**2).sum(axis=0) / penalty
        return weights, targets - residual / np.maximum(1 - leverage, 1e-6)[:, None]
    left_out = np.empty((len(together), targets.shape[1]))
    for i, block in enumerate(together):
        own = half[:, block]
        gap = np.eye(len(block)) - own.T @ own / penalty[block]
        left_out[i] = targets[i] - np.linalg.solve(gap, residual[block])[0]
    return weights, left_out


def softmax(scores: NDArray) -> NDArray:
    """Rows of positive numbers that sum to 1."""
    out = np.exp(scores - scores.max(axis=1, keepdims=True))
    out /= out.sum(axis=1, keepdims=True)
    return out


def logit(probabilities: NDArray) -> NDArray:
    """log(p / (1 - p)) of the same type, p held a millionth away from 0 and 1."""
    bounded = np.clip(probabilities, 1e-6, 1 - 1e-6)
    return np.log(bounded / (1 - bounded))


def log_loss(scores: Floats, classes: NDArray[np.int64], temperature: float) -> float:
    """Mean negative log probability of the true classes under ``softmax(scores * temperature)``.

    One example in n + 2 counts as of any class (Platt's soft targets), so that what is never wrong on a few examples
    is not taken for infallible.
    """
    n = len(scores)
    scaled = scores * temperature
    top = scaled.max(axis=1)
    total = np.log(np.exp(scaled - top[:, None]).sum(axis=1)) + top
    soft = 1 / (n + 2)
    return float(np.mean(total - (1 - soft) * scaled[np.arange(n), classes] - soft * scaled.mean(axis=1)))


def fit_temperature(scores: Floats, classes: NDArray[np.int64], low: float = 0.5, high: float = 64.0) -> float:
    """The factor of the scores with the smallest log loss, by golden section (the loss is convex in it)."""
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(_STEPS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if log_loss(scores, classes, left) <= log_loss(scores, classes, right):
            high = right
        else:
            low = left
    return (low + high) / 2


class Logistic:
    """p = 1 / (1 + exp(-(slope * score + offset)))."""

    def __init__(self, slope: float, offset: float) -> None:
        self.slope, self.offset = slope, offset

    def __call__(self, scores: NDArray) -> NDArray:
        """Probabilities of scores, of the same shape and type."""
        return (1 / (1 + np.exp(-(self.slope * scores + self.offset)))).astype(scores.dtype)


def fit_logistic(scores: NDArray, truth: NDArray) -> Logistic | None:
    """Calibration by Newton's method with Platt's soft targets; None where there is nothing to learn from.

    Args:
        scores: [n] or of any shape.
        truth: Of the same shape; bool, or the probability that it is true.
    """
    share = truth.astype(np.float64)
    positive, negative = float(share.sum()), float((1 - share).sum())
    if not positive or not negative:
        return None
    goal = share * (positive + 1) / (positive + 2) + (1 - share) / (negative + 2)
    x = np.column_stack([scores, np.ones(len(scores))])
    at = np.array([0.0, np.log((positive + 1) / (negative + 1))])

    def loss(w: Floats) -> float:
        z = x @ w
        return float(np.sum(np.logaddexp(0, z) - goal * z))

    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-(x @ at)))
        slope = x.T @ (p - goal)
        curve = (x * (p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(2)
        step, now = np.linalg.solve(curve, slope), loss(at)
        size = 1.0
        while size > 1e-6 and loss(at - size * step) > now:
            size /= 2
        at = at - size * step
    if at[0] < 0:  # scores that tell nothing, or the wrong way round: the share of the true for all
        return Logistic(0.0, float(np.log((positive + 1) / (negative + 1))))
    return Logistic(float(at[0]), float(at[1]))
