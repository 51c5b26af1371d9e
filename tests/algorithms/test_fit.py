"""The nearest text by shared words and letters."""

from __future__ import annotations

from curation.algorithms.fit import best_match

TOOLS = ["weather forecast: temperature and rain of a place", "search places by name or kind", "compute routes"]


def test_shared_words_decide() -> None:
    documents = ["what the weather will be, rain or sun", "a route from here to there", "places of a kind near me"]
    assert best_match(documents, TOOLS) == [0, 2, 1]


def test_word_forms_count_through_their_letters() -> None:
    assert best_match(["routing"], TOOLS) == [2]


def test_nothing_in_common_takes_the_first() -> None:
    assert best_match(["天气"], TOOLS) == [0]
    assert best_match([""], TOOLS) == [0]


def test_no_documents() -> None:
    assert best_match([], TOOLS) == []
