"""Agreement of labellers: published worked examples, and small ones worked out by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.algorithms.agreement import krippendorff_alpha, masi_distance


def nominal(a, b):
    return float(a != b)


def units(*coders):
    """Labels by thing, from a row of labels for each coder, * for none."""
    return [
        [label for label in given if label != "*"] for given in zip(*(row.split() for row in coders), strict=True)
    ]


@pytest.mark.parametrize(
    ("coders", "alpha"),
    [
        # Krippendorff 2011, sections A, B and C.
        (("0 1 0 0 0 0 0 0 1 0", "1 1 1 0 0 1 0 0 0 0"), 0.095),
        (("a a b b d c c c e d d a", "b a b b b c c c e d d d"), 0.692),
        (
            (
                "1 2 3 3 2 1 4 1 2 * * *",
                "1 2 3 3 2 2 4 1 2 5 * 3",
                "* 3 3 3 2 3 4 2 2 5 1 *",
                "1 2 3 3 2 4 4 1 2 5 1 *",
            ),
            0.743,
        ),
    ],
)
def test_alpha_of_the_published_examples(coders, alpha):
    assert krippendorff_alpha(units(*coders), nominal) == pytest.approx(alpha, abs=0.0005)


def test_alpha_of_interval_data_as_published():
    # Section D of the same paper: the data of C with squared differences.
    rows = (
        "1 2 3 3 2 1 4 1 2 * * *",
        "1 2 3 3 2 2 4 1 2 5 * 3",
        "* 3 3 3 2 3 4 2 2 5 1 *",
        "1 2 3 3 2 4 4 1 2 5 1 *",
    )
    numbers = [[int(label) for label in unit] for unit in units(*rows)]
    assert krippendorff_alpha(numbers, lambda a, b: float((a - b) ** 2)) == pytest.approx(0.849, abs=0.0005)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("ab", "ab", 0.0),
        ("ab", "abcd", 1 - 2 / 4 * 2 / 3),
        ("abcd", "ab", 1 - 2 / 4 * 2 / 3),
        ("abc", "bcd", 1 - 2 / 4 * 1 / 3),
        ("a", "b", 1.0),
        ("", "b", 1.0),
        ("", "", 0.0),
    ],
)
def test_masi_distance(first, second, distance):
    assert masi_distance(frozenset(first), frozenset(second)) == pytest.approx(distance)


def test_alpha_of_sets_by_hand():
    # Two things; labels {a}, {a, b} on the first, {b}, {b} on the second.
    # Distances: {a} {a, b} and {a, b} {b}: 1 - 1/2 * 2/3 = 2/3; {a} {b}: 1.
    # Observed: 2 * 2/3 over 4 labels = 1/3. Expected: ordered pairs of all four labels, 12 of them:
    # a-ab, ab-b twice: 3 pairs at 2/3, a-b twice at 1, b-b at 0; twice each: 2 * (2 + 2) / 12 = 2/3.
    a, ab, b = frozenset("a"), frozenset("ab"), frozenset("b")
    assert krippendorff_alpha([[a, ab], [b, b]], masi_distance) == pytest.approx(1 - (1 / 3) / (2 / 3))


def test_things_labelled_once_do_not_count():
    assert krippendorff_alpha([["a", "a"], ["b", "b"], ["c"]], nominal) == 1.0
    assert math.isnan(krippendorff_alpha([["a"], ["b"]], nominal))
    assert krippendorff_alpha([["a", "a"], ["a", "a"]], nominal) == 1.0


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=2, max_size=4), min_size=1, max_size=6))
def test_alpha_is_at_most_1_and_order_means_nothing(things):
    alpha = krippendorff_alpha(things, nominal)
    assert alpha <= 1
    assert alpha == pytest.approx(krippendorff_alpha([unit[::-1] for unit in things[::-1]], nominal))
