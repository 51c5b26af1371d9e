"""K-Center-Greedy: always pick the row farthest from every pick so far (Gonzalez 1985; Sener and Savarese 2018).

Exact, and lazy: the largest product of a row with the picks it has been compared with bounds its distance from above,
so most rows are never compared with most picks. Only the rows with the largest bounds are brought up to date, in
matrix products; among them the greedy rule is followed as long as no row outside could be farther. Products are
those of the grid (:mod:`curation.algorithms.vectors`), exact on every machine, and ties have a rule, so the picks are
always the same.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from curation.algorithms.vectors import GRID, FloatRows, blas_threads, distance, to_fixed, to_grid

__all__ = ["Greedy", "by_priority", "kcenter", "pick_radii"]

_POOL = 4096
_ROWS = 512
_CENTRES = 1024
_UNSEEN = np.float32(-(2.0**24))  # below every product
_TAKEN = np.float32(2.0**25)  # above every product
_LAST = np.iinfo(np.int64).max


def by_priority(weights: NDArray[np.int64] | None, n: int) -> NDArray[np.int64]:
    """The rows 0..n-1 by weight, largest first; ties by index."""
    return np.arange(n) if weights is None else np.lexsort((np.arange(n), -np.asarray(weights)))


def kcenter(
    vectors: FloatRows,
    k: int,
    *,
    weights: NDArray[np.int64] | None = None,
    first: int | None = None,
    centres: FloatRows | None = None,
    workers: int = 1,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Pick ``k`` rows greedily so that the largest distance of any row to its nearest pick becomes small.

    Args:
        vectors: float32[n, d], not zero; lengths do not matter.
        k: rows to pick; min(k, n) are picked.
        weights: int64[n]; of rows equally far the one of larger weight is picked, then the one of lower index.
        first: the first pick; without it the row of largest weight, then lowest index.
        centres: float32[m, d], an earlier selection: rows near to it are picked late, and the first pick is the
            row farthest from it unless ``first`` says otherwise.
        workers: threads; they do not change the result.

    Returns:
        int64[min(k, n)] distinct rows in the order of picking; float32[min(k, n)], the Euclidean distance between
        unit vectors of each to the nearest earlier pick or centre when it was picked, never rising; 2 for a first
        pick without any.
    """
    n = len(vectors)
    k = max(0, min(int(k), n))
    if k == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    with blas_threads(workers, n * k * vectors.shape[1]):
        earlier = np.empty((0, vectors.shape[1]), dtype=np.float32) if centres is None else to_grid(centres)
        if first is None and len(earlier) == 0:
            first = int(by_priority(weights, n)[0])
        state = Greedy(by_priority(weights, n))
        state.load(to_grid(vectors, workers=workers), k, earlier)
        if first is not None:
            state.start(first)
        state.run()
        return state.picks, pick_radii(vectors[state.picks], state.nearest[state.picks], centres)


def pick_radii(picks: FloatRows, nearest: NDArray[np.int32], centres: FloatRows | None = None) -> NDArray[np.float32]:
    """Distance of every pick to its nearest predecessor, an index into centres, then picks; 2 where that is -1."""
    fixed = to_fixed(picks)
    before = fixed if centres is None or len(centres) == 0 else np.concatenate([to_fixed(centres), fixed])
    radius = distance(fixed, before, np.arange(len(picks)), np.maximum(nearest, 0))
    radius[nearest < 0] = 2.0
    # On the grid the order is exact; off it a distance can rise by some 1e-4, and a radius must not.
    return np.minimum.accumulate(radius).astype(np.float32)


class Greedy:
    """Bounds of every row and the picks so far; the rows themselves can be unloaded and the picking resumed later.

    ``closest[i]`` is the largest product of row i with the first ``seen[i]`` of ``chosen`` (centres, then picks), and
    ``nearest[i]`` which one that is. The key of a row, (closest, rank) in one integer, orders rows from far to near.
    """

    def __init__(self, order: NDArray[np.int64]) -> None:
        n = len(order)
        self.rows = self.chosen = np.empty((0, 0), dtype=np.float32)
        self.picked = np.empty(0, dtype=np.int64)
        self.offset = self.size = 0
        self.closest = np.full(n, _UNSEEN, dtype=np.float32)
        self.nearest = np.full(n, -1, dtype=np.int32)
        self.seen = np.zeros(n, dtype=np.int32)
        self.rank = np.empty(n, dtype=np.int64)
        self.rank[order] = np.arange(n)

    def load(self, rows: FloatRows, k: int, centres: FloatRows | None = None) -> None:
        """Bring in the rows of the grid, to pick up to ``k`` in all; ``centres`` are those of the first time."""
        picked = self.picks
        self.rows, self.picked = rows, np.empty(k, dtype=np.int64)
        self.picked[: len(picked)] = picked
        earlier = np.empty((0, rows.shape[1]), dtype=np.float32) if centres is None else centres
        self.chosen = np.empty((len(earlier) + k, rows.shape[1]), dtype=np.float32)
        self.offset, self.size = len(earlier), len(earlier) + len(picked)
        self.chosen[: self.size] = np.concatenate([earlier, rows[picked]])

    def unload(self) -> None:
        """Let the rows go; what is known of them stays."""
        self.picked = self.picks.copy()
        self.rows = self.chosen = np.empty((0, 0), dtype=np.float32)

    def start(self, first: int) -> None:
        """Pick a given row."""
        self.refresh(np.array([first]), _LAST)
        self.take(np.array([first]))

    def run(self, radius: float = -1.0) -> None:
        """Pick until there are as many as loaded for, or until no row is farther than ``radius`` from all picks."""
        stop = _LAST
        if radius >= 0:
            stop = (int((1 - radius * radius / 2) * GRID * GRID) + 2**24) << 32
        while self.size < len(self.chosen) and self.round(stop):
            pass

    @property
    def picks(self) -> NDArray[np.int64]:
        """Rows picked so far, in order."""
        return self.picked[: self.size - self.offset]

    def keys(self, at: NDArray[np.int64] | slice) -> NDArray[np.int64]:
        """Farther rows have smaller keys; the rank settles ties."""
        return ((self.closest[at].astype(np.int64) + 2**24) << 32) | self.rank[at]

    def take(self, new: NDArray[np.int64]) -> None:
        """Add picks."""
        self.chosen[self.size : self.size + len(new)] = self.rows[new]
        self.picked[self.size - self.offset : self.size - self.offset + len(new)] = new
        self.size += len(new)
        self.closest[new] = _TAKEN

    def refresh(self, at: NDArray[np.int64], limit: int) -> None:
        """Compare rows with the choices they have not seen; a row whose key reaches ``limit`` is given up."""
        at = at[np.argsort(self.seen[at], kind="stable")]
        for start in range(0, len(at), _ROWS):
            block = at[start : start + _ROWS]
            while len(block) and (low := int(self.seen[block].min())) < self.size:
                high = min(self.size, low + _CENTRES)
                behind = block[self.seen[block] < high]
                products = self.rows[behind] @ self.chosen[low:high].T
                which = products.argmax(axis=1)
                top = products[np.arange(len(behind)), which]
                closer = top > self.closest[behind]
                self.closest[behind[closer]] = top[closer]
                self.nearest[behind[closer]] = low + which[closer]
                self.seen[behind] = high
                block = block[self.keys(block) < limit]

    def round(self, stop: int) -> bool:
        """Bring the farthest rows up to date and pick among them while no other row can be farther.

        Returns:
            Whether any row's key could still be below ``stop``.
        """
        keys = self.keys(slice(None))
        pool = np.flatnonzero((self.closest < _TAKEN) & (keys < stop))
        if len(pool) == 0:
            return False
        limit = stop
        if len(pool) > _POOL:
            limit = int(np.partition(keys[pool], _POOL)[_POOL])
            pool = pool[keys[pool] < limit]
        self.refresh(pool, limit)
        pool = pool[self.keys(pool) < limit]
        if len(pool) == 0:
            return True
        room = len(self.chosen) - self.size
        closest, nearest, seen = self.closest[pool], self.nearest[pool], self.seen[pool]
        new = _pick(self.rows[pool], closest, nearest, seen, self.rank[pool], limit, self.size, room)
        self.closest[pool], self.nearest[pool], self.seen[pool] = closest, nearest, seen
        self.take(pool[new])
        return True


@njit(cache=True, nogil=True, fastmath=True)
def _product(rows: FloatRows, i: int, j: int) -> np.float32:
    """On the grid every partial sum is exact, so the order of addition may be the compiler's."""
    total = np.float32(0)
    for c in range(rows.shape[1]):
        total += rows[i, c] * rows[j, c]
    return total


@njit(cache=True, nogil=True)
def _pick(
    rows: FloatRows,
    closest: NDArray[np.float32],
    nearest: NDArray[np.int32],
    seen: NDArray[np.int32],
    rank: NDArray[np.int64],
    limit: int,
    size: int,
    room: int,
) -> NDArray[np.int64]:
    """Greedy picks among up-to-date rows until the farthest is no longer before ``limit``."""
    n = rows.shape[0]
    live = np.arange(n)
    picks = np.empty(min(n, room), dtype=np.int64)
    count = 0
    key = np.empty(n, dtype=np.int64)
    for i in range(n):
        key[i] = ((np.int64(closest[i]) + np.int64(2**24)) << np.int64(32)) | rank[i]
    while count < len(picks) and n > 0:
        far = live[0]
        for u in range(1, n):
            if key[live[u]] < key[far]:
                far = live[u]
        picks[count] = far
        stay = 0
        for u in range(n):
            i = live[u]
            if i == far:
                continue
            product = _product(rows, i, far)
            seen[i] = size + count + 1
            if product > closest[i]:
                closest[i] = product
                nearest[i] = size + count
                key[i] = ((np.int64(product) + np.int64(2**24)) << np.int64(32)) | rank[i]
            if key[i] < limit:
                live[stay] = i
                stay += 1
        n = stay
        count += 1
    return picks[:count]
