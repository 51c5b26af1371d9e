"""Keys that texts within a few edits share, where locality-sensitive hashing is weak.

An edit in a text of ten characters breaks a third of its shingles, so that bands miss one such pair in six, and two
texts made from one template share most shingles without being near. So keys are made from the edits themselves. The
letters are dealt into classes, and an edit changes the letters of one class only, a substitution of two. What is left
of a text without some of its classes is a key:

- at most one edit: without one of three classes; as a substitution may touch two, also every other character of the
  text, where there are words that allow substitutions;
- at most two edits: two of four classes;
- at most three edits: one of four classes.

So a pair that is alike always shares a key, unless a substitution and further edits touch every class. What the
rule never changes (digits, signs, numerals, and characters of short Chinese texts) is part of every key, and what it
lets come and go freely (spaces, particles) of none. Keys do not depend on the order of the characters: neighbours
that swap places and a word that moves change nothing.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from curation.algorithms.characters import CJK, DIGIT, LETTER, PARTICLE, SPACE, char_class
from curation.algorithms.edit import EDIT_LENGTH, SHORT_CJK, SHORT_SUBSTITUTE, edits_allowed

__all__ = ["MOST_KEYS", "SUMS", "write_edit_keys"]

MOST_KEYS = 11
"""Most keys of a text."""
SUMS = 6
"""Sums that a text is cut into on the way."""
BASE = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xC4CEB9FE1A85EC53)


@njit(nogil=True, cache=True)
def _spread(value):
    """64 bits from a code point or hash, such that their sums stand for multisets."""
    value = (np.uint64(value) + np.uint64(1)) * BASE
    return (value ^ value >> np.uint64(32)) * MIX


@njit(nogil=True, cache=True)
def _emit(value, out, first, at):
    """Write the key of a sum to ``out[at]`` unless ``out[first:at]`` has it; returns the place after the last key."""
    key = max(np.uint32((value ^ value >> np.uint64(29)) * MIX >> np.uint64(32)), np.uint32(1))
    for place in range(first, at):
        if out[place] == key:
            return at
    out[at] = key
    return at + 1


def _parts(passing: tuple[int, ...], dealt: tuple[int, ...]) -> np.ndarray:
    """Part of the text that a character of a kind and one of four classes goes to, by ``4 kind + class``."""
    return np.array(
        [REST if kind in passing else part if kind in dealt else FIXED for kind in range(7) for part in range(4)],
        np.uint8,
    )


FIXED, REST = 4, 5
# By whether digits are free, and whether Chinese, Japanese and Korean characters may change.
PARTS = np.array(
    [
        [_parts((SPACE, PARTICLE, *free), (LETTER,)), _parts((SPACE, PARTICLE, *free), (LETTER, CJK))]
        for free in ((), (DIGIT,))
    ]
)


@njit(nogil=True, cache=True)
def _deal(text, thirds, han_may_change, classes, free, sums):
    """Add characters up in ``sums``: by thirds or quarters, in FIXED those that never change, in REST all others.

    ``han_may_change``: whether Chinese, Japanese and Korean characters are dealt too.
    """
    parts = PARTS[np.int64(free), np.int64(han_may_change)]
    sums[:] = np.uint64(0)
    for code in text:
        part = np.uint32(code) % np.uint32(3) if thirds else np.uint32(code) & np.uint32(3)
        # Looked up rather than decided: the kinds of characters follow no pattern that a processor could foresee.
        sums[parts[np.uint32(char_class(code, classes)) * np.uint32(4) + part]] += _spread(code)


@njit(nogil=True, cache=True)
def _may_substitute(text, classes, free):
    """Whether there is a word that is long enough for a substitution."""
    run = 0
    for code in text:
        kind = char_class(code, classes)
        run = run + 1 if kind == LETTER or (kind == DIGIT and free) else 0
        if run == SHORT_SUBSTITUTE:
            return True
    return False


@njit(nogil=True, cache=True)
def _without_one(text, salt, han_may_change, classes, free, sums, out, first, at):
    """Write the keys of the text without one of three classes."""
    _deal(text, True, han_may_change, classes, free, sums)
    fixed = salt + sums[FIXED]
    for one in range(3):
        at = _emit(fixed + sums[(one + 1) % 3] + sums[(one + 2) % 3], out, first, at)
    return at


@njit(nogil=True, cache=True)
def _every_other(text, salt, out, first, at):
    """Write the keys of the characters at even and at odd places."""
    for odd in range(2):
        value = salt + np.uint64(text.size) * BASE
        for place in range(odd, text.size, 2):
            value += _spread(text[place])
        at = _emit(value, out, first, at)
    return at


@njit(nogil=True, cache=True)
def write_edit_keys(text, number, edits, classes, free, sums, out, first):
    """Write the keys (uint32, none 0) of one core to ``out`` from ``first``; returns the place after them.

    Two cores that the rule finds alike, with the same ``number`` (hash of their numbers), share a key, but for the
    exception named above. Cores that share one need not be alike.

    Args:
        text: int32: code points.
        number: uint32.
        edits: Of a :class:`~curation.algorithms.edit.Rule`, as are ``classes`` and ``free``.
        sums: uint64[SUMS], to be overwritten.
        out: uint32, with MOST_KEYS places from ``first``.
    """
    at, size, salt = first, text.size, _spread(number)
    if edits == 0:
        _deal(text, False, True, classes, free, sums)
        return _emit(salt + np.sum(sums[: FIXED + 1]), out, first, at)
    most = edits_allowed(size, edits)
    # The shorter text of a pair says how many edits there may be, and it may be shorter by as many.
    fewer = most - 1 if most > 1 and size - EDIT_LENGTH * most < most - 1 else most
    if size <= SHORT_CJK:
        at = _without_one(text, salt, False, classes, free, sums, out, first, at)
    if fewer == 1:
        if size >= SHORT_CJK:
            at = _without_one(text, salt, True, classes, free, sums, out, first, at)
        if _may_substitute(text, classes, free):
            at = _every_other(text, salt, out, first, at)
    if most > 1:
        _deal(text, False, True, classes, free, sums)
        salt += sums[FIXED]
        if fewer == 2 or most == 2:
            for one in range(4):
                for other in range(one):
                    at = _emit(salt + sums[one] + sums[other], out, first, at)
        if most == 3:
            for one in range(4):
                at = _emit(salt + sums[one], out, first, at)
    return at
