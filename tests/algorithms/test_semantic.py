from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.semantic import semantic_groups
from curation.algorithms.vectors import to_fixed
from tests.algorithms.clouds import clouds, groups_by_definition, unit

METHODS = ("auto", "products", "projections", "faiss", "faiss-ivf")
EXACT = ("auto", "products", "faiss")


def one_bucket(n):
    return np.zeros(n, dtype=np.int32)


@pytest.mark.parametrize("method", METHODS)
def test_s1_identical_vectors_and_a_mutual_pair_keep_exactly_one(method):
    vectors = np.array([[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0.1], [0, 1, 0.2]], dtype=np.float32)
    representative, similarity = semantic_groups(vectors, np.array([2, 0, 1, 4, 3]), method=method)
    assert representative.tolist() == [2, 2, 2, 4, 4]
    assert similarity[:3].tolist() == [1, 1, 1] and 0.99 < similarity[3] < 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [0, 1, 2])
def test_s2_tiny_buckets(method, n):
    vectors = np.eye(4, dtype=np.float32)[:n]
    representative, similarity = semantic_groups(vectors, np.arange(n), one_bucket(n), method=method)
    assert representative.tolist() == list(range(n))
    assert similarity.tolist() == [1.0] * n


@pytest.mark.parametrize("method", METHODS)
def test_s2_fifty_identical_vectors(method):
    representative, similarity = semantic_groups(np.ones((50, 8), np.float32), np.arange(50)[::-1], method=method)
    assert (representative == 49).all()
    assert (similarity == 1).all()


@pytest.mark.parametrize("method", METHODS)
def test_s3_scaled_copies_are_duplicates(method):
    vectors = np.outer([1, 0.001, 3, 1000], [0.3, -0.7, 0.2, 0.1]).astype(np.float32)
    assert (semantic_groups(vectors, np.arange(4), method=method)[0] == 0).all()


def test_s3_zero_and_nan_are_refused_with_the_row():
    vectors = np.ones((3, 4), dtype=np.float32)
    vectors[1] = 0
    with pytest.raises(ValueError, match="row 1 is the zero vector"):
        semantic_groups(vectors, np.arange(3))
    vectors[1] = np.nan
    with pytest.raises(ValueError, match="row 1 is not finite"):
        semantic_groups(vectors, np.arange(3))


@pytest.mark.parametrize("method", ["products", "projections"])
def test_s4_noise_of_the_encoder_changes_nothing(method):
    vectors = unit(clouds(3000, 48)).astype(np.float32)
    noise = np.random.default_rng(1).uniform(-1e-6, 1e-6, vectors.shape).astype(np.float32)
    order = np.random.default_rng(2).permutation(3000)
    before, _ = semantic_groups(vectors, order, method=method)
    after, _ = semantic_groups(vectors + noise, order, method=method)
    assert np.array_equal(before, after)


@pytest.mark.parametrize("method", ["products", "projections"])
def test_s4_a_pair_on_the_threshold_stays_merged_under_noise(method):
    for seed in range(20):
        noise = np.random.default_rng(seed).uniform(-1e-6, 1e-6, (2, 2)).astype(np.float32)
        vectors = np.array([[1, 0], [0.6, 0.8]], dtype=np.float32) + noise
        assert semantic_groups(vectors, np.arange(2), threshold=0.6, method=method)[0].tolist() == [0, 0]


def test_s5_a_bucket_of_200_000_rows_under_one_gibibyte():
    program = """
        import resource, numpy as np
        from curation.algorithms.semantic import semantic_groups
        random = np.random.default_rng(0)
        vectors = random.standard_normal((200_000, 64), dtype=np.float32)
        vectors[100_000:] = vectors[:100_000] + np.float32(0.1) * vectors[100_000:]
        representative, _ = semantic_groups(vectors, np.arange(200_000), workers=2)
        merged = (representative[100_000:] == np.arange(100_000)).mean()
        print(merged, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True)
    merged, gibibytes = map(float, run.stdout.split())
    assert merged > 0.9999
    assert gibibytes < 1


def test_dense_data_do_not_explode():
    # 30,000 copies and as many near copies of one vector: all pairs would be 1.8 billion.
    random = np.random.default_rng(0)
    centre = random.standard_normal(32)
    vectors = np.tile(centre, (60_000, 1))
    vectors[::2] += 0.02 * random.standard_normal((30_000, 32))
    representative, _ = semantic_groups(vectors.astype(np.float32), np.arange(60_000), workers=2)
    assert (representative == 0).all()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_method_follows_the_definition(data):
    n = data.draw(st.integers(1, 40))
    d = data.draw(st.integers(1, 5))
    entries = data.draw(st.lists(st.integers(-3, 3), min_size=n * d, max_size=n * d))
    vectors = np.array(entries, dtype=np.float32).reshape(n, d)
    vectors[~vectors.any(axis=1), 0] = 1
    order = np.array(data.draw(st.permutations(range(n))))
    buckets = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=np.int32)
    threshold = data.draw(st.sampled_from([0.5, 0.8, 0.92, 1.0]))
    expected = groups_by_definition(vectors, order, buckets, threshold)
    for method in EXACT:
        found, similarity = semantic_groups(vectors, order, buckets, threshold=threshold, method=method)
        assert np.array_equal(found, expected)
        rows = unit(vectors)
        assert np.allclose(similarity, np.clip((rows * rows[found]).sum(axis=1), 0, 1), atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_larger_case_follows_the_definition(method):
    vectors = clouds(2500, 32, seed=3)
    random = np.random.default_rng(4)
    order, buckets = random.permutation(2500), random.integers(0, 3, 2500).astype(np.int32)
    expected = groups_by_definition(vectors, order, buckets, 0.92)
    assert 0.05 < (expected != np.arange(2500)).mean() < 0.9
    found, _ = semantic_groups(vectors, order, buckets, method=method, workers=2)
    assert np.array_equal(found, expected)


def test_recall_of_removals_against_the_exact_search():
    vectors = clouds(12_000, 64, seed=5, groups=200)
    order = np.arange(12_000)
    exact = semantic_groups(vectors, order, method="products", workers=2)[0] != order
    found = semantic_groups(vectors, order, method="projections", workers=2)[0] != order
    assert exact.sum() > 1000
    assert (exact & found).sum() / exact.sum() >= 0.999
    assert found.sum() <= exact.sum() * 1.001


@pytest.mark.parametrize("method", ["products", "projections"])
def test_t9_every_dropped_row_has_a_kept_representative_at_the_threshold(method):
    vectors = clouds(4000, 24, seed=6)
    representative, similarity = semantic_groups(vectors, np.arange(4000), threshold=0.8, method=method)
    assert np.array_equal(representative[representative], representative)
    assert similarity.min() >= 0.8 - 1e-5
    assert similarity.max() <= 1


@pytest.mark.parametrize("method", ["products", "projections"])
def test_t10_neither_row_order_nor_threads_nor_fixed_point_matter(method):
    vectors = clouds(5000, 24, seed=7)
    random = np.random.default_rng(8)
    order, shuffle = random.permutation(5000), random.permutation(5000)
    representative, similarity = semantic_groups(vectors, order, method=method, workers=1)
    for given_ in (vectors, to_fixed(vectors)):
        again, similarity_again = semantic_groups(given_, order, method=method, workers=3)
        assert np.array_equal(representative, again) and np.array_equal(similarity, similarity_again)
    place = np.argsort(shuffle)
    moved, _ = semantic_groups(vectors[shuffle], place[order], method=method, workers=2)
    assert np.array_equal(shuffle[moved][place], representative)


@pytest.mark.parametrize("method", ["products", "projections"])
def test_t13_a_second_run_drops_nothing(method):
    vectors = clouds(5000, 24, seed=9)
    kept = np.unique(semantic_groups(vectors, np.arange(5000), method=method)[0])
    again, _ = semantic_groups(vectors[kept], np.arange(len(kept)), method=method)
    assert np.array_equal(again, np.arange(len(kept)))


def test_rows_of_other_buckets_do_not_matter():
    vectors = np.ones((4, 3), dtype=np.float32)
    buckets = np.array([5, 7, 5, 7], dtype=np.int32)
    assert semantic_groups(vectors, np.arange(4), buckets)[0].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("threshold", [0, -0.5, 1.5])
def test_thresholds_that_make_no_sense(threshold):
    with pytest.raises(ValueError, match="threshold"):
        semantic_groups(np.ones((2, 2), np.float32), np.arange(2), threshold=threshold)
    with pytest.raises(ValueError, match="2 vectors"):
        semantic_groups(np.ones((2, 2), np.float32), np.arange(3))
