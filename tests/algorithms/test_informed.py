"""Vectors that say which labelled rows a row is like."""

from __future__ import annotations

import numpy as np
import pytest

from curation.algorithms.informed import informed


def rows(n=40, seed=0):
    """Queries about one of two things in one of eight places, which weigh more than the thing; what each is about."""
    random = np.random.default_rng(seed)
    axes = np.linalg.qr(np.random.default_rng(7).normal(size=(16, 16)))[0]
    thing, place = random.integers(2, size=n), random.integers(8, size=n)
    vectors = 0.8 * axes[thing] + axes[2 + place] + random.normal(scale=0.02, size=(n, 16))
    return vectors.astype(np.float32), thing, place


def mean_cosine(vectors, pairs):
    products = vectors @ vectors.T
    return float(products[pairs & ~np.eye(len(vectors), dtype=bool)].mean())


def test_what_labels_vary_with_counts_more_than_before():
    vectors, thing, place = rows()
    known, labels, _ = rows(60, seed=1)
    out = informed(vectors, known, [f"leaf {label}" for label in labels])
    bare = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    bare -= bare.mean(axis=0)
    bare /= np.linalg.norm(bare, axis=1, keepdims=True)
    same_thing = (thing[:, None] == thing) & (place[:, None] != place)
    same_place = (thing[:, None] != thing) & (place[:, None] == place)
    assert mean_cosine(bare, same_thing) < mean_cosine(bare, same_place)
    assert mean_cosine(out, same_thing) > mean_cosine(out, same_place)


def test_they_have_unit_length_and_a_column_for_each_label():
    vectors, *_ = rows()
    known, labels, _ = rows(60, seed=1)
    out = informed(vectors, known, [f"leaf {label}" for label in labels])
    assert out.shape == (40, 16 + 2)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1, atol=1e-6)


def test_scores_are_those_of_kernel_ridge_regression():
    from sklearn.kernel_ridge import KernelRidge

    vectors, *_ = rows()
    known, labels, _ = rows(60, seed=1)
    out = informed(vectors, known, [str(label) for label in labels])
    unit = [
        part / np.linalg.norm(part, axis=1, keepdims=True) for part in (vectors.astype(float), known.astype(float))
    ]
    kernel = [np.exp(2 * (part @ unit[1].T - 1)) for part in unit]
    fitted = KernelRidge(alpha=0.5, kernel="precomputed").fit(kernel[1], np.eye(2)[labels] - 0.5)
    scores = fitted.predict(kernel[0])
    scores -= scores.mean(axis=1, keepdims=True)
    said = out[:, 16:] / np.linalg.norm(out[:, 16:], axis=1, keepdims=True)
    np.testing.assert_allclose(said, scores / np.linalg.norm(scores, axis=1, keepdims=True), atol=5e-3)


@pytest.mark.parametrize("threads", [1, 2])
def test_t10_order_and_threads_change_nothing(threads):
    from threadpoolctl import threadpool_limits

    vectors, *_ = rows(3000)
    known, labels, _ = rows(60, seed=1)
    order = np.random.default_rng(3).permutation(len(vectors))
    first = informed(vectors, known, labels)
    with threadpool_limits(limits=threads):
        np.testing.assert_allclose(informed(vectors[order], known, labels), first[order], atol=1e-6)
        np.testing.assert_array_equal(informed(vectors, known, labels), first)


def test_one_label_or_one_known_row_says_nothing_more():
    vectors, *_ = rows()
    out = informed(vectors, vectors[:1], ["only"])
    assert np.isfinite(out).all()
    assert not out[:, 16:].any()
