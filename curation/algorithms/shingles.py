"""Shingle sets of short texts, and their exact Jaccard similarity.

A text is padded with one mark at each end and cut into overlapping character n-grams: 2-grams where at least half of
its characters are CJK (a Chinese word has about two), else 3-grams. Padding makes the ends count and gives
even a single letter a shingle, so no text is without one. Shingles are 32-bit hashes, sorted and distinct in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from curation.algorithms.normalise import buffers, decode
from curation.algorithms.parallel import run_chunks, spans

__all__ = [
    "Shingles",
    "decode_all",
    "jaccard",
    "jaccard_pairs",
    "mix64",
    "ones",
    "shingle_hash",
    "shingle_row",
    "shingles",
]

FRONT, BACK = 2, 3  # padding marks: control characters, which no normal form contains
ROWS_PER_CHUNK = 16_384
FEW = 64


class Shingles(NamedTuple):
    """The shingle sets of n rows: row i has ``hashes[starts[i]:starts[i + 1]]``."""

    hashes: np.ndarray
    """uint32, ascending and distinct within a row."""
    starts: np.ndarray
    """int64, n + 1."""


@njit(nogil=True, cache=True)
def mix64(x):
    """The finaliser of MurmurHash3 for 64 bits (Appleby, public domain)."""
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xFF51AFD7ED558CCD)
    x ^= x >> np.uint64(33)
    x *= np.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> np.uint64(33))


@njit(nogil=True, cache=True)
def _hash(packed):
    """32-bit hash of packed code points, never 0."""
    return np.uint32(max(mix64(packed) & np.uint64(0xFFFFFFFF), np.uint64(1)))


@njit(nogil=True, cache=True)
def is_cjk(code):
    """Han, kana, bopomofo and Hangul: scripts where a character is a syllable or a word."""
    return 0x2E80 <= code <= 0x9FFF or 0xAC00 <= code <= 0xD7A3 or 0xF900 <= code <= 0xFAFF or code >= 0x20000


@njit(nogil=True, cache=True)
def decode_all(data, at, end, text):
    """Decode bytes ``at .. end`` to code points in ``text``; returns how many."""
    size = 0
    while at < end:
        code, at = decode(data, at)
        text[size] = code
        size += 1
    return size


@njit(nogil=True, cache=True)
def _sort_distinct(values, out, at):
    """Write the distinct ``values``, none of them 0, in ascending order to ``out[at:]``; returns their end.

    Few values are put at their ranks, counted without a branch, which the compiler turns into vector instructions;
    equal ones meet in one place and leave gaps behind it. ``values`` is overwritten, and must have room for 8 more.
    """
    count = values.size - 8
    if count > FEW:
        previous = np.uint32(0)
        for value in np.sort(values[:count]):
            out[at] = value
            at += value != previous
            previous = value
        return at
    padded = (count + 7) & ~7
    values[count:padded] = np.uint32(0xFFFFFFFF)
    out[at : at + count] = 0
    for value in values[:count]:
        rank = np.uint32(0)
        for place in range(padded):
            rank += np.uint32(values[place] < value)
        out[at + rank] = value
    to = at
    for place in range(at, at + count):
        out[to] = out[place]
        to += out[place] != 0
    return to


@njit(nogil=True, cache=True)
def shingle_row(data, at, end, codes, values, out, to):
    """Write the sorted distinct shingles of the text in bytes ``at .. end`` to ``out[to:]``; returns their end.

    ``codes`` (int64) and ``values`` (uint32) are room for 2 and 10 entries more than the text has characters.
    """
    size, wide = 1, 0
    codes[0] = FRONT
    while at < end:
        code, at = decode(data, at)
        wide += is_cjk(code)
        codes[size] = code
        size += 1
    codes[size] = BACK
    size += 1
    length = 2 if 2 * wide >= size - 2 else 3
    count = size - length + 1
    for first in range(count):
        packed = np.uint64(codes[first]) << np.uint64(21) | np.uint64(codes[first + 1])
        if length == 3:
            packed = packed << np.uint64(21) | np.uint64(codes[first + 2])
        values[first] = _hash(packed)
    return _sort_distinct(values[: count + 8], out, to)


@njit(nogil=True, cache=True)
def _shingle_rows(data, text_starts, first, last, longest, out, base, sizes):
    codes, values = np.empty(longest + 2, np.int64), np.empty(longest + 10, np.uint32)
    to = base
    for row in range(first, last):
        end = shingle_row(data, text_starts[row], text_starts[row + 1], codes, values, out, to)
        sizes[row] = end - to
        to = end
    return to


def shingles(
    norms: pa.LargeStringArray, workers: int | None = None, allocate: Callable[[int, Any], np.ndarray] = np.empty
) -> Shingles:
    """Shingle sets of normal forms, without nulls; ``allocate`` gives the array of the hashes."""
    data, text_starts = buffers(norms)
    rows = len(norms)
    # A row has at most one shingle more than bytes; chunks leave gaps that are closed below.
    chunks = spans(rows, ROWS_PER_CHUNK)
    lengths = np.diff(text_starts)
    longest = [int(lengths[first:last].max()) for first, last in chunks]
    bases = [int(text_starts[first] - text_starts[0]) + first for first, _ in chunks]
    out = allocate(int(text_starts[-1] - text_starts[0]) + rows, np.uint32)
    sizes = np.zeros(rows, np.int64)

    def work(first: int, last: int) -> int:
        chunk = first // ROWS_PER_CHUNK
        return _shingle_rows(data, text_starts, first, last, longest[chunk], out, bases[chunk], sizes)

    filled = 0
    for base, end in zip(bases, run_chunks(work, chunks, workers), strict=True):
        out[filled : filled + end - base] = out[base:end]
        filled += end - base
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return Shingles(out[:filled], starts)


@njit(nogil=True, cache=True)
def jaccard(hashes, first, first_end, second, second_end):
    """Jaccard similarity of two sorted distinct runs of ``hashes``."""
    total = first_end - first + second_end - second
    shared = 0
    while first < first_end and second < second_end:
        left, right = hashes[first], hashes[second]
        shared += left == right
        first += left <= right
        second += right <= left
    return shared / (total - shared)


@njit(nogil=True, cache=True)
def ones(bits):
    """Number of set bits (Warren, "Hacker's Delight", section 5-1)."""
    bits -= (bits >> np.uint64(1)) & np.uint64(0x5555555555555555)
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True)
def _hash_codes(codes):
    packed = np.uint64(0)
    for code in codes:
        packed = packed << np.uint64(21) | np.uint64(code)
    return _hash(packed)


def shingle_hash(shingle: str) -> int:
    """32-bit hash of one shingle of at most 3 characters; the ``hashfunc`` that makes datasketch agree."""
    return int(_hash_codes(np.array([ord(char) for char in shingle], np.int64)))


@njit(nogil=True, cache=True)
def _jaccard_rows(hashes, starts, left, right, out):
    for pair in range(out.size):
        a, b = left[pair], right[pair]
        out[pair] = jaccard(hashes, starts[a], starts[a + 1], starts[b], starts[b + 1])


def jaccard_pairs(sets: Shingles, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """float64: Jaccard similarity of the rows ``left[k]`` and ``right[k]``."""
    out = np.empty(len(left), np.float64)
    _jaccard_rows(*sets, left, right, out)
    return out
