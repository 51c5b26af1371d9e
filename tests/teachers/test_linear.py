"""Linear heads: learn what is linear, count rows by weight, are the same again, treat a row alone as in company."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from curation.algorithms.normalise import normalise
from curation.teachers.embedded.linear import LOGISTIC, SOFTMAX, Head, fit_linear
from curation.teachers.embedded.ngrams import fit_ngrams

N = 1500


@pytest.fixture(scope="module")
def given():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(N, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    word = random.integers(3, size=N)
    norms = normalise(
        pa.array([f"{('red', 'green', 'blue')[w]} {i % 11}" for i, w in enumerate(word)], pa.large_string())
    )
    ngrams = fit_ngrams(norms)
    return vectors, word, ngrams, ngrams.transform(norms)


def heads(vectors, word, weight=None):
    ones = np.ones(N, np.float32)
    return [
        Head(SOFTMAX, np.eye(3, dtype=np.float32)[word], ones),
        Head(LOGISTIC, (vectors[:, :1] > 0).astype(np.float32), ones if weight is None else weight),
    ]


def test_each_head_finds_its_own_features(given):
    vectors, word, ngrams, words = given
    scores = fit_linear(vectors, words, ngrams.width, heads(vectors, word)).scores(vectors, words)
    assert (scores[:, :3].argmax(axis=1) == word).mean() > 0.99
    assert ((scores[:, 3] > 0) == (vectors[:, 0] > 0)).mean() > 0.95


def test_soft_targets_are_answered_with_their_shares(given):
    vectors, word, ngrams, words = given
    shares = np.where(word[:, None] == 0, [[0.7, 0.3]], [[0.2, 0.8]]).astype(np.float32)
    model = fit_linear(vectors, words, ngrams.width, [Head(SOFTMAX, shares, np.ones(N, np.float32))])
    scores = model.scores(vectors, words)
    said = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert np.abs(said[word == 0].mean(axis=0) - [0.7, 0.3]).max() < 0.03
    assert np.abs(said[word > 0].mean(axis=0) - [0.2, 0.8]).max() < 0.03


def test_rows_without_weight_teach_nothing(given):
    vectors, word, ngrams, words = given
    model = fit_linear(vectors, words, ngrams.width, heads(vectors, word, np.zeros(N, np.float32)))
    assert (model.scores(vectors, words)[:, 3] == 0).all()


def test_t10_the_same_again_and_alone_as_in_company(given):
    vectors, word, ngrams, words = given
    one, two = (fit_linear(vectors, words, ngrams.width, heads(vectors, word)) for _ in range(2))
    whole = one.scores(vectors, words)
    np.testing.assert_array_equal(whole, two.scores(vectors, words))
    for at in (0, 97, N - 1):
        alone = one.scores(vectors[at : at + 1], words.rows(np.array([at])))
        np.testing.assert_array_equal(alone[0], whole[at])
