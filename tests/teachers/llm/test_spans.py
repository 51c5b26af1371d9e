"""Spans are found by searching the query, never taken from the model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.teachers.llm.spans import find_span


@pytest.mark.parametrize(
    ("text", "quoted", "place"),
    [
        ("hotel under 300 yuan", "under 300 yuan", (6, 20)),
        ("预算三千以内带孩子", "三千以内", (2, 6)),
        ("Hotel in PARIS", "paris", (9, 14)),
        ("ＡＢＣ酒店", "abc", (0, 3)),
        ("cheap hotel", " cheap ", (0, 5)),
        ("cheap hotel", "cheapest", None),
        ("cheap hotel", "", None),
        ("", "cheap", None),
        ("Straße", "straße", (0, 6)),  # a letter whose lower case is longer keeps the offsets right
        ("İzmir hotel", "hotel", (6, 11)),
    ],
)
def test_places(text, quoted, place):
    assert find_span(text, quoted) == place


def test_words_that_occur_twice_are_placed_where_nothing_is_yet():
    text = "no toll and no toll"
    first = find_span(text, "no toll")
    second = find_span(text, "no toll", [first])
    assert (first, second) == ((0, 7), (12, 19))
    assert find_span(text, "no toll", [first, second]) == first


@given(st.text(max_size=30), st.integers(0, 30), st.integers(1, 30))
def test_what_occurs_is_found_where_it_stands(text, start, length):
    quoted = text[start : start + length].strip()
    place = find_span(text, quoted)
    if quoted:
        assert text[place[0] : place[1]] == quoted
        assert place[0] == text.find(quoted)
