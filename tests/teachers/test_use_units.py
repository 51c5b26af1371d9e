"""Units that are kept: right rows, made once, whatever threads and however many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from curation.teachers import use_units
from curation.teachers.use_units import Units


def tables(units, made=None):
    """The unit itself, and its square and its half; one row more, as padding."""

    def make(new):
        if made is not None:
            made.extend(new.tolist())
        padded = np.append(new, 0)
        return padded[:, None].astype(np.float32), np.stack([padded**2, padded / 2], axis=1).astype(np.float32)

    return Units(units, make)


def right(units, flat):
    where, (own, more) = units.of(flat)
    return np.array_equal(own[where, 0], flat) and np.array_equal(more[where, 0], flat**2)


def test_a_unit_is_made_once():
    made = []
    units = tables(100, made)
    assert right(units, np.array([5, 3, 5, 99]))
    assert right(units, np.array([3, 4]))
    assert right(units, np.array([], np.int64))
    assert sorted(made) == [3, 4, 5, 99]


def test_more_units_than_are_kept_begin_anew(monkeypatch):
    monkeypatch.setattr(use_units, "_MOST", 8)
    units = tables(100)
    before = units.of(np.arange(6))
    assert right(units, np.arange(4, 14))
    assert right(units, np.arange(20))  # more at once than are kept
    assert right(units, np.array([7]))
    where, (own, _) = before
    assert np.array_equal(own[where, 0], np.arange(6))  # who still reads the old tables finds them whole


def test_threads_share_them(monkeypatch):
    monkeypatch.setattr(use_units, "_MOST", 50)
    units = tables(1000)
    asked = [np.random.default_rng(seed).integers(60 + seed, size=30) for seed in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda flat: right(units, flat), asked))
