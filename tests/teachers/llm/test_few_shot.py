"""Seeds as examples: balanced over leaves, nearest by vector, the same every time."""

from __future__ import annotations

import numpy as np
import polars as pl

from curation.teachers.llm.few_shot import FewShot

LEAVES = ("a", "b", "other")
ROWS = [
    (3, "a en late", "en", "a", [], None),
    (1, "a zh", "zh", "a", ["b", "gone"], None),
    (2, "a en", "en", "a", [], None),
    (4, "b zh", "zh", "b", [], None),
    (5, "gone", "en", "gone", [], None),
    (6, "proposed", "en", None, [], None),
    (7, "hi", "en", "other", [], "no_tool_needed"),
    (8, "hello", "en", "other", [], "no_tool_needed"),
    (9, "hey", "en", "a", [], "no_tool_needed"),
]


def seeds(order=tuple(range(9))):
    schema = {
        "query_id": pl.UInt64, "text": pl.String, "lang": pl.String, "primary": pl.String,
        "secondary": pl.List(pl.String), "reason": pl.String,
    }  # fmt: skip
    return pl.DataFrame([ROWS[at] for at in order], schema=schema, orient="row")


def texts(examples):
    return [example["text"] for example in examples]


def test_balanced_takes_some_of_every_leaf_in_the_language_first():
    few = FewShot(seeds(), LEAVES)
    assert texts(few.balanced("en", 1)) == ["a en", "b zh", "hi"]
    assert texts(few.balanced("zh", 1)) == ["a zh", "b zh", "hi"]
    assert texts(few.balanced("en", 2)) == ["a en", "a en late", "b zh", "hi", "hello"]
    assert texts(few.balanced("en", 9)) == ["a en", "a en late", "a zh", "b zh", "hi", "hello"]
    assert few.balanced("en", 0) == []


def test_labels_are_shown_without_leaves_that_are_gone():
    shown = FewShot(seeds(), LEAVES).balanced("zh", 1)[0]
    assert shown == {"text": "a zh", "primary": "a", "secondary": ["b"], "unsolvable": None}


def test_order_of_seeds_changes_nothing():
    vectors = np.eye(len(ROWS), 4, dtype=np.float32)
    order = [8, 2, 5, 0, 7, 1, 6, 3, 4]
    one, other = FewShot(seeds(), LEAVES, vectors), FewShot(seeds(order), LEAVES, vectors[order])
    asked = np.array([[0.5, 0.5, 0, 0], [0, 0, 0, 1]], dtype=np.float32)
    assert one.balanced("en", 2) == other.balanced("en", 2)
    assert one.nearest(asked, 3) == other.nearest(asked, 3)


def test_nearest_come_first_ties_by_id():
    vectors = np.zeros((len(ROWS), 2), dtype=np.float32)
    vectors[0], vectors[1], vectors[2], vectors[3] = (1, 0), (0, 1), (1, 0), (0.6, 0.8)
    few = FewShot(seeds(), LEAVES, vectors)
    found = few.nearest(np.array([[1, 0], [0, 1]], dtype=np.float32), 2)
    assert [texts(row) for row in found] == [["a en", "a en late"], ["a zh", "b zh"]]


def test_s4_noise_of_the_encoder_changes_no_prompt():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(len(ROWS), 16)).astype(np.float32)
    asked = random.normal(size=(50, 16)).astype(np.float32)
    few = FewShot(seeds(), LEAVES, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    assert few.nearest(asked, 3) == few.nearest(asked + 1e-7, 3)


def test_without_vectors_or_seeds_there_are_none():
    one = np.ones((2, 3), dtype=np.float32)
    assert FewShot(seeds(), LEAVES).nearest(one, 3) == [[], []]
    assert FewShot(seeds([]), LEAVES, np.zeros((0, 3), np.float32)).nearest(one, 3) == [[], []]
    few = FewShot(seeds(), LEAVES, np.ones((len(ROWS), 3), np.float32))
    assert few.nearest(one, 0) == [[], []]
    assert len(few.nearest(one, 99)[0]) == 7
    assert few.nearest(np.full((1, 3), np.nan, np.float32), 1)[0]  # a row without a usable vector still gets some
