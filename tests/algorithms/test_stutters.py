from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.characters import char_classes
from curation.algorithms.stutters import squeeze


def squeezed(text: str) -> str:
    codes = np.array([ord(char) for char in text], np.int32)
    return "".join(map(chr, codes[: squeeze(codes, char_classes())].tolist()))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("who who was", "who was"),
        ("navigate to to the airport", "navigate to the airport"),
        ("play play play jazz", "play jazz"),
        ("how do how do i get there", "how do i get there"),
        ("打开打开空调", "打开空调"),
        ("打开 打开空调", "打开空调"),
        ("鲁迅迅", "鲁迅"),
        ("鲁迅 迅", "鲁迅"),
        ("上海上海天气", "上海天气"),
        ("下周末下周末去哪", "下周末去哪"),
        ("回家回家", "回家"),
        ("kfc在哪kfc在哪", "kfc在哪"),
        ("오늘 오늘 날씨", "오늘 날씨"),
        ("погода погода в москве", "погода в москве"),
    ],
)
def test_what_is_said_twice_in_a_row_is_said_once(text: str, left: str) -> None:
    assert squeezed(text) == left


@pytest.mark.parametrize(
    "text",
    [
        *("11", "2 2", "17 17", "g2 g2 traffic", "打11打11", "c++ c++ book", "😀😀"),
        *("下下周去哪", "大大", "万万", "上下上下", "看看", "妈妈", "天天", "滴滴", "bora bora", "a", "天"),
        *("the then", "to the to do", "history his", "in in1", "北京南京", "abcde一二三四五abcde"),
    ],
)
def test_content_stays_and_so_does_what_is_all_there_is(text: str) -> None:
    assert squeezed(text) == text


CHARS = st.sampled_from("ab  12+京天下的é")
TEXTS = st.text(CHARS, min_size=1, max_size=24).map(lambda text: " ".join(text.split()) or "a")


def is_part(short: str, long: str) -> bool:
    rest = iter(long)
    return all(char in rest for char in short)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_something_stays_with_every_digit_and_a_second_time_changes_nothing(text: str) -> None:
    left = squeezed(text)
    assert left and left == left.strip() and is_part(left, text)
    assert [char for char in left if char in "12+"] == [char for char in text if char in "12+"]
    assert set(left) - {" "} == set(text) - {" "}
    assert squeezed(left) == left


WORDS = st.lists(st.sampled_from(["play", "jazz", "in", "the", "15", "room"]), min_size=2, max_size=6, unique=True)


@given(WORDS, st.integers(0, 5), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_any_words_may_be_said_again(words: list[str], first: int, size: int) -> None:
    first %= len(words)
    again = words[first : first + size]
    said = " ".join([*words[:first], *again, *words[first:]])
    assert squeezed(said) == (said if "15" in again else " ".join(words))


def test_a_long_stutter_takes_one_pass() -> None:
    assert squeezed("ha " * 200_000 + "funny") == "ha funny"
