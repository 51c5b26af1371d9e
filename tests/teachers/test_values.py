"""Numbers in words and templates give canonical values."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.domain import Pattern, Wording
from curation.teachers.embedded.values import Values, parse_number


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("3", 3, 3),
        ("1,500", 1500, 1500),
        ("2.5", "5/2", "5/2"),
        ("2k", 2000, 2000),
        ("3万", 30000, 30000),
        ("2千", 2000, 2000),
        ("十", 10, 10),
        ("十五", 15, 15),
        ("二十三", 23, 23),
        ("一百零五", 105, 105),
        ("一百五", 150, 150),
        ("两千五", 2500, 2500),
        ("三万二", 32000, 32000),
        ("一千零一", 1001, 1001),
        ("十二万三千", 123000, 123000),
        ("二零二六", 2026, 2026),
        ("半", "1/2", "1/2"),
        ("一个半", "3/2", "3/2"),
        ("两三", 2, 3),
        ("三四百", 300, 400),
        ("十五六", 15, 16),
        ("四点五", "9/2", "9/2"),
        ("six", 6, 6),
        ("twenty-five", 25, 25),
        ("two hundred and fifty", 250, 250),
        ("a couple of", 2, 2),
        ("half an", "1/2", "1/2"),
        ("two and a half", "5/2", "5/2"),
        ("a dozen", 12, 12),
        ("three thousand", 3000, 3000),
    ],
)
def test_numbers(text: str, low: int | str, high: int | str) -> None:
    assert parse_number(text) == (Fraction(low), Fraction(high))


@pytest.mark.parametrize("text", ["", "很多", "many", "五十五十五五", "half past", "一二三四x"])
def test_what_is_no_number(text: str) -> None:
    assert parse_number(text) is None


def chinese(number: int) -> str:
    """``number`` below 100,000,000 in Chinese numerals, written out in full."""
    digits, units = "零一二三四五六七八九", ["", "十", "百", "千"]

    def section(value: int) -> str:
        text, zero = "", False
        for power in (3, 2, 1, 0):
            digit = value // 10**power % 10
            if digit:
                text += ("零" if zero and text else "") + digits[digit] + units[power]
            zero = digit == 0
        return text

    high, low = divmod(number, 10_000)
    gap = "零" if high and 0 < low < 1000 else ""
    return (section(high) + "万" if high else "") + gap + section(low)


@given(st.integers(1, 99_999_999))
def test_chinese_numerals_read_back(number: int) -> None:
    assert parse_number(chinese(number)) == (number, number)


def rules() -> Values:
    return Values(
        Wording(
            tables={
                "length": {"km": "1 km", "m": "0.001 km"},
                "halfday": {"pm": "pm", "in the morning": "am", "晚上": "night", "中午": "noon"},
                "minutes": {"half": "30", "半": "30"},
                "kind": {"": "any", "cheap": "low"},
                "days": {"today": "today"},
            },
            compose={
                "when": (
                    Pattern("{d:days}", "en", r"(?P<d>today)"),
                    Pattern("{h:clock}", "en", r"(?P<h>[0-9]+)(?P<part>pm)?"),
                )
            },
        )
    )


@pytest.mark.parametrize(
    ("template", "groups", "value"),
    [
        ("<={n*u:length}", {"n": "500", "u": "M"}, "<=0.5km"),
        ("{n*u:length}", {"n": "two", "u": "leagues"}, None),
        ("{n:number}days", {"n": "两三"}, "2-3days"),
        ("{m:two}-{d:two}", {"m": "十", "d": "1"}, "10-01"),
        ("in:{a}", {"a": " Old\u3000Town "}, "in:old town"),
        ("{a} {b} x", {"a": None, "b": "y"}, "y_x"),
        ("{k:kind}", {"k": None}, "any"),
        ("{k:kind}", {"k": "unknown"}, None),
        ("{t:when}", {"t": "7pm today"}, "today_19:00"),
        ("{t:when}", {"t": "no time"}, None),
        ("{h:clock}", {"h": "八", "minute": "半", "part": "晚上"}, "20:30"),
        ("{h:clock}", {"h": "12", "minute": None, "part": "晚上"}, "00:00"),
        ("{h:clock}", {"h": "1", "minute": None, "part": "中午"}, "13:00"),
        ("{h:clock}", {"h": "12", "minute": None, "part": "in the morning"}, "00:00"),
        ("{h:clock}", {"h": "eight", "minute": "15", "to": "to"}, "07:45"),
        ("{h:clock}", {"h": "25"}, None),
    ],
)
def test_templates(template: str, groups: dict[str, str | None], value: str | None) -> None:
    assert rules().fill(template, groups, "en") == value


def test_rules_of_another_language_are_not_used() -> None:
    assert rules().fill("{t:when}", {"t": "7pm today"}, "zh") is None
