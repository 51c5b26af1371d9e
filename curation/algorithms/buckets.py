"""Bucket keys of many rows: leaving out those that no second row has.

Most keys of a log are lonely, and each would cost the grouping a miss of the cache and room in its table. A filter
with two bits a key finds nearly all of them: keys are first dealt into slices by their upper bits, so that each
slice's filter fits the cache of a core.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit

from curation.algorithms.parallel import run_chunks, spans

__all__ = ["drop_lonely"]

KEYS_PER_SLICE = 1 << 18
MOST_SLICES = 256
KEYS_PER_DEAL = 1 << 26  # bounds the memory of a deal to 12 bytes times this
FILTER_SLOTS = 2  # least counters a key; fewer let more lonely keys through
MIX = np.uint32(0x85EBCA6B)


@njit(nogil=True, cache=True)
def _count(keys, lower, upper, shift, slices):
    """Where each slice of the keys in ``lower <= key < upper`` begins when they are dealt."""
    starts = np.zeros(slices + 1, np.int64)
    for key in keys:
        if lower <= key < upper:
            starts[((key - lower) >> shift) + 1] += 1
    for slice_ in range(slices):
        starts[slice_ + 1] += starts[slice_]
    return starts


@njit(nogil=True, cache=True)
def _deal(keys, lower, upper, shift, heads, dealt, origins):
    """Deal the keys in ``lower <= key < upper`` into slices that begin at ``heads``."""
    for at in range(keys.size):
        key = keys[at]
        if lower <= key < upper:
            slice_ = (key - lower) >> shift
            dealt[heads[slice_]] = key
            origins[heads[slice_]] = at
            heads[slice_] += 1


@njit(nogil=True, cache=True)
def _zero_lonely(dealt, origins, begin, end, keys):
    """Set to 0 in ``keys`` the keys of one slice whose counter stays at one."""
    slots = 32
    while slots < (end - begin) * FILTER_SLOTS:
        slots *= 2
    counters = np.zeros(slots // 32, np.uint64)
    mask = np.uint32(slots - 1)
    for at in range(begin, end):
        slot = np.uint32(dealt[at] * MIX) >> np.uint32(7) & mask
        bit = np.uint64((slot & np.uint32(31)) * np.uint32(2))
        word = np.int64(slot >> np.uint32(5))
        once = counters[word] >> bit & np.uint64(1)
        counters[word] |= np.uint64(1) << bit | once << (bit + np.uint64(1))
    for at in range(begin, end):
        slot = np.uint32(dealt[at] * MIX) >> np.uint32(7) & mask
        bit = np.uint64((slot & np.uint32(31)) * np.uint32(2) + np.uint32(1))
        if not counters[np.int64(slot >> np.uint32(5))] >> bit & np.uint64(1):
            keys[origins[at]] = 0


@njit(nogil=True, cache=True)
def _close_gaps(keys, starts):
    to, begin = 0, starts[0]
    for row in range(starts.size - 1):
        end = starts[row + 1]
        starts[row] = to
        for at in range(begin, end):
            keys[to] = keys[at]
            to += keys[at] != 0
        begin = end
    starts[starts.size - 1] = to
    return to


def drop_lonely(keys: np.ndarray, starts: np.ndarray, workers: int | None = None) -> np.ndarray:
    """The keys that a second row may have, in the memory of ``keys``; ``starts`` is adjusted in place.

    Args:
        keys: uint32; row i has ``keys[starts[i]:starts[i + 1]]``, and 0 is no key.
        starts: int64, n + 1.
        workers: Threads.

    A few lonely keys stay, where two share a counter; that costs time and changes nothing else.
    """
    deals = spans(1 << 32, (1 << 32) // (1 << max(0, (keys.size // KEYS_PER_DEAL).bit_length())))
    width = deals[0][1]
    slices = 1
    while slices < MOST_SLICES and slices * KEYS_PER_SLICE * len(deals) < keys.size:
        slices *= 2
    shift = width.bit_length() - slices.bit_length()
    for lower, upper in deals:
        # 0 stands for no key, so the first deal begins at 1.
        slice_starts = _count(keys, max(lower, 1), upper, shift, slices)
        dealt, origins = np.empty(slice_starts[-1], np.uint32), np.empty(slice_starts[-1], np.uint32)
        _deal(keys, max(lower, 1), upper, shift, slice_starts[:-1].copy(), dealt, origins)
        bounds = pairwise(slice_starts.tolist())
        run_chunks(
            lambda begin, end, dealt=dealt, origins=origins: _zero_lonely(dealt, origins, begin, end, keys),
            bounds,
            workers,
        )
    return keys[: _close_gaps(keys, starts)]
