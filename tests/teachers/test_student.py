"""The student: says what its teacher would say, keeps the labels of its lesson, knows how sure it may be."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from curation.algorithms.normalise import normalise, query_ids
from curation.domain import load_domain
from curation.teachers.base import ANNOTATIONS
from curation.teachers.embedded.constraints import Recogniser
from curation.teachers.embedded.labelling import Choice, Labeller, Verdicts
from curation.teachers.embedded.student import HELD_OUT, Lesson, Student, lesson_places
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


def lesson(rows, vectors, theirs=None):
    return Lesson(rows, np.ones(rows.height, bool), vectors if theirs is None else theirs, vectors)


@pytest.fixture(scope="module")
def taught():
    oracle = Oracle(LEAVES, "1", Choice(), Recogniser(load_domain("map_travel")), 6)
    rows, vectors = queries(1200, 1)
    return oracle, rows, vectors, Student.taught(oracle, lesson(rows, vectors))


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
    again = Student.taught(oracle, lesson(rows, vectors))
    new, more = queries(200, 6)
    whole = student.annotate(new, more)
    assert again.annotate(new, more).equals(whole)
    for at in (0, 120):
        assert again.annotate(new[at : at + 1], more[at : at + 1]).equals(whole[at : at + 1])


class Reader(Labeller):
    """Knows a query by its vector: the place of its largest number."""

    name = "reader"
    least_familiar = 0.5
    measures = ()

    def judge(self, rows, vectors):
        return Oracle.judge(self, pl.DataFrame({"text": [WORDS[kind] for kind in vectors.argmax(axis=1)]}), vectors)


def read(texts, wrong=0):
    """Vectors by which `Reader` knows texts; of ``wrong`` in a hundred, those of another kind."""
    kind = np.array([WORDS.index(text.split()[0]) for text in texts])
    mistaken = np.array([hash_of(text) % 100 < wrong for text in texts])
    return np.eye(6, dtype=np.float32)[np.where(mistaken, (kind + 1) % 4, kind)]


def hash_of(text):
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())


@pytest.fixture(scope="module")
def rereader():
    """A student without an idea of its own, whose vectors are noise and whose words say nothing."""
    reader = Reader(LEAVES, "1", Choice(), Recogniser(load_domain("map_travel")), 6)
    rows, vectors = queries(1200, 1)
    rows = rows.with_columns(norm=pl.col("query_id").cast(pl.String))
    asked = []

    def near(texts):
        asked.extend(texts)
        return read(texts, wrong=10)

    texts = rows["text"].to_list()
    student = Student.taught(reader, Lesson(rows, np.ones(1200, bool), read(texts), vectors, near), 0.3)
    return student, asked


def test_what_it_is_least_sure_of_it_reads_again(rereader):
    student, asked = rereader
    asked.clear()
    rows, vectors = queries(400, 7)
    rows = rows.with_columns(norm=pl.col("query_id").cast(pl.String))
    own = student.annotate(rows, vectors)
    Annotations.validate(own)
    assert own["teacher"].unique().to_list() == ["embedded-student"]
    again = rows["text"].is_in(asked)
    assert 0.1 < again.mean() < 0.6
    assert sorted(asked) == sorted(rows["text"].filter(again))
    said = [[*LEAVES, OTHER][kind] for kind in read(rows["text"].filter(again).to_list(), wrong=10).argmax(axis=1)]
    assert own["primary"].filter(again).to_list() == said
    _, margin = student._judge(rows, vectors)
    assert margin[again.to_numpy()].max() < margin[~again.to_numpy()].min()
    # Alone or among others, a row has the same answer.
    for at in range(0, 400, 37):
        assert student.annotate(rows[at : at + 1], vectors[at : at + 1]).equals(own[at : at + 1])


def test_agreement_counts_what_a_second_reading_gets_wrong(rereader):
    student, _ = rereader
    measures = {name: value for name, value, _ in student.measures}
    assert measures["student_rereads"] == pytest.approx(0.3, abs=0.01)
    assert measures["student_linear_agreement"] < 0.5
    gained = measures["student_agreement"] - measures["student_linear_agreement"]
    # Of the .3 read again, nine of ten are now right, where some three of ten were.
    assert 0.3 * (0.9 - 0.5) - 0.05 < gained < 0.3 * 0.95


def test_a_student_that_reads_the_teachers_vectors_needs_no_others():
    oracle = Oracle(LEAVES, "1", Choice(), Recogniser(load_domain("map_travel")), 6)
    rows, vectors = queries(300, 1)
    student = Student.taught(oracle, lesson(rows, vectors), 0.5)
    new, more = queries(40, 8)
    assert student.annotate(new, more)["primary"].to_list() == oracle.annotate(new, more)["primary"].to_list()


def test_a_student_that_reads_nothing_again(taught):
    measures = {name: value for name, value, _ in taught[3].measures}
    assert measures["student_rereads"] == 0
    assert measures["student_agreement"] == measures["student_linear_agreement"]


def test_held_out_are_rows_that_stand_for_the_log():
    typical = np.arange(40) % 2 == 0
    some = Lesson(pl.DataFrame({"query_id": range(40)}), typical, np.zeros((40, 1)), np.zeros((40, 1)))
    out = some.held_out()
    assert out.sum() == 4 and typical[out].all()
    few = some.only(np.arange(40) < 3)  # two typical ones: one to learn from, one held out
    assert few.held_out().tolist() == [True, False, False]


def test_a_lesson_is_half_the_heaviest_half_spread():
    weight = np.ones(1000, np.int64)
    weight[[5, 700, 701]] = 9
    places, typical = lesson_places(weight, 6)
    assert {5, 700, 701} == set(places[~typical].tolist())
    assert len(set(places.tolist())) == 6 and (np.diff(places) > 0).all()
    assert np.ptp(places[typical]) > 500
    places, typical = lesson_places(weight[:4], 6)
    assert places.tolist() == [0, 1, 2, 3] and typical.all()
