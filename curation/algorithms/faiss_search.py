"""Near neighbours by a Faiss index: exact range search, or inverted lists (IVF) where asked for.

The index only proposes pairs; an exact product decides, so threads and BLAS do not show in the result of the exact
search. The inverted lists are approximate: close pairs in lists that are not looked at stay unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from curation.algorithms import products
from curation.algorithms.vectors import FIXED, FixedRows, FloatRows, dot, step

__all__ = ["faiss_threads", "inverted_lists", "search_groups"]

_ROWS = 4096
_PROBES = 16
_TRAIN = 64  # rows a list to train on


@contextmanager
def faiss_threads(workers: int) -> Iterator[Any]:
    """The module faiss, working with ``workers`` threads for a while."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(max(1, workers))
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)


def inverted_lists(
    faiss: Any,
    n: int,
    d: int,
    take: Callable[[NDArray[np.int64]], FloatRows],
    *,
    lists: int,
    seed: int,
    halves: bool = False,
) -> Any:
    """An empty index of inverted lists for inner products, trained by one thread on rows chosen by ``seed``.

    Args:
        faiss: the module.
        n: how many rows there are.
        d: their length.
        take: the unit vectors, float32[m, d], of the rows named, int64[m].
        lists: how many lists.
        seed: of the choice of rows and of the centres.
        halves: keep 16 bits of a number, not 32.
    """
    if halves:
        kind = faiss.ScalarQuantizer.QT_fp16
        index = faiss.IndexIVFScalarQuantizer(faiss.IndexFlatIP(d), d, lists, kind, faiss.METRIC_INNER_PRODUCT, False)
    else:
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(d), d, lists, faiss.METRIC_INNER_PRODUCT)
    # Raw numbers of the generator, ranked: the same choice with every version of numpy.
    ranked = np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable")
    index.cp.seed, index.cp.spherical, index.cp.min_points_per_centroid = seed % (2**31), True, 1
    with faiss_threads(1):
        index.train(take(np.sort(ranked[: lists * _TRAIN])))
    index.nprobe = min(_PROBES, lists)
    return index


@njit(cache=True, nogil=True)
def _close_pairs(
    rows: FixedRows,
    asked: NDArray[np.int64],
    limits: NDArray[np.int64],
    found: NDArray[np.int64],
    kept: NDArray[np.int64],
    least: int,
    best: NDArray[np.int64],
) -> None:
    """Of the kept rows proposed for each row asked for, the most similar close one; -1 if there is none."""
    for u in range(len(asked)):
        level = np.int64(-1)
        best[u] = -1
        for t in range(limits[u], limits[u + 1]):
            product = dot(rows, asked[u], rows, kept[found[t]])
            height = step(product)
            if product >= least and (height > level or (height == level and found[t] < best[u])):
                best[u], level = found[t], height


def search_groups(
    rows: FixedRows, least: int, *, inverted: bool, seed: int, workers: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Kept rows and the nearest kept row of the others, from an index that only ever holds kept rows.

    Args:
        rows: int32[n, d] of :func:`~curation.algorithms.vectors.to_fixed`, best first.
        least: smallest product that counts as close.
        inverted: use inverted lists (approximate) instead of the exact search.
        seed: of the choice of training rows and of the lists' centres.
        workers: threads.

    Returns:
        bool[n] kept, and for each other row an index into the kept rows, -1 where the index finds none.
    """
    n, d = rows.shape
    gone = np.zeros(n, dtype=np.bool_)
    radius = least / FIXED**2 - products.SLACK
    with faiss_threads(workers) as faiss:
        if inverted:
            lists = max(1, min(4 * int(n**0.5), n // 4))
            index = inverted_lists(faiss, n, d, lambda chosen: products.units(rows[chosen]), lists=lists, seed=seed)
        else:
            index = faiss.IndexFlatIP(d)

        def nearest(asked: NDArray[np.int64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
            limits, _, found = index.range_search(products.units(rows[asked]), radius)
            best = np.empty(len(asked), dtype=np.int64)
            _close_pairs(rows, asked, limits.astype(np.int64), found.astype(np.int64), kept, least, best)
            return best

        kept = np.empty(0, dtype=np.int64)
        for first in range(0, n, _ROWS):
            block = np.arange(first, min(first + _ROWS, n))
            if len(kept):
                gone[block] = nearest(block, kept) >= 0
            open_ = block[~gone[block]]
            new = open_[products.kept_rows(rows[open_], least)]
            gone[block] = True
            gone[new] = False
            if len(new):
                index.add(products.units(rows[new]))
                kept = np.concatenate([kept, new])
        others = np.flatnonzero(gone)
        choices = [nearest(others[at : at + _ROWS], kept) for at in range(0, len(others), _ROWS)]
    return ~gone, np.concatenate([np.empty(0, dtype=np.int64), *choices])
