from __future__ import annotations

import polars as pl
import pytest

from tests.benchmarks.cascade import Scripted, leaf_error


def test_a_scripted_teacher_is_right_as_often_as_told_and_says_the_same_again():
    leaf = {f"query {i}": "ab"[i % 2] for i in range(2000)}
    teacher = Scripted(leaf, 0.8)
    said = {text: teacher.leaf_of(text) for text in leaf}
    right = sum(said[text] == leaf[text] for text in leaf) / len(leaf)
    assert right == pytest.approx(0.8 + 0.2 / 2, abs=0.03)  # of two leaves, any is right half the time
    assert said == {text: teacher.leaf_of(text) for text in leaf}
    assert teacher.leaf_of("never heard") == "other"


def test_every_query_of_a_request_is_answered_under_its_id():
    answer = Scripted({"x": "a.b"}, 1.0).labels({"queries": [{"id": "q1", "text": "x"}, {"id": "q2", "text": "y"}]})
    assert [(one["id"], one["primary"]) for one in answer["labels"]] == [("q1", "a.b"), ("q2", "other")]


def test_the_error_is_that_of_queries_with_a_true_leaf():
    annotations = pl.DataFrame({"query_id": [1, 2, 3, 4], "primary": ["a", "b", "other", None]})
    assert leaf_error(annotations, {1: "a", 2: "a", 4: "a", 9: "a"}) == (pytest.approx(2 / 3), 3)
