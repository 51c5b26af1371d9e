from __future__ import annotations

import pyarrow as pa
import pytest

from curation.algorithms.cores import cores
from curation.algorithms.courtesy import COURTESY


def core(text: str, courtesy: tuple[str, ...] = COURTESY) -> str:
    found = cores(pa.array(["前 first", text, "last"], pa.large_string()), courtesy)
    part = bytes(found.data[found.begins[1] : found.ends[1]]).decode()
    assert found.sizes[1] == len(part)
    return part


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
    assert core(text) == left


def test_the_words_can_be_given_in_any_spelling() -> None:
    assert core("kindly hotels in paris", ("Kindly!",)) == "hotels in paris"
    assert core("please hotels in paris", ()) == "please hotels in paris"


def test_profiles_count_characters() -> None:
    found = cores(pa.array(["abca", "caab", "abcb", "abcaa"], pa.large_string()), ())
    bits = [tuple(row) for row in found.profiles.tolist()]
    assert bits[0] == bits[1]
    differences = [sum((a ^ b).bit_count() for a, b in zip(bits[0], other, strict=True)) for other in bits]
    assert differences == [0, 0, 2, 1]
