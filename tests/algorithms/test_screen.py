from __future__ import annotations

import base64
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.normalise import normalise_one
from curation.algorithms.screen import REASONS, screen, shown, tidy


def reasons(*texts: str, max_chars: int = 2000, min_chars: int | None = None, share: float = 0.1) -> list[str | None]:
    series = pl.Series(texts, dtype=pl.String)
    return screen(series, max_chars=max_chars, min_chars=min_chars, max_control_share=share).to_list()


BLOB = base64.b64encode(random.Random(1).randbytes(90)).decode()


@pytest.mark.parametrize(
    "text",
    ["a", "关灯", "？？", "😀", "1", "line\nbreak\ttab\r\n", "e\u0301", "\u200bword", "ก", "\u0e34", "€",
     "one\x1bescape in a long enough text", "half � broken text here", "https://example.org/" + "a" * 80,
     "d" * 100, "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
     "data: what is it"],
)  # fmt: skip
def test_t7_what_can_be_seen_is_a_query(text):
    assert reasons(text) == [None]


@pytest.mark.parametrize("text", ["a\x00b" + "c" * 99, "\x01\x02ab", "\x00", "ab\x7f"])
def test_control_characters(text):
    assert reasons(text) == ["control_characters"]


@pytest.mark.parametrize(
    "text", [BLOB, BLOB.replace("+", "-"), "see data:image/png;base64,iVBORw0KGgo=", "������", "�"]
)
def test_binary(text):
    assert reasons(text) == ["binary"]


def test_t5_length_limits():
    assert reasons("12345", "123456", "京" * 5, "京" * 6, max_chars=5) == [None, "too_long", None, "too_long"]
    assert reasons("关灯", " a ") == [None, None]
    assert reasons("关灯", " a ", min_chars=2) == [None, "too_short"]


def test_the_share_of_control_characters_is_a_limit():
    assert reasons("ab\x01cdefghi", share=0.2) == [None]
    assert reasons("ab\x01cdefghi", share=0.05) == ["control_characters"]


def test_every_reason_is_documented():
    assert {*reasons("\x00", BLOB, "xx", "京" * 2, max_chars=1)} - {None} <= set(REASONS)


def test_no_texts():
    assert reasons() == []


@settings(deadline=None)
@given(st.text(max_size=20))
def test_tidying_keeps_the_normal_form(text):
    assert normalise_one(tidy(pl.Series([text]))[0]) == normalise_one(text)


def test_tidy_makes_one_line():
    texts = pl.Series([" a  b\n\tc ", "a b", "\u3000京\u3000东", "x\x1b[31my", ""])
    assert tidy(texts).to_list() == ["a b c", "a b", "京 东", "x [31my", ""]
    assert tidy(pl.Series(["plain"])).to_list() == ["plain"]


def test_shown_is_short_and_safe():
    assert shown(pl.Series(["a\x1bb" + "c" * 99]), 5).to_list() == ["a\ufffdbcc"]
