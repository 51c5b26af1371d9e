"""What numbers and model names a text holds: content that near-duplicates must share.

``iphone 14`` and ``iphone 15`` differ in one character of nine and are two queries. So each row gets a hash over, in
order, its tokens that hold a digit (runs of letters, digits and kept signs outside CJK: ``g2``, ``3.5``, ``7am``) and
its Chinese numbers (runs of numerals, ``十一``; a lone ``一`` is as often an article and does not count). Rows whose
hashes differ are never merged unless digits are to be ignored.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
import pyarrow as pa
from numba import njit

from curation.algorithms.normalise import buffers
from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.shingles import decode_all, is_cjk, mix64

__all__ = ["number_hash", "number_hashes", "number_kinds"]

ROWS_PER_CHUNK = 16_384
NUMERALS = "〇零一二两兩三四五六七八九十百千万萬亿億半"
ONE = ord("一")
PLAIN, DIGIT, NUMERAL, BREAK = range(4)


@lru_cache(maxsize=1)
def number_kinds() -> np.ndarray:
    """uint8 per code point of the basic plane: what it is to a number. Made once, about 20 ms."""
    kinds = np.full(0x10000, PLAIN, np.uint8)
    for code in range(0x10000):
        if unicodedata.category(chr(code)) == "Nd":
            kinds[code] = DIGIT
        elif is_cjk.py_func(code):
            kinds[code] = BREAK
    kinds[ord(" ")] = BREAK
    kinds[[ord(char) for char in NUMERALS]] = NUMERAL
    return kinds


@njit(nogil=True, cache=True)
def _kind(code, kinds):
    return kinds[code] if code < 0x10000 else np.uint8(PLAIN)


@njit(nogil=True, cache=True)
def number_hash(text, size, kinds):
    """uint32 over the numbers and model names of the code points ``text[:size]`` in order; 0 without any.

    A token is a run of one kind of character, NUMERAL or PLAIN with DIGIT. ``kinds`` is :func:`number_kinds`.
    """
    first = 0
    while first < size and _kind(text[first], kinds) not in (DIGIT, NUMERAL):
        first += 1
    if first == size:
        return np.uint32(0)
    while first > 0 and _kind(text[first - 1], kinds) == PLAIN:
        first -= 1
    total, token = np.uint64(0), np.uint64(0)
    length, counts, run, only = 0, False, np.uint8(BREAK), 0
    for place in range(first, size + 1):
        code, kind = 32, np.uint8(BREAK)
        if place < size:
            code = text[place]
            kind = _kind(code, kinds)
        here = np.uint8(PLAIN) if kind == DIGIT else kind
        if here != run:
            if counts and not (run == NUMERAL and length == 1 and only == ONE):
                total = mix64(total ^ token) + np.uint64(1)
            token, length, counts = np.uint64(0), 0, False
            run = here
        if here != BREAK:
            token = (token ^ np.uint64(code)) * np.uint64(0x9E3779B97F4A7C15)
            token ^= token >> np.uint64(29)
            length += 1
            only = code
            counts |= kind in (DIGIT, NUMERAL)
    return np.uint32(total >> np.uint64(32)) ^ np.uint32(total & np.uint64(0xFFFFFFFF))


@njit(nogil=True, cache=True)
def _number_hash_rows(data, starts, first, last, longest, kinds, out):
    text = np.empty(longest, np.int32)
    for row in range(first, last):
        out[row] = number_hash(text, decode_all(data, starts[row], starts[row + 1], text), kinds)


def number_hashes(norms: pa.LargeStringArray, workers: int | None = None) -> np.ndarray:
    """uint32 a row over its numbers and model names in order; 0 for a row without any."""
    data, starts = buffers(norms)
    out, lengths, kinds = np.zeros(len(norms), np.uint32), np.diff(starts), number_kinds()

    def work(first: int, last: int) -> None:
        _number_hash_rows(data, starts, first, last, int(lengths[first:last].max()), kinds, out)

    run_chunks(work, spans(len(norms), ROWS_PER_CHUNK), workers)
    return out
