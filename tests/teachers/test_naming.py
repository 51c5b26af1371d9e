"""Names and descriptions of groups of queries."""

from __future__ import annotations

import numpy as np

from curation.algorithms.tagging import count_tags
from curation.teachers.embedded.naming import Namer

TEXTS = [*[f"the price of a ticket to {x}" for x in "abcdefgh"], *[f"the weather of {x} 下雨吗" for x in "abcdefgh"]]
GROUPS = [list(range(8)), list(range(8, 16))]
APART = np.ones((2, 2))


def test_without_tags_a_node_is_called_after_words_that_are_its_own():
    first, second = Namer(TEXTS).name(GROUPS, APART)
    assert {"ticket", "price"} & set(first.name.split("_"))
    assert "weather" in second.name or "下雨" in second.name
    assert first.description.endswith(f"belong to {second.name}.")
    assert "weather" not in first.description.split(". ")[0]


def test_tags_come_before_words_and_vague_tags_never():
    tags = [["fares", "question"]] * 8 + [["rain", "question"]] * 8
    tagging = count_tags(tags, np.arange(16), 16)
    weights = np.array([0.5 if name != "question" else 0.0 for name in tagging.names])
    names = [name.name for name in Namer(TEXTS, tagging, weights).name(GROUPS, APART)]
    assert names == ["fares", "rain"]


def test_taken_names_are_not_given_again():
    names = [name.name for name in Namer(TEXTS).name(GROUPS, APART, {"weather", "ticket", "other"})]
    assert not {"weather", "ticket", "other"} & set(names)
    assert len(set(names)) == 2


def test_an_inner_node_is_called_after_what_is_said_in_all_of_its_parts():
    tagging = count_tags([["cheap"]] * 10 + [["fares"]] * 10 + [["rain"]] * 20, np.arange(40), 40)
    groups = [list(range(20)), list(range(20, 40))]
    parts = [[list(range(at, at + 5)) for at in (0, 5)] + [[at, at + 1] for at in range(10, 20, 2)], []]
    namer = Namer(["x"] * 40, tagging)
    assert namer.name(groups, APART)[0].name == "cheap"
    assert namer.name(groups, APART, (), parts)[0].name == "fares"


def test_one_group_alone():
    (only,) = Namer(TEXTS).name([list(range(8))], np.zeros((1, 1)))
    assert only.name
    assert only.description.startswith("Queries about “")


def test_a_description_speaks_of_the_nearest_group_only_where_one_is_nearest():
    texts = [text for word in ("rain", "train", "song") for text in [f"{word} please {n}" for n in range(6)]]
    groups = [list(range(at, at + 6)) for at in (0, 6, 12)]
    alike = Namer(texts).name(groups, np.ones((3, 3)))
    assert not any("belong to" in name.description for name in alike)
    apart = np.array([[0, 0.9, 0.2], [0.9, 0, 0.8], [0.2, 0.8, 0]])
    rain, _, song = Namer(texts).name(groups, apart)
    assert f"belong to {song.name}." in rain.description and f"belong to {rain.name}." in song.description
