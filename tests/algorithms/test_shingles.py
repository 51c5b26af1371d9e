from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.shingles import (
    jaccard,
    jaccard_pairs,
    shingle_hash,
    shingles,
)

TEXTS = st.text(st.sampled_from("abc 京天气é한の12"), min_size=1, max_size=90)


def is_cjk(char: str) -> bool:
    return "\u2e80" <= char <= "\u9fff" or "\uac00" <= char <= "\ud7a3"


def by_hand(text: str) -> set[int]:
    """The rule of the module's docstring, written a second time."""
    length = 2 if 2 * sum(map(is_cjk, text)) >= len(text) else 3
    padded = f"\x02{text}\x03"
    return {shingle_hash(padded[at : at + length]) for at in range(max(1, len(padded) - length + 1))}


def rows(texts: list[str]) -> list[list[int]]:
    sets = shingles(pa.array(texts, pa.large_string()))
    return [part.tolist() for part in np.split(sets.hashes, sets.starts[1:-1])] if texts else []


@given(st.lists(TEXTS, max_size=6))
@settings(max_examples=200, deadline=None)
def test_rows_are_the_sorted_sets_of_hashed_shingles(texts: list[str]) -> None:
    assert rows(texts) == [sorted(by_hand(text)) for text in texts]


def test_t1_a_text_shorter_than_a_shingle_is_one_whole_shingle() -> None:
    assert rows(["a"]) == [[shingle_hash("\x02a\x03")]]
    assert len(rows(["关"])[0]) == 2
    assert len({tuple(row) for row in rows(["a", "b", "关", "灯"])}) == 4


def test_long_rows_are_like_short_ones() -> None:
    texts = ["weather in paris " * 40, "x" * 5_000, "北京天气" * 700]
    assert rows(texts) == [sorted(by_hand(text)) for text in texts]


def test_chunks_leave_no_gap() -> None:
    texts = [f"query {number}" for number in range(40_000)]
    sets = shingles(pa.array(texts, pa.large_string()), workers=3)
    assert sets.starts[-1] == len(sets.hashes)
    some = [0, 16_383, 16_384, 39_999]
    assert [sets.hashes[sets.starts[row] : sets.starts[row + 1]].tolist() for row in some] == [
        sorted(by_hand(texts[row])) for row in some
    ]


@given(TEXTS, TEXTS)
@settings(max_examples=200, deadline=None)
def test_jaccard_is_that_of_the_sets(left: str, right: str) -> None:
    sets = shingles(pa.array([left, right], pa.large_string()))
    a, b = by_hand(left), by_hand(right)
    expected = len(a & b) / len(a | b)
    assert jaccard(sets.hashes, sets.starts[0], sets.starts[1], sets.starts[1], sets.starts[2]) == expected
    assert jaccard_pairs(sets, np.array([0]), np.array([1])).tolist() == [expected]
