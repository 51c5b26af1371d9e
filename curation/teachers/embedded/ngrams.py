"""Word and character n-grams of normal forms as sparse features, for languages with and without spaces.

A normal form is read as a row of units: each character of a script written without spaces (Han, kana, Thai ...), each
run of digits, each other word. Features are runs of one to three units, wherever a space may stand between them, and
runs of one or two digits as they are (elsewhere all runs of digits are one unit, since dates and prices differ where
intents do not). Values are 1 + log(count), scaled so that a row has length 1 over the features it knows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from curation.algorithms.normalise import buffers, decode

__all__ = ["LONGEST", "Ngrams", "Sparse", "fit_ngrams"]

LONGEST = 3
"""Units of the longest feature."""

_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_NUMBER = np.uint64(0x9E3779B97F4A7C15)
_OTHER, _DENSE, _DIGIT = 0, 1, 2
_MOST = 1 << 16


@dataclass(frozen=True)
class Sparse:
    """Rows of sparse features: row i has ``columns[starts[i]:starts[i + 1]]``, ascending, with their ``values``."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float32]

    def rows(self, chosen: NDArray[np.int64]) -> Sparse:
        """The given rows, in that order."""
        sizes = np.diff(self.starts)[chosen]
        starts = np.zeros(len(chosen) + 1, np.int64)
        np.cumsum(sizes, out=starts[1:])
        at = np.arange(starts[-1]) + np.repeat(self.starts[:-1][chosen] - starts[:-1], sizes)
        return Sparse(starts, self.columns[at], self.values[at])

    def dense(self, width: int) -> NDArray[np.float64]:
        """float64[n, width]."""
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        out = np.zeros((len(self.starts) - 1, width))
        out[rows, self.columns] = self.values
        return out

    def times(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Product with float32[width, c]; every row is summed on its own, in the order of its columns."""
        out = np.zeros((len(self.starts) - 1, weights.shape[1]), np.float32)
        _products(self.starts, self.columns, self.values, weights, out)
        return out


@dataclass(frozen=True)
class Ngrams:
    """A fitted vocabulary: the hash of feature i is ``hashes[i]``, ascending."""

    hashes: NDArray[np.uint64]

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.hashes)

    def transform(self, norms: pa.LargeStringArray) -> Sparse:
        """Features of normal forms."""
        found, starts = _hashes(norms)
        columns, values, sizes = _known(found, starts, self.hashes)
        bounds = np.zeros(len(starts), np.int64)
        np.cumsum(sizes, out=bounds[1:])
        return Sparse(bounds, columns[: bounds[-1]], values[: bounds[-1]])


def fit_ngrams(norms: pa.LargeStringArray, least: int = 2, most: int = _MOST) -> Ngrams:
    """The features that stand in at least ``least`` rows; of more than ``most`` the most frequent."""
    found, starts = _hashes(norms)
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((rows, found))
    found, rows = found[order], rows[order]
    new = np.ones(len(found), bool)
    new[1:] = (found[1:] != found[:-1]) | (rows[1:] != rows[:-1])
    hashes, counts = np.unique(found[new], return_counts=True)
    hashes, counts = hashes[counts >= least], counts[counts >= least]
    return Ngrams(np.sort(hashes[np.lexsort((hashes, -counts))[:most]]))


def _hashes(norms: pa.LargeStringArray) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes of all features of all rows, and where each row starts (n + 1)."""
    data, offsets = buffers(norms)
    # A unit is a byte at least, and starts at most LONGEST features and its own digits.
    room = (LONGEST + 1) * int(offsets[-1] - offsets[0]) if len(offsets) else 0
    out = np.empty(room, np.uint64)
    starts = np.zeros(max(len(offsets), 1), np.int64)
    longest = int(np.diff(offsets).max()) if len(offsets) > 1 else 0
    _fill(data, offsets, np.empty(longest + 1, np.uint64), out, starts)
    return out[: starts[-1]], starts


@njit(cache=True, nogil=True)
def _kind(code):  # type: ignore[no-untyped-def]
    """Whether a code point is a digit, of a script without spaces, or neither; -1 for what parts words."""
    if code < 0x80:
        if 0x30 <= code <= 0x39:
            return _DIGIT
        return _OTHER if 0x61 <= code <= 0x7A or 0x41 <= code <= 0x5A else -1
    dense = (
        0x3040 <= code <= 0x30FF  # kana
        or 0x3400 <= code <= 0x9FFF  # Han
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x3FFFF
        or 0x0E00 <= code <= 0x0EFF  # Thai, Lao
        or 0x1000 <= code <= 0x109F  # Burmese
        or 0x1780 <= code <= 0x17FF  # Khmer
    )
    return _DENSE if dense else _OTHER


@njit(cache=True, nogil=True)
def _mix(first, second):  # type: ignore[no-untyped-def]
    return (first ^ (second + np.uint64(0x9E3779B97F4A7C15) + (first << np.uint64(6)))) * _PRIME


@njit(cache=True, nogil=True)
def _fill(data, offsets, units, out, starts):  # type: ignore[no-untyped-def]
    """Write the hashes of the features of every row; ``units`` is room for the units of the longest row."""
    n = 0
    for row in range(len(offsets) - 1):
        at, end, count = offsets[row], offsets[row + 1], 0
        while at < end:
            code, at = decode(data, at)
            kind = _kind(code)
            value = _mix(_OFFSET, np.uint64(code))
            if kind in (_OTHER, _DIGIT):
                length = 1
                while at < end:
                    code, after = decode(data, at)
                    if _kind(code) != kind:
                        break
                    value = _mix(value, np.uint64(code))
                    length += 1
                    at = after
                if kind == _DIGIT:
                    if length <= 2:
                        out[n] = value
                        n += 1
                    value = _NUMBER
            if kind >= 0:
                units[count] = value
                count += 1
        for first in range(count):
            value = _OFFSET
            for last in range(first, min(first + LONGEST, count)):
                value = _mix(value, units[last])
                out[n] = value
                n += 1
        starts[row + 1] = n


@njit(cache=True, nogil=True)
def _known(found, starts, vocabulary):  # type: ignore[no-untyped-def]
    """(columns, values, number of features of each row) of the known ones among ``found``."""
    columns = np.empty(len(found), np.int64)
    values = np.empty(len(found), np.float32)
    sizes = np.zeros(len(starts) - 1, np.int64)
    n = 0
    for row in range(len(starts) - 1):
        places = np.searchsorted(vocabulary, found[starts[row] : starts[row + 1]])
        count = 0
        for i in range(len(places)):
            place = places[i]
            if place < len(vocabulary) and vocabulary[place] == found[starts[row] + i]:
                places[count] = place
                count += 1
        known = np.sort(places[:count])
        first, square = n, 0.0
        for i in range(count):
            if i and known[i] == known[i - 1]:
                values[n - 1] += 1
            else:
                columns[n], values[n] = known[i], 1
                n += 1
        for i in range(first, n):
            values[i] = 1 + np.log(values[i])
            square += values[i] * values[i]
        for i in range(first, n):
            values[i] /= np.sqrt(square)
        sizes[row] = n - first
    return columns, values, sizes


@njit(cache=True, nogil=True)
def _products(starts, columns, values, weights, out):  # type: ignore[no-untyped-def]
    for row in range(len(starts) - 1):
        total = out[row]
        for i in range(starts[row], starts[row + 1]):
            weight, value = weights[columns[i]], values[i]
            for k in range(len(total)):
                total[k] += value * weight[k]
