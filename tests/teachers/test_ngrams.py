"""Word and character features of normal forms."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.normalise import normalise
from curation.teachers.embedded.ngrams import fit_ngrams


def norms(*texts):
    return normalise(pa.array(list(texts), pa.large_string()))


def shared(first, second):
    """Product of the features of two texts over a vocabulary of both, each held twice."""
    vocabulary = fit_ngrams(norms(first, first, second, second))
    rows = vocabulary.transform(norms(first, second)).dense(vocabulary.width)
    return float(rows[0] @ rows[1])


@pytest.mark.parametrize(
    ("text", "features"),
    [
        ("rain", 1),
        ("will it", 3),  # will, it, will it
        ("will it rain", 6),
        ("will it rain now", 9),  # 4 + 3 + 2
        ("下雨吗", 6),
        ("3 天", 4),  # the number, 天, number 天, and 3 itself
        ("2026 年", 3),  # years are just numbers
        ("去 kfc", 3),
        ("去kfc", 3),
        ("?!", 0),
    ],
)
def test_features_of_a_text(text, features):
    assert fit_ngrams(norms(text, text)).width == features


def test_numbers_are_alike_up_to_short_ones():
    assert shared("2026", "1999") == pytest.approx(1)
    assert 0 < shared("3 days", "8 days") < 1
    assert shared("3 days", "3 days") == pytest.approx(1)


def test_what_stands_in_one_row_alone_is_no_feature():
    vocabulary = fit_ngrams(norms("will it rain", "will it snow snow"))
    assert vocabulary.width == 3
    assert vocabulary.transform(norms("snow")).columns.tolist() == []


def test_values_count_by_the_logarithm_in_rows_of_length_one():
    vocabulary = fit_ngrams(norms("a b", "a b"), least=2)
    row = vocabulary.transform(norms("a a a b b")).dense(vocabulary.width)[0]
    # a three times, b twice, "a b" once; "a a" and the like are not known.
    raw = np.array([1 + np.log(3), 1 + np.log(2), 1])
    assert sorted(row) == pytest.approx(sorted(raw / np.linalg.norm(raw)))


def test_t7_scripts_without_spaces_share_parts():
    assert shared("ร้านอาหารไทย", "ร้านอาหารจีน") > 0.3
    assert shared("今日の天気", "明日の天気") > 0.3
    assert shared("قهوة", "قهوتي") == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=8))
def test_rows_do_not_depend_on_their_company(texts):
    texts = [*texts, "will it rain", "下雨吗 3 天"]
    vocabulary = fit_ngrams(norms(*texts, *texts))
    together = vocabulary.transform(norms(*texts))
    weights = np.random.default_rng(0).normal(size=(max(vocabulary.width, 1), 3)).astype(np.float32)
    for i, text in enumerate(texts):
        alone = vocabulary.transform(norms(text))
        span = slice(together.starts[i], together.starts[i + 1])
        np.testing.assert_array_equal(alone.columns, together.columns[span])
        np.testing.assert_array_equal(alone.values, together.values[span])
        assert np.all(np.diff(alone.columns) > 0)
        np.testing.assert_array_equal(alone.times(weights)[0], together.times(weights)[i])
        np.testing.assert_allclose(
            alone.times(weights)[0], alone.dense(vocabulary.width)[0] @ weights[: vocabulary.width], atol=1e-5
        )


def test_a_slice_of_an_array_is_read_from_its_start():
    vocabulary = fit_ngrams(norms("one two", "one two", "three", "three"))
    whole = norms("one two", "three", "one")
    assert vocabulary.transform(whole.slice(1)).starts.tolist() == [0, 1, 2]
