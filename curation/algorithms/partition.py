"""K-Center-Greedy beyond the size where it can be exact: cells, greedy inside each, merged by radius."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.kcenter import Greedy, by_priority, kcenter, pick_radii
from curation.algorithms.vectors import FloatRows, blas_threads, to_grid

__all__ = ["cells", "merge_by_radius", "partitioned_kcenter"]

EXACT_ROWS = 200_000
"""Up to here :func:`partitioned_kcenter` is exact."""

_CELL_ROWS = 16_384
_SAMPLE = 256  # rows a cell to find centres from
_ROUNDS = 8
_BLOCK = 8192
_CANDIDATES = 4  # times its proportional quota that a cell may get where its rows lie far apart


def cells(vectors: FloatRows, count: int, *, seed: int = 0, workers: int = 1) -> NDArray[np.int32]:
    """Spherical k-means (Dhillon and Modha 2001) on a sample, then the nearest centre of every row.

    Args:
        vectors: float32[n, d].
        count: cells; some may stay empty.
        seed: of the sample.
        workers: threads; they do not change the result.

    Returns:
        int32[n], the cell of each row.
    """
    n = len(vectors)
    count = max(1, min(int(count), n))
    # Raw numbers of the generator, ranked: the same choice with every version of numpy.
    ranked = np.argsort(np.random.PCG64(seed).random_raw(n), kind="stable")
    sample = ranked[: count * _SAMPLE]
    with blas_threads(workers, n * count * vectors.shape[1]):
        rows = to_grid(vectors[np.sort(sample)])
        centres = to_grid(vectors[sample[:count]])
        for _ in range(_ROUNDS):
            own = _nearest_centre(rows, centres)
            order = np.argsort(own, kind="stable")
            present, start = np.unique(own[order], return_index=True)
            # Sums of whole numbers below 2**53: exact, whatever order they are added in.
            sums = np.add.reduceat(rows[order].astype(np.float64), start, axis=0)
            some = np.abs(sums).max(axis=1) > 0
            centres[present[some]] = to_grid(sums[some].astype(np.float32))
        out = np.empty(n, dtype=np.int32)
        for first in range(0, n, _BLOCK):
            out[first : first + _BLOCK] = _nearest_centre(to_grid(vectors[first : first + _BLOCK]), centres)
    return out


def _nearest_centre(rows: FloatRows, centres: FloatRows) -> NDArray[np.int64]:
    """Index of the centre with the largest product; lengths of centres are equal but for rounding."""
    own = np.empty(len(rows), dtype=np.int64)
    for first in range(0, len(rows), _BLOCK):
        own[first : first + _BLOCK] = (rows[first : first + _BLOCK] @ centres.T).argmax(axis=1)
    return own


def merge_by_radius(
    picks: NDArray[np.int64], radius: NDArray[np.float32], weights: NDArray[np.int64] | None, k: int
) -> NDArray[np.int64]:
    """The first ``k`` of picks from several cells, widest radius first; ties by weight (largest first), then index.

    Radii never rise within a cell, so what is taken from a cell is a beginning of its greedy order.

    Returns:
        int64[min(k, len(picks))], positions in ``picks``.
    """
    weight = np.zeros(len(picks)) if weights is None else np.asarray(weights)[picks]
    return np.lexsort((picks, -weight, -radius))[:k]


def partitioned_kcenter(
    vectors: FloatRows,
    k: int,
    *,
    weights: NDArray[np.int64] | None = None,
    centres: FloatRows | None = None,
    seed: int = 0,
    workers: int = 1,
    exact_rows: int = EXACT_ROWS,
    cell_rows: int = _CELL_ROWS,
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """:func:`~curation.algorithms.kcenter.kcenter` up to ``exact_rows`` rows; beyond, cell by cell.

    (Cell by cell as well when so many of fewer rows are wanted that the exact algorithm would take as long.)

    A cell offers up to four times its proportional share of candidates; all are ranked by radius and the first k are
    taken, so a cell whose rows lie far apart gets more picks than one whose rows lie close together.

    Rows at the borders of cells are covered twice, which costs radius: 2 % where there are many rows a cluster, up to
    a tenth where tight clusters are about as many as picks.

    Args:
        vectors: float32[n, d]; may be a memory map.
        k: rows to pick; min(k, n) are picked.
        weights: as in ``kcenter``.
        centres: as in ``kcenter``; beyond ``exact_rows`` each counts in the cell it lies in.
        seed: of the cells.
        workers: threads; they do not change the result.
        exact_rows: rows up to which the exact algorithm is used.
        cell_rows: rows of a cell, on average.

    Returns:
        As ``kcenter``; beyond ``exact_rows`` the radius of a pick is the distance to the nearest earlier pick of its
        cell, and 2 for the first pick of each cell without centres.
    """
    n = len(vectors)
    k = max(0, min(int(k), n))
    if n <= exact_rows and n * k <= exact_rows * exact_rows // 4:
        return kcenter(vectors, k, weights=weights, centres=centres, workers=workers)
    count = max(1, min(-(-n // cell_rows), k))
    if centres is None or len(centres) == 0:
        own, of_centre = cells(vectors, count, seed=seed, workers=workers), np.empty(0, np.int32)
        centres = np.empty((0, vectors.shape[1]), np.float32)
    else:
        own, of_centre = np.split(cells(np.concatenate([vectors, centres]), count, seed=seed, workers=workers), [n])
    order = np.argsort(own, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(own[order])) + 1)
    earlier = [centres[of_centre == own[rows[0]]] for rows in members]
    with blas_threads(workers, n * k * vectors.shape[1]):
        picks, radius = _fill_cells(vectors, members, k, weights, earlier)
    chosen = merge_by_radius(picks, radius, weights, k)
    return picks[chosen], radius[chosen]


def _fill_cells(
    vectors: FloatRows,
    members: list[NDArray[np.int64]],
    k: int,
    weights: NDArray[np.int64] | None,
    earlier: list[FloatRows],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Candidates of all cells with their radii, among them the k of widest radius.

    First every cell gets its share. The k-th widest radius is then a lower bound of the radius at which the selection
    will end, and rises with every further candidate: cells that are still above it go on, widest first, down to it.
    """
    n = sum(len(rows) for rows in members)
    shares = [-(-k * len(rows) // n) for rows in members]
    states, radii = [], []
    for rows, share, centres in zip(members, shares, earlier, strict=True):
        order = by_priority(None if weights is None else np.asarray(weights)[rows], len(rows))
        state = Greedy(order)
        state.load(to_grid(vectors[rows]), share, to_grid(centres))
        if len(centres) == 0:
            state.start(int(order[0]))
        state.run()
        states.append(state)
        radii.append(_unload(state, vectors, rows, centres))
    reached = np.array([radius[-1] for radius in radii])
    for cell in np.lexsort((np.arange(len(members)), -reached)):
        cut = -np.partition(-np.concatenate(radii), k - 1)[k - 1]
        if reached[cell] <= cut:
            break
        rows = members[cell]
        states[cell].load(
            to_grid(vectors[rows]), min(len(rows), _CANDIDATES * shares[cell] + 8), to_grid(earlier[cell])
        )
        states[cell].run(float(cut))
        radii[cell] = _unload(states[cell], vectors, rows, earlier[cell])
    picks = [rows[state.picks] for rows, state in zip(members, states, strict=True)]
    return np.concatenate(picks), np.concatenate(radii)


def _unload(state: Greedy, vectors: FloatRows, rows: NDArray[np.int64], centres: FloatRows) -> NDArray[np.float32]:
    state.unload()
    return pick_radii(vectors[rows[state.picks]], state.nearest[state.picks], centres)
