from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.cores import core_of
from curation.algorithms.digits import number_hashes
from curation.algorithms.edit import alike_texts, make_rule
from curation.algorithms.texts import BEGIN, BITS, END, NUMBER, read_texts

RULE = make_rule(2)
TEXTS = [
    "please find hotels in paris",
    "请帮我查一下北京天气谢谢",
    "g2 traffic",
    "café 15 😀",
    "a",
    "hotels in paris",
    "打开打开空调 café café 😀",
    "can can you play 打开",
]
WORDS = st.lists(
    st.sampled_from(["hotel", "hotels", "berlin", "berln", "in", "15", "天气", "北京", "的", "a", "please"]),
    min_size=1,
    max_size=5,
).map(" ".join)


def test_facts_are_those_of_each_text_alone() -> None:
    norms = pa.array(["cut off", *TEXTS], pa.large_string()).slice(1)
    texts, keys, starts = read_texts(norms, RULE)
    for row, text in enumerate(TEXTS):
        begin, end = texts.facts[row, [BEGIN, END]].tolist()
        core = core_of(text)
        assert bytes(texts.cores[begin:end]).decode() == core
        assert bytes(texts.data[texts.starts[row] : texts.starts[row + 1]]).decode() == text
        assert texts.sizes[row] == len(core)
        odd = sum(1 << bit for bit in range(64) if sum(ord(char) % 64 == bit for char in core) % 2)
        assert int(texts.facts[row, BITS]) == odd
    assert texts.facts[:, NUMBER].tolist() == number_hashes(norms).tolist()
    assert starts[0] == 0 and starts[-1] == len(keys)
    first, last = (set(keys[starts[row] : starts[row + 1]].tolist()) for row in (0, 5))
    assert first == last  # their cores are the same


@given(WORDS, WORDS)
@settings(max_examples=300, deadline=None)
def test_bits_of_alike_texts_differ_no_more_than_their_edits_allow(left: str, right: str) -> None:
    if alike_texts(left, right, RULE):
        facts = read_texts(pa.array([left, right], pa.large_string()), RULE)[0].facts
        shorter = min(len(core_of(left)), len(core_of(right)))
        assert int(facts[0, BITS] ^ facts[1, BITS]).bit_count() <= min(2, max(1, shorter // 8)) + 1


def test_numbers_that_do_not_count_have_no_hash() -> None:
    texts, *_ = read_texts(pa.array(TEXTS, pa.large_string()), RULE, digits="ignore")
    assert not texts.facts[:, NUMBER].any()


def test_t10_threads_and_chunks_leave_no_gap_and_change_nothing() -> None:
    norms = pa.array([f"query {number} of 北京" for number in range(40_000)], pa.large_string())
    one, two = read_texts(norms, RULE, workers=1), read_texts(norms, RULE, workers=3)
    for left, right in zip((*one[0], *one[1:]), (*two[0], *two[1:]), strict=True):
        assert np.array_equal(left, right)
    _, keys, starts = one
    _, few_keys, few_starts = read_texts(norms.slice(16_383, 3), RULE)
    assert keys[starts[16_383] : starts[16_386]].tolist() == few_keys.tolist()
    assert np.diff(starts[16_383:16_387]).tolist() == np.diff(few_starts).tolist()


def test_no_rows() -> None:
    texts, keys, starts = read_texts(pa.array([], pa.large_string()), RULE)
    assert len(texts.facts) == len(keys) == 0 and starts.tolist() == [0]
