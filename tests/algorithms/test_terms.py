"""Terms, and names made of them."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.algorithms.terms import contrast, find_terms, name_of


def test_words_and_runs_that_stand_in_two_texts():
    names, rows = find_terms(["Hotel in Rome", "hotel in 罗马 tonight", "罗马酒店", "去罗马"])
    assert names == ["hotel in", "罗马"]
    assert [[names[i] for i in row] for row in rows] == [["hotel in"], ["hotel in", "罗马"], ["罗马"], ["罗马"]]


def test_a_fragment_of_a_longer_run_is_no_term_of_its_own():
    names, _ = find_terms(["天安门广场", "去天安门广场", "天安门广场怎么走"])
    assert names == ["天安门广场"]


def test_particles_neither_begin_nor_end_a_term():
    names, _ = find_terms(["我的天气", "他的天气", "她的天气了"])
    assert names == ["天气"]


def test_empty_and_symbols():
    assert find_terms(["", "？？", "12 34", "12 34"]) == ([], [[], [], [], []])


def test_a_word_of_one_group_marks_it_and_a_word_of_all_marks_none():
    # 20 queries a group; "the" in all of both, "rome" in 15 of the first, "odd" once in the second.
    scores = contrast(np.array([[20.0, 15, 0], [20, 0, 1]]), np.array([20, 20]))
    assert scores[0, 1] > 2
    assert scores[1, 1] < -2
    assert abs(scores[:, 0]).max() < 1e-9
    assert abs(scores[1, 2]) < 2


def test_names():
    assert name_of(["how do you say", "french"]) == "how_do_you_say"
    assert name_of(["what o'clock"]) == "what_o_clock"
    assert name_of(["天气"]) == "天气"
    assert name_of(["hotel", "room"], {"hotel"}) == "room"
    assert name_of(["hotel"], {"hotel"}) == "hotel_1"
    assert name_of(["？", " "]) == "group_1"


@given(st.lists(st.text(max_size=12), max_size=4), st.sets(st.sampled_from(["a", "other", "group_1"])))
def test_a_name_is_legal_and_free(terms, taken):
    name = name_of(terms, taken)
    assert re.fullmatch(r"[\w-]+", name)
    assert name not in taken
