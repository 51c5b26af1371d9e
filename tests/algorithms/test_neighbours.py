from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.cores import core_of
from curation.algorithms.edit import Rule, alike_texts, make_rule
from curation.algorithms.neighbours import MOST_KEYS, SUMS, write_edit_keys
from curation.algorithms.shingles import shingle_hash
from tests.algorithms.test_edit import ALIKE

RULE = make_rule(1)


def keys(text: str, rule: Rule = RULE, number: int = 0) -> set[int]:
    """Keys of the core of a text that has no courtesy."""
    text = core_of(text, ())
    codes, out = np.array([ord(char) for char in text], np.int32), np.full(MOST_KEYS + 2, 7, np.uint32)
    rules = rule.edits, rule.classes, rule.digits_free
    end = write_edit_keys(codes, np.uint32(number), *rules, np.empty(SUMS, np.uint64), out, 1)
    assert out[0] == out[end] == 7
    found = set(out[1:end].tolist())
    assert len(found) == end - 1 and 0 not in found
    return found


@pytest.mark.parametrize("edits", [1, 2, 3])
def test_pairs_that_are_alike_share_a_key(edits: int) -> None:
    rule = make_rule(edits)
    pairs = [pair for pair in ALIKE if alike_texts(*pair, rule, ())]
    assert len(pairs) > 10
    for left, right in pairs:
        assert keys(left, rule) & keys(right, rule), (left, right)


def edited(text: str, kind: str, at: int, char: str) -> str:
    """One edit; spaces as in a normal form."""
    at %= len(text)
    text = {
        "insert": text[:at] + char + text[at:],
        "delete": text[:at] + text[at + 1 :],
        "substitute": text[:at] + char + text[at + 1 :],
        "swap": text[:at] + text[at : at + 2][::-1] + text[at + 2 :],
    }[kind]
    return " ".join(text.split()) or "a"


CHARS = st.sampled_from("aeilnrst  天气的北15+")
EDIT = st.tuples(st.sampled_from(["insert", "delete", "substitute", "swap"]), st.integers(0, 40), CHARS)
PLAIN_EDIT = st.tuples(st.sampled_from(["insert", "delete", "swap"]), st.integers(0, 40), CHARS)


@given(st.text(CHARS, min_size=1, max_size=18), EDIT, st.booleans())
@settings(max_examples=400, deadline=None)
def test_no_single_edit_that_the_rule_accepts_is_missed(text: str, edit: tuple[str, int, str], free: bool) -> None:
    rule = make_rule(2, digits_free=free)
    left = " ".join(text.split()) or "a"
    right = edited(left, *edit)
    if alike_texts(left, right, rule, ()):
        assert keys(left, rule) & keys(right, rule)


@given(
    st.text(CHARS, min_size=14, max_size=34), st.lists(PLAIN_EDIT, min_size=2, max_size=3), st.sampled_from([2, 3])
)
@settings(max_examples=400, deadline=None)
def test_no_further_edit_but_substitutions_is_missed(text: str, edits: list[tuple[str, int, str]], most: int) -> None:
    rule = make_rule(most)
    left = right = " ".join(text.split()) or "a"
    # No more than texts of this length may have, or an insertion and a deletion may pass for a substitution.
    for edit in edits[: min(most, max(1, (len(left) - most) // 8))]:
        right = edited(right, *edit)
    if alike_texts(left, right, rule, ()):
        assert keys(left, rule) & keys(right, rule)


def test_a_key_is_told_by_what_cannot_change() -> None:
    assert not keys("北京天气") & keys("南京天气")  # short: no character of them may change
    assert not keys("hotels in room 15", make_rule(0)) & keys("hotels in room 16", make_rule(0))
    assert not keys("hotels in berlin", number=1) & keys("hotels in berlin", number=2)
    assert len(keys("hotels in berlin") & keys("berlin hotels in") & keys("hotels i n berlin")) == 3


def test_there_are_few_keys_whatever_the_length() -> None:
    assert len(keys("北京天气")) == 1
    assert len(keys("hotels in berlin", make_rule(0))) == 1
    for size in range(1, 60):
        for edits in range(4):
            assert len(keys(("hotels北京天气附近" * 9)[:size], make_rule(edits))) <= MOST_KEYS


def test_keys_of_different_texts_differ() -> None:
    texts = [f"{shingle_hash(str(number % 1000)[:3]):x} {number}" for number in range(3000)]
    assert len(set().union(*(keys(text, make_rule(0)) for text in texts))) > 2990
