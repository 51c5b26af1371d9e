from __future__ import annotations

import numpy as np
import polars as pl
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from curation.algorithms.identity import candidate_ids, hash_strings, seeded_order


@given(st.lists(st.text(), min_size=1, max_size=20))
def test_hash_is_xxh3_of_the_bytes(texts):
    assert hash_strings(pl.Series(texts)).to_list() == [xxhash.xxh3_64_intdigest(t.encode()) for t in texts]


def test_candidate_ids_tell_origins_and_removed_tools_apart():
    ids = pl.Series([7, 7, 7], dtype=pl.UInt64)
    removed = pl.Series([[], ["a"], ["a", "b"]], dtype=pl.List(pl.String))
    found = candidate_ids(ids, pl.Series(["observed", "tool_removed", "tool_removed"]), removed)
    assert found.n_unique() == 3
    assert found[2] == xxhash.xxh3_64_intdigest(b"7|tool_removed|a,b")


@given(st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=50), st.integers(0, 5))
def test_seeded_order_depends_on_ids_and_seed_only(ids, seed):
    forward = np.array(sorted(ids), dtype=np.uint64)
    backward = forward[::-1].copy()
    assert forward[seeded_order(forward, seed)].tolist() == backward[seeded_order(backward, seed)].tolist()


def test_another_seed_gives_another_order():
    ids = np.arange(100, dtype=np.uint64)
    assert seeded_order(ids, 1).tolist() != seeded_order(ids, 2).tolist()
