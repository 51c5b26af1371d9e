from __future__ import annotations

import pytest

from curation.algorithms.cores import core_of


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("please find hotels in paris", "hotels in paris"),
        ("hotels in paris please", "hotels in paris"),
        ("hey can you please show me hotels for me thanks", "hotels"),
        ("hotels in paris", "hotels in paris"),
        ("pleased to meet you", "pleased to meet you"),
        ("history of thailand", "history of thailand"),
        ("请帮我查一下北京天气谢谢", "北京天气"),
        ("请问 北京天气", "北京天气"),
        ("北京天气 吗", "北京天气"),
        ("帮我查 hotels in rome please", "hotels in rome"),
        ("погода в москве пожалуйста", "погода в москве"),
        ("please", "please"),
        ("please please", "please"),
        ("谢谢", "谢谢"),
        ("😀", "😀"),
    ],
)
def test_courtesy_goes_from_both_ends_and_something_stays(text: str, left: str) -> None:
    assert core_of(text) == left


def test_the_words_can_be_given_in_any_spelling() -> None:
    assert core_of("kindly hotels in paris", ("Kindly!",)) == "hotels in paris"
    assert core_of("please hotels in paris", ()) == "please hotels in paris"


def test_the_longest_phrase_goes_first() -> None:
    assert core_of("i want to know paris", ("i", "i want", "i want to know", "know")) == "paris"
    assert core_of("吃饭吧了", ("吧", "了", "吧了", "饭")) == "吃"


@pytest.mark.parametrize("text", ["a", "请", "😀", "请 😀"])
def test_short_texts_and_rare_characters_are_taken(text: str) -> None:
    assert core_of(text, ("请", "😀", "a")) in text.split()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("who who was mozart", "who was mozart"),
        ("can can you play jazz", "play jazz"),
        ("please please play play jazz", "play jazz"),
        ("帮帮我查天气谢谢", "天气"),
        ("查查天气", "天气"),
        ("谢谢谢谢", "谢谢"),
    ],
)
def test_stutters_go_with_the_courtesy_behind_them(text: str, left: str) -> None:
    assert core_of(text) == left
