from __future__ import annotations

import numpy as np
import pytest

from curation.algorithms.coverage import nearest_pick, radii
from curation.algorithms.kcenter import kcenter
from curation.algorithms.partition import cells, merge_by_radius, partitioned_kcenter
from tests.algorithms.clouds import clouds


def test_small_inputs_are_exact():
    vectors = clouds(500, 16)
    for exact, expected in zip(partitioned_kcenter(vectors, 50), kcenter(vectors, 50), strict=True):
        assert np.array_equal(exact, expected)


def test_cells_follow_well_parted_clouds():
    vectors = clouds(2000, 32, groups=5, noise=0.05)
    own = cells(vectors, 5, seed=1)
    near = np.zeros((5, 5), dtype=int)
    truth = cells(vectors, 5, seed=2)
    np.add.at(near, (own, truth), 1)
    # Whatever start the seeds gave, most rows of a cell stay together.
    assert near.max(axis=1).sum() > 1500


def test_cells_do_not_depend_on_threads_and_bear_copies_and_opposites():
    vectors = clouds(9000, 16, seed=1)
    assert np.array_equal(cells(vectors, 7, seed=3, workers=1), cells(vectors, 7, seed=3, workers=3))
    assert (cells(np.ones((10, 4), np.float32), 4) == 0).all()
    assert len(cells(np.array([[1, 0], [-1, 0]], np.float32), 1)) == 2
    assert cells(np.eye(2, dtype=np.float32), 9).max() <= 1


def test_widest_radius_first_then_weight_then_index():
    picks = np.array([4, 1, 3, 0])
    radius = np.array([0.5, 2.0, 0.5, 0.5], dtype=np.float32)
    weights = np.array([1, 1, 1, 1, 7])
    assert merge_by_radius(picks, radius, None, 3).tolist() == [1, 3, 2]
    assert merge_by_radius(picks, radius, weights, 9).tolist() == [1, 0, 3, 2]


@pytest.mark.parametrize("k", [1, 40, 700, 4000])
def test_exactly_k_distinct_picks(k):
    vectors = clouds(4000, 24, seed=2)
    weights = np.random.default_rng(0).integers(1, 9, 4000)
    picks, radius = partitioned_kcenter(vectors, k, weights=weights, exact_rows=100, cell_rows=500)
    assert len(picks) == len(set(picks.tolist())) == k
    assert (np.diff(radius) <= 0).all() and radius[0] == 2
    again, _ = partitioned_kcenter(vectors, k, weights=weights, exact_rows=100, cell_rows=500, workers=3)
    assert np.array_equal(picks, again)


def test_radius_is_nearly_that_of_the_exact_algorithm():
    vectors = clouds(12_000, 48, seed=3, groups=100)
    exact, _ = kcenter(vectors, 1200, workers=2)
    picks, _ = partitioned_kcenter(vectors, 1200, exact_rows=100, cell_rows=4000, workers=2)
    widest = [radii(nearest_pick(vectors, p, workers=2)[1]).max() for p in (exact, picks)]
    assert widest[1] <= 1.03 * widest[0]


def test_a_cell_of_far_rows_gets_more_than_its_share():
    random = np.random.default_rng(4)
    near = np.ones(32) + 0.05 * random.standard_normal((3000, 32))
    far = random.standard_normal((3000, 32)) - 0.5
    vectors = np.concatenate([near, far]).astype(np.float32)
    picks, _ = partitioned_kcenter(vectors, 300, exact_rows=100, cell_rows=3000)
    assert (picks >= 3000).sum() > 280


def test_memory_maps_are_read_in_place(tmp_path):
    vectors = clouds(3000, 16, seed=5)
    mapped = np.memmap(tmp_path / "vectors", dtype=np.float32, mode="w+", shape=vectors.shape)
    mapped[:] = vectors
    for exact in (100, 10_000):
        expected = partitioned_kcenter(vectors, 200, exact_rows=exact, cell_rows=1000)[0]
        assert np.array_equal(partitioned_kcenter(mapped, 200, exact_rows=exact, cell_rows=1000)[0], expected)


def test_an_earlier_selection_is_honoured_in_every_cell():
    vectors = clouds(6000, 24, seed=4, groups=40)
    earlier, fresh = vectors[:3000], vectors[3000:]
    options = {"exact_rows": 100, "cell_rows": 800}
    alone, _ = partitioned_kcenter(fresh, 300, **options)
    after, radius = partitioned_kcenter(fresh, 300, centres=earlier, **options)
    assert len(set(after.tolist())) == 300 and (np.diff(radius) <= 0).all()
    assert radius[0] < 2
    # What is picked after the earlier rows lies farther from them than what is picked without knowing of them.
    distance = [radii(np.abs(fresh[p] @ earlier.T).max(axis=1)).mean() for p in (alone, after)]
    assert distance[1] > distance[0]
    again, _ = partitioned_kcenter(fresh, 300, centres=earlier, workers=3, **options)
    assert np.array_equal(after, again)
    none, _ = partitioned_kcenter(fresh, 300, centres=earlier[:0], **options)
    assert np.array_equal(none, alone)
