"""Who is taken for whom."""

from __future__ import annotations

import numpy as np
import pytest

from curation.algorithms.leaf_likeness import likeness


def at(*degrees):
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_a_row_is_scored_without_itself():
    found = likeness(at(0, 10, 90), ["a", "a", "b"])
    assert found.leaves == ("a", "b")
    cos = np.cos(np.radians([10, 80, 90]))
    np.testing.assert_allclose(
        found.scores, [[cos[0], cos[2]], [cos[0], cos[1]], [(cos[1] + cos[2]) / 2, -1]], atol=1e-3
    )
    assert found.taken.tolist() == [0, 0, 0]


def test_counts_shares_and_confusion():
    # One row labelled b lies among those of a.
    found = likeness(at(0, 1, 2, 3, 90, 91, 92), ["a", "a", "b", "a", "b", "b", "b"])
    assert found.counts().tolist() == [[3, 0], [1, 3]]
    assert found.shares()[1].tolist() == [0.25, 0.75]
    assert found.confusion().tolist() == [[0.5, 0], [0.25, 0.5]]
    assert found.swapped(0, 1).tolist() == [2]
    first, second, lead = found.two_best()
    assert (first[2], second[2]) == (0, 1)
    assert lead[2] == pytest.approx(found.scores[2, 0] - found.scores[2, 1])


def test_no_rows():
    assert likeness(np.empty((0, 2), np.float32), []).leaves == ()
