from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from curation.errors import CurationError
from curation.spill import plan_partitions, regroup, vector_batches


def batches(ids, vectors, size=7):
    for first in range(0, len(ids), size):
        yield ids[first : first + size], vectors[first : first + size]


@pytest.mark.parametrize(
    ("rows", "most", "expected"),
    [
        ([3, 3, 3], 6, [0, 0, 1]),
        ([9, 1, 1], 5, [0, 1, 1]),
        ([1, 9, 1], 5, [0, 1, 2]),
        ([0, 0, 5], 5, [0, 0, 0]),
        ([], 5, []),
    ],
)
def test_partitions_take_groups_in_order(rows, most, expected):
    assert plan_partitions(np.array(rows, dtype=np.int64), most).tolist() == expected


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("most", [1, 1000])
def test_every_partition_gets_its_vectors_in_the_order_asked_for(tmp_path, count, most):
    random = np.random.default_rng(0)
    all_ids = np.arange(100, 200, dtype=np.uint64)
    vectors = random.standard_normal((100, 3)).astype(np.float32)
    wanted = np.sort(random.choice(100, 60, replace=False))
    partition = random.integers(0, count, 60).astype(np.int32)
    parts = regroup(batches(all_ids, vectors), all_ids[wanted], partition, tmp_path / "new", convert=lambda v: v * 2)
    for number in range(count):
        rows = wanted[partition == number]
        order = random.permutation(len(rows))
        assert np.array_equal(parts.load(number, order, most), 2 * vectors[rows][order])
    assert (tmp_path / "new").exists() == (count > 1)


def test_missing_vectors_are_counted(tmp_path):
    ids = np.array([1, 2, 9], dtype=np.uint64)
    with pytest.raises(CurationError, match="no vector for 1 of 3 queries"):
        regroup(batches(ids[:2], np.ones((2, 2), np.float32)), ids, np.zeros(3, np.int32), tmp_path)


def test_nothing_wanted(tmp_path):
    none = np.empty(0, dtype=np.uint64)
    parts = regroup(
        batches(np.ones(3, np.uint64), np.ones((3, 2), np.float32)), none, none.astype(np.int32), tmp_path
    )
    assert parts.load(0, np.empty(0, dtype=np.int64), 5).shape[0] == 0


def test_batches_of_a_table(tmp_path):
    vectors = np.random.default_rng(0).standard_normal((40_000, 4)).astype(np.float32)
    ids = np.arange(40_000, dtype=np.uint64)
    frame = pl.DataFrame({"query_id": ids, "vector": pl.Series(vectors, dtype=pl.Array(pl.Float32, 4))})
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    frame.head(25_000).write_parquet(files[0])
    frame.tail(15_000).write_parquet(files[1])
    found = list(vector_batches(files))
    assert np.array_equal(np.concatenate([i for i, _ in found]), ids)
    assert np.array_equal(np.concatenate([v for _, v in found]), vectors)
    assert max(len(i) for i, _ in found) < 20_000


def test_vectors_of_no_fixed_width_are_a_sentence(tmp_path):
    pl.DataFrame({"query_id": [1], "vector": [[1.0, 2.0]]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(CurationError, match=r"x\.parquet"):
        list(vector_batches([tmp_path / "x.parquet"]))
