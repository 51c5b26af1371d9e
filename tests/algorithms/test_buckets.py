from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from curation.algorithms import buckets
from curation.algorithms.buckets import drop_lonely


def random_rows(seed: int, rows: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 9, rows))])
    keys = rng.integers(1, 1 << 32, starts[-1], dtype=np.uint32)
    shared = rng.random(len(keys)) < 0.3
    keys[shared] = rng.choice(np.array([1, 5, (1 << 32) - 1, 77_777_777, 3_000_000_000], np.uint32), shared.sum())
    keys[rng.random(len(keys)) < 0.05] = 0
    return keys, starts


@pytest.mark.parametrize("keys_per_deal", [1 << 26, 10_000])
def test_shared_keys_stay_in_their_rows_and_nearly_all_lonely_ones_go(
    keys_per_deal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "KEYS_PER_DEAL", keys_per_deal)
    keys, starts = random_rows(3)
    values, counts = np.unique(keys[keys > 0], return_counts=True)
    shared = set(values[counts > 1].tolist())
    expected = [[key for key in keys[a:b].tolist() if key in shared] for a, b in pairwise(starts.tolist())]
    left = drop_lonely(keys, starts, workers=2)
    rows = [left[a:b].tolist() for a, b in pairwise(starts.tolist())]
    assert [[key for key in row if key in shared] for row in rows] == expected
    lonely = len(left) - sum(map(len, expected))
    assert 0 not in left and lonely < 0.3 * (counts == 1).sum()


def test_t10_threads_change_nothing() -> None:
    keys, starts = random_rows(4)
    again, starts_again = keys.copy(), starts.copy()
    one, two = drop_lonely(keys, starts, 1), drop_lonely(again, starts_again, 4)
    assert np.array_equal(one, two) and np.array_equal(starts, starts_again)


def test_no_keys_at_all() -> None:
    starts = np.zeros(4, np.int64)
    assert len(drop_lonely(np.empty(0, np.uint32), starts)) == 0
    assert starts.tolist() == [0, 0, 0, 0]
