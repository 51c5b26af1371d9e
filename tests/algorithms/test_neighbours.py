from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.cores import cores
from curation.algorithms.edit import alike_texts, make_rule
from curation.algorithms.neighbours import LONGEST, count_neighbour_keys, write_neighbour_keys
from curation.algorithms.shingles import shingle_hash
from tests.algorithms.test_edit import ALIKE

RULE = make_rule(1)


def keys(texts: list[str], edits: int = 1) -> list[set[int]]:
    rule = make_rule(edits)
    found = cores(pa.array(texts, pa.large_string()))
    counts = count_neighbour_keys(found, rule)
    starts = np.concatenate([[0], np.cumsum(counts)])
    out = np.full(starts[-1], 7, np.uint32)
    write_neighbour_keys(found, rule, out, starts[:-1])
    return [set(out[a:b].tolist()) - {0} for a, b in pairwise(starts.tolist())]


def test_pairs_that_are_alike_by_one_edit_share_a_key() -> None:
    pairs = [pair for pair in ALIKE if alike_texts(*pair, RULE) and max(map(len, pair)) <= LONGEST]
    assert len(pairs) > 10
    for left, right in pairs:
        one, other = keys([left, right])
        assert one & other, (left, right)


CHARS = st.sampled_from("aeilnrst  天气的北15+")


@given(st.text(CHARS, min_size=1, max_size=14), st.integers(0, 13), CHARS, st.sampled_from("ids"))
@settings(max_examples=300, deadline=None)
def test_no_edit_that_the_rule_accepts_is_missed(text: str, at: int, char: str, kind: str) -> None:
    left = " ".join(text.split()) or "a"
    at = at % len(left)
    right = {
        "i": left[:at] + char + left[at:],
        "d": left[:at] + left[at + 1 :],
        "s": left[:at] + left[at : at + 2][::-1] + left[at + 2 :],
    }[kind]
    right = " ".join(right.split()) or "a"
    if alike_texts(left, right, RULE):
        one, other = keys([left, right])
        assert one & other


def test_a_key_costs_no_more_than_the_text_is_long() -> None:
    short, unedited, long = keys(["hotels in berlin", "北京天气", "a" * 30 + " b c " + "x" * 30])
    assert len(short) == len("hotels in berlin") + 2
    assert len(unedited) == 1  # no character of it may change
    assert len(long) == 2  # itself, and its words in any order
    assert [len(row) for row in keys(["hotels in berlin"], edits=0)] == [2]


def test_keys_of_different_texts_differ() -> None:
    texts = [f"{shingle_hash(str(number % 1000)[:3]):x} {number}" for number in range(3000)]
    first = [min(row) for row in keys(texts, edits=0)]
    assert len(set(first)) > 2990
