"""Stutters: what is said twice in a row, as voice input and hasty fingers leave it, and counts once.

*navigate to to the airport* is *navigate to the airport*, 打开打开空调 is 打开空调. A unit is a word or, in Chinese,
Japanese and Korean, a character. Where up to four units are followed by the same again, with or without a space, the
second time goes. Three things stay, for there the second time may be content:

- units with a digit or sign: *g2 g2*, 17 17, 😀😀;
- characters that turn meaning (numerals, directions) after none but such: 下下周 is not 下周;
- a unit that would be all that is left of a text: 看看, 滴滴, *bora bora*.

Whatever else is doubled (妈妈, *very very*) is squeezed too, in every text alike: 妈妈 and 妈 are one only in
texts that are the same all around them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from curation.algorithms.characters import DIGIT, SIGN, SPACE, TURN, char_class

__all__ = ["squeeze"]

FIRST_CJK = 0x2E80
NONE = np.int64(-1)


@njit(nogil=True, cache=True)
def _said_again(text, first, end, at, classes):
    """Where the second time ends if ``text[first:end]``, whole units, comes again at ``at`` and goes; else 0."""
    end -= text[end - 1] == 32
    after = at + end - first
    if after > text.size:
        return 0
    place = first
    while place < end and text[place] == text[at + place - first]:
        place += 1
    if place < end or (after < text.size and max(text[after - 1], text[after]) < FIRST_CJK and text[after] != 32):
        return 0
    free, units = False, 0
    for place in range(first, end):
        kind = char_class(text[place], classes)
        if kind in (DIGIT, SIGN):
            return 0
        free |= kind != TURN and kind != SPACE
        units += place == first or text[place] >= FIRST_CJK or text[place - 1] >= FIRST_CJK or text[place - 1] == 32
    return after if free and not (units == 1 and first == 0 and after == text.size) else 0


@njit(nogil=True, cache=True)
def squeeze(text, classes):
    """Move what is left of ``text`` without its stutters to its front; returns how many characters that is.

    One pass: where a unit begins like one of the four before it, it is looked at closely.

    Args:
        text: int32: code points, without spaces at its ends.
        classes: As of :func:`~curation.algorithms.characters.char_classes`.
    """
    # The four units before: how they begin, and where.
    mark_1, mark_2, mark_3, mark_4 = NONE, NONE, NONE, NONE
    begin_1, begin_2, begin_3, begin_4 = 0, 0, 0, 0
    at, to, inside = 0, 0, False
    while at < text.size:
        code = text[at]
        if code >= FIRST_CJK or not (inside or code == 32):
            mark, inside = np.int64(code), code < FIRST_CJK
            if inside and at + 1 < text.size:
                mark |= np.int64(text[at + 1]) << 32
            if (mark == mark_1) | (mark == mark_2) | (mark == mark_3) | (mark == mark_4):
                after = _said_again(text, begin_1, to, at, classes) if mark == mark_1 else 0
                if after == 0 and mark == mark_2:
                    after = _said_again(text, begin_2, to, at, classes)
                if after == 0 and mark == mark_3:
                    after = _said_again(text, begin_3, to, at, classes)
                if after == 0 and mark == mark_4:
                    after = _said_again(text, begin_4, to, at, classes)
                if after:
                    at, to, inside = after, to - (text[to - 1] == 32), False
                    continue
            mark_1, mark_2, mark_3, mark_4 = mark, mark_1, mark_2, mark_3
            begin_1, begin_2, begin_3, begin_4 = to, begin_1, begin_2, begin_3
        elif code == 32:
            inside = False
        text[to] = code
        at, to = at + 1, to + 1
    return to
