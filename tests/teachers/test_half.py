"""Products of half precision: near the exact ones, the same for a row whatever stands beside it."""

from __future__ import annotations

import numpy as np
import pytest

from curation.teachers import half, use
from curation.teachers.encoders import USE, load_encoder
from curation.teachers.half import HalfProducts, one_torch_thread

random = np.random.default_rng(1)
ROWS = random.normal(size=(192, 320)).astype(np.float32)
MATRICES = [random.normal(size=(320, 64)).astype(np.float32) for _ in range(2)]


def test_factors_are_rounded_and_their_products_summed_in_whole_precision():
    def rounded(values):
        """To 8 significant bits, halves to even, by arithmetic of its own."""
        mantissa, exponent = np.frexp(values.astype(np.float64))
        return np.ldexp(np.round(mantissa * 256), exponent - 8)

    times = HalfProducts(MATRICES)
    for matrix in MATRICES:
        exact = rounded(ROWS) @ rounded(matrix)
        found = times(ROWS, matrix)
        assert found.dtype == np.float32
        # The sum is rounded once more, to 8 bits, besides what the summing itself loses.
        np.testing.assert_allclose(found, exact, rtol=2**-8, atol=1e-3)


def test_a_row_does_not_depend_on_others():
    times = HalfProducts(MATRICES)
    whole = times(ROWS, MATRICES[0])
    order = random.permutation(len(ROWS))
    assert np.array_equal(times(ROWS[order], MATRICES[0]), whole[order])
    assert np.array_equal(times(ROWS[:96], MATRICES[0]), whole[:96])


def test_a_matrix_that_is_not_among_them_is_refused():
    with pytest.raises(KeyError):
        HalfProducts(MATRICES)(ROWS, MATRICES[0].copy())


def test_torch_gets_its_threads_back():
    import torch

    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_torch_thread():
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


TEXTS = [
    "附近的加油站",
    "how long to the airport by train",
    "导航到北京南站，避开高速",
    "?",
    "天气",
    "play some jazz",
] * 30


def test_the_quick_encoder_says_nearly_the_same(monkeypatch):
    exact = load_encoder(USE, 2)
    monkeypatch.setattr(use, "half_is_fast", lambda: True)
    quick = exact.quick()
    one, other = exact.encode(TEXTS), quick.encode(TEXTS)
    assert not np.array_equal(one, other)
    assert (one * other).sum(axis=1).min() > 0.999
    assert np.array_equal(quick.encode(TEXTS[3:4]), other[3:4])
    assert np.array_equal(exact.encode(TEXTS), one)  # making the quick one left it as it was


def test_without_such_a_processor_the_quick_encoder_is_the_exact_one(monkeypatch):
    monkeypatch.setattr(use, "half_is_fast", lambda: False)
    exact = load_encoder(USE, 1)
    assert exact.quick() is exact
    assert isinstance(half.half_is_fast(), bool)
