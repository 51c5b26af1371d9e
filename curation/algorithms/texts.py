"""All that the edit rule and its candidates ask of each text, in one pass over its bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from curation.algorithms.cores import core, make_phrases
from curation.algorithms.courtesy import COURTESY
from curation.algorithms.digits import number_hash, number_kinds
from curation.algorithms.edit import Rule
from curation.algorithms.neighbours import MOST_KEYS, SUMS, write_edit_keys
from curation.algorithms.normalise import buffers, decode
from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.shingles import decode_all

__all__ = ["Texts", "read_texts"]

ROWS_PER_CHUNK = 16_384
BITS, NUMBER, BEGIN, END = range(4)


class Texts(NamedTuple):
    """n normal forms and their cores."""

    data: np.ndarray
    """uint8: UTF-8 bytes of all rows."""
    starts: np.ndarray
    """int64, n + 1: first byte of each row."""
    cores: np.ndarray
    """uint8: as ``data``, but rows with stutters begin with their core there, and are of no use behind it."""
    sizes: np.ndarray
    """int32: characters of each core."""
    facts: np.ndarray
    """uint64[n, 4], together because they are asked for together. BITS: whether the characters of the core with each
    value of 6 lower bits are odd in number. NUMBER: hash of the row's numbers and model names. BEGIN, END: bytes of
    the core in ``cores``.

    Cores that are alike by k edits differ in at most k + 1 of BITS: an edit changes one, but a substitution, of which
    there is at most one, two.
    """


@njit(nogil=True, cache=True)
def _bits(text):
    bits = np.uint64(0)
    for code in text:
        bits ^= np.uint64(1) << np.uint64(code & 63)
    return bits


@njit(nogil=True, cache=True)
def _bytes(text):
    """Bytes of code points in UTF-8."""
    size = text.size
    for code in text:
        size += np.int64(code >= 0x80) + np.int64(code >= 0x800) + np.int64(code >= 0x10000)
    return size


@njit(nogil=True, cache=True)
def _write_core(data, start, end, text, cores):
    """Write ``text``, some of the characters of ``data[start:end]`` in order, to ``cores[start:]``; its end."""
    at, to, place = start, start, 0
    while at < end and place < text.size:
        code, after = decode(data, at)
        if code == text[place]:
            while at < after:
                cores[to] = data[at]
                at, to = at + 1, to + 1
            place += 1
        at = after
    return to


@njit(nogil=True, cache=True)
def _read_rows(texts, first, last, longest, phrases, kinds, rule, keys, at, counts):
    # Arrays are taken out of their tuples once: handing a tuple to a function counts references of all it holds.
    data, starts, cores, sizes, facts = texts.data, texts.starts, texts.cores, texts.sizes, texts.facts
    codes, code_starts = phrases.codes, phrases.starts
    phrase_numbers, ranges, known = phrases.numbers, phrases.ranges, phrases.known
    edits, classes, free = rule.edits, rule.classes, rule.digits_free
    buffer, sums = np.empty(longest, np.int32), np.empty(SUMS, np.uint64)
    for row in range(first, last):
        size = decode_all(data, starts[row], starts[row + 1], buffer)
        number = number_hash(buffer, size, kinds)
        whole = buffer[:size]
        begin, end, squeezed = core(whole, codes, code_starts, phrase_numbers, ranges, known, classes)
        text = whole[begin:end]
        if squeezed:
            facts[row, BEGIN] = starts[row]
            facts[row, END] = _write_core(data, starts[row], starts[row + 1], text, cores)
        else:
            facts[row, BEGIN] = starts[row] + _bytes(whole[:begin])
            facts[row, END] = starts[row + 1] - _bytes(whole[end:])
        sizes[row] = text.size
        facts[row, BITS], facts[row, NUMBER] = _bits(text), number
        after = write_edit_keys(text, number, edits, classes, free, sums, keys, at)
        counts[row] = after - at
        at = after
    return at


def read_texts(
    norms: pa.LargeStringArray,
    rule: Rule,
    *,
    digits: Literal["content", "ignore"] = "content",
    courtesy: tuple[str, ...] = COURTESY,
    workers: int | None = None,
    allocate: Callable[[int, Any], np.ndarray] = np.empty,
) -> tuple[Texts, np.ndarray, np.ndarray]:
    """Texts, the keys they meet by (uint32), and where each row's start (int64, n + 1).

    Args:
        norms: Normal forms, without nulls, none empty.
        rule: What edits are looked for, see :mod:`curation.algorithms.neighbours`.
        digits: ``content``: rows share keys only if they have the same numbers and model names.
        courtesy: Words and phrases that are no part of a core.
        workers: Threads.
        allocate: Gives the arrays of the facts and the keys.
    """
    rows = len(norms)
    data, starts = buffers(norms)
    facts = allocate(rows * 4, np.uint64).reshape(rows, 4)
    texts = Texts(data, starts, data.copy(), np.empty(rows, np.int32), facts)
    keys, counts = allocate(rows * MOST_KEYS, np.uint32), np.empty(rows, np.int64)
    kinds = number_kinds() if digits == "content" else np.zeros(0x10000, np.uint8)
    chunks, phrases, lengths = spans(rows, ROWS_PER_CHUNK), make_phrases(courtesy), np.diff(starts)

    def work(first: int, last: int) -> int:
        longest = int(lengths[first:last].max())
        return _read_rows(texts, first, last, longest, phrases, kinds, rule, keys, first * MOST_KEYS, counts)

    filled = 0
    for (first, _), end in zip(chunks, run_chunks(work, chunks, workers), strict=True):
        base = first * MOST_KEYS
        keys[filled : filled + end - base] = keys[base:end]
        filled += end - base
    key_starts = np.zeros(rows + 1, np.int64)
    np.cumsum(counts, out=key_starts[1:])
    return texts, keys[:filled], key_starts
