from __future__ import annotations

import math

import numpy as np
import pytest

from curation.algorithms.signs import CODE_BITS, FILTER_BITS, LANE, _transform, bands_for, plan, sketch
from curation.algorithms.vectors import ROUGH, cosine, to_fixed
from tests.algorithms.clouds import clouds


def pairs_at(cosine: float, n: int, d: int, seed: int = 0) -> np.ndarray:
    """2n rows: row i and row n + i are exactly this close."""
    random = np.random.default_rng(seed)
    a = random.standard_normal((n, d))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    b = random.standard_normal((n, d))
    b -= (a * b).sum(axis=1, keepdims=True) * a
    b /= np.linalg.norm(b, axis=1, keepdims=True)
    return np.concatenate([a, cosine * a + math.sqrt(1 - cosine**2) * b]).astype(np.float32)


def differences(marks, n):
    """Signs in which row i and row n + i differ: of the first 512, and of all 1,024."""
    differ = np.bitwise_count(marks.codes[:n, : CODE_BITS // 64] ^ marks.codes[n:, : CODE_BITS // 64])
    return differ[:, : FILTER_BITS // 64].sum(axis=1), differ.sum(axis=1)


def keys(marks):
    """uint16[n, bands]: the keys that the columns hold."""
    return (marks.columns & ((1 << marks.bits) - 1)).T


@pytest.mark.parametrize("threshold", [0.6, 0.8, 0.92, 0.99, 1.0])
@pytest.mark.parametrize("n", [2, 1000, 100_000, 5_000_000])
def test_the_plan_promises_its_recall_with_bounded_bands(threshold, n):
    bits, bands = plan(n, threshold)
    agree = 1 - math.acos(min(threshold, 0.9999)) / math.pi
    assert 1 - (1 - agree**bits) ** bands >= 0.999
    assert 1 <= bands <= 128 and 1 <= bits <= 16
    # Shorter keys need fewer bands for the same promise.
    for shorter in range(1, bits):
        fewer = bands_for(shorter, threshold)
        assert fewer <= bands and 1 - (1 - agree**shorter) ** fewer >= 0.999


@pytest.mark.parametrize("width", [64, 128, 256])
def test_transform_is_walsh_hadamard(width):
    block = np.eye(width, 64, dtype=np.float32)
    _transform(block)
    i, j = np.arange(width)[:, None], np.arange(64)[None, :]
    parity = np.array([bin(x).count("1") % 2 for x in range(width)])
    assert np.array_equal(block, 1 - 2 * parity[i & j])


@pytest.mark.parametrize("d", [3, 64, 100, 256])
def test_signs_differ_as_often_as_the_angle_says(d):
    for similarity in (0.0, 0.8, 0.92):
        rows = to_fixed(pairs_at(similarity, 1000, d))
        marks = sketch(rows, 0.92, seed=3)
        differ = differences(marks, 1000)[1]
        expected = CODE_BITS * math.acos(similarity) / math.pi
        # In few dimensions the hyperplanes are the same for every pair, and their own error shows.
        assert abs(differ.mean() - expected) < (24 if d == 3 else 8)


def test_pairs_at_the_threshold_share_a_band_and_pass_the_filter():
    rows = to_fixed(pairs_at(0.92, 5000, 128))
    marks = sketch(rows, 0.92, seed=1)
    share = (keys(marks)[:5000] == keys(marks)[5000:]).any(axis=1)
    assert share.mean() >= 0.998  # 0.999 less two standard deviations
    for differ, most in zip(differences(marks, 5000), marks.most_different, strict=True):
        assert (differ <= most).mean() >= 0.998


def test_signs_depend_on_the_seed_and_on_nothing_else():
    rows = to_fixed(clouds(20_000, 40))
    one, again, other = (sketch(rows, 0.92, seed=s, workers=w) for s, w in ((1, 1), (1, 3), (2, 1)))
    assert np.array_equal(one.columns, again.columns) and np.array_equal(one.codes, again.codes)
    assert not np.array_equal(one.codes, other.codes)
    # A row alone, or among others: the same signs (bits and bands follow the number of rows, the code does not).
    assert np.array_equal(sketch(rows[17:18], 0.92, seed=1).codes[0], one.codes[17])


@pytest.mark.parametrize("threshold", [0.8, 0.92])
def test_lane_b_of_the_code_is_column_b(threshold):
    marks = sketch(to_fixed(clouds(100_000, 8)), threshold, seed=1)
    bands = len(marks.columns)
    assert bands > (64 if threshold == 0.8 else 16)  # more lanes than a code of 1,024 signs has, and fewer
    assert 64 * marks.codes.shape[1] >= max(CODE_BITS, LANE * bands)
    for band in range(bands):
        lane = marks.codes[:, band // 4] >> np.uint64(LANE * (band % 4))
        assert np.array_equal(lane.astype(np.uint16), marks.columns[band])


def test_bytes_tell_the_cosine_within_the_promised_error():
    for d in (2, 16, 256):
        fixed = to_fixed(clouds(2000, d, seed=4))
        marks = sketch(fixed, 0.92, seed=0)
        i, j = np.random.default_rng(5).integers(0, 2000, (2, 20_000))
        rough = np.einsum("ij,ij->i", marks.rough[i].astype(np.int64), marks.rough[j].astype(np.int64))
        assert np.abs(rough / (marks.length[i] * marks.length[j]) - cosine(fixed, fixed, i, j)).max() < ROUGH
