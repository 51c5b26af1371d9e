from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.algorithms.vectors import FIXED, GRID, cosine, distance, step, to_fixed, to_grid


def rows(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def test_fixed_point_products_are_cosines():
    vectors = rows(50, 37)
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors.astype(np.float64), axis=1)[:, None]
    i, j = np.divmod(np.arange(2500), 50)
    found = cosine(to_fixed(vectors), to_fixed(vectors), i, j, workers=2)
    assert np.abs(found - (unit @ unit.T).ravel()).max() < 1e-8


def test_s3_lengths_do_not_matter():
    vectors = rows(20, 16)
    for factor in (0.001, 0.5, 3, 1000):
        assert np.abs(to_fixed(vectors * np.float32(factor)) - to_fixed(vectors)).max() <= 40  # of 2**28
        assert np.abs(to_grid(vectors * np.float32(factor)) - to_grid(vectors)).max() <= 1


@pytest.mark.parametrize("convert", [to_fixed, to_grid])
@pytest.mark.parametrize(
    ("value", "words"), [(0.0, "row 3 is the zero vector"), (np.nan, "row 3 is not finite"), (np.inf, "not finite")]
)
def test_s3_vectors_without_a_direction_are_named(convert, value, words):
    vectors = rows(5, 8)
    vectors[3] = 0
    vectors[3, 2] = value
    with pytest.raises(ValueError, match=words):
        convert(vectors)


def test_shapes_that_are_no_matrix():
    with pytest.raises(ValueError, match="matrix"):
        to_fixed(np.ones(4, dtype=np.float32))
    assert to_fixed(np.empty((0, 4), dtype=np.float32)).shape == (0, 4)


@given(st.integers(1, 600), st.integers(0, 2**31))
def test_products_on_the_grid_are_exact_in_float32(d, seed):
    grid = to_grid(rows(12, d, seed))
    exact = grid.astype(np.int64) @ grid.astype(np.int64).T
    assert exact.max() < 2**24
    assert np.array_equal(grid @ grid.T, exact)
    # Any order of addition: reversed and shuffled dimensions.
    order = np.random.default_rng(seed).permutation(d)
    assert np.array_equal(grid[:, order] @ grid[:, order].T, exact)
    assert np.array_equal(np.einsum("id,jd->ij", grid, grid), exact)


def test_longest_vector_of_the_grid():
    flat = np.ones((1, 30_000), dtype=np.float32)
    assert (to_grid(flat).astype(np.int64) ** 2).sum() < 2**24
    assert (GRID + 30_000**0.5 / 2) ** 2 < 2**24
    with pytest.raises(ValueError, match=r"30001 dimensions"):
        to_grid(np.ones((1, 30_001), dtype=np.float32))


def test_distances_of_equal_rows_are_zero_and_of_opposite_rows_two():
    vectors = rows(3, 64)
    fixed = to_fixed(np.concatenate([vectors, vectors, -vectors]))
    assert distance(fixed, fixed, np.arange(3), np.arange(3) + 3).tolist() == [0, 0, 0]
    assert np.allclose(distance(fixed, fixed, np.arange(3), np.arange(3) + 6), 2)


def test_steps_are_rounded_so_that_round_similarities_lie_inside_a_step():
    for similarity in (1.0, 0.5, 0.75):
        product = int(similarity * FIXED * FIXED)
        assert step(product - 1000) == step(product) == step(product + 1000)


def test_workers_do_not_change_anything():
    vectors = rows(20_000, 8)
    assert np.array_equal(to_fixed(vectors, workers=1), to_fixed(vectors, workers=4))
