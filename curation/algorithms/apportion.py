"""Whole-number shares: how many rows each bucket, difficulty and origin contributes to a total.

Everything here is exact in its totals and deterministic: real-valued shares are rounded by largest remainder
(Hamilton's method), ties go to the lower index, and nothing takes more rows than there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["DIFFICULTIES", "allocate", "apportion", "difficulty_weights", "pool_sizes", "quotas"]

DIFFICULTIES: tuple[int, ...] = (-1, 0, 1, 2, 3, 4, 5)
"""The columns of every bucket x difficulty matrix, in this order."""

_NEGATIVE = 2  # the first two columns, -1 and 0, are the negatives
_RAKES = 100  # the margins settle in some ten rounds; where they contradict each other no number of rounds would do
_NOTHING = 1e-12  # a weight this much smaller than the largest is none
_DIGITS = 9  # remainders closer than this are ties, so that rounding does not hang on the last bits of a division

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def apportion(
    weights: ArrayLike, total: int, *, capacity: ArrayLike | None = None, minimum: ArrayLike = 0
) -> IntArray:
    """Divide ``total`` in proportion to ``weights``, in whole numbers.

    What an entry cannot take because of its capacity goes to the others in proportion to their weights; entries of
    weight 0 get more than their minimum only when all others are full.

    Args:
        weights: float[n], not negative; all zero means equal weights.
        total: what to divide.
        capacity: int[n], the most each entry may get; without it there is no limit.
        minimum: int or int[n], the least each entry gets as far as its capacity allows. When the minima exceed
            ``total``, they are met for the largest weights only.

    Returns:
        int64[n] whose sum is ``total``, or the sum of the capacities if that is less.

    Raises:
        ValueError: a weight, capacity or total is negative or not finite.
    """
    weight = np.asarray(weights, dtype=np.float64)
    if weight.ndim != 1 or not np.isfinite(weight).all() or (weight < 0).any() or total < 0:
        raise ValueError("weights must be finite, not negative and one-dimensional, and the total not negative")
    top = np.full(len(weight), int(total), dtype=np.int64)
    if capacity is not None:
        top = np.minimum(top, np.asarray(capacity, dtype=np.int64))
    if (top < 0).any():
        raise ValueError("capacities must not be negative")
    if not (weight > 0).any():
        weight = np.ones_like(weight)
    total = min(int(total), int(top.sum()))
    low = np.minimum(np.broadcast_to(np.asarray(minimum, dtype=np.int64), top.shape), top)
    if low.sum() > total:
        return _heaviest_first(weight, total, low)
    return _round(_fill(weight, total, low, top), total, top)


def _heaviest_first(weight: FloatArray, total: int, wanted: IntArray) -> IntArray:
    """Give each entry what it wants, heaviest first, until ``total`` is used up."""
    order = np.lexsort((np.arange(len(weight)), -weight))
    before = np.cumsum(wanted[order]) - wanted[order]
    given = np.zeros_like(wanted)
    given[order] = np.clip(total - before, 0, wanted[order])
    return given


def _fill(weight: FloatArray, total: int, low: IntArray, top: IntArray) -> FloatArray:
    """Real-valued shares clip(level * weight, low, top) whose sum is ``total`` (water filling over break points)."""
    share = low.astype(np.float64)
    live = weight > weight.max(initial=0.0) * _NOTHING
    rest = total - int(top[live].sum()) - int(low[~live].sum())
    if rest >= 0:
        share[live] = top[live]
        room = np.where(live, 0, top - low).astype(np.float64)
        return share + (room * (rest / room.sum()) if rest else 0)
    w, lo, hi = weight[live] / weight[live].max(), low[live].astype(np.float64), top[live].astype(np.float64)
    with np.errstate(over="ignore"):
        level = np.concatenate([lo / w, hi / w])
    order = np.argsort(level, kind="stable")
    slope = np.cumsum(np.concatenate([w, -w])[order])
    level = level[order]
    finite = np.isfinite(level)
    level, slope = level[finite], slope[finite]
    filled = lo.sum() + np.concatenate([[0.0], np.cumsum(slope[:-1] * np.diff(level))])
    target = float(total - int(low[~live].sum()))
    at = max(int(np.searchsorted(filled, target, side="right")) - 1, 0)
    rise = (target - filled[at]) / slope[at] if slope[at] > 0 else 0.0
    share[live] = np.clip((level[at] + rise) * w, lo, hi)
    return share


def _round(share: FloatArray, total: int, top: IntArray) -> IntArray:
    """Round real shares to whole numbers with sum ``total``: largest remainder, ties by index, at most ``top``."""
    whole = np.minimum(np.floor(share + 10.0**-_DIGITS).astype(np.int64), top)
    remainder = np.round(share - whole, _DIGITS)
    order = np.lexsort((np.arange(len(share)), -remainder))
    while (short := total - int(whole.sum())) > 0:
        open_ = order[whole[order] < top[order]][:short]
        if len(open_) == 0:
            break
        whole[open_] += 1
    while (over := int(whole.sum()) - total) > 0:
        # Shares whose sum is not the total: those furthest below their next whole number give way.
        full = order[whole[order] > 0][::-1][:over]
        whole[full] -= 1
    return whole


def bucket_weights(counts: ArrayLike, rule: str | ArrayLike) -> FloatArray:
    """Weights of buckets that hold ``counts`` rows under a rule: proportional, sqrt, equal, or given weights."""
    rows = np.asarray(counts, dtype=np.float64)
    if not isinstance(rule, str):
        return np.where(rows > 0, np.asarray(rule, dtype=np.float64), 0.0)
    if rule == "proportional":
        return rows
    if rule == "sqrt":
        return np.sqrt(rows)
    if rule == "equal":
        return (rows > 0).astype(np.float64)
    raise ValueError(f"there is no bucket rule {rule!r}; the rules are proportional, sqrt and equal")


def allocate(
    counts: ArrayLike,
    total: int,
    *,
    bucket_shares: str | ArrayLike = "proportional",
    difficulty_shares: ArrayLike | None = None,
    minimum: int = 1,
) -> IntArray:
    """How many rows to take from each cell of a bucket x difficulty matrix.

    Both margins are met by raking (iterative proportional fitting; Deming and Stephan 1940) with the cells' counts as
    capacities. Where the margins contradict each other, the difficulty margin holds and the buckets give way.

    Args:
        counts: int[buckets, difficulties], the rows there are.
        total: rows to take.
        bucket_shares: ``proportional`` to the bucket's rows, to their ``sqrt``, ``equal``, or float[buckets].
        difficulty_shares: float[difficulties]; None takes each bucket as it comes.
        minimum: rows that every bucket gets at least, as far as it has them and ``total`` reaches.

    Returns:
        int64[buckets, difficulties], at most ``counts``, with sum min(total, counts.sum()).
    """
    rows = np.asarray(counts, dtype=np.int64)
    if rows.ndim != 2 or (rows < 0).any():
        raise ValueError("counts must be a matrix of buckets x difficulties and not negative")
    total = min(int(total), int(rows.sum()))
    if total == 0:
        return np.zeros_like(rows)
    in_bucket = rows.sum(axis=1)
    by_bucket = apportion(bucket_weights(in_bucket, bucket_shares), total, capacity=in_bucket, minimum=minimum)
    if difficulty_shares is None:
        cells = [apportion(have, int(want), capacity=have) for have, want in zip(rows, by_bucket, strict=True)]
        return np.array(cells, dtype=np.int64).reshape(rows.shape)
    by_difficulty = apportion(difficulty_shares, total, capacity=rows.sum(axis=0))
    fitted = _rake(rows.astype(np.float64), by_bucket.astype(np.float64), by_difficulty.astype(np.float64))
    taken = np.zeros_like(rows)
    for column, want in enumerate(by_difficulty):
        # What rounding took from a bucket in the columns before is made up for: its sum is off by one at most.
        owed = fitted[:, : column + 1].sum(axis=1) - taken.sum(axis=1)
        taken[:, column] = _round(np.clip(owed, 0, rows[:, column]), int(want), rows[:, column])
    return _raise_to_minimum(taken, rows, minimum)


def _rake(cells: FloatArray, by_row: FloatArray, by_column: FloatArray) -> FloatArray:
    """Fit cells * min(1, a[row] * b[column]) to both margins; the column margin is met last and holds."""
    b = np.ones(cells.shape[1])
    fitted = cells
    for _ in range(_RAKES):
        a = _scale(cells * b, by_row, cells)
        b = _scale((cells * a[:, None]).T, by_column, cells.T)
        fitted = np.minimum(cells * a[:, None] * b, cells)
        if np.abs(fitted.sum(axis=1) - by_row).max(initial=0.0) < 1e-6:
            break
    return fitted


def _scale(values: FloatArray, targets: FloatArray, top: FloatArray) -> FloatArray:
    """Per row the factor f with sum(min(f * values, top)) = target; rows that cannot reach it get a large f."""
    with np.errstate(divide="ignore", invalid="ignore"):
        full_at = np.where(values > 0, top / values, np.inf)
        order = np.argsort(full_at, axis=1, kind="stable")
        ordered = np.take_along_axis(np.where(values > 0, values, 0.0), order, axis=1)
        ordered_top = np.take_along_axis(np.where(values > 0, top, 0.0), order, axis=1)
        full = np.cumsum(ordered_top, axis=1) - ordered_top
        live = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1]
        factor = np.where(live > 0, (targets[:, None] - full) / live, np.inf)
    limit = np.take_along_axis(full_at, order, axis=1)
    fits = factor <= limit * (1 + 1e-12)
    first = np.argmax(fits, axis=1)
    found = np.take_along_axis(factor, first[:, None], axis=1)[:, 0]
    most = np.where(np.isfinite(limit), limit, 0.0).max(axis=1, initial=0.0)
    return np.clip(np.where(fits.any(axis=1) & np.isfinite(found), found, most), 0.0, 1e30)


def _raise_to_minimum(taken: IntArray, counts: IntArray, minimum: int) -> IntArray:
    """Move single rows from the buckets furthest over their minimum to those under it, in a column if possible."""
    taken = taken.copy()
    need = np.minimum(minimum, counts.sum(axis=1))
    spare = taken.sum(axis=1) - need
    for bucket in np.flatnonzero(spare < 0):
        while spare[bucket] < 0:
            room = counts[bucket] - taken[bucket]
            donors = np.where((taken > 0) & (spare[:, None] > 0), spare[:, None], 0)
            columns = np.flatnonzero(room > 0)
            if not donors.any():
                return taken
            column = columns[np.argmax(room[columns])]
            shared = columns[donors[:, columns].max(axis=0) > 0]
            if len(shared):
                column = source = shared[np.argmax(room[shared])]
            else:
                source = int(np.argmax(donors.max(axis=0)))
            giver = int(np.argmax(donors[:, source]))
            taken[giver, source] -= 1
            taken[bucket, column] += 1
            spare[giver] -= 1
            spare[bucket] += 1
    return taken


def pool_sizes(
    size: int, tool_removed_share: float, n_synthetic_verified: int, n_tool_removable: int, n_survivors: int
) -> tuple[int, int, int]:
    """Rows of the candidate pool by origin.

    All verified synthetic rows go in, then tool-removed rows up to their share; the rest is observed. Where removable
    rows run short, observed ones take their place, so the sizes add up to ``size`` as long as there are survivors
    enough. Where survivors run short, all of them go in and the pool stays smaller, with the same share of
    tool-removed rows: a small log must not become a pool of refusals.

    Args:
        size: rows the pool should have.
        tool_removed_share: share of the pool for tool-removed rows, in [0, 1).
        n_synthetic_verified: synthetic rows that passed every check.
        n_tool_removable: survivors with difficulty >= 1 and a plan (they can be used observed and tool-removed).
        n_survivors: rows that the semantic level kept.

    Returns:
        (observed, tool_removed, synthetic).
    """
    if min(size, n_synthetic_verified, n_tool_removable, n_survivors) < 0 or not 0 <= tool_removed_share < 1:
        raise ValueError("sizes must not be negative and the share must be in [0, 1)")
    synthetic = min(size, n_synthetic_verified)
    rest = size - synthetic
    tool_removed = min(int(size * tool_removed_share + 0.5), n_tool_removable, rest)
    if n_survivors >= rest - tool_removed:
        return rest - tool_removed, tool_removed, synthetic
    wanted = int((n_survivors + synthetic) * tool_removed_share / (1 - tool_removed_share) + 0.5)
    return n_survivors, min(wanted, n_tool_removable), synthetic


def difficulty_weights(
    shares: Mapping[int, float], sizes: tuple[int, int, int], synthetic: Mapping[int, int], available: ArrayLike
) -> FloatArray:
    """What the observed rows must hold of each difficulty so that the whole pool meets ``shares``.

    Args:
        shares: target share of the whole pool by difficulty; levels that are not named divide what is left of 1 as
            they come, that is, like ``available``.
        sizes: (observed, tool_removed, synthetic) of :func:`pool_sizes`; tool-removed rows have difficulty -1.
        synthetic: verified synthetic rows by difficulty.
        available: int[7], survivors by difficulty.

    Returns:
        float64[7] in the order of :data:`DIFFICULTIES`, weights for :func:`apportion`; zero if nothing is missing.
    """
    named = np.array([level in shares for level in DIFFICULTIES])
    asked = np.array([float(shares.get(level, 0.0)) for level in DIFFICULTIES])
    if (asked < 0).any() or set(shares) - set(DIFFICULTIES):
        raise ValueError("difficulty shares must not be negative and be those of the difficulties -1 to 5")
    unnamed = np.where(named, 0.0, np.asarray(available, dtype=np.float64))
    if asked.sum() < 1 and unnamed.sum() > 0:
        asked = asked + unnamed * ((1 - asked.sum()) / unnamed.sum())
    if asked.sum() <= 0:
        raise ValueError("one difficulty share must be positive")
    made = np.array([float(synthetic.get(level, 0)) for level in DIFFICULTIES])
    made[0] += sizes[1]
    return np.maximum(asked / asked.sum() * sum(sizes) - made, 0.0)


def quotas(
    counts: ArrayLike,
    level1: ArrayLike,
    total: int,
    *,
    bucket_shares: str | ArrayLike = "proportional",
    difficulty: ArrayLike | None = None,
    minimum: int = 1,
) -> IntArray:
    """Quotas of the geometric level: rows to pick from each bucket at each difficulty.

    Negatives (-1 and 0) are balanced over the level-1 categories, equal shares as far as the rows reach, and within a
    category follow the bucket rule; positives follow the bucket rule. Every bucket keeps ``minimum`` rows.

    Args:
        counts: int[buckets, 7], survivors by bucket and difficulty (:data:`DIFFICULTIES`).
        level1: int[buckets], level-1 category of each bucket.
        total: rows to pick.
        bucket_shares: as in :func:`allocate`.
        difficulty: float[7] weights of the difficulties; None keeps their shares among the survivors.
        minimum: rows every non-empty bucket keeps, as far as ``total`` reaches.

    Returns:
        int64[buckets, 7] with sum min(total, counts.sum()).
    """
    rows = np.asarray(counts, dtype=np.int64)
    category = np.asarray(level1, dtype=np.int64)
    total = min(int(total), int(rows.sum()))
    available = rows.sum(axis=0)
    wanted = apportion(available if difficulty is None else difficulty, total, capacity=available)
    taken = np.zeros_like(rows)
    negative, positive = slice(0, _NEGATIVE), slice(_NEGATIVE, None)
    by_category = np.zeros((int(category.max(initial=-1)) + 1, _NEGATIVE), dtype=np.int64)
    np.add.at(by_category, category, rows[:, negative])
    shares: dict[str, Any] = {"bucket_shares": "equal", "difficulty_shares": wanted[negative], "minimum": 0}
    balanced = allocate(by_category, int(wanted[negative].sum()), **shares)
    for index, column in zip(*np.nonzero(balanced), strict=True):
        inside = np.flatnonzero(category == index)
        have = rows[inside, column]
        rule = bucket_shares if isinstance(bucket_shares, str) else np.asarray(bucket_shares, dtype=float)[inside]
        taken[inside, column] = apportion(bucket_weights(have, rule), int(balanced[index, column]), capacity=have)
    shares = {"bucket_shares": bucket_shares, "difficulty_shares": wanted[positive], "minimum": minimum}
    taken[:, positive] = allocate(rows[:, positive], int(wanted[positive].sum()), **shares)
    return _raise_to_minimum(taken, rows, minimum)
