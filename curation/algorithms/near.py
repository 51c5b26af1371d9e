"""Few new rows against many old ones: which new row is close to an old row, or to a new row before it.

Lexical closeness is the Jaccard similarity of shingle sets (:mod:`curation.algorithms.shingles`); candidates come
from MinHash bands and are verified. Closeness in meaning is the cosine within a group, of vectors on a grid, so that
it is the same number on every machine (:mod:`curation.algorithms.vectors`). Old rows come in batches, none is kept.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from curation.algorithms.minhash import choose_bands, signatures
from curation.algorithms.shingles import Shingles, shingles
from curation.algorithms.vectors import GRID, to_grid

__all__ = ["Close", "LexicalNeighbours", "closest_before", "closest_in_group"]

PERMUTATIONS = 128
RECALL = 0.98

Close = tuple[NDArray[np.float64], NDArray[np.int64]]
"""Similarity to the closest row, 0 where there is none at the threshold, and where that row stands, -1 for none."""


class LexicalNeighbours:
    """Finds old rows that are near-duplicates of the new ones.

    Args:
        norms: Normal forms of the new rows.
        threshold: Least Jaccard similarity.
        workers: Threads; they do not change the result.
    """

    def __init__(self, norms: list[str], threshold: float, workers: int) -> None:
        self._threshold = threshold
        self._workers = workers
        self._bands, self._rows = choose_bands(threshold, PERMUTATIONS, RECALL)
        self._sets = shingles(pa.array(norms, pa.large_string()), workers)
        keys = self._keys(self._sets)
        self._order = np.argsort(keys, axis=1, kind="stable")
        self._sorted = np.take_along_axis(keys, self._order, axis=1)

    def against(self, batches: Iterable[pa.LargeStringArray]) -> Close:
        """The closest old row of every new one; positions count over all batches, ties go to the first."""
        n = len(self._sets.starts) - 1
        best, at = np.zeros(n, dtype=np.float64), np.full(n, -1, dtype=np.int64)
        offset = 0
        for batch in batches:
            old = shingles(batch, self._workers)
            _probe(
                self._sorted,
                self._order,
                *self._sets,
                self._keys(old),
                *old,
                self._threshold,
                offset,
                best,
                at,
                False,
            )
            offset += len(batch)
        return best, at

    def before(self) -> Close:
        """The closest new row before every new one among those that have none themselves (kept rows)."""
        n = len(self._sets.starts) - 1
        best, at = np.zeros(n, dtype=np.float64), np.full(n, -1, dtype=np.int64)
        keys = self._keys(self._sets)
        _probe(self._sorted, self._order, *self._sets, keys, *self._sets, self._threshold, 0, best, at, True)
        return best, at

    def _keys(self, sets: Shingles) -> NDArray[np.uint64]:
        """A hash of each band of each row's signature, (bands, n)."""
        minima = signatures(sets, self._bands * self._rows, workers=self._workers)
        keys = np.zeros((self._bands, len(minima)), dtype=np.uint64)
        for place in range(self._rows):
            keys = (keys ^ minima[:, place :: self._rows].T) * np.uint64(0x9E3779B97F4A7C15)
            keys ^= keys >> np.uint64(29)
        return keys


@njit(nogil=True, cache=True)
def _jaccard(hashes, first, first_end, other, second, second_end):
    total = first_end - first + second_end - second
    shared = 0
    while first < first_end and second < second_end:
        left, right = hashes[first], other[second]
        shared += left == right
        first += left <= right
        second += right <= left
    return shared / (total - shared)


@njit(nogil=True, cache=True)
def _probe(sorted_keys, order, hashes, starts, keys, old_hashes, old_starts, threshold, offset, best, at, itself):
    """Go through the old rows in order and improve ``best`` and ``at`` of the new rows they share a band with.

    With ``itself`` old and new rows are the same: a row counts as old only once it is known to have no kept row
    before it, and only for rows after it.
    """
    for row in range(old_starts.size - 1):
        if itself and at[row] >= 0:
            continue
        for band in range(keys.shape[0]):
            key = keys[band, row]
            slot = np.searchsorted(sorted_keys[band], key)
            while slot < sorted_keys.shape[1] and sorted_keys[band, slot] == key:
                new = order[band, slot]
                slot += 1
                if itself and new <= row:
                    continue
                similarity = _jaccard(
                    hashes, starts[new], starts[new + 1], old_hashes, old_starts[row], old_starts[row + 1]
                )
                if similarity >= threshold and similarity > best[new]:
                    best[new] = similarity
                    at[new] = offset + row


def closest_in_group(
    vectors: NDArray[np.float32],
    groups: NDArray[np.int64],
    batches: Iterable[tuple[NDArray[np.float32], NDArray[np.int64]]],
) -> Close:
    """The old row of its group that is closest to each new row.

    Args:
        vectors: float32[n, d], new rows of any length but zero.
        groups: int64[n], group of each new row; negative for a row that is to be compared with none.
        batches: vectors and groups of old rows; rows of groups that no new row has are passed over.

    Returns:
        Cosine, -1 where the group holds no old row, and the old row's position over all batches.
    """
    best, at = np.full(len(vectors), -1.0), np.full(len(vectors), -1, dtype=np.int64)
    grid = to_grid(vectors) if len(vectors) else vectors
    members = {int(group): np.flatnonzero(groups == group) for group in np.unique(groups) if group >= 0}
    offset = 0
    for old, old_groups in batches:
        for group in np.unique(old_groups):
            new = members.get(int(group))
            if new is None:
                continue
            rows = np.flatnonzero(old_groups == group)
            products = grid[new] @ to_grid(old[rows]).T
            column = products.argmax(axis=1)
            cosine = np.minimum(products[np.arange(len(new)), column].astype(np.float64) / GRID**2, 1.0)
            better = cosine > best[new]
            best[new[better]] = cosine[better]
            at[new[better]] = offset + rows[column[better]]
        offset += len(old)
    return best, at


def closest_before(vectors: NDArray[np.float32], groups: NDArray[np.int64], threshold: float) -> Close:
    """The closest row before each row in its group among kept rows: those with none at the threshold before them.

    Args:
        vectors: float32[n, d], in order of priority.
        groups: int64[n]; rows with a negative group are compared with none.
        threshold: Least cosine.
    """
    best, at = np.full(len(vectors), -1.0), np.full(len(vectors), -1, dtype=np.int64)
    grid = to_grid(vectors) if len(vectors) else vectors
    for group in np.unique(groups[groups >= 0]):
        members = np.flatnonzero(groups == group)
        products = (grid[members] @ grid[members].T).astype(np.float64) / GRID**2
        kept: list[int] = []
        for place in range(len(members)):
            if kept:
                closest = int(np.argmax(products[place, kept]))
                if products[place, kept[closest]] >= threshold:
                    best[members[place]] = min(products[place, kept[closest]], 1.0)
                    at[members[place]] = members[kept[closest]]
                    continue
            kept.append(place)
    return best, at
