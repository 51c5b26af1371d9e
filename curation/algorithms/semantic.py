"""Semantic level: inside each bucket a row goes when a kept row of higher priority is close enough in angle.

Rows are gone through in order of priority, so of two close rows exactly one stays, and a dropped row always has a
*kept* representative at or above the threshold. Every pair is decided by an exact product (see
:mod:`curation.algorithms.vectors`), so the result is the same for any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from curation.algorithms import products, projections
from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.signs import sketch
from curation.algorithms.vectors import FIXED, FixedRows, FloatRows, blas_threads, cosine, to_fixed

__all__ = ["TOLERANCE", "Method", "semantic_groups"]

Method = Literal["auto", "products", "projections", "faiss", "faiss-ivf"]

TOLERANCE = 1e-5
"""A pair this little below the threshold still counts as on it, since encoders return vectors that differ by 1e-6
from one batch size to another."""

_SMALL = 2000  # up to here all products are cheaper than sketches
_SHARE = 16  # small buckets a thread takes at a time
_WIDE = 0.6  # below this angle bands hold so many rows that all products are cheaper


def semantic_groups(
    vectors: FloatRows | FixedRows,
    order: NDArray[np.int64],
    buckets: NDArray[np.int32] | None = None,
    *,
    threshold: float = 0.92,
    method: Method = "auto",
    seed: int = 0,
    workers: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Representative of every row: a row goes if a kept row before it in its bucket has cosine >= ``threshold``.

    Args:
        vectors: float32[n, d], scaled to length 1 here; or int32[n, d] already in fixed point
            (:func:`~curation.algorithms.vectors.to_fixed`), which saves the copy.
        order: int64[n], the rows from highest to lowest priority.
        buckets: int32[n], rows are only compared within a bucket; without it all are one bucket.
        threshold: cosine in (0, 1].
        method: ``products`` compares all (exact, blockwise); ``projections`` finds .999 of what is exactly at the
            threshold and more of what is above it; ``auto`` takes products for buckets of up to 2,000 rows and
            projections beyond; ``faiss`` is an exact range search, ``faiss-ivf`` an approximate one.
        seed: of the projections or lists.
        workers: threads; they do not change the result.

    Returns:
        int64[n], the row that stands for each row: itself if kept, else the most similar kept row (ties: the higher
        priority); float32[n], the cosine to it, 1 for itself.

    Raises:
        ValueError: a vector is zero or not finite, or lengths do not match.
    """
    n = len(vectors)
    if not 0 < threshold <= 1:
        raise ValueError(f"the threshold must be in (0, 1], not {threshold}")
    if len(order) != n or (buckets is not None and len(buckets) != n):
        raise ValueError(f"{n} vectors, but {len(order)} places in the order")
    least = math.ceil((threshold - TOLERANCE) * FIXED * FIXED)
    fixed: FixedRows = vectors if vectors.dtype == np.int32 else to_fixed(vectors, workers=workers)  # type: ignore[arg-type,assignment]
    representative = np.arange(n, dtype=np.int64)

    def solve(members: NDArray[np.int64], workers: int) -> None:
        first, last = members[0], members[-1]
        run = last - first + 1 == len(members) and (np.diff(members) == 1).all()  # then a view will do
        rows = fixed[first : last + 1] if run else fixed[members]
        kept, choice = _group(rows, least, threshold, method, seed, workers)
        representative[members[~kept]] = members[kept][choice]

    shares: list[NDArray[np.int64]] = []
    for members in _buckets(np.asarray(order, dtype=np.int64), buckets):
        if len(members) > _SMALL:
            solve(members, workers)
        else:
            shares.append(members)

    def solve_share(first: int, last: int) -> None:
        for members in shares[first:last]:
            solve(members, 1)

    # A small bucket is worth one thread, a large one shares them all.
    with blas_threads(1, 0):
        run_chunks(solve_share, spans(len(shares), _SHARE), workers)
    gone = np.flatnonzero(representative != np.arange(n))
    similarity = np.ones(n, dtype=np.float32)
    similarity[gone] = cosine(fixed, fixed, gone, representative[gone], workers=workers)
    return representative, np.clip(similarity, 0.0, 1.0)


def _buckets(order: NDArray[np.int64], buckets: NDArray[np.int32] | None) -> Iterator[NDArray[np.int64]]:
    """The rows of each bucket with more than one row, from highest to lowest priority."""
    if buckets is None:
        if len(order) > 1:
            yield order
        return
    ranked = order[np.argsort(buckets[order], kind="stable")]
    ends = np.flatnonzero(np.diff(buckets[ranked])) + 1
    for first, last in zip([0, *ends.tolist()], [*ends.tolist(), len(ranked)], strict=True):
        if last - first > 1:
            yield ranked[first:last]


def _group(
    rows: FixedRows, least: int, threshold: float, method: Method, seed: int, workers: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Kept rows of one bucket, and an index into them for each other row."""
    if method == "auto":
        method = "products" if len(rows) <= _SMALL or threshold < _WIDE else "projections"
    elif method == "faiss-ivf" and len(rows) <= _SMALL:
        method = "products"  # too few rows to train lists on
    if method == "products":
        with blas_threads(workers, rows.shape[1] * len(rows) ** 2):
            kept = products.kept_rows(rows, least)
        choice = np.full(int((~kept).sum()), -1, dtype=np.int64)
    elif method == "projections":
        marks = sketch(rows, threshold, seed=seed, workers=workers)
        kept = projections.kept_rows(rows, marks, least, workers=workers)
        sides = np.flatnonzero(kept), np.flatnonzero(~kept)
        choice = projections.nearest_kept(rows, marks, least, *sides, workers=workers)
    elif method in ("faiss", "faiss-ivf"):
        from curation.algorithms.faiss_search import search_groups

        kept, choice = search_groups(rows, least, inverted=method == "faiss-ivf", seed=seed, workers=workers)
    else:
        raise ValueError(f"there is no method {method!r}")
    # A pair can have met in a leaf or block only, where everything is compared; it is found again by comparing all.
    missing = np.flatnonzero(choice < 0)
    if len(missing):
        others = np.flatnonzero(~kept)[missing]
        with blas_threads(workers, rows.shape[1] * len(rows) * len(missing)):
            choice[missing] = products.nearest_kept(rows, least, np.flatnonzero(kept), others)
    return kept, choice
