"""Annotate with a student: who labels when, what is kept of the lesson, that parts change nothing."""

from __future__ import annotations

import pytest

from curation.stages import annotate
from curation.teachers import encoders
from tests.stages.test_annotate import TEXTS, asked, domain, run, tables  # noqa: F401  fixtures

MANY = [f"{text} {word}" for text in TEXTS for word in ("now", "please", "again", "soon", "later", "maybe", "once")]


@pytest.mark.parametrize(
    ("rows", "student", "who", "loaded"),
    [
        (16, "auto", "embedded-student", [encoders.USE]),
        (10, "auto", "embedded", [encoders.USE]),
        (16, "never", "embedded", [encoders.STATIC]),
        (112, "always", "embedded-student", [encoders.USE]),
    ],
)
def test_a_student_labels_where_the_vectors_are_the_cheaper_ones(domain, asked, rows, student, who, loaded):  # noqa: F811
    ctx = run(domain, tables(domain, MANY[:rows]), params={"student": student, "lesson": 100})
    assert asked == loaded
    assert ("student_agreement" in ctx.metrics) == (who == "embedded-student")
    labels = ctx.out("annotations")
    assert labels["teacher"].n_unique() == 1 + (rows > 100)
    assert labels["error"].null_count() == rows


@pytest.mark.parametrize("share", [0, 0.1, 1])
def test_rows_beyond_the_lesson_are_the_students(domain, asked, share):  # noqa: F811
    ctx = run(domain, tables(domain, MANY), params={"student": "auto", "lesson": 100, "student_rereads": share})
    counts = dict(ctx.out("annotations").group_by("teacher").len().iter_rows())
    assert counts == {"embedded": 100, "embedded-student": 12}
    assert abs(ctx.metrics["student_rereads"] - share) <= 0.1  # of ten rows held out, the surest is never read again


def test_t10_parts_change_nothing(domain, asked, monkeypatch):  # noqa: F811
    inputs = tables(domain, MANY)
    whole = run(domain, inputs, params={"student": "auto", "lesson": 100}, workers=1).out("annotations")
    monkeypatch.setattr(annotate, "_PART", 30)
    assert run(domain, inputs, params={"student": "auto", "lesson": 100}, workers=3).out("annotations").equals(whole)


def test_labels_of_an_earlier_run_are_not_taken_up(domain, asked, monkeypatch):  # noqa: F811
    monkeypatch.setattr("curation.teachers.relabel.known_labels", lambda *_: pytest.fail("asked for earlier labels"))
    run(domain, tables(domain, TEXTS), params={"student": "auto"})
    with pytest.raises(pytest.fail.Exception):
        run(domain, tables(domain, TEXTS))
