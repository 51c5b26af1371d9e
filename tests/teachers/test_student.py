"""The student: says what its teacher would say, keeps the labels of its lesson, knows how sure it may be."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from curation.algorithms.normalise import normalise, query_ids
from curation.domain import load_domain
from curation.teachers.base import ANNOTATIONS
from curation.teachers.embedded.constraints import Recogniser
from curation.teachers.embedded.labelling import Choice, Labeller, Verdicts
from curation.teachers.embedded.student import HELD_OUT, Student, lesson_places
from schemas.annotations import Annotations

LEAVES = ["food.eat", "food.cook", "travel.fly"]
OTHER = "travel.other"
WORDS = ("dinner", "recipe", "flight", "strange")


class Oracle(Labeller):
    """Knows a query by its first word; right nine times of ten, says so, and sees further intents and refusals."""

    name = "oracle"
    least_familiar = 0.5
    measures = [("examples", 4.0, "rows")]  # noqa: RUF012

    def judge(self, rows, vectors):
        kind = np.array([WORDS.index(text.split()[0]) for text in rows["text"]])
        leaves = np.full((len(kind), 3), 0.05, np.float32)
        leaves[np.arange(len(kind)), np.minimum(kind, 2)] = 0.9
        present = np.zeros_like(leaves)
        present[rows["text"].str.contains("also").to_numpy(), 1] = 0.95
        present[kind == 1] = 0
        return Verdicts(
            primary=pl.Series([*LEAVES, OTHER]).gather(kind),
            leaves=leaves,
            confidence=np.full(len(kind), 0.9, np.float32),
            present=present,
            unsolvable=np.where(kind == 2, 0.9, 0.05).astype(np.float32),
            reason=np.where(kind == 2, 1, 0),
        )


def queries(count, seed):
    random = np.random.default_rng(seed)
    texts = [f"{WORDS[k]} {'also ' if i % 3 == 0 else ''}for {i}{'abcdefgh'[j]} {seed}" for i, (k, j) in
             enumerate(zip(random.integers(4, size=count), random.integers(8, size=count), strict=True))]  # fmt: skip
    norms = normalise(pa.array(texts, pa.large_string()))
    frame = pl.DataFrame(
        {"query_id": query_ids(norms), "text": texts, "norm": norms.to_pylist(), "lang": ["en"] * count},
        schema_overrides={"query_id": pl.UInt64},
    ).sort("query_id")
    vectors = np.random.default_rng(seed).normal(size=(count, 6)).astype(np.float32)
    return frame, vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def taught():
    oracle = Oracle(LEAVES, "1", Choice(), Recogniser(load_domain("map_travel")), 6)
    rows, vectors = queries(1200, 1)
    return oracle, rows, vectors, Student.taught(oracle, rows, vectors, vectors)


def test_it_says_what_its_teacher_would_say(taught):
    oracle, _, _, student = taught
    rows, vectors = queries(400, 2)
    own, theirs = student.annotate(rows, vectors), oracle.annotate(rows, vectors)
    Annotations.validate(own)
    assert own["query_id"].to_list() == rows["query_id"].to_list()
    assert own["teacher"].unique().to_list() == ["embedded-student"]
    for name in ("primary", "unsolvable"):
        assert own[name].eq_missing(theirs[name]).mean() > 0.98, name
    assert (own["secondary"] == theirs["secondary"]).mean() > 0.95
    assert set(own["primary"]) == {*LEAVES, OTHER}
    assert own["constraints"].to_list() == theirs["constraints"].to_list()


def test_agreement_is_measured_on_rows_it_was_not_taught(taught):
    _, rows, _, student = taught
    measures = {name: value for name, value, _ in student.measures}
    assert measures["examples"] == 4
    assert measures["student_examined"] == rows.height // HELD_OUT
    assert 0.95 < measures["student_agreement"] <= measures["student_agreement_level1"] <= 1


def test_confidence_is_no_higher_than_the_teachers(taught):
    # Agreeing with a teacher who is right nine times of ten makes nobody righter.
    rows, vectors = queries(400, 3)
    confidence = taught[3].annotate(rows, vectors)["confidence"]
    assert 0.8 < confidence.mean() < 0.92


def test_rows_of_the_lesson_keep_the_teachers_labels(taught):
    oracle, rows, vectors, student = taught
    new, more = queries(5, 4)
    both = pl.concat([new, rows[:50]])
    own = student.annotate(both, np.concatenate([more, vectors[:50]]))
    assert own.columns == ANNOTATIONS.names()
    assert own[5:].equals(oracle.annotate(rows[:50], vectors[:50]))
    assert (own[:5]["teacher"] == "embedded-student").all()


def test_a_row_without_direction_fails(taught):
    rows, vectors = queries(3, 5)
    vectors[1] = np.nan
    own = taught[3].annotate(rows, vectors)
    assert own["error"].is_null().to_list() == [True, False, True]
    assert own["primary"][1] is None


def test_t10_taught_again_and_asked_alone_it_says_the_same(taught):
    oracle, rows, vectors, student = taught
    again = Student.taught(oracle, rows, vectors, vectors)
    new, more = queries(200, 6)
    whole = student.annotate(new, more)
    assert again.annotate(new, more).equals(whole)
    for at in (0, 120):
        assert again.annotate(new[at : at + 1], more[at : at + 1]).equals(whole[at : at + 1])


def test_a_lesson_is_half_the_heaviest_half_spread():
    weight = np.ones(1000, np.int64)
    weight[[5, 700, 701]] = 9
    places = lesson_places(weight, 6)
    assert {5, 700, 701} <= set(places.tolist())
    assert len(set(places.tolist())) == 6 and (np.diff(places) > 0).all()
    assert np.ptp(np.setdiff1d(places, [5, 700, 701])) > 500
    assert lesson_places(weight[:4], 6).tolist() == [0, 1, 2, 3]
