from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.apportion import allocate, apportion, bucket_weights, difficulty_weights, pool_sizes, quotas

weights = st.lists(st.floats(0, 1e6, allow_nan=False), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("shares", "total", "expected"),
    [
        ([1, 1, 1], 10, [4, 3, 3]),  # ties go to the lower index
        ([5, 3, 2], 7, [4, 2, 1]),  # 3.5, 2.1, 1.4
        ([47, 16, 15.8, 12, 6.1, 3.1], 10, [5, 2, 1, 1, 1, 0]),  # the textbook case of largest remainders
        ([0, 0], 3, [2, 1]),
        ([], 3, []),
        ([2, 1], 0, [0, 0]),
    ],
)
def test_largest_remainders(shares, total, expected):
    assert apportion(shares, total).tolist() == expected


def test_surplus_of_a_full_entry_goes_to_the_others_by_weight():
    # 10 by 5:3:2; the first takes 2, the other 8 go 3:2.
    assert apportion([5, 3, 2], 10, capacity=[2, 9, 9]).tolist() == [2, 5, 3]
    assert apportion([5, 3, 2], 10, capacity=[2, 3, 1]).tolist() == [2, 3, 1]


def test_minimum_is_kept_as_far_as_there_is_something():
    assert apportion([1000, 1, 1, 1], 10, minimum=1, capacity=[50, 1, 0, 1]).tolist() == [8, 1, 0, 1]
    assert apportion([1, 3, 2], 2, minimum=1).tolist() == [0, 1, 1]


def test_weight_zero_gets_something_only_when_the_others_are_full():
    assert apportion([1, 0], 5, capacity=[3, 9]).tolist() == [3, 2]
    assert apportion([1, 0], 5, capacity=[5, 9]).tolist() == [5, 0]


@pytest.mark.parametrize("bad", [[-1.0], [float("nan")], [float("inf")], [[1.0]]])
def test_weights_that_are_no_weights(bad):
    with pytest.raises(ValueError, match="weights must be"):
        apportion(bad, 1)


@given(weights, st.integers(0, 500), st.data())
def test_apportion_is_exact_and_within_bounds(shares, total, data):
    n = len(shares)
    capacity = data.draw(st.lists(st.integers(0, 90), min_size=n, max_size=n))
    minimum = data.draw(st.integers(0, 4))
    given_ = apportion(shares, total, capacity=capacity, minimum=minimum)
    assert given_.sum() == min(total, sum(capacity))
    assert (given_ >= 0).all() and (given_ <= capacity).all()
    low = np.minimum(minimum, capacity)
    if low.sum() <= total:
        assert (given_ >= low).all()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=12), st.integers(0, 1000))
def test_apportion_stays_within_one_of_the_quota(shares, total):
    exact = np.array(shares) * total / sum(shares)
    assert (np.abs(apportion(shares, total) - exact) < 1).all()


def test_allocate_meets_both_margins_where_it_can():
    counts = np.array([[100, 100], [100, 100]])
    taken = allocate(counts, 40, bucket_shares=[1, 3], difficulty_shares=[0.25, 0.75])
    assert taken.sum(axis=1).tolist() == [10, 30]
    assert taken.sum(axis=0).tolist() == [10, 30]


def test_allocate_gives_way_to_difficulty_where_margins_contradict():
    # Bucket 0 has only rows of the first difficulty and would get half of 20, but that difficulty gets 4.
    taken = allocate([[50, 0], [50, 50]], 20, bucket_shares="equal", difficulty_shares=[0.2, 0.8])
    assert taken.sum(axis=0).tolist() == [4, 16]
    assert taken[0].tolist() == [4, 0]


def test_allocate_rules():
    counts = [[100], [25], [0]]
    assert allocate(counts, 30, bucket_shares="proportional").ravel().tolist() == [24, 6, 0]
    assert allocate(counts, 30, bucket_shares="sqrt").ravel().tolist() == [20, 10, 0]
    assert allocate(counts, 30, bucket_shares="equal").ravel().tolist() == [15, 15, 0]
    with pytest.raises(ValueError, match="no bucket rule 'log'"):
        bucket_weights([1], "log")


def test_allocate_protects_rare_buckets():
    counts = np.array([[5000, 5000]] + [[0, 1]] * 20 + [[3, 0]] * 5)
    for shares in (None, [0.9, 0.1]):
        taken = allocate(counts, 100, difficulty_shares=shares, minimum=1)
        assert (taken.sum(axis=1) >= 1).all()
        assert taken.sum() == 100


@settings(max_examples=60)
@given(st.data())
def test_allocate_is_exact_and_within_counts(data):
    shape = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 7)))
    size = shape[0] * shape[1]
    counts = np.array(data.draw(st.lists(st.integers(0, 40), min_size=size, max_size=size))).reshape(shape)
    total = data.draw(st.integers(0, 300))
    minimum = data.draw(st.integers(0, 2))
    shares = data.draw(
        st.none() | st.lists(st.floats(0, 1, allow_subnormal=False), min_size=shape[1], max_size=shape[1])
    )
    rule = data.draw(st.sampled_from(["proportional", "sqrt", "equal"]))
    taken = allocate(counts, total, bucket_shares=rule, difficulty_shares=shares, minimum=minimum)
    assert taken.sum() == min(total, counts.sum())
    assert (taken >= 0).all() and (taken <= counts).all()
    low = np.minimum(minimum, counts.sum(axis=1))
    if low.sum() <= total:
        assert (taken.sum(axis=1) >= low).all()


def test_negatives_are_balanced_over_level_1():
    # 90 negatives, of which 60 are to be picked: 20 a category, but the third has only 10.
    counts = np.zeros((4, 7), dtype=int)
    counts[:, 0] = [40, 30, 10, 10]
    counts[:, 4] = 100
    level1 = [0, 1, 2, 1]
    taken = quotas(counts, level1, 100, difficulty=[60, 0, 0, 0, 40, 0, 0])
    by_category = np.bincount(level1, weights=taken[:, 0])
    assert by_category.tolist() == [25, 25, 10]
    assert taken[:, 4].tolist() == [10, 10, 10, 10]
    # Inside a category: by rows, 30 to 10.
    assert taken[[1, 3], 0].tolist() == [19, 6]


def test_quotas_keep_the_shares_of_the_survivors_without_a_target():
    counts = np.zeros((2, 7), dtype=int)
    counts[0, 2], counts[1, 5] = 300, 100
    assert quotas(counts, [0, 0], 40).sum(axis=0).tolist() == [0, 0, 30, 0, 0, 10, 0]


def test_a_bucket_of_negatives_only_keeps_its_row():
    counts = np.zeros((3, 7), dtype=int)
    counts[0, 3], counts[1, 0], counts[2, 0] = 1000, 200, 1
    taken = quotas(counts, [0, 1, 1], 12)
    assert taken.sum() == 12
    assert (taken.sum(axis=1) >= 1).all()


def test_no_buckets():
    assert quotas(np.zeros((0, 7), dtype=int), [], 10).shape == (0, 7)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((200, 0.1, 20, 100, 1000), (160, 20, 20)),
        ((200, 0.1, 0, 5, 1000), (195, 5, 0)),  # too few removable: observed rows make up for them
        ((200, 0.1, 300, 50, 1000), (0, 0, 200)),
        ((200, 0.1, 0, 40, 90), (90, 10, 0)),  # too few survivors: a smaller pool, the same share
        ((200, 0.1, 18, 40, 72), (72, 10, 18)),
        ((10, 0.0, 0, 10, 20), (10, 0, 0)),
        ((10, 0.5, 0, 0, 0), (0, 0, 0)),
    ],
)
def test_pool_sizes(arguments, expected):
    assert pool_sizes(*arguments) == expected


@given(st.integers(0, 1000), st.floats(0, 0.9), st.integers(0, 300), st.integers(0, 500), st.integers(0, 2000))
def test_pool_sizes_are_exact_when_rows_suffice(size, share, synthetic, removable, survivors):
    sizes = pool_sizes(size, share, synthetic, removable, survivors)
    observed, removed, made = sizes
    assert min(sizes) >= 0 and observed <= survivors and removed <= removable and made == min(synthetic, size)
    assert sum(sizes) <= size
    if survivors >= size:
        assert sum(sizes) == size
    if sum(sizes) < size:
        assert observed == survivors
    assert removed <= share * size + 0.5


def test_difficulty_of_the_observed_fills_what_the_made_rows_leave():
    shares = {-1: 0.2, 0: 0.1, 1: 0.7}
    # A pool of 100: 20 at -1, of which 10 are tool-removed; 70 at 1, of which 5 are synthetic.
    found = difficulty_weights(shares, (85, 10, 5), {1: 5}, [9] * 7)
    assert np.allclose(found, [10, 10, 65, 0, 0, 0, 0])


def test_unnamed_difficulties_share_the_rest_as_they_come():
    found = difficulty_weights({-1: 0.4}, (100, 0, 0), {}, [50, 30, 10, 0, 0, 0, 0])
    assert np.allclose(found, [40, 45, 15, 0, 0, 0, 0])


@pytest.mark.parametrize("shares", [{1: -0.1}, {6: 0.5}, {1: 0.0}])
def test_difficulty_shares_that_mean_nothing(shares):
    with pytest.raises(ValueError, match="difficulty share"):
        difficulty_weights(shares, (1, 0, 0), {}, [0] * 7)
