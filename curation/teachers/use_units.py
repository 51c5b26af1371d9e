"""What units of text give by themselves, made when a unit first occurs and kept for the texts to come."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Units"]

Floats = NDArray[np.float32]
Make = Callable[[NDArray[np.int64]], tuple[Floats, ...]]

_MOST = 1 << 14
"""Units kept; a log of millions has some 10,000 that matter."""


class Units:
    """Rows of tables by unit; threads may share it.

    What is kept changes nothing but the time: a row depends on its unit alone.

    Args:
        units: How many there are.
        make: Units to their rows in each table.
    """

    def __init__(self, units: int, make: Make) -> None:
        self._units, self._make = units, make
        self._lock = threading.Lock()
        self._place = np.full(units, -1, np.int32)
        self._tables: tuple[Floats, ...] = ()
        self._count = 0

    def of(self, flat: NDArray[np.int64]) -> tuple[NDArray[np.int32], tuple[Floats, ...]]:
        """Where each of the units stands in the tables, and the tables."""
        with self._lock:
            new = np.unique(flat[self._place[flat] < 0])
            if self._count + len(new) > _MOST:
                # Tables that other threads read now stay theirs.
                self._place, self._tables, self._count = np.full(self._units, -1, np.int32), (), 0
                new = np.unique(flat)
            if len(new):
                self._add(new)
            return self._place[flat], self._tables

    def _add(self, new: NDArray[np.int64]) -> None:
        made = self._make(new)
        if not self._tables:
            # The machine gives memory only as rows are written.
            self._tables = tuple(np.empty((max(_MOST, len(new)), rows.shape[1]), np.float32) for rows in made)
        end = self._count + len(new)
        for table, rows in zip(self._tables, made, strict=True):
            table[self._count : end] = rows[: len(new)]
        self._place[new] = np.arange(self._count, end)
        self._count = end
