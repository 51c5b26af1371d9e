"""The core of a query: what is left of it without words that ask and thank.

*please find hotels in paris* and *hotels in paris thanks* have the same core. Courtesy phrases are taken off both
ends as long as one is there and something remains; in scripts with spaces a phrase must end where a word does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from curation.algorithms.courtesy import COURTESY
from curation.algorithms.normalise import buffers, decode, normalise_one
from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.shingles import is_cjk

__all__ = ["Cores", "cores", "decode_all"]

ROWS_PER_CHUNK = 16_384


class Cores(NamedTuple):
    """Texts without courtesy, as byte ranges of n rows, and what refuses most pairs unread."""

    data: np.ndarray
    """uint8: UTF-8 bytes of all rows."""
    begins: np.ndarray
    """int64: first byte of each core."""
    ends: np.ndarray
    """int64: the byte after its last."""
    sizes: np.ndarray
    """int32: characters of each core."""
    profiles: np.ndarray
    """uint64 of shape (n, 2): character counts, 4 bits in unary for each of 32 bins of characters.

    Rows that are alike by k edits differ in at most k + 1 bits: an edit changes one count by one, but a substitution,
    of which there is at most one, two.
    """


class _Phrases(NamedTuple):
    """Courtesy phrases as arrays, found by their first or last character."""

    codes: np.ndarray
    """int32: code points of all phrases."""
    starts: np.ndarray
    """int32, one more than phrases: where each lies in ``codes``."""
    heads: np.ndarray
    """int32: numbers of the phrases by first code point, longest first."""
    head_starts: np.ndarray
    """int32 per code point of the basic plane, and one more: its range in ``heads``."""
    tails: np.ndarray
    """Like ``heads``, by last code point."""
    tail_starts: np.ndarray


def _by_code(phrases: list[str], place: int) -> tuple[np.ndarray, np.ndarray]:
    """Phrase numbers ordered by the code point at ``place``, longest first, and the range of each code point."""
    codes = np.array([ord(phrase[place]) for phrase in phrases], np.int64)
    order = np.lexsort((np.arange(len(phrases)), np.array([-len(phrase) for phrase in phrases]), codes))
    starts = np.searchsorted(codes[order], np.arange(0x10001))
    return order.astype(np.int32), starts.astype(np.int32)


def _phrases(courtesy: tuple[str, ...]) -> _Phrases:
    phrases = sorted({norm for norm in map(normalise_one, courtesy) if norm and max(norm[0], norm[-1]) <= "\uffff"})
    starts = np.zeros(len(phrases) + 1, np.int32)
    np.cumsum([len(phrase) for phrase in phrases], out=starts[1:])
    codes = np.array([ord(char) for phrase in phrases for char in phrase], np.int32)
    return _Phrases(codes, starts, *_by_code(phrases, 0), *_by_code(phrases, -1))


@njit(nogil=True, cache=True)
def _strip_once(text, begin, end, phrases, starts, heads, head_starts, tails, tail_starts):
    """``begin, end`` of the text without the longest courtesy phrase at either end; unchanged if it has none."""
    for front in (True, False):
        code = text[begin] if front else text[end - 1]
        if code >= 0x10000:
            continue
        numbers = heads if front else tails
        ranges = head_starts if front else tail_starts
        for slot in range(ranges[code], ranges[code + 1]):
            first, last = starts[numbers[slot]], starts[numbers[slot] + 1]
            size = last - first
            if size >= end - begin:
                continue
            at = begin if front else end - size
            same = True
            for place in range(size):
                if text[at + place] != phrases[first + place]:
                    same = False
                    break
            # A word must end where the phrase does, except in scripts without spaces.
            edge = text[at + size] if front else text[at - 1]
            inner = phrases[last - 1] if front else phrases[first]
            if same and (edge == 32 or is_cjk(inner)):
                return (at + size + (edge == 32), end) if front else (begin, at - (edge == 32))
    return begin, end


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
def _profile(text, begin, end, out):
    """Count characters in 32 bins and set, in ``out[0]`` and ``out[1]``, a bit for each count from 1 to 4 a bin."""
    out[0] = out[1] = 0
    for place in range(begin, end):
        code = np.int64(text[place])
        bin_ = code & 31 if code < 128 else (code * 0x9E3779B1 >> 27) & 31
        level = np.uint64(1) << np.uint64((bin_ & 15) * 4)
        half = bin_ >> 4
        for _ in range(4):
            if not out[half] & level:
                out[half] |= level
                break
            level <<= np.uint64(1)


@njit(nogil=True, cache=True)
def _core_rows(data, text_starts, first, last, longest, phrases, begins, ends, sizes, profiles):
    # Taken out of their tuple once: handing a tuple to a function counts references of all it holds.
    codes, starts = phrases.codes, phrases.starts
    heads, head_starts, tails, tail_starts = phrases.heads, phrases.head_starts, phrases.tails, phrases.tail_starts
    text = np.empty(longest, np.int32)
    for row in range(first, last):
        at = text_starts[row]
        size = decode_all(data, at, text_starts[row + 1], text)
        begin, end = 0, size
        while begin < end:
            fewer_begin, fewer_end = _strip_once(
                text, begin, end, codes, starts, heads, head_starts, tails, tail_starts
            )
            if fewer_end - fewer_begin == end - begin or fewer_begin >= fewer_end:
                break
            begin, end = fewer_begin, fewer_end
        sizes[row] = end - begin
        _profile(text, begin, end, profiles[row])
        begins[row], ends[row] = at, text_starts[row + 1]
        for place in range(size):
            if place == begin:
                begins[row] = at
                if end == size:
                    break
            if place == end:
                ends[row] = at
                break
            _, at = decode(data, at)


def cores(norms: pa.LargeStringArray, courtesy: tuple[str, ...] = COURTESY, workers: int | None = None) -> Cores:
    """What is left of each normal form without courtesy words at its ends: never nothing.

    Args:
        norms: Normal forms, without nulls, none empty.
        courtesy: Words and phrases; normalised here.
        workers: Threads.
    """
    phrases = _phrases(courtesy)
    data, text_starts = buffers(norms)
    rows = len(norms)
    begins, ends, sizes = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int32)
    profiles = np.empty((rows, 2), np.uint64)
    lengths = np.diff(text_starts)

    def work(first: int, last: int) -> None:
        longest = int(lengths[first:last].max())
        _core_rows(data, text_starts, first, last, longest, phrases, begins, ends, sizes, profiles)

    run_chunks(work, spans(rows, ROWS_PER_CHUNK), workers)
    return Cores(data, begins, ends, sizes, profiles)
