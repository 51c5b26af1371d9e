"""Trends."""

from __future__ import annotations

import numpy as np
import pytest

from curation.algorithms.trend import late_share

NAN = float("nan")


def trend(*things, span=(0.0, 9.0)):
    first, last, weight = (np.array(column, float) for column in zip(*things, strict=True))
    return late_share(first, last, weight, span)


def test_late_even_and_early():
    assert trend((0, 9, 5)) == pytest.approx(0)
    assert trend((7, 8, 5)) == pytest.approx(2 / 3)
    assert trend((0, 3, 5)) == pytest.approx(-1 / 3)
    assert trend((8, 8, 1)) == pytest.approx(2 / 3)
    # Half of it late: from 3 to 9, of which 6 to 9.
    assert trend((3, 9, 2)) == pytest.approx(1 / 2 - 1 / 3)


def test_weights_and_unknown_times():
    assert trend((7, 8, 3), (0, 1, 1)) == pytest.approx(3 / 4 - 1 / 3)
    assert trend((7, 8, 3), (NAN, NAN, 100)) == pytest.approx(2 / 3)
    assert trend((NAN, NAN, 1)) is None
    assert trend((1, 1, 1), span=(1.0, 1.0)) is None
