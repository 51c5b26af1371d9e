"""One band of sign codes: rows in the order of their keys, and which of two sides agree in enough signs.

All of this is bound by memory, so what is read together lies together, and what lies elsewhere is asked for ahead
of its use.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from curation.algorithms.processor import fetch, ones
from curation.algorithms.signs import CODE_BITS, FILTER_BITS, LANE

__all__ = ["CODE", "LOWEST", "by_key", "candidates", "earlier_lanes", "gather"]

CODE = CODE_BITS // 64
"""Words of the signs that are counted."""

LOWEST = np.uint64(0x0001_0001_0001_0001)
"""The lowest bit of each lane of a word."""

_HALF = FILTER_BITS // 64
_AHEAD = 16  # rows that are on their way from memory at a time


@njit(cache=True, nogil=True)
def by_key(
    column: NDArray[np.uint16],
    mask: int,
    chosen: NDArray[np.int64],
    level: NDArray[np.int64],
    start: NDArray[np.int32],
    places: NDArray[np.int32],
) -> int:
    """Counting sort of the ``chosen`` rows by their masked key of a band.

    Args:
        column: uint16[n], the lane of each row.
        mask: the bits of the key.
        chosen: int64[k], rows.
        level: int64[k] leaves out the chosen rows that have a level; or empty.
        start: room for the offsets of the keys.
        places: int32[k, 2], room for the result: index into ``chosen`` and row, side by side since they are read
            together.

    Returns:
        How many rows the result has.
    """
    start[:] = 0
    own = np.empty(len(chosen), dtype=np.int32)
    for u in range(len(chosen)):
        if len(level) and level[u] >= 0:  # looked at once: another thread may write it
            own[u] = -1
            continue
        own[u] = column[chosen[u]] & np.uint16(mask)
        start[own[u] + 1] += 1
    for key in range(len(start) - 1):
        start[key + 1] += start[key]
    for u in range(len(chosen)):
        if own[u] < 0:
            continue
        at = start[own[u]]
        places[at, 0] = u
        places[at, 1] = chosen[u]
        start[own[u]] = at + 1
    for key in range(len(start) - 1, 0, -1):
        start[key] = start[key - 1]
    start[0] = 0
    return start[-1]


@njit(cache=True, nogil=True)
def gather(codes: NDArray[np.uint64], places: NDArray[np.int32], n: int, out: NDArray[np.uint64]) -> None:
    """Codes of the first ``n`` rows in the order of their keys."""
    for u in range(n):
        soon = places[min(u + _AHEAD, n - 1), 1]
        fetch(codes, soon, 0)
        fetch(codes, soon, _HALF)
        row = places[u, 1]
        for w in range(CODE):  # a fixed number of words makes a few wide moves
            out[u, w] = codes[row, w]
        for w in range(CODE, codes.shape[1]):
            out[u, w] = codes[row, w]


@njit(cache=True, nogil=True)
def earlier_lanes(band: int) -> NDArray[np.uint64]:
    """The highest bit of each lane that belongs to a band before ``band``, for as many words as have such a lane."""
    out = np.zeros((band + 3) // 4, dtype=np.uint64)
    for lane in range(band):
        out[lane // 4] |= np.uint64(0x8000) << np.uint64(LANE * (lane % 4))
    return out


@njit(cache=True, nogil=True)
def _differing(
    signs: NDArray[np.uint64],
    u: int,
    w: int,
    words: NDArray[np.uint64],
    size: int,
    differences: NDArray[np.int32],
) -> np.int32:
    """Add the signs of eight words, from word ``w`` on, in which rows differ from row ``u``; the smallest sum."""
    a, b, c, d = signs[u, w], signs[u, w + 1], signs[u, w + 2], signs[u, w + 3]
    e, f, g, h = signs[u, w + 4], signs[u, w + 5], signs[u, w + 6], signs[u, w + 7]
    lowest = np.int32(CODE_BITS)
    for v in range(size):
        left = (
            ones(a ^ words[w, v]) + ones(b ^ words[w + 1, v]) + ones(c ^ words[w + 2, v]) + ones(d ^ words[w + 3, v])
        )
        right = (
            ones(e ^ words[w + 4, v])
            + ones(f ^ words[w + 5, v])
            + ones(g ^ words[w + 6, v])
            + ones(h ^ words[w + 7, v])
        )
        differences[v] += np.int32(left + right)
        lowest = min(lowest, differences[v])
    return lowest


@njit(cache=True, nogil=True)
def candidates(
    asked: NDArray[np.uint64],
    u: int,
    words: NDArray[np.uint64],
    codes: NDArray[np.uint64],
    begin: int,
    size: int,
    earlier: NDArray[np.uint64],
    key_mask: np.uint64,
    most_different: tuple[int, int],
    differences: NDArray[np.int32],
    found: NDArray[np.int32],
) -> int:
    """Which of ``size`` rows agree with row ``u`` of ``asked`` in enough signs and in no earlier band.

    Args:
        asked: uint64[k, w], signs.
        u: the row looked at.
        words: uint64[16, m], the signs of the others word by word, so that the compiler can vectorise.
        codes: uint64[., w], the same and what bands there are beyond, row by row from row ``begin`` on.
        begin, size: which rows of ``codes`` the others are.
        earlier: of :func:`earlier_lanes`; a pair that agrees in one of these lanes has been met there.
        key_mask: the bits of each lane that are the key.
        most_different: signs that may differ of the first half, and of all.
        differences: room for m numbers.
        found: room for m numbers; the rows found come first, counted from ``begin``, and their number is returned.

    There are no branches but one: mispredicted ones would cost more than all else here. Nor are there views of
    rows, since each would cost an atomic count of references.
    """
    for v in range(size):
        differences[v] = 0
    if _differing(asked, u, 0, words, size, differences) > most_different[0]:
        return 0
    _differing(asked, u, _HALF, words, size, differences)
    count = 0
    for v in range(size):
        found[count] = v
        count += differences[v] <= most_different[1]
    near = 0
    for t in range(count):
        v = found[t]
        met = np.uint64(0)
        for w in range(len(earlier)):
            x = (asked[u, w] ^ codes[begin + v, w]) & key_mask
            met |= (x - LOWEST) & ~x & earlier[w]  # a lane of zeros borrows, and so flips its highest bit
        found[near] = v
        near += met == 0
    return near
