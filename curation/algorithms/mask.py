"""Personal data in queries: phone numbers, e-mail addresses, ID cards, plates, coordinates, bank cards.

What is found is replaced by a placeholder such as ``<phone>``, so that two queries that differ only in the number
become one. Numbers that say what is wanted stay: flights and trains, prices, dates, distances, postcodes, hotlines.

Two steps: a prefilter in polars (Rust) finds the few rows that may hold something; these are examined one by one,
since checksums and the words around a number decide. About 0.2 µs a row of 50 bytes and 40 µs for each candidate.

Sources: GB 11643 (citizen ID and its ISO 7064 MOD 11-2 check character), GA 36 (plates), ISO/IEC 7812 (card numbers
and the Luhn check), ITU-T E.164 (international numbers), the numbering plans of China and North America.

Known limits: numbers in Chinese numerals or spelled out, national formats of other countries without ``+`` or area
code in brackets, passports and chat names are not found. A number of 11 digits that begins with 13 to 19 is taken for
a mobile phone whatever it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from string import ascii_letters
from typing import Literal, get_args

import polars as pl

__all__ = ["KINDS", "PLACEHOLDERS", "Kind", "mask", "mask_one", "masked_kinds", "without_placeholders"]

Kind = Literal["bank_card", "coordinates", "email", "id_card", "phone", "plate"]
KINDS: tuple[Kind, ...] = get_args(Kind)
PLACEHOLDERS: dict[Kind, str] = {kind: f"<{kind}>" for kind in KINDS}

_Span = tuple[int, int]

_PROVINCES = "京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼"
_HAN = "\u4e00-\u9fff"

# -- prefilter: must find every text that the examination would change

_SPELLED = r"电话|手机|座机|号码|联系方式|致电|拨|传真|tel|phone|call|dial|mobile|cell|whatsapp|fax"
_GAP = r"[\s\p{Pd}().（）．−]{0,3}"
_PREFILTER = (
    r"[@＠]"
    rf"|\d(?:{_GAP}\d){{9}}"  # ten digits close together: phones, cards
    rf"|[+＋]{_GAP}\d(?:{_GAP}\d){{7}}"
    rf"|(?i:{_SPELLED})[^\d\n]{{0,13}}\d(?:{_GAP}\d){{6}}"
    r"|\d[.．]\d{3}"  # coordinates
    r"|\d\s?[°度]"
    rf"|[{_PROVINCES}][A-Za-zＡ-Ｚａ-ｚ]"
)


def mask(texts: pl.Series, kinds: Iterable[Kind] = KINDS) -> pl.Series:
    """``texts`` with personal data of ``kinds`` replaced by placeholders; null stays null.

    >>> mask(pl.Series(["打电话给13812345678", "G1234次几点开"])).to_list()
    ['打电话给<phone>', 'G1234次几点开']
    """
    kinds = tuple(kinds)
    if not kinds:
        return texts
    candidates = texts.str.contains(_PREFILTER).fill_null(False).arg_true()
    if not len(candidates):
        return texts
    examined = pl.Series([mask_one(text, kinds) for text in texts.gather(candidates)], dtype=pl.String)
    return texts.clone().scatter(candidates, examined)


def mask_one(text: str, kinds: Iterable[Kind] = KINDS) -> str:
    """One text with personal data of ``kinds`` replaced by placeholders; what :func:`mask` does row by row."""
    while True:
        folded = text.translate(_fold_table())
        taken: list[tuple[int, int, Kind]] = []
        for kind, find in _FINDERS:
            if kind in kinds:
                for start, end in find(folded):
                    if all(end <= other[0] or start >= other[1] for other in taken):
                        taken.append((start, end, kind))
        if not taken:
            return text
        # Again, until nothing is found: a number next to another may not have looked like one.
        for start, end, kind in sorted(taken, reverse=True):
            text = text[:start] + PLACEHOLDERS[kind] + text[end:]


def masked_kinds(texts: pl.Series) -> pl.Series:
    """The kinds whose placeholder stands in each text: lists, sorted, distinct."""
    none = pl.Series([[]], dtype=pl.List(pl.String)).new_from_index(0, len(texts))
    rows = texts.str.contains(_ANY_PLACEHOLDER).fill_null(False).arg_true()
    if not len(rows):
        return none
    found = texts.gather(rows).str.extract_all(_ANY_PLACEHOLDER)
    named = found.list.eval(pl.element().str.strip_chars("<>").unique().sort())
    order = pl.DataFrame({"row": rows, "kinds": named})
    frame = none.to_frame("none").with_row_index("row").join(order, on="row", how="left", maintain_order="left")
    return frame.select(pl.coalesce("kinds", "none")).to_series()


def without_placeholders(texts: pl.Series) -> pl.Series:
    """``texts`` with placeholders taken out: what is left are the user's own words."""
    return texts.str.replace_all(_ANY_PLACEHOLDER, " ")


_ANY_PLACEHOLDER = "|".join(PLACEHOLDERS.values())

# -- examination


@lru_cache(maxsize=1)
def _fold_table() -> dict[int, str]:
    """Full-width forms, digits of any script, dashes, dots and spaces to ASCII, one character for one."""
    table = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    for code in range(0x80, 0x1FBFA):
        category = unicodedata.category(chr(code))
        if category == "Nd":
            table[code] = str(unicodedata.digit(chr(code)))
        elif category == "Pd" or code == 0x2212:
            table[code] = "-"
        elif category == "Zs":
            table[code] = " "
    return table | {ord(char): "·" for char in "•・‧∙⋅"} | {ord("、"): ",", ord("；"): ";"}


def _digits(text: str) -> str:
    return "".join(char for char in text if char.isdigit())


_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9À-ɏ._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)


def _emails(text: str) -> Iterator[_Span]:
    if "@" in text:
        yield from (match.span() for match in _EMAIL.finditer(text))


_DEGREES = r"[-+]?\d{1,3}\.\d{3,}"
_AXIS = r"(?:北纬|南纬|东经|西经|纬度|经度|latitude|longitude|lat|lng|long|lon|[NSEWnsewXYxy])"
_COORDINATES = re.compile(
    rf"(?<![\d.])({_DEGREES})(?![\d])(?!\.\d)\s{{0,2}}[°度]?\s{{0,2}}[NSEWnsew]?"
    rf"(?:\s{{0,3}}(?:[,;/|&]|and|和)\s{{0,3}}|\s{{1,3}}|(?=[-+])|(?={_AXIS}))"
    rf"(?:{_AXIS}\s{{0,2}}[:=]?\s{{0,2}})?({_DEGREES})(?![\d])(?!\.\d)(?:\s?[°度])?(?:\s?[NSEWnsew]\b)?",
)
_ARC = r"\d{1,3}\s?[°度]\s?\d{1,2}\s?['′’分]\s?\d{1,2}(?:\.\d+)?\s?(?:[\"″”秒]|'')"
_ARCS = re.compile(rf"(?<!\d){_ARC}\s?[NSEW]?[\s,]{{0,3}}{_AXIS}?[\s:]{{0,2}}{_ARC}(?:\s?[NSEW]\b)?")


def _coordinates(text: str) -> Iterator[_Span]:
    for match in _COORDINATES.finditer(text):
        first, second = abs(float(match[1])), abs(float(match[2]))
        if min(first, second) <= 90 and max(first, second) <= 180:
            yield match.span()
    yield from (match.span() for match in _ARCS.finditer(text))


_REGIONS = r"(?:1[1-5]|2[1-3]|3[1-7]|4[1-6]|5[0-4]|6[1-5]|7[1]|8[1-3])"
_MONTH_DAY = r"(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
_ID_18 = re.compile(rf"(?<!\d){_REGIONS}\d{{4}}[ -]?(?:18|19|20)\d{{2}}{_MONTH_DAY}[ -]?\d{{3}}[\dXx](?!\d)")
_ID_15 = re.compile(rf"(?<![\dA-Za-z]){_REGIONS}\d{{4}}\d{{2}}{_MONTH_DAY}\d{{3}}(?![\dA-Za-z])")
_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def _id_cards(text: str) -> Iterator[_Span]:
    for match in _ID_18.finditer(text):
        number = re.sub(r"[ -]", "", match[0]).upper()
        total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, number, strict=False))
        if "10X98765432"[total % 11] == number[-1]:
            yield match.span()
    yield from (match.span() for match in _ID_15.finditer(text))


_CARD = re.compile(
    r"(?<![\d+])(?<!\d[.])(?:\d{13,19}|\d{4}(?:[ -]\d{4}){2,3}(?:[ -]\d{1,4})?|\d{4}[ -]\d{6}[ -]\d{5})"
    r"(?![ -]?\d)(?!\.\d)"
)
# Length to first digits of the networks that issue it; the Luhn check alone lets every tenth number pass.
_ISSUERS = {
    13: r"4",
    14: r"3(?:0[0-5]|[68])",
    15: r"3[47]",
    16: r"4|5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)|35|6[0-5]|9[0-9]5",
    17: r"6[0-9]|9558",
    18: r"6[0-9]|9558",
    19: r"6[0-9]|4|9558",
}


def _bank_cards(text: str) -> Iterator[_Span]:
    for match in _CARD.finditer(text):
        number = _digits(match[0])
        if len(number) in _ISSUERS and re.match(_ISSUERS[len(number)], number) and _passes_luhn(number):
            yield match.span()


def _passes_luhn(number: str) -> bool:
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in number[-2::-2])
    return (sum(int(digit) for digit in number[-1::-2]) + sum(doubled)) % 10 == 0


_CHINA = r"(?:\(?(?:\+|00)?86\)?[ -]?)?"
_MOBILE = re.compile(rf"(?<!\d)(?<!\d[.]){_CHINA}(1[3-9]\d(?:[- .]?\d{{4}}){{2}})(?!\d)(?!\.\d)")
_LANDLINE = re.compile(
    rf"(?<!\d)(?<!\d[.-]){_CHINA}\(?0(?:(?:10|2\d)\)?[- ]?[2-8]\d{{3}}[- ]?\d{{4}}"
    r"|[3-9]\d{2}\)?[- ]?[2-8]\d{2,3}[- ]?\d{4})(?:-\d{1,5}|转\d{1,5})?(?!-?\d)"
)
_INTERNATIONAL = re.compile(r"(?<![\d+])\+[1-9]\d{0,2}(?:[ .-]?\(?\d{1,4}\)?){2,7}(?!\d)")
_DIALLED = re.compile(r"(?<!\d)00(?:86|85[23]|886|8[1-4]|6[0-6]|4[0-9]|3[0-9]|33|7|1)[ -]?(?:\d[ -]?){7,10}\d(?!\d)")
_AMERICAN = re.compile(
    r"(?<!\d)(?<!\d[.-])(?:1[-. ])?"
    r"(?:\(([2-9]\d{2})\)[-. ]?[2-9]\d{2}[-. ]|([2-9]\d{2})([-.])[2-9]\d{2}\3)\d{4}(?![-.]?\d)"
)
_TOLL_FREE = frozenset({"400", "800", "888", "877", "866", "855", "844", "833", "822"})
_ANNOUNCED = re.compile(
    r"(?:电话|手机|座机|号码|联系方式|致电|拨打|拨|传真|(?<![a-z<])(?:tel|telephone|phone|call|dial|mobile|cell|whatsapp|fax))"
    r"[^\d\n]{0,12}?(\(?\d(?:[- .()]{0,2}\d){6,10})(?![- .]?\d)",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?:19|20)\d{2}[-. ]?(?:0?[1-9]|1[0-2])[-. ]?(?:0?[1-9]|[12]\d|3[01])(?:\D|$)")
_CALLING = re.compile(r"|tel|telephone|phone|call|dial|mobile|cell|ph|t|p|m|no|wx|vx", re.IGNORECASE)
_AMOUNT = re.compile(r"\s?(?:元|块|米|公里|千米|万|亿|股|km|kg)", re.IGNORECASE)


def _phones(text: str) -> Iterator[_Span]:
    for match in _MOBILE.finditer(text):
        before = text[max(0, match.start() - 12) : match.start()]
        word = before[len(before.rstrip(ascii_letters)) :]
        # Right behind other letters it is part of a code: an order, a flight booking, a place id.
        if _CALLING.fullmatch(word) and not _AMOUNT.match(text, match.end()):
            yield match.span()
    yield from (match.span() for match in _LANDLINE.finditer(text))
    for match in _INTERNATIONAL.finditer(text):
        if 8 <= len(_digits(match[0])) <= 15:
            yield match.span()
    yield from (match.span() for match in _DIALLED.finditer(text))
    for match in _AMERICAN.finditer(text):
        if (match[1] or match[2]) not in _TOLL_FREE:
            yield match.span()
    for match in _ANNOUNCED.finditer(text):
        number = _digits(match[1])
        if not _DATE.match(match[1]) and number[:3] not in _TOLL_FREE:
            yield match.span(1)


_PLATE = re.compile(
    rf"[{_PROVINCES}]([A-HJ-NP-Z])[·. -]?"
    r"(?:([A-HJ-NP-Z0-9]{4}[A-HJ-NP-Z0-9挂学警港澳])|([A-HJK][A-HJ-NP-Z0-9]\d{4}|\d{5}[A-HJK]))(?![A-Z0-9])",
    re.IGNORECASE | re.ASCII,
)
_FLIGHT = re.compile(
    "(?:CA|MU|CZ|HU|ZH|MF|SC|FM|HO|GS|KN|JD|PN|TV|EU|BK|QW|NS|CN|DZ|AQ|GJ|KY|UQ|RY|LT|FU|GX|GT|DR|CX|KA|HX|UO|BR|CI|NH"
    r"|JL|KE|OZ|SQ|TG|MH|VN|QF|NZ|EK|QR|EY|TK|LH|AF|BA|KL|AY|AC|UA|AA|DL)\d{4}",
    re.IGNORECASE | re.ASCII,
)
_ABOUT_CARS = re.compile(r"车|牌|违章|尾号|罚")


def _plates(text: str) -> Iterator[_Span]:
    for match in _PLATE.finditer(text):
        serial = match[2] or match[3]
        if sum(char.isdigit() for char in serial) < 3:
            continue
        before = text[max(0, match.start() - 8) : match.start()]
        # "北京CA1234" is a flight from Beijing, "车牌京CA1234" a car.
        in_place_name = re.search(rf"[{_HAN}]$", before) and not _ABOUT_CARS.search(before)
        if not (in_place_name and _FLIGHT.fullmatch(text, match.start() + 1, match.end())):
            yield match.span()


_FINDERS: tuple[tuple[Kind, Callable[[str], Iterator[_Span]]], ...] = (
    ("email", _emails),
    ("coordinates", _coordinates),
    ("id_card", _id_cards),
    ("bank_card", _bank_cards),
    ("phone", _phones),
    ("plate", _plates),
)
"""In order of trust: what one finds the later ones do not touch."""
