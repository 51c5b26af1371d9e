"""Are two texts the same query, mistyped or put politely? The rule that decides after Jaccard similarity.

Shingle similarity alone merges *hotels in suzhou* with *hotels in huzhou*. What separates a slip from another query
is where the two texts differ, so this rule looks at each difference. Two normal forms are alike when, once courtesy
words (``please``, ``帮我``, ``谢谢`` ...) are taken off both ends,

- they are equal, or
- one is the other with its first word moved to the end, of at least three words, or
- at most ``edits`` single edits (two only where the shorter has 16 characters, three where it has 24 ...) lead from
  one to the other, and each edit is one that typing makes and meaning survives:

  - a space more or less;
  - in alphabetic scripts, at most one such edit a word and one substitution in all: a letter more or less in a word
    of 4 letters (6 if it is the word's first), neighbours swapped in a word of 4, a substitution in a word of 5, but
    not of its first or last letter: names and endings differ there, slips rarely do. A word and the space after it
    may swap a letter;
  - in Chinese, Japanese and Korean, a particle more or less (``的``, ``吗``, ``の`` ...), or another character where
    the shorter text has 8, unless it is one that turns meaning: numerals, negations, directions. No character is ever
    replaced by another, for one character is half a word: 北京 is not 南京;
  - nothing that adds, drops or alters a digit or sign, or a letter in a word that has one (``g2``, ``c++``), unless
    digits are free, which lets digits change like particles.

Distances are those of optimal string alignment (Damerau 1964, with every character edited at most once).
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from curation.algorithms.courtesy import COURTESY
from curation.algorithms.normalise import buffers, decode, normalise_one
from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.shingles import bits_apart, is_cjk

__all__ = [
    "Cores",
    "Room",
    "Rule",
    "alike",
    "alike_texts",
    "cores",
    "make_room",
    "make_rule",
]

PARTICLES = "的了吗呢吧啊呀哦嘛么请下个地得着过哪里是有在のはがをにでともへねよかー은는이가을를에도의요"
TURNING = (
    "〇零一二两兩三四五六七八九十百千万萬亿億半第不没沒别別无無非未勿莫禁东東西南北中上下前后後左右"
    "大小新旧舊老内內外男女早晚高低多少进進出去来來回入"
)

LETTER, CJK, PARTICLE, TURN, DIGIT, SPACE, SIGN = range(7)
SHORT_INSERT, FIRST_INSERT, SHORT_SWAP, SHORT_SUBSTITUTE, SHORT_CJK, EDIT_LENGTH = 4, 6, 4, 5, 8, 8
MOST_EDITS = 3
ROWS_PER_CHUNK = 16_384


class Rule(NamedTuple):
    """The rule as arrays, for the kernels."""

    classes: np.ndarray
    """uint8 per code point of the basic plane: LETTER ... SIGN."""
    phrases: np.ndarray
    """int32 code points of all courtesy phrases."""
    starts: np.ndarray
    """int32, one more than phrases: where each lies in ``phrases``."""
    heads: np.ndarray
    """int32: numbers of the phrases by first code point, longest first."""
    head_starts: np.ndarray
    """int32 per code point of the basic plane, one more: its range in ``heads``."""
    tails: np.ndarray
    """Like ``heads``, by last code point."""
    tail_starts: np.ndarray
    edits: int
    digits_free: bool


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


class Room(NamedTuple):
    """Where the kernel writes; one a thread."""

    left: np.ndarray
    """int32: code points of one text."""
    right: np.ndarray
    stack: np.ndarray
    """int32 of shape (depth, 5): states of the search for edits."""


def make_room(cores: Cores) -> Room:
    """Room for any two rows of ``cores``."""
    longest = int(cores.sizes.max(initial=1))
    left, right = np.empty((2, longest), np.int32)
    return Room(left, right, np.empty((4 * MOST_EDITS + 1, 5), np.int32))


@lru_cache(maxsize=1)
def _classes() -> np.ndarray:
    """Class of each code point of the basic plane (about 20 ms, made once)."""
    classes = np.full(0x10000, SIGN, np.uint8)
    for code in range(0x10000):
        category = unicodedata.category(chr(code))
        if category == "Nd":
            classes[code] = DIGIT
        elif category[0] in "LMN":
            classes[code] = CJK if is_cjk.py_func(code) else LETTER
    classes[[ord(char) for char in TURNING]] = TURN
    classes[[ord(char) for char in PARTICLES if char not in TURNING]] = PARTICLE
    classes[ord(" ")] = SPACE
    return classes


def _by_code(phrases: list[str], place: int) -> tuple[np.ndarray, np.ndarray]:
    """Phrase numbers ordered by the code point at ``place``, longest first, and the range of each code point."""
    codes = np.array([ord(phrase[place]) for phrase in phrases], np.int64)
    order = np.lexsort((np.arange(len(phrases)), np.array([-len(phrase) for phrase in phrases]), codes))
    starts = np.searchsorted(codes[order], np.arange(0x10001))
    return order.astype(np.int32), starts.astype(np.int32)


def make_rule(edits: int = 2, courtesy: tuple[str, ...] = COURTESY, *, digits_free: bool = False) -> Rule:
    """The rule with at most ``edits`` (0 to 3) edits and the given courtesy words, which are normalised here."""
    if not 0 <= edits <= MOST_EDITS:
        raise ValueError(f"edits must lie between 0 and {MOST_EDITS}, not {edits}")
    phrases = sorted({norm for norm in map(normalise_one, courtesy) if norm and max(norm[0], norm[-1]) <= "\uffff"})
    starts = np.zeros(len(phrases) + 1, np.int32)
    np.cumsum([len(phrase) for phrase in phrases], out=starts[1:])
    codes = np.array([ord(char) for phrase in phrases for char in phrase], np.int32)
    return Rule(_classes(), codes, starts, *_by_code(phrases, 0), *_by_code(phrases, -1), edits, digits_free)


@njit(nogil=True, cache=True)
def char_class(code, classes):
    if code < 0x10000:
        return classes[code]
    return np.uint8(CJK) if is_cjk(code) else np.uint8(SIGN if code >= 0x1F000 else LETTER)


@njit(nogil=True, cache=True)
def _strip_once(text, begin, end, rule):
    """``begin, end`` of the text without the longest courtesy phrase at either end; unchanged if it has none."""
    for front in (True, False):
        code = text[begin] if front else text[end - 1]
        if code >= 0x10000:
            continue
        numbers = rule.heads if front else rule.tails
        ranges = rule.head_starts if front else rule.tail_starts
        for slot in range(ranges[code], ranges[code + 1]):
            first, last = rule.starts[numbers[slot]], rule.starts[numbers[slot] + 1]
            size = last - first
            if size >= end - begin:
                continue
            at = begin if front else end - size
            same = True
            for place in range(size):
                if text[at + place] != rule.phrases[first + place]:
                    same = False
                    break
            # A word must end where the phrase does, except in scripts without spaces.
            edge = text[at + size] if front else text[at - 1]
            inner = rule.phrases[last - 1] if front else rule.phrases[first]
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
def _core_rows(data, text_starts, first, last, longest, rule, begins, ends, sizes, profiles):
    text = np.empty(longest, np.int32)
    for row in range(first, last):
        at = text_starts[row]
        size = decode_all(data, at, text_starts[row + 1], text)
        begin, end = 0, size
        while begin < end:
            fewer_begin, fewer_end = _strip_once(text, begin, end, rule)
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


def cores(norms: pa.LargeStringArray, rule: Rule, workers: int | None = None) -> Cores:
    """What is left of each normal form without courtesy words at its ends: never nothing."""
    data, text_starts = buffers(norms)
    rows = len(norms)
    begins, ends, sizes = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int32)
    profiles = np.empty((rows, 2), np.uint64)
    lengths = np.diff(text_starts)

    def work(first: int, last: int) -> None:
        longest = int(lengths[first:last].max())
        _core_rows(data, text_starts, first, last, longest, rule, begins, ends, sizes, profiles)

    run_chunks(work, spans(rows, ROWS_PER_CHUNK), workers)
    return Cores(data, begins, ends, sizes, profiles)


@njit(nogil=True, cache=True)
def _word(text, at, classes, free):
    """Start and length of the alphabetic word that holds ``text[at]``, and whether a digit or sign is in it."""
    start, end, protected = at, at, False
    while start > 0 and char_class(text[start - 1], classes) in (LETTER, DIGIT, SIGN):
        start -= 1
    while end < text.size and char_class(text[end], classes) in (LETTER, DIGIT, SIGN):
        kind = char_class(text[end], classes)
        protected |= kind == SIGN or (kind == DIGIT and not free)
        end += 1
    for place in range(start, at):
        kind = char_class(text[place], classes)
        protected |= kind == SIGN or (kind == DIGIT and not free)
    return start, end - start, protected


@njit(nogil=True, cache=True)
def _may_insert(longer, at, shorter, classes, free):
    """Whether ``longer[at]`` may be there in one text and not in the other."""
    kind = char_class(longer[at], classes)
    if kind in (SPACE, PARTICLE):
        return True
    if kind == DIGIT:
        return free
    if kind == CJK:
        return shorter.size >= SHORT_CJK
    if kind != LETTER:
        return False
    start, size, protected = _word(longer, at, classes, free)
    return not protected and size >= (FIRST_INSERT if at == start else SHORT_INSERT)


@njit(nogil=True, cache=True)
def _may_substitute(left, i, right, j, classes, free):
    kind, other = char_class(left[i], classes), char_class(right[j], classes)
    if kind == DIGIT and other == DIGIT:
        return free
    if kind != LETTER or other != LETTER:
        return False
    start, size, protected = _word(left, i, classes, free)
    other_start, other_size, other_protected = _word(right, j, classes, free)
    if protected or other_protected or min(size, other_size) < SHORT_SUBSTITUTE:
        return False
    return start < i < start + size - 1 and other_start < j < other_start + other_size - 1


@njit(nogil=True, cache=True)
def _may_swap(text, at, other_size, classes, free):
    """Whether ``text[at]`` and its successor may change places."""
    kind, other = char_class(text[at], classes), char_class(text[at + 1], classes)
    if kind == LETTER and other == LETTER:
        _, size, protected = _word(text, at, classes, free)
        return not protected and size >= SHORT_SWAP
    if (kind == SPACE and other == LETTER) or (kind == LETTER and other == SPACE):
        _, _, protected = _word(text, at + (kind == SPACE), classes, free)
        return not protected and min(text.size, other_size) >= EDIT_LENGTH
    return False


@njit(nogil=True, cache=True)
def _push(stack, depth, i, j, made, replaced, touched):
    stack[depth, 0] = i
    stack[depth, 1] = j
    stack[depth, 2] = made
    stack[depth, 3] = replaced
    stack[depth, 4] = touched
    return depth + 1


@njit(nogil=True, cache=True)
def _touched_by(kind, touched):
    """Whether the current word has had its edit after a character of ``kind`` was added or dropped."""
    return 1 if kind == LETTER else 0 if kind == SPACE else touched


@njit(nogil=True, cache=True)
def _within_edits(left, right, edits, classes, free, stack):
    """Whether some acceptable edits, at most ``edits``, lead from ``left`` to ``right``.

    Depth first over the edits; equal stretches are skipped, so there are at most 4^edits branches. A state is the
    place in both texts, edits made, substitutions made, and whether the current word has had its edit.
    """
    depth = _push(stack, 0, 0, 0, 0, 0, 0)
    while depth:
        depth -= 1
        i, j, made = stack[depth, 0], stack[depth, 1], stack[depth, 2]
        replaced, touched = stack[depth, 3], stack[depth, 4]
        while i < left.size and j < right.size and left[i] == right[j]:
            if left[i] == 32:
                touched = 0
            i += 1
            j += 1
        if i == left.size and j == right.size:
            return True
        more, spare = (right.size - j) - (left.size - i), edits - made - 1
        if spare < 0:
            continue
        if j < right.size and abs(more - 1) <= spare and _may_insert(right, j, left, classes, free):
            kind = char_class(right[j], classes)
            if not (kind == LETTER and touched):
                depth = _push(stack, depth, i, j + 1, made + 1, replaced, _touched_by(kind, touched))
        if i < left.size and abs(more + 1) <= spare and _may_insert(left, i, right, classes, free):
            kind = char_class(left[i], classes)
            if not (kind == LETTER and touched):
                depth = _push(stack, depth, i + 1, j, made + 1, replaced, _touched_by(kind, touched))
        if i == left.size or j == right.size or touched or abs(more) > spare:
            continue
        if not replaced and _may_substitute(left, i, right, j, classes, free):
            depth = _push(stack, depth, i + 1, j + 1, made + 1, 1, 1)
        swapped = i + 1 < left.size and j + 1 < right.size and left[i] == right[j + 1] and left[i + 1] == right[j]
        if swapped and _may_swap(left, i, right.size, classes, free):
            depth = _push(stack, depth, i + 2, j + 2, made + 1, replaced, 1)
    return False


@njit(nogil=True, cache=True)
def _moved_word(left, right):
    """Whether ``right`` is ``left`` with its first word moved to the end, of at least three words."""
    if left.size != right.size:
        return False
    words, first = 1, -1
    for place in range(left.size):
        if left[place] == 32:
            words += 1
            if first < 0:
                first = place
    if words < 3:
        return False
    rest = left.size - first - 1
    return (
        right[rest] == 32 and np.all(left[first + 1 :] == right[:rest]) and np.all(left[:first] == right[rest + 1 :])
    )


@njit(nogil=True, cache=True)
def alike(data, a, a_end, b, b_end, most_edits, classes, free, left, right, stack):
    """Whether the cores in bytes ``a .. a_end`` and ``b .. b_end`` of ``data`` are one query.

    ``most_edits``, ``classes`` and ``free`` are those of a :class:`Rule`; the rest is the content of a :class:`Room`.
    """
    left = left[: decode_all(data, a, a_end, left)]
    right = right[: decode_all(data, b, b_end, right)]
    edits = min(most_edits, max(1, min(left.size, right.size) // EDIT_LENGTH))
    if abs(left.size - right.size) > edits:
        return False
    if _within_edits(left, right, edits, classes, free, stack):
        return True
    return _moved_word(left, right) or _moved_word(right, left)


def alike_texts(left: str, right: str, rule: Rule) -> bool:
    """:func:`alike` for two normal forms."""
    both = cores(pa.array([left, right], pa.large_string()), rule, 1)
    if bits_apart(both.profiles, 0, 1) > rule.edits + 1:
        return False
    (a, b), (a_end, b_end) = both.begins, both.ends
    return bool(alike(both.data, a, a_end, b, b_end, rule.edits, rule.classes, rule.digits_free, *make_room(both)))
