"""Slots with personal data. All of it is invented, in ranges that nobody holds.

Telephone numbers have the block 0000 (China) or 555-01xx (kept for fiction); mail addresses lie in the example
domains of RFC 2606; ID numbers have the code of a whole city and the sequence number 000 (cards carry county codes
and start at 001) with a right check digit (GB 11643); plates have the digits 000; coordinates are random points.
"""

from __future__ import annotations

import numpy as np

from logmaker.vocabulary import Slot, zipf

__all__ = ["KINDS", "check_digit", "personal_slots"]

KINDS = ("phone", "email", "id_card", "plate", "coordinates")
NAMES = (
    "li.wei", "zhangmin", "wangfang88", "chen_jie", "liuyang", "sunli", "zhao.lei", "zhouting", "wuhao", "xujing",
    "anna.k", "tom.baker", "j.smith", "lucy99", "maria.g", "peter_w", "sara.l", "nora", "david.m", "emma22",
)  # fmt: skip
PROVINCES = "京沪津渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
PROVINCE_CODES = (11, 12, 13, 14, 21, 31, 32, 33, 34, 35, 37, 41, 42, 43, 44, 45, 46, 50, 51, 52, 53, 61, 62)
LETTERS = "ABCDEFGHJKLM"


def check_digit(digits: str) -> str:
    """Check character of the first 17 digits of a Chinese ID number (GB 11643, ISO 7064 MOD 11-2)."""
    total = sum(int(d) * pow(2, 17 - i, 11) for i, d in enumerate(digits))
    return "10X98765432"[total % 11]


def personal_slots(seed: int, size: int) -> dict[tuple[str, str], Slot]:
    """Slots by (name, language), ``size`` values each."""
    rng = np.random.default_rng([seed, 41])
    slots: dict[tuple[str, str], Slot] = {}
    for lang in ("zh", "en"):
        for name in KINDS:
            words = np.empty(size, object)
            words[:] = [_MAKERS[name](rng, lang) for _ in range(size)]
            slots[name, lang] = Slot(words, np.arange(size), zipf(size, 0.4), masked=name)
    return slots


def _phone(rng: np.random.Generator, lang: str) -> str:
    if lang == "zh":
        number = f"1{rng.integers(3, 10)}{rng.integers(0, 10)}0000{rng.integers(0, 10_000):04d}"
        style = rng.integers(0, 10)
        if style == 0:
            return f"{number[:3]}-{number[3:7]}-{number[7:]}"
        if style == 1:
            return f"{number[:3]} {number[3:7]} {number[7:]}"
        return f"+86{number}" if style == 2 else number
    area = int(rng.choice([212, 312, 415, 512, 617, 702, 808]))
    line = rng.integers(100, 200)
    return f"({area}) 555-0{line}" if rng.integers(0, 2) else f"{area}-555-0{line}"


def _email(rng: np.random.Generator, lang: str) -> str:
    name = NAMES[rng.integers(0, len(NAMES))]
    return f"{name}{rng.integers(0, 1000) or ''}@example.{('com', 'org', 'net')[rng.integers(0, 3)]}"


def _id_card(rng: np.random.Generator, lang: str) -> str:
    province = PROVINCE_CODES[rng.integers(0, len(PROVINCE_CODES))]
    year, month, day = rng.integers(1950, 2010), rng.integers(1, 13), rng.integers(1, 29)
    digits = f"{province}0100{year}{month:02d}{day:02d}000"
    return digits + check_digit(digits)


def _plate(rng: np.random.Generator, lang: str) -> str:
    province = PROVINCES[rng.integers(0, len(PROVINCES))]
    letters = [LETTERS[i] for i in rng.integers(0, len(LETTERS), 3)]
    if rng.integers(0, 4) == 0:  # green plate of an electric car: D or F and five digits
        return f"{province}{letters[0]}{'DF'[rng.integers(0, 2)]}000{rng.integers(0, 100):02d}"
    return f"{province}{letters[0]}{letters[1]}000{rng.integers(0, 10)}"


def _coordinates(rng: np.random.Generator, lang: str) -> str:
    latitude, longitude = rng.uniform(21, 45), rng.uniform(100, 123)
    style = rng.integers(0, 3)
    if style == 0:
        return f"{latitude:.6f},{longitude:.6f}"
    return f"{latitude:.5f}, {longitude:.5f}" if style == 1 else f"{longitude:.6f},{latitude:.6f}"


_MAKERS = {"phone": _phone, "email": _email, "id_card": _id_card, "plate": _plate, "coordinates": _coordinates}
