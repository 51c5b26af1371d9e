"""Canonical values of constraints: numbers in words, quantities with units, clock times, composed expressions.

A template is literal text with fields over the named groups of a match:

====================  ================================================================================
``{g}``               the words of group g, case folded, white space collapsed
``{g:number}``        a number in digits or words: ``三百五`` is 350, ``two and a half`` 2.5, ``两三`` 2-3
``{g:two}``           the same, two digits wide
``{g*u:table}``       the number of g in the unit that u names in the table (``0.001 km``)
``{g:table}``         what the table has for the words of g (its entry ``""`` where g took no part)
``{g:rules}``         the words of g through the rules of that name, see :class:`Values`
``{g:clock}``         hour g as HH:MM, with the groups ``minute``, ``part`` (of the day) and ``to`` (the hour)
====================  ================================================================================

A group that took no part gives nothing. A space in a template parts pieces: empty pieces vanish, the others are
joined by ``_``. A field whose words cannot be read makes the whole match void.
"""

from __future__ import annotations

import re
from fractions import Fraction

from curation.domain.model import Pattern, Wording
from curation.errors import CurationError

__all__ = ["Values", "parse_number"]

_FIELD = re.compile(r"\{(\w+)(?:\*(\w+))?(?::(\w+))?\}")

_ZH_DIGITS = {
    "零": 0,
    "〇": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
}
_ZH_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000, "亿": 100_000_000}
_ZH_RANGE = re.compile("([一二两三四五六七八])([二三四五六七八九])")
_EN_NUMBERS = {
    "zero": 0,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
    "a": 1,
    "an": 1,
    "couple": 2,
    "dozen": 12,
}
_EN_SCALES = {"hundred": 100, "thousand": 1000, "k": 1000, "grand": 1000, "million": 1_000_000}

Number = tuple[Fraction, Fraction]


def parse_number(text: str) -> Number | None:
    """Smallest and largest value that ``text`` (case folded) stands for; None when it is no number."""
    text = text.strip().replace(",", "").replace("，", "")
    if match := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(k|[十百千万亿]{0,2})", text):
        scale = 1000 if match[2] == "k" else 1
        for unit in match[2].removeprefix("k"):
            scale *= _ZH_UNITS[unit]
        value = Fraction(match[1]) * scale
        return value, value
    if re.search("[一-鿿〇]", text):
        return _chinese(text)
    return _english(text)


def _chinese(text: str) -> Number | None:
    if text == "半" or text == "半个":
        return Fraction(1, 2), Fraction(1, 2)
    if text.endswith("半"):  # 两个半, 三半
        whole = parse_number(text.rstrip("半个"))
        return None if whole is None else (whole[0] + Fraction(1, 2), whole[1] + Fraction(1, 2))
    text = text.rstrip("个")
    if decimal := re.fullmatch("([一二三四五六七八九])点([一二三四五六七八九])", text):
        value = _ZH_DIGITS[decimal[1]] + Fraction(_ZH_DIGITS[decimal[2]], 10)
        return value, value
    if all(character in _ZH_DIGITS for character in text) and len(text) > 2:
        value = Fraction(int("".join(str(_ZH_DIGITS[character]) for character in text)))
        return value, value
    pair = _ZH_RANGE.search(text)
    if pair and _ZH_DIGITS[pair[2]] == _ZH_DIGITS[pair[1]] + 1:  # 两三百, 十五六
        low = _chinese_integer(text[: pair.start(2)] + text[pair.end(2) :])
        high = _chinese_integer(text[: pair.start(1)] + text[pair.end(1) :])
        return None if low is None or high is None else (Fraction(low), Fraction(high))
    value_or_none = _chinese_integer(text)
    return None if value_or_none is None else (Fraction(value_or_none), Fraction(value_or_none))


def _chinese_integer(text: str) -> int | None:
    """An integer in Chinese numerals, the short form 两千五 (2500) included."""
    total = section = 0
    digit: int | None = None
    last_unit, zero = 1, False
    for character in text:
        if character in _ZH_DIGITS:
            if digit is not None and digit != 0:
                return None
            digit = _ZH_DIGITS[character]
            zero = zero or digit == 0
        elif character in _ZH_UNITS:
            unit = _ZH_UNITS[character]
            if unit >= 10_000:
                total = (total + section + (digit or 0)) * unit
                section = 0
            else:
                section += (1 if digit is None else digit) * unit
            digit, last_unit, zero = None, unit, False
        else:
            return None
    if digit is None:
        return total + section
    return total + section + digit * (last_unit // 10 if last_unit >= 100 and not zero else 1)


def _english(text: str) -> Number | None:
    text = text.replace("-", " ")
    text, half = re.subn(r"\s+and a half\b", "", text)
    words = [word for word in text.split() if word not in ("of", "and")]
    if words[:1] == ["half"]:  # half an (hour), half a (mile)
        return (Fraction(1, 2), Fraction(1, 2)) if all(word in ("half", "a", "an") for word in words) else None
    total = current = Fraction(0)
    if not words:
        return None
    for word in words:
        if word in _EN_NUMBERS:
            # "a couple", "a dozen": the article counts nothing
            current = Fraction(_EN_NUMBERS[word]) if word in ("couple", "dozen") else current + _EN_NUMBERS[word]
        elif word in _EN_SCALES:
            current = max(current, Fraction(1)) * _EN_SCALES[word]
            if word != "hundred":
                total, current = total + current, Fraction(0)
        elif re.fullmatch(r"[0-9]+(\.[0-9]+)?", word):
            current += Fraction(word)
        else:
            return None
    value = total + current + (Fraction(1, 2) if half else 0)
    return value, value


class Values:
    """Fills templates. Not thread-safe only in that its caches grow; results never depend on the order of calls."""

    def __init__(self, wording: Wording) -> None:
        self._tables = wording.tables
        self._rules: dict[str, list[tuple[Pattern, re.Pattern[str]]]] = {
            name: [(rule, re.compile(rule.regex, re.ASCII | re.IGNORECASE)) for rule in rules]
            for name, rules in wording.compose.items()
        }

    def check(self, template: str, regex: re.Pattern[str]) -> None:
        """Raise :class:`CurationError` when ``template`` names a group, table or rule that is not there."""
        for group, unit, kind in _FIELD.findall(template):
            for name in (group, unit):
                if name and name not in regex.groupindex:
                    raise CurationError(f"the value {template!r} uses the group {name!r}, which its regex has not")
            if unit and kind not in self._tables:
                raise CurationError(f"the value {template!r} needs a table of units, there is no {kind!r}")
            if kind and kind not in ("number", "two", "clock") and kind not in self._tables | self._rules:
                raise CurationError(f"the value {template!r} names {kind!r}, which is no table and no rules")

    def fill(self, template: str, groups: dict[str, str | None], lang: str) -> str | None:
        """The value for the named groups of a match in ``lang``; None when some words cannot be read."""
        pieces = []
        for piece in template.split():
            filled = ""
            position = 0
            for match in _FIELD.finditer(piece):
                part = self._field(groups, match[1], match[2], match[3], lang)
                if part is None:
                    return None
                filled += piece[position : match.start()] + part
                position = match.end()
            filled += piece[position:]
            if filled:
                pieces.append(filled)
        return "_".join(pieces) or None

    def _field(
        self, groups: dict[str, str | None], group: str, unit: str | None, kind: str | None, lang: str
    ) -> str | None:
        words = groups.get(group)
        words = None if words is None else " ".join(words.casefold().split())
        if unit and kind:
            return None if words is None else self._quantity(words, groups.get(unit), kind)
        if kind in self._tables:
            return self._tables[kind].get("") or "" if words is None else self._tables[kind].get(words)
        if words is None:
            return ""
        if kind is None:
            return words
        if kind in self._rules:
            return self._compose(kind, words, lang)
        if kind == "clock":
            return self._clock(words, groups)
        number = parse_number(words)
        if number is None:
            return None
        if kind == "two":
            return f"{int(number[0]):02d}" if number[0] == number[1] else None
        return _shown(*number)

    def _quantity(self, words: str, unit: str | None, table: str) -> str | None:
        number = parse_number(words)
        entry = self._tables[table].get(" ".join((unit or "").casefold().split()))
        if number is None or entry is None:
            return None
        factor, name = entry.split()
        return _shown(number[0] * Fraction(factor), number[1] * Fraction(factor)) + name

    def _compose(self, name: str, words: str, lang: str) -> str | None:
        """Every rule in turn takes its first match in what is left of ``words``; values in the order of the rules."""
        left = words
        values = []
        for rule, regex in self._rules[name]:
            match = regex.search(left) if rule.lang == lang else None
            if match:
                value = self.fill(rule.value, match.groupdict(), lang)
                if value is None:
                    return None
                values.append(value)
                left = f"{left[: match.start()]}\0{left[match.end() :]}"
        return "_".join(values) or None

    def _clock(self, hour: str, groups: dict[str, str | None]) -> str | None:
        hours = parse_number(hour)
        if hours is None or hours[0] != hours[1]:
            return None
        minutes = 0
        if words := " ".join((groups.get("minute") or "").casefold().split()):
            word = self._tables.get("minutes", {}).get(words)
            number = parse_number(word or words)
            if number is None:
                return None
            minutes = int(number[0])
        value = int(hours[0])
        part = (groups.get("part") or "").casefold().replace(".", "").strip()
        kind = self._tables.get("halfday", {}).get(part, "")
        if (kind == "pm" and value < 12) or (kind == "noon" and value < 10) or (kind == "night" and 5 <= value < 12):
            value += 12
        elif kind in ("am", "night") and value == 12:
            value = 0 if kind == "am" else 24
        if groups.get("to"):
            value, minutes = value - 1, 60 - minutes
        return f"{value % 24:02d}:{minutes:02d}" if 0 <= value <= 24 and 0 <= minutes < 60 else None


def _shown(low: Fraction, high: Fraction) -> str:
    """``3``, ``1.5``, ``2-3``; at most three decimals."""
    first, second = (f"{float(round(value, 3)):.3f}".rstrip("0").rstrip(".") for value in (low, high))
    return first if first == second else f"{first}-{second}"
