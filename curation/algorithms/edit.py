"""Are two texts the same query, mistyped or put politely? The rule that decides after Jaccard similarity.

Shingle similarity alone merges *hotels in suzhou* with *hotels in huzhou*. What separates a slip from another query
is where the two texts differ, so this rule looks at each difference. Two normal forms are alike when their cores
(:mod:`curation.algorithms.cores`: without courtesy at the ends, and what is said twice in a row said once)

- they are equal, or
- one is the other with its first word moved to the end, of at least three words, or
- at most ``edits`` single edits (two only where the shorter has 16 characters, three where it has 24 ...) lead from
  one to the other, and each edit is one that typing makes and meaning survives:

  - a space more or less;
  - in alphabetic scripts, at most one such edit a word and one substitution in all: a letter more or less in a word
    of 4 letters (6 if it is the word's first), neighbours swapped in a word of 4, a substitution in a word of 5, but
    not of its first or last letter: names and endings differ there, slips rarely do. A word and the space after it
    may swap a letter. Where the word is all there is, it must have 8 letters for any of these;
  - in Chinese, Japanese and Korean, a particle more or less (``的``, ``吗``, ``の`` ...), or another character where
    the shorter text has 8, unless it is one that turns meaning: numerals, negations, directions. No character is ever
    replaced by another, for one character is half a word: 北京 is not 南京;
  - nothing that adds, drops or alters a digit or sign, or a letter in a word that has one (``g2``, ``c++``), unless
    digits are free, which lets digits change like particles.

Distances are those of optimal string alignment (Damerau 1964, with every character edited at most once).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from curation.algorithms.characters import CJK, DIGIT, LETTER, PARTICLE, SIGN, SPACE, char_class, char_classes
from curation.algorithms.cores import core_of
from curation.algorithms.courtesy import COURTESY
from curation.algorithms.shingles import decode_all

__all__ = [
    "Room",
    "Rule",
    "alike",
    "alike_texts",
    "edits_allowed",
    "make_room",
    "make_rule",
]

SHORT_INSERT, FIRST_INSERT, SHORT_SWAP, SHORT_SUBSTITUTE, SHORT_ALONE = 4, 6, 4, 5, 8
SHORT_CJK, EDIT_LENGTH = 8, 8
MOST_EDITS = 3


class Rule(NamedTuple):
    """The rule, for the kernels."""

    classes: np.ndarray
    """Of :func:`~curation.algorithms.characters.char_classes`."""
    edits: int
    digits_free: bool


class Room(NamedTuple):
    """Where the kernel writes; one a thread."""

    left: np.ndarray
    """int32: code points of one text."""
    right: np.ndarray
    stack: np.ndarray
    """int32 of shape (depth, 5): states of the search for edits."""


def make_room(longest: int) -> Room:
    """Room for texts of at most ``longest`` characters."""
    left, right = np.empty((2, longest), np.int32)
    return Room(left, right, np.empty((4 * MOST_EDITS + 1, 5), np.int32))


def make_rule(edits: int = 2, *, digits_free: bool = False) -> Rule:
    """The rule with at most ``edits`` (0 to 3) edits."""
    if not 0 <= edits <= MOST_EDITS:
        raise ValueError(f"edits must lie between 0 and {MOST_EDITS}, not {edits}")
    return Rule(char_classes(), edits, digits_free)


@njit(nogil=True, cache=True)
def _word(text, at, classes, free):
    """Start and length of the alphabetic word that holds ``text[at]``, the length 0 if no letter of it may change."""
    start, end, protected = at, at, False
    while start > 0 and char_class(text[start - 1], classes) in (LETTER, DIGIT, SIGN):
        start -= 1
    end = start
    while end < text.size and char_class(text[end], classes) in (LETTER, DIGIT, SIGN):
        kind = char_class(text[end], classes)
        protected |= kind == SIGN or (kind == DIGIT and not free)
        end += 1
    alone = end - start == text.size and text.size < SHORT_ALONE
    return start, 0 if protected or alone else end - start


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
    start, size = _word(longer, at, classes, free)
    return size >= (FIRST_INSERT if at == start else SHORT_INSERT)


@njit(nogil=True, cache=True)
def _may_substitute(left, i, right, j, classes, free):
    kind, other = char_class(left[i], classes), char_class(right[j], classes)
    if kind == DIGIT and other == DIGIT:
        return free
    if kind != LETTER or other != LETTER:
        return False
    start, size = _word(left, i, classes, free)
    other_start, other_size = _word(right, j, classes, free)
    if min(size, other_size) < SHORT_SUBSTITUTE:
        return False
    return start < i < start + size - 1 and other_start < j < other_start + other_size - 1


@njit(nogil=True, cache=True)
def _may_swap(text, at, other_size, classes, free):
    """Whether ``text[at]`` and its successor may change places."""
    kind, other = char_class(text[at], classes), char_class(text[at + 1], classes)
    if kind == LETTER and other == LETTER:
        _, size = _word(text, at, classes, free)
        return size >= SHORT_SWAP
    if (kind == SPACE and other == LETTER) or (kind == LETTER and other == SPACE):
        _, size = _word(text, at + (kind == SPACE), classes, free)
        return size > 0 and min(text.size, other_size) >= EDIT_LENGTH
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
    """Whether ``right``, of the same size, is ``left`` with its first of three or more words moved to the end."""
    first = 0
    while first < left.size and left[first] != 32:
        first += 1
    rest = left.size - first - 1
    if rest < 0 or right[rest] != 32:
        return False
    words = 2
    for place in range(rest):
        if right[place] != left[first + 1 + place]:
            return False
        words += right[place] == 32
    for place in range(first):
        if right[rest + 1 + place] != left[place]:
            return False
    return words >= 3


@njit(nogil=True, cache=True)
def edits_allowed(size, edits):
    """Most edits where the shorter text has ``size`` characters, of ``edits`` at all."""
    return min(edits, max(1, size // EDIT_LENGTH))


@njit(nogil=True, cache=True)
def alike(data, a, a_end, b, b_end, most_edits, classes, free, left, right, stack):
    """Whether the cores in bytes ``a .. a_end`` and ``b .. b_end`` of ``data`` are one query.

    ``most_edits``, ``classes`` and ``free`` are those of a :class:`Rule`; the rest is the content of a :class:`Room`.
    """
    left = left[: decode_all(data, a, a_end, left)]
    right = right[: decode_all(data, b, b_end, right)]
    edits = edits_allowed(min(left.size, right.size), most_edits)
    if abs(left.size - right.size) > edits:
        return False
    if _within_edits(left, right, edits, classes, free, stack):
        return True
    return left.size == right.size and (_moved_word(left, right) or _moved_word(right, left))


def alike_texts(left: str, right: str, rule: Rule, courtesy: tuple[str, ...] = COURTESY) -> bool:
    """:func:`alike` for two normal forms."""
    a, b = core_of(left, courtesy).encode(), core_of(right, courtesy).encode()
    data, middle = np.frombuffer(a + b, np.uint8), len(a)
    room = make_room(len(data))
    return bool(alike(data, 0, middle, middle, len(data), rule.edits, rule.classes, rule.digits_free, *room))
