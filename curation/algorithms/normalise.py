"""Normal form of a query: what two spellings of the same query have in common.

The rules, in this order:

1. *Fold*: NFKC, Unicode full case folding, NFKC, without default-ignorable characters (zero-width spaces and
   joiners, soft hyphens, variation selectors), repeated until nothing changes. ``ＡＢＣ`` is ``abc``, both spellings
   of ``café`` are one.
2. *Space*: separators, control characters, punctuation and symbols become spaces; runs of spaces become one, none at
   the ends. Letters, marks, numbers and currency signs stay.
3. Signs that carry content stay where they do: ``.`` and ``&`` between two ASCII letters or digits (``node.js``,
   ``at&t``), ``.`` also between two decimal digits of any script; one or two of ``+ #`` right after an ASCII letter
   or digit (``c++``, ``18+``, ``c#``), except a lone ``+`` before an ASCII letter (``hotels+in+paris``); ``% ‰ °``
   right after a decimal digit.
4. Visible text is never empty: where only symbols and punctuation were, the normal form is the folded text itself,
   spaces collapsed (``？？`` is ``??``, an emoji is itself). Text of separators, controls and ignorables alone is
   ``""``.

The normal form of a normal form is itself. Sources: Unicode Standard Annex 15 (normalisation forms), Unicode 3.13
(case folding), Unicode Character Database ``DerivedCoreProperties`` (default ignorables).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numba import njit

from curation.algorithms.parallel import run_chunks, spans

__all__ = ["buffers", "decode", "normalise", "normalise_one", "query_ids"]

# What becomes of a folded code point.
KEEP, DIGIT, SPACE, SYMBOL, INNER, SUFFIX, AFTER_DIGIT = range(7)

TABLE_SIZE = 0x32000  # planes 0 to 2 and the ideographs of plane 3; rows with anything above take the slow path
COMPOSES = 255  # stands for a combining class: the character may fuse with the one before it
ROWS_PER_CHUNK = 32_768
LONGEST_FAST_ROW = 1 << 16  # bytes; bounds the kernel's buffer
IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
SIGNS = {".": INNER, "&": INNER, "+": SUFFIX, "#": SUFFIX, "%": AFTER_DIGIT, "‰": AFTER_DIGIT, "°": AFTER_DIGIT}
# Of category Cf, but drawn: they span the digits after them.
VISIBLE_FORMATS = frozenset(map(chr, [*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD]))
BLANK_BRAILLE = "\u2800"
IOTA_SUBSCRIPT = "\u0345"
NEEDS_TEXT = -2


def _kind(char: str) -> int:
    """What becomes of one folded character."""
    category = unicodedata.category(char)
    if category == "Nd":
        return DIGIT
    if char in SIGNS:
        return SIGNS[char]
    if category[0] in "LMN" or category == "Sc":
        return KEEP
    if category[0] == "Z" or category in ("Cc", "Cs") or char == BLANK_BRAILLE:
        return SPACE
    if category == "Cf":
        return SYMBOL if char in VISIBLE_FORMATS else SPACE
    if category == "Cn":
        # Not assigned in this Python's Unicode version: an emoji to come, a noncharacter, or letters to come.
        code = ord(char)
        if 0x1F000 <= code <= 0x1FAFF:
            return SYMBOL
        return SPACE if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF else KEEP
    return SYMBOL


_kind_cached = lru_cache(maxsize=4096)(_kind)


def _fold(text: str) -> str:
    """Rule 1. One round is nearly always enough; ypogegrammeni and Hangul fillers need a second."""
    while True:
        folded = unicodedata.normalize("NFKC", IGNORABLE.sub("", text))
        folded = unicodedata.normalize("NFKC", folded.casefold())
        if folded == text:
            return text
        text = folded


def _is_ascii_alnum(char: str) -> bool:
    return char.isascii() and char.isalnum()


def _keeps_sign(folded: str, start: int, end: int, kind: int) -> bool:
    """Rule 3 for the sign, or run of suffix signs, at ``folded[start:end]``."""
    before, after = folded[start - 1 : start], folded[end : end + 1]
    if not before:
        return False
    if kind == AFTER_DIGIT:
        return _kind_cached(before) == DIGIT
    if kind == SUFFIX:
        separator = folded[start:end] == "+" and after.isascii() and after.isalpha()
        return _is_ascii_alnum(before) and end - start <= 2 and not separator
    if not after:
        return False
    in_token = _is_ascii_alnum(before) and _is_ascii_alnum(after)
    in_number = folded[start] == "." and _kind_cached(before) == _kind_cached(after) == DIGIT
    return in_token or in_number


def normalise_one(text: str) -> str:
    """Normal form of one text; the reference that :func:`normalise` equals row by row.

    >>> normalise_one("Best  C++ IDE, under $100?")
    'best c++ ide under $100'
    >>> normalise_one("？？"), normalise_one("3.5 km"), normalise_one("北京-天气")
    ('??', '3.5 km', '北京 天气')
    """
    folded = _fold(text)
    out: list[str] = []
    visible = False
    position = 0
    while position < len(folded):
        char = folded[position]
        kind = _kind_cached(char)
        end = position + 1
        if kind == SUFFIX:
            while end < len(folded) and _kind_cached(folded[end]) == SUFFIX:
                end += 1
        visible |= kind != SPACE
        if kind in (KEEP, DIGIT) or (kind >= INNER and _keeps_sign(folded, position, end, kind)):
            out.append(folded[position:end])
        else:
            out.append(" ")
        position = end
    norm = re.sub(" +", " ", "".join(out)).strip(" ")
    if norm or not visible:
        return norm
    spaced = "".join(" " if _kind_cached(char) == SPACE else char for char in folded)
    return re.sub(" +", " ", spaced).strip(" ")


class _Tables(NamedTuple):
    single: np.ndarray  # int32: folded code point; -1 where the fold is none or several; or NEEDS_TEXT
    offsets: np.ndarray  # int32, one more than code points: where the fold lies in `folds`
    folds: np.ndarray  # int32 code points
    kinds: np.ndarray  # uint8: KEEP ... AFTER_DIGIT
    classes: np.ndarray  # uint8: canonical combining class, or COMPOSES


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    """Tables per code point, made on first use (about 0.2 s).

    Joining all code points by line feeds and folding the one string does the work at C speed: nothing composes with
    a line feed.
    """
    chars = [chr(code) for code in range(TABLE_SIZE)]
    lines = "\n".join(char if char != "\n" else " " for char in chars)
    folds = _fold(lines).split("\n")
    lengths = np.fromiter(map(len, folds), np.int32, TABLE_SIZE)
    offsets = np.zeros(TABLE_SIZE + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    flat = np.frombuffer("".join(folds).encode("utf-32-le", "surrogatepass"), np.int32)
    single = np.full(TABLE_SIZE, -1, np.int32)
    single[lengths == 1] = flat[offsets[:-1][lengths == 1]]
    # Iota subscript moves behind other marks before case folding makes a letter of it: out of reach of a table.
    compatible = unicodedata.normalize("NFKD", lines).split("\n")
    single[[code for code, decomposed in enumerate(compatible) if IOTA_SUBSCRIPT in decomposed]] = NEEDS_TEXT

    classes = np.fromiter(map(unicodedata.combining, chars), np.uint8, TABLE_SIZE)
    classes[0x1161:0x1176] = classes[0x11A8:0x11C3] = COMPOSES  # Hangul vowels and finals
    for char, decomposed in zip(chars, unicodedata.normalize("NFD", lines).split("\n"), strict=True):
        if len(decomposed) > 1 and not "가" <= char <= "힣" and unicodedata.normalize("NFC", decomposed) == char:
            classes[ord(unicodedata.normalize("NFD", char)[-1])] = COMPOSES
            second = unicodedata.decomposition(char).split()[-1]
            classes[int(second, 16)] = COMPOSES
    kinds = np.fromiter(map(_kind, chars), np.uint8, TABLE_SIZE)
    return _Tables(single, offsets, flat, kinds, classes)


@njit(nogil=True, cache=True)
def decode(data, at):
    """Code point at byte ``at`` of valid UTF-8 and the byte after it."""
    lead = np.int32(data[at])
    if lead < 0x80:
        return lead, at + 1
    if lead < 0xE0:
        return (lead & 31) << 6 | (np.int32(data[at + 1]) & 63), at + 2
    if lead < 0xF0:
        return (lead & 15) << 12 | (np.int32(data[at + 1]) & 63) << 6 | (np.int32(data[at + 2]) & 63), at + 3
    high = (lead & 7) << 18 | (np.int32(data[at + 1]) & 63) << 12
    return high | (np.int32(data[at + 2]) & 63) << 6 | (np.int32(data[at + 3]) & 63), at + 4


@njit(nogil=True, cache=True)
def _encode(code, out, at):
    """Write ``code`` as UTF-8 at ``out[at]``; returns the byte after it."""
    if code < 0x80:
        out[at] = code
        return at + 1
    if code < 0x800:
        out[at] = 0xC0 | code >> 6
        out[at + 1] = 0x80 | code & 63
        return at + 2
    if code < 0x10000:
        out[at] = 0xE0 | code >> 12
        out[at + 1] = 0x80 | code >> 6 & 63
        out[at + 2] = 0x80 | code & 63
        return at + 3
    out[at] = 0xF0 | code >> 18
    out[at + 1] = 0x80 | code >> 12 & 63
    out[at + 2] = 0x80 | code >> 6 & 63
    out[at + 3] = 0x80 | code & 63
    return at + 4


@njit(nogil=True, cache=True)
def _measure(data, starts, first, last, tables, bounds, points):
    """Per row: most bytes its normal form can take (-1: slow path); ``points[0]``: most folded code points of a row.

    A row is slow when a folded character may compose with the one before it or its marks are out of canonical order:
    only then does folding character by character differ from folding the text.
    """
    single, offsets, folds, _, classes = tables
    for row in range(first, last):
        at, end = starts[row], starts[row + 1]
        size, count, previous, slow = 0, 0, 0, end - at > LONGEST_FAST_ROW
        while at < end and not slow:
            code, at = decode(data, at)
            if code >= TABLE_SIZE or single[code] == NEEDS_TEXT:
                slow = True
                break
            if 0 <= single[code] < 0x80:
                size += 1
                count += 1
                previous = 0
                continue
            for slot in range(offsets[code], offsets[code + 1]):
                folded = folds[slot]
                size += 1 + (folded >= 0x80) + (folded >= 0x800) + (folded >= 0x10000)
                count += 1
                order = classes[folded]
                slow |= order == COMPOSES or (order != 0 and order < previous)
                previous = order
        bounds[row] = -1 if slow else size
        points[0] = max(points[0], count)


@njit(nogil=True, cache=True)
def _is_token(code):
    return 48 <= code <= 57 or 97 <= code <= 122


@njit(nogil=True, cache=True)
def _kept_until(text, size, at, kinds):
    """End of the sign at ``at`` when rule 3 keeps it, else minus the end of what becomes a space."""
    kind = kinds[text[at]]
    end = at + 1
    if kind == SUFFIX:
        while end < size and kinds[text[end]] == SUFFIX:
            end += 1
    before = text[at - 1] if at > 0 else np.int32(32)
    after = text[end] if end < size else np.int32(32)
    if kind == AFTER_DIGIT:
        kept = kinds[before] == DIGIT
    elif kind == SUFFIX:
        separator = end - at == 1 and text[at] == 43 and 97 <= after <= 122
        kept = _is_token(before) and end - at <= 2 and not separator
    else:
        in_number = text[at] == 46 and kinds[before] == DIGIT and kinds[after] == DIGIT
        kept = in_number or (_is_token(before) and _is_token(after))
    return end if kept else -end


@njit(nogil=True, cache=True)
def _write(text, size, kinds, raw, out, begin):
    """Write folded ``text[:size]`` to ``out`` from ``begin``: by rules 2 and 3, or as it is (``raw``).

    Returns the end and whether anything but spaces was there.
    """
    to, pending, visible, at = begin, False, False, 0
    while at < size:
        code = text[at]
        kind = kinds[code]
        end = at + 1
        kept = kind <= DIGIT
        visible |= kind != SPACE
        if raw:
            kept = kind != SPACE
        elif kind >= INNER:
            end = _kept_until(text, size, at, kinds)
            kept = end > 0
            end = abs(end)
        if not kept:
            pending = True
        else:
            if pending and to > begin:
                out[to] = 32
                to += 1
            pending = False
            for slot in range(at, end):
                to = _encode(text[slot], out, to)
        at = end
    return to, visible


@njit(nogil=True, cache=True)
def _normalise_rows(data, starts, first, last, tables, bounds, points, slow, slow_starts, slow_row, out, base, sizes):
    """Normal forms of rows ``first .. last`` to ``out`` from ``base``, one after the other; returns the end."""
    single, offsets, folds, kinds, _ = tables
    text = np.empty(points + 1, np.int32)
    to = base
    for row in range(first, last):
        begin = to
        if bounds[row] < 0:
            for at in range(slow_starts[slow_row], slow_starts[slow_row + 1]):
                out[to] = slow[at]
                to += 1
            slow_row += 1
        else:
            at, end, size = starts[row], starts[row + 1], 0
            while at < end:
                code, at = decode(data, at)
                if single[code] >= 0:
                    text[size] = single[code]
                    size += 1
                else:
                    for slot in range(offsets[code], offsets[code + 1]):
                        text[size] = folds[slot]
                        size += 1
            to, visible = _write(text, size, kinds, False, out, begin)
            if to == begin and visible:
                to, visible = _write(text, size, kinds, True, out, begin)
        sizes[row] = to - begin
    return to


def buffers(texts: pa.LargeStringArray) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 bytes of an array and the int64 starts of its rows (one more than rows), without a copy."""
    _, starts, data = texts.buffers()
    rows = np.zeros(1, np.int64) if starts is None else np.frombuffer(starts, np.int64)
    return (
        np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8),
        rows[texts.offset : texts.offset + len(texts) + 1],
    )


def normalise(texts: pa.LargeStringArray, workers: int | None = None) -> pa.LargeStringArray:
    """Normal forms of ``texts``, row by row equal to :func:`normalise_one`; null stays null.

    Args:
        texts: Any Arrow string array; other layouts than large strings are copied first.
        workers: Threads, all cores when None. They do not change the result.

    Takes about 0.35 CPU-µs a short query; rows whose marks need reordering or composing take about 10.
    """
    if not pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.large_string())
    if len(texts) == 0:
        return texts
    tables = _tables()
    data, starts = buffers(texts)
    chunks = spans(len(texts), ROWS_PER_CHUNK)

    bounds = np.empty(len(texts), np.int64)
    points = np.zeros((len(chunks), 1), np.int64)
    run_chunks(
        lambda first, last: _measure(data, starts, first, last, tables, bounds, points[first // ROWS_PER_CHUNK]),
        chunks,
        workers,
    )
    slow_rows = np.flatnonzero(bounds < 0)
    slow_norms = [normalise_one(text or "").encode() for text in texts.take(pa.array(slow_rows)).to_pylist()]
    slow_starts = np.zeros(len(slow_rows) + 1, np.int64)
    np.cumsum([len(norm) for norm in slow_norms], out=slow_starts[1:])
    slow = np.frombuffer(b"".join(slow_norms), np.uint8)

    needed = np.maximum(bounds, 0)
    needed[slow_rows] = np.diff(slow_starts)
    bases = np.concatenate([[0], np.cumsum(np.add.reduceat(needed, [first for first, _ in chunks]))])
    out = np.empty(bases[-1], np.uint8)
    sizes = np.empty(len(texts), np.int64)

    def work(first: int, last: int) -> int:
        chunk = first // ROWS_PER_CHUNK
        slow_row = int(np.searchsorted(slow_rows, first))
        return _normalise_rows(
            data, starts, first, last, tables, bounds, points[chunk, 0],
            slow, slow_starts, slow_row, out, bases[chunk], sizes,
        )  # fmt: skip

    ends = run_chunks(work, chunks, workers)
    filled = 0
    for base, end in zip(bases, ends, strict=False):
        if filled != base:
            out[filled : filled + end - base] = out[base:end]
        filled += end - base
    norm_starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(sizes, out=norm_starts[1:])
    validity = pc.is_valid(texts).buffers()[1] if texts.null_count else None
    return pa.LargeStringArray.from_buffers(
        len(texts), pa.py_buffer(norm_starts), pa.py_buffer(out[:filled]), validity
    )


def query_ids(norms: pa.LargeStringArray) -> np.ndarray:
    """uint64 ids of normal forms: xxh3_64 of their UTF-8 bytes, the same on every machine. Nulls are not allowed."""
    import polars as pl
    import polars_hash

    if norms.null_count:
        raise ValueError("a null text has no id")
    hashes = pl.DataFrame({"norm": pl.from_arrow(norms)}).select(polars_hash.col("norm").nchash.xxh3_64())
    return hashes.to_series().to_numpy().astype(np.uint64, copy=False)
