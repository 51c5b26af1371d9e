from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.leaders import Sets, group, make_sets
from curation.algorithms.shingles import jaccard_pairs, shingles


def rows_of(texts: list[str], numbers: list[int] | None = None) -> Sets:
    sets = shingles(pa.array(texts, pa.large_string()))
    return make_sets(sets, np.array(numbers or [0] * len(texts), np.uint32))


def similarities(texts: list[str]) -> np.ndarray:
    n = len(texts)
    left, right = np.divmod(np.arange(n * n), n)
    return jaccard_pairs(shingles(pa.array(texts, pa.large_string())), left, right).reshape(n, n)


def grouped(texts: list[str], threshold: float, *, limit: int = 1000, connect: bool = False) -> list[int]:
    """Group with one bucket that all rows are in."""
    starts = np.arange(len(texts) + 1)
    keys = np.full(len(texts), 9, np.uint32)
    leaders, *_ = group(rows_of(texts), keys, starts, threshold=threshold, limit=limit, connect=connect)
    return leaders.tolist()


def greedy(similarity: np.ndarray, threshold: float) -> list[int]:
    """The rule by hand: in order, the most similar kept row that is similar enough, the first of equals."""
    leaders: list[int] = []
    for row in range(len(similarity)):
        kept = [other for other in range(row) if leaders[other] == other and similarity[row, other] >= threshold]
        leaders.append(max(kept, key=lambda other: (similarity[row, other], -other), default=row))
    return leaders


TEXTS = st.lists(st.text(st.sampled_from("ab c"), min_size=1, max_size=9), min_size=1, max_size=14, unique=True)


@given(TEXTS, st.sampled_from([0.3, 0.5, 0.7, 1.0]))
@settings(max_examples=200, deadline=None)
def test_leaders_are_those_of_the_rule_by_hand(texts: list[str], threshold: float) -> None:
    assert grouped(texts, threshold) == greedy(similarities(texts), threshold - 1e-12)


@given(TEXTS, st.sampled_from([0.3, 0.5, 0.7]))
@settings(max_examples=100, deadline=None)
def test_components_connect_what_chains_of_similar_rows_connect(texts: list[str], threshold: float) -> None:
    reach = similarities(texts) >= threshold - 1e-12
    for middle in range(len(texts)):
        reach |= reach[:, [middle]] & reach[[middle], :]
    assert grouped(texts, threshold, connect=True) == reach.argmax(axis=1).tolist()


def test_t9_a_row_similar_only_to_a_dropped_row_is_kept() -> None:
    texts = ["abcdefgh", "abcdefghij", "abcdefghijkl"]
    similarity = similarities(texts)
    threshold = float(similarity[0, 1])
    assert similarity[1, 2] >= threshold > similarity[0, 2]
    assert grouped(texts, threshold) == [0, 0, 2]
    assert grouped(texts, threshold, connect=True) == [0, 0, 0]


def test_rows_meet_only_in_buckets() -> None:
    texts = ["abcdefgh", "abcdefghi", "abcdefghj"]
    leaders, _, tally = group(
        rows_of(texts), np.array([1, 2, 3, 3], np.uint32), np.array([0, 1, 2, 4]), threshold=0.5, limit=9
    )
    assert leaders.tolist() == [0, 1, 2] and tally.candidates == 0
    leaders, _, tally = group(
        rows_of(texts), np.array([1, 2, 3, 2], np.uint32), np.array([0, 1, 2, 4]), threshold=0.5, limit=9
    )
    assert leaders.tolist() == [0, 1, 1] and tally.candidates == tally.similar == 1


def test_t11_a_hot_bucket_costs_each_row_no_more_than_the_limit() -> None:
    rng = np.random.default_rng(1)
    texts = ["".join(row) for row in rng.choice(list("abcdefghij"), (3000, 12))]
    _, _, tally = group(
        rows_of(texts), np.full(len(texts), 9, np.uint32), np.arange(len(texts) + 1), threshold=0.7, limit=8
    )
    assert tally.candidates <= 8 * len(texts)


def test_other_numbers_are_never_similar() -> None:
    rows = rows_of(["alarm at 7", "alarm at 8"], [1, 2])
    leaders, *_ = group(rows, np.array([9, 9], np.uint32), np.array([0, 1, 2]), threshold=0.1, limit=9)
    assert leaders.tolist() == [0, 1]


def test_no_rows() -> None:
    leaders, _, tally = group(rows_of([]), np.empty(0, np.uint32), np.zeros(1, np.int64), threshold=0.5, limit=9)
    assert len(leaders) == 0 and tally.candidates == 0


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_similarities_are_those_to_the_leaders_and_bits_differ_no_more_than_sets(texts: list[str]) -> None:
    rows, table = rows_of(texts), similarities(texts)
    starts, keys = np.arange(len(texts) + 1), np.full(len(texts), 9, np.uint32)
    found = group(rows, keys, starts, threshold=0.5, limit=99)
    assert found.similarities.tolist() == table[np.arange(len(texts)), found.leaders].astype(np.float32).tolist()
    for left in range(len(texts)):
        for right in range(left):
            bits, other = int(rows.facts[left, 0]), int(rows.facts[right, 0])
            ranges = [rows.hashes[a:b].tolist() for _, _, a, b in rows.facts[[left, right]].tolist()]
            assert (bits ^ other).bit_count() <= len(set(ranges[0]) ^ set(ranges[1]))
