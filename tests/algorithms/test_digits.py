from __future__ import annotations

import pyarrow as pa
import pytest

from curation.algorithms.digits import number_hashes


def hashes(*texts: str) -> list[int]:
    return number_hashes(pa.array(texts, pa.large_string())).tolist()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("iphone 14", "iphone 15"),
        ("alarm 7 am", "alarm 8 am"),
        ("g2 高速", "g3 高速"),
        ("g2高速", "s2高速"),
        ("一号线", "二号线"),
        ("十号线", "十一号线"),
        ("room 1 5", "room 15"),
        ("from 3 to 5", "from 5 to 3"),
        ("3.5 km", "35 km"),
        ("7am", "7pm"),
        ("hotel", "hotel 7"),
        ("iphone", "iphone15"),
    ],
)
def test_t6_other_numbers_have_another_hash(left: str, right: str) -> None:
    one, other = hashes(left, right)
    assert one != other


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("room 15 in rome", "roon 15 in rome"),
        ("g2 高速", "g2高速"),
        ("查一下天气", "查下天气"),
        ("no number", "at all"),
        ("三号线 堵吗", "三号线堵"),
    ],
)
def test_the_same_numbers_have_the_same_hash(left: str, right: str) -> None:
    one, other = hashes(left, right)
    assert one == other


def test_rows_without_numbers_hash_to_zero_and_none_is_left_out() -> None:
    assert hashes("", "hotel", "北京") == [0, 0, 0]
    many = hashes(*(f"room {number}" for number in range(40_000)))
    assert len(set(many)) > 39_980
