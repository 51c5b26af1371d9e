"""New rows against old ones: the same answers as comparing all pairs."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.algorithms.near import LexicalNeighbours, closest_before, closest_in_group
from curation.algorithms.shingles import jaccard, shingles

OLD = ["navigate to the old harbour", "明天青岛天气怎么样", "find a pharmacy near central station", "iphone 14 price"]
NEW = [
    "navigate to the old harbours",  # one letter more than the first
    "明天青岛天气怎么样",
    "后天三亚天气如何",
    "find a pharmacy near central stations",
    "find a pharmacy near central stations please",  # close to the one before
    "book a table for two",
]


def column(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def similarity(one: str, other: str) -> float:
    sets = shingles(column([one, other]))
    return float(jaccard(sets.hashes, *sets.starts[:2], *sets.starts[1:]))


@pytest.mark.parametrize("cut", [1, 2, 4])
def test_old_rows_are_found_in_any_batches(cut: int) -> None:
    batches = [column(OLD[at : at + cut]) for at in range(0, len(OLD), cut)]
    best, at = LexicalNeighbours(NEW, 0.7, 2).against(batches)
    assert at.tolist() == [0, 1, -1, 2, 2, -1]
    expected = [similarity(new, OLD[row]) if row >= 0 else 0.0 for new, row in zip(NEW, at.tolist(), strict=True)]
    assert best.tolist() == pytest.approx(expected)


def test_a_new_row_is_compared_with_kept_rows_before_it_only() -> None:
    best, at = LexicalNeighbours(NEW, 0.7, 1).before()
    assert at.tolist() == [-1, -1, -1, -1, 3, -1]
    assert best[4] == pytest.approx(similarity(NEW[4], NEW[3]))


def test_t9_a_chain_of_near_duplicates_keeps_a_row_that_is_not_close_to_a_kept_one() -> None:
    chain = ["abcdefgh ijklmnop", "abcdefgh ijklmnop q", "abcdefgh ijklmnop qrst"]
    threshold = similarity(chain[0], chain[1]) - 1e-9
    assert similarity(chain[0], chain[2]) < threshold
    _, at = LexicalNeighbours(chain, threshold, 1).before()
    assert at.tolist()[:2] == [-1, 0]
    assert at[2] == -1


def test_no_old_rows_no_new_rows() -> None:
    assert LexicalNeighbours(NEW, 0.7, 1).against([])[1].tolist() == [-1] * len(NEW)
    assert LexicalNeighbours(NEW, 0.7, 1).against([column([])])[1].tolist() == [-1] * len(NEW)
    assert LexicalNeighbours([], 0.7, 1).against([column(OLD)])[1].tolist() == []
    assert LexicalNeighbours([], 0.7, 1).before()[1].tolist() == []


def test_closest_in_group_is_that_of_all_pairs() -> None:
    random = np.random.default_rng(3)
    new, old = (random.normal(size=(n, 16)).astype(np.float32) for n in (20, 90))
    groups, old_groups = random.integers(-1, 4, 20), random.integers(0, 6, 90)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (new, old)]
    cosines = unit[0] @ unit[1].T
    cosines[groups[:, None] != old_groups[None]] = -1
    batches = [(old[:40], old_groups[:40]), (old[40:], old_groups[40:])]
    best, at = closest_in_group(new, groups, batches)
    seen = cosines.max(axis=1) > -1
    assert (at >= 0).tolist() == seen.tolist()
    assert at[seen].tolist() == cosines.argmax(axis=1)[seen].tolist()
    assert best[seen] == pytest.approx(cosines.max(axis=1)[seen], abs=1e-3)
    assert (best[groups < 0] == -1).all()


def test_s1_identical_vectors_leave_one() -> None:
    vectors = np.ones((3, 4), dtype=np.float32)
    best, at = closest_before(vectors, np.zeros(3, dtype=np.int64), 0.92)
    assert at.tolist() == [-1, 0, 0]
    assert best[1:].tolist() == pytest.approx([1.0, 1.0], abs=1e-3)
    assert closest_before(vectors, np.array([0, 1, -1]), 0.92)[1].tolist() == [-1, -1, -1]


def test_s2_nothing_to_compare() -> None:
    empty = np.empty((0, 4), dtype=np.float32)
    none = np.empty(0, dtype=np.int64)
    assert (
        closest_in_group(empty, none, [(np.ones((2, 4), dtype=np.float32), np.zeros(2, dtype=np.int64))])[1].size == 0
    )
    assert closest_before(empty, none, 0.9)[1].size == 0
