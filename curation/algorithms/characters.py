"""What a character is to a text: part of a word, a word of its own, a number, a sign."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
from numba import njit

from curation.algorithms.shingles import is_cjk

__all__ = ["CJK", "DIGIT", "LETTER", "PARTICLE", "SIGN", "SPACE", "TURN", "char_class", "char_classes"]

PARTICLES = "的了吗呢吧啊呀哦嘛么请下个地得着过哪里是有在のはがをにでともへねよかー은는이가을를에도의요"
TURNING = (
    "〇零一二两兩三四五六七八九十百千万萬亿億半第不没沒别別无無非未勿莫禁东東西南北中上下前后後左右"
    "大小新旧舊老内內外男女早晚高低多少进進出去来來回入"
)

LETTER, CJK, PARTICLE, TURN, DIGIT, SPACE, SIGN = range(7)
"""PARTICLE and TURN are Chinese, Japanese and Korean characters: those that say next to nothing, and those that turn
meaning (numerals, negations, directions)."""


@lru_cache(maxsize=1)
def char_classes() -> np.ndarray:
    """uint8: class of each code point of the basic plane (about 20 ms, made once)."""
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


@njit(nogil=True, cache=True)
def char_class(code, classes):
    """Class of a code point by :func:`char_classes`."""
    if code < 0x10000:
        return classes[code]
    return np.uint8(CJK) if is_cjk(code) else np.uint8(SIGN if code >= 0x1F000 else LETTER)
