"""Units of texts by the most probable segmentation (Kudo 2018, arXiv 1804.10959, section 3.1), compiled.

Gives exactly what :class:`curation.teachers.pieces.Definition` gives. Two steps, both over the code points of all
texts at once:

1. Characters are replaced one by one, runs of spaces become one, and a space comes before the first word.
   The library looks at a *grapheme cluster* (Unicode annex 29) as a whole, before its characters, if it has fewer
   than six bytes in UTF-8. So a text in which two characters that together have fewer than six bytes may belong to
   one cluster is *doubtful* and left to the library: one with a Latin letter and a combining accent, but hardly any
   in Thai or Hindi. Which characters may join a neighbour is told from their general category, and widely, so that
   another version of Unicode than ours changes no unit.
2. Viterbi's algorithm over a trie of the units, in double precision, ties decided as in the library: of segmentations
   that score the same up to a character, the one whose last unit is longest.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

import numpy as np
from numba import njit

from curation.teachers.pieces import BEGIN, END, MAX_UNITS, SPACE, UNKNOWN, Definition, piece_list, replacements

__all__ = ["Unigram"]

KNOWN_CODES = 0x20000
"""Code points from here on are doubtful: planes of the rarest ideographs, of tags and of private use."""
CODE = 0x1FFFFF
LONG, LEFT, RIGHT, DOUBTFUL = (1 << bit for bit in range(21, 25))
"""An entry of the table of characters has the code point that replaces it or, if LONG, the number of a replacement by
none or several; LEFT and RIGHT tell that the character may join the one before and after it."""
SHORT_CLUSTER = 6
"""Bytes in UTF-8: clusters of so many and more are replaced character by character."""
UNKNOWN_PENALTY = 10.0
"""An unknown character scores so much less than the least probable unit."""
SLOT = np.dtype([("key", np.uint64), ("score", np.float64), ("unit", np.int32), ("inner", np.int32)])
"""A node of the trie in a hash table with linear probing: `key` is made of the parent's slot and the character, 0
where the slot is free; `unit` is -1 where no unit ends; `inner` tells that the node has children."""
ROOT = -1
NOWHERE = -2


class Unigram:
    """The tokeniser of a SentencePiece model file; immutable once made, shared by all threads.

    ``pieces`` are the units with their log probabilities; ``definition`` is the slow tokeniser that this one equals.
    """

    def __init__(self, model: bytes) -> None:
        self.pieces = piece_list(model)
        replaced = replacements(model)
        self.definition = Definition(self.pieces, replaced)
        self._characters = _characters(replaced.normalize_str)
        codes, starts = _code_points([piece for piece, _ in self.pieces])
        scores = np.array([score for _, score in self.pieces])
        self._unknown_score = float(scores.min()) - UNKNOWN_PENALTY
        size = 1 << (4 * len(scores)).bit_length()
        self._trie = np.zeros(size, SLOT)
        while not _build(codes, starts, scores, self._trie):
            size *= 2
            self._trie = np.zeros(size, SLOT)

    def tokenise(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Unit ids of all texts in one int64 array, begin and end included, and where each text starts (n + 1).

        Of a text longer than `MAX_UNITS` units only the start is kept; an empty text has one unit, `UNKNOWN`.
        """
        chars, starts, doubtful = _replace(*_code_points(texts), *self._characters)
        rows = np.flatnonzero(doubtful)
        slow = self.definition.rows([texts[i] for i in rows]) if len(rows) else []
        given = np.array([unit for row in slow for unit in row], np.int64)
        lengths = np.zeros(len(texts), np.int64)
        lengths[rows] = [len(row) for row in slow]
        return _segment(chars, starts, self._trie, self._unknown_score, given, lengths)

    def doubtful(self, texts: list[str]) -> np.ndarray:
        """(n,) bool: which texts are left to the library."""
        return _replace(*_code_points(texts), *self._characters)[2]


def _code_points(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Code points of all texts in one uint32 array, and where each text starts (n + 1)."""
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=starts[1:])
    return np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.dtype("<u4")), starts


def _characters(replaced: Callable[[str], str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The table of characters (int32), the code points of LONG replacements, and where each of those starts."""
    codes = [code for code in range(KNOWN_CODES) if not 0xD800 <= code < 0xE000]
    # One call for all: together with a separator of four bytes no character is in a short cluster.
    separator = "\U000f0000"
    values = replaced(separator.join(map(chr, codes))).split(separator)
    table = np.full(KNOWN_CODES, DOUBTFUL, np.int32)
    several: list[str] = []
    odd_space = re.compile(rf"[^\S ]|{SPACE}")
    for code, value in zip(codes, values, strict=True):
        if len(value) == 1:
            entry = ord(value)
        else:
            entry = LONG | len(several)
            several.append(value)
        table[code] = entry | joins(chr(code)) | (DOUBTFUL if odd_space.search(value) else 0)
    return table, *_code_points(several)


def joins(char: str) -> int:
    """Flags LEFT and RIGHT of a character: the sides on which it may be in one grapheme cluster with another.

    A superset of the rules of Unicode annex 29 for every character that has another than a break at both sides.
    """
    category, code = unicodedata.category(char), ord(char)
    if char in "\u00ad\u200b\u200e\u200f\u2060\ufeff":
        return 0  # Formats that break clusters like controls.
    if category[0] == "M" or char in "\u0e33\u0eb3\u200c\uff9e\uff9f" or 0x1F3FB <= code <= 0x1F3FF:
        return LEFT
    jamo = 0x1100 <= code < 0x1200 or 0xA960 <= code < 0xA980 or 0xD7B0 <= code < 0xD800
    letter_of_old_scripts = category[0] == "L" and 0x10000 <= code < 0x20000
    flag_letter = 0x1F1E6 <= code <= 0x1F1FF
    if category in ("Cf", "Cn") or char in "\r\u0d4e" or jamo or letter_of_old_scripts or flag_letter:
        return LEFT | RIGHT
    return 0


@njit(cache=True, nogil=True)
def _replace(codes, starts, table, several, several_starts):  # type: ignore[no-untyped-def]
    """Texts with characters replaced, where each starts (n + 1), and which are doubtful: these come out empty.

    Every word begins with SPACE, the first too; there is none at the end.
    """
    rows = len(starts) - 1
    space = np.int32(ord(SPACE))
    out_starts = np.zeros(rows + 1, np.int64)
    doubtful = np.zeros(rows, np.bool_)
    room = len(codes) + rows
    out = np.empty(room, np.int32)
    at = 0
    for r in range(rows):
        gap = True
        joins_next, bytes_before = False, SHORT_CLUSTER
        for i in range(starts[r], starts[r + 1]):
            code = codes[i]
            entry = table[code] if code < len(table) else np.int32(DOUBTFUL)
            size = 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000)
            joined = (joins_next or entry & LEFT) and bytes_before + size < SHORT_CLUSTER
            if entry & DOUBTFUL or joined:
                doubtful[r] = True
                break
            joins_next, bytes_before = entry & RIGHT != 0, size
            value = entry & CODE
            lo, hi = 0, 1
            if entry & LONG:
                lo, hi = several_starts[value], several_starts[value + 1]
                room += hi - lo
                if room > len(out):
                    longer = np.empty(2 * room, np.int32)
                    longer[:at] = out[:at]
                    out = longer
            for j in range(lo, hi):
                char = np.int32(several[j]) if entry & LONG else np.int32(value)
                if char == 32:
                    gap = True
                    continue
                if gap:
                    out[at] = space
                    at += 1
                    gap = False
                out[at] = char
                at += 1
        if doubtful[r]:
            at = out_starts[r]
        out_starts[r + 1] = at
    return out[:at], out_starts, doubtful


@njit(cache=True, nogil=True, inline="always")
def _child(trie, node, char):  # type: ignore[no-untyped-def]
    """Slot of a node's child, or where it would be put: then its key is 0. Also the key."""
    key = np.uint64((node + 2) << 21 | char)
    mask = np.uint64(len(trie) - 1)
    slot = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & mask
    while trie[slot].key != key and trie[slot].key != 0:
        slot = slot + np.uint64(1) & mask
    return np.int64(slot), key


@njit(cache=True, nogil=True)
def _build(codes, starts, scores, trie):  # type: ignore[no-untyped-def]
    """Put all units into the empty trie; False where it would be more than half full."""
    used = 0
    for unit in range(len(scores)):
        node = ROOT
        for i in range(starts[unit], starts[unit + 1]):
            if node != ROOT:
                trie[node].inner = 1
            node, key = _child(trie, node, np.int64(codes[i]))
            if trie[node].key == 0:
                used += 1
                if 2 * used > len(trie):
                    return False
                trie[node].key = key
                trie[node].unit = -1
        if node != ROOT:
            trie[node].unit = unit
            trie[node].score = scores[unit]
    return True


@njit(cache=True, nogil=True)
def _segment(chars, starts, trie, unknown_score, given, lengths):  # type: ignore[no-untyped-def]
    """Units of all texts with marks, and where each text starts (n + 1).

    A text with ``lengths > 0`` takes its next so many units from ``given``; one without characters is UNKNOWN.
    """
    rows = len(starts) - 1
    out = np.empty(len(chars) + len(given) + 3 * rows, np.int64)
    out_starts = np.zeros(rows + 1, np.int64)
    longest = 0
    for r in range(rows):
        longest = max(longest, starts[r + 1] - starts[r])
    score = np.empty(longest + 1, np.float64)
    unit = np.empty(longest + 1, np.int32)
    origin = np.empty(longest + 1, np.int64)
    at, taken = 0, 0
    for r in range(rows):
        out[at] = BEGIN
        at += 1
        text = chars[starts[r] : starts[r + 1]]
        if lengths[r] > 0:
            out[at : at + lengths[r]] = given[taken : taken + lengths[r]]
            at += lengths[r]
            taken += lengths[r]
        elif len(text) == 0:
            out[at] = UNKNOWN
            at += 1
        else:
            _best_path(text, trie, unknown_score, score, unit, origin)
            at += _walk(len(text), unit, origin, out[at : at + len(text)])
        out[at] = END
        at += 1
        out_starts[r + 1] = at
    return out[:at].copy(), out_starts


@njit(cache=True, nogil=True)
def _best_path(text, trie, unknown_score, score, unit, origin):  # type: ignore[no-untyped-def]
    """For every end in the text: the best score up to it, the last unit there and where that unit begins."""
    size = len(text)
    score[0] = 0.0
    origin[: size + 1] = -1
    for begin in range(size):
        here = score[begin]
        single = False
        node = ROOT
        for end in range(begin + 1, size + 1):
            node, key = _child(trie, node, np.int64(text[end - 1]))
            entry = trie[node]
            if entry.key != key:
                break
            if entry.unit >= 0:
                total = here + entry.score
                if origin[end] < 0 or total > score[end]:
                    score[end], unit[end], origin[end] = total, entry.unit, begin
                if end == begin + 1:
                    single = True
            if entry.inner == 0:
                break
        if not single:
            total = here + unknown_score
            if origin[begin + 1] < 0 or total > score[begin + 1]:
                score[begin + 1], unit[begin + 1], origin[begin + 1] = total, UNKNOWN, begin


@njit(cache=True, nogil=True)
def _walk(size, unit, origin, out):  # type: ignore[no-untyped-def]
    """Write the units of the best path to `out`, an unknown one once per character; how many, at most MAX_UNITS."""
    at = end = size
    while end > 0:
        begin = origin[end]
        for _ in range(end - begin if unit[end] == UNKNOWN else 1):
            at -= 1
            out[at] = unit[end]
        end = begin
    count = min(size - at, MAX_UNITS)
    for i in range(count):
        out[i] = out[at + i]
    return count
