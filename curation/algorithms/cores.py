"""The core of a query: what is left of it without words that ask and thank, and without stutters.

*please find hotels in paris* and *hotels in paris thanks* have the same core. Courtesy phrases are taken off both
ends as long as one is there and something remains; in scripts with spaces a phrase must end where a word does.
What is said twice in a row counts once (:mod:`curation.algorithms.stutters`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from curation.algorithms.characters import char_classes
from curation.algorithms.courtesy import COURTESY
from curation.algorithms.normalise import normalise_one
from curation.algorithms.shingles import is_cjk
from curation.algorithms.stutters import squeeze

__all__ = ["Phrases", "core", "core_of", "make_phrases"]


class Phrases(NamedTuple):
    """Courtesy phrases as arrays, found by the two characters at an end, or by one where a phrase has no more.

    First axis where it has length 2: phrases at the front, phrases at the back.
    """

    codes: np.ndarray
    """int32: code points of all phrases."""
    starts: np.ndarray
    """int32, one more than phrases: where each lies in ``codes``."""
    numbers: np.ndarray
    """int32[2, phrases]: their numbers by :func:`_pair` of the characters at the end, the longest first."""
    ranges: np.ndarray
    """int32[2, PAIRS + 1]: where each pair's lie in ``numbers``."""
    known: np.ndarray
    """bool[2, PAIRS]: whether a pair has any; small enough to stay in the cache."""


PAIRS = 4096


@njit(nogil=True, cache=True)
def _pair(outer, inner):
    """A number below PAIRS for two characters at an end of a text; ``inner`` is 0 for a phrase of one character."""
    return (outer * 61 + inner) & (PAIRS - 1)


def make_phrases(courtesy: tuple[str, ...] = COURTESY) -> Phrases:
    """Words and phrases for :func:`core`; normalised here."""
    phrases = sorted(set(filter(None, map(normalise_one, courtesy))), key=lambda phrase: (-len(phrase), phrase))
    starts = np.zeros(len(phrases) + 1, np.int32)
    np.cumsum([len(phrase) for phrase in phrases], out=starts[1:])
    codes = np.array([ord(char) for phrase in phrases for char in phrase], np.int32)
    numbers, ranges = np.empty((2, len(phrases)), np.int32), np.empty((2, PAIRS + 1), np.int32)
    for end, step in enumerate((1, -1)):
        ends = [([*map(ord, phrase[::step][:2]), 0])[:2] for phrase in phrases]
        pairs = np.array([_pair.py_func(outer, inner) for outer, inner in ends], np.int64)
        numbers[end] = np.argsort(pairs, kind="stable")
        ranges[end] = np.searchsorted(pairs[numbers[end]], np.arange(PAIRS + 1))
    return Phrases(codes, starts, numbers, ranges, np.diff(ranges, axis=1) > 0)


@njit(nogil=True, cache=True)
def _known(text, begin, end, back, known):
    """Whether some phrase may be at that end of ``text[begin:end]``, which has at least 2 characters."""
    outer, inner = text[end - 1 if back else begin], text[end - 2 if back else begin + 1]
    return known[back, _pair(outer, inner)] | known[back, _pair(outer, 0)]


@njit(nogil=True, cache=True)
def _courtesy(text, begin, end, back, codes, starts, numbers, ranges):
    """Characters of the longest phrase at that end of ``text[begin:end]``, with the space beside it; 0 if none is."""
    outer, inner = text[end - 1 if back else begin], text[end - 2 if back else begin + 1]
    for pair in (_pair(outer, inner), _pair(outer, 0)):
        for slot in range(ranges[back, pair], ranges[back, pair + 1]):
            first, last = starts[numbers[back, slot]], starts[numbers[back, slot] + 1]
            size = last - first
            if size >= end - begin:
                continue
            at, place = end - size if back else begin, 0
            while place < size and text[at + place] == codes[first + place]:
                place += 1
            # A word must end where the phrase does, except in scripts without spaces.
            edge = text[at - 1 if back else at + size]
            if place == size and (edge == 32 or is_cjk(codes[first if back else last - 1])):
                return size + np.int64(edge == 32)
    return 0


@njit(nogil=True, cache=True)
def _without_courtesy(text, begin, end, codes, starts, numbers, ranges, known):
    """``begin, end`` of what is left of ``text[begin:end]`` without courtesy."""
    cut = 1
    while cut and end - begin > 1:
        cut = 0
        if _known(text, begin, end, 0, known):
            cut = _courtesy(text, begin, end, 0, codes, starts, numbers, ranges)
            begin += cut
        if not cut and _known(text, begin, end, 1, known):
            cut = _courtesy(text, begin, end, 1, codes, starts, numbers, ranges)
            end -= cut
    return begin, end


@njit(nogil=True, cache=True)
def core(text, codes, starts, numbers, ranges, known, classes):
    """``begin, end`` of the core, and whether stutters went, for then it is made in place of the text.

    Courtesy goes first, as *谢谢* is no stutter, and again where a stutter hid it.

    Args:
        text: int32: code points; overwritten where there are stutters.
        codes: The first of the fields of Phrases, which follow.
        classes: As of :func:`~curation.algorithms.characters.char_classes`.
    """
    begin, end = _without_courtesy(text, 0, text.size, codes, starts, numbers, ranges, known)
    size = squeeze(text[begin:end], classes)
    if size == end - begin:
        return begin, end, False
    begin, end = _without_courtesy(text, begin, begin + size, codes, starts, numbers, ranges, known)
    return begin, end, True


def core_of(norm: str, courtesy: tuple[str, ...] = COURTESY) -> str:
    """The core of one normal form: never nothing."""
    text = np.array([ord(char) for char in norm], np.int32)
    begin, end, _ = core(text, *make_phrases(courtesy), char_classes())
    return "".join(map(chr, text[begin:end].tolist()))
