"""MinHash signatures and the bands of locality-sensitive hashing.

Signatures are bit for bit those of datasketch 2.0's ``MinHash(scheme="affine32")`` with
:func:`~curation.algorithms.shingles.shingle_hash` as its ``hashfunc``: shingle hashes are mixed once by the 32-bit
finaliser of MurmurHash3, then permuted by ``a h + b mod 2^32``. So datasketch checks them in the tests, chooses the
number of bands, and can serve as the index of small increments.

Sources: Broder, "On the resemblance and containment of documents" (1997); Leskovec, Rajaraman, Ullman, "Mining of
Massive Datasets", section 3.4 (bands).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.shingles import Shingles

__all__ = ["band_keys", "choose_bands", "collision_probability", "permutations", "signatures"]

ROWS_PER_CHUNK = 16_384
LANES = 16  # numbers of 32 bits in the widest register; what is left over of them would be done one by one


def permutations(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """``(a, b)``, uint32 of length ``count``: the first permutations of datasketch for ``seed``."""
    generator = np.random.RandomState(seed)
    multipliers = generator.randint(0, 1 << 31, count, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return multipliers, generator.randint(0, 1 << 32, count, dtype=np.uint32)


def collision_probability(similarity: float, bands: int, rows: int) -> float:
    """Chance that two sets of Jaccard ``similarity`` share at least one of ``bands`` bands of ``rows`` rows."""
    return 1.0 - (1.0 - similarity**rows) ** bands


def choose_bands(threshold: float, count: int, recall: float) -> tuple[int, int]:
    """``(bands, rows)`` within ``count`` permutations that find pairs at ``threshold`` with probability ``recall``.

    The longest bands that reach it: they let the fewest dissimilar pairs through. Where none reaches it, bands of one
    row, which come nearest.
    """
    for rows in range(count, 0, -1):
        for bands in range(1, count // rows + 1):
            if collision_probability(threshold, bands, rows) >= recall:
                return bands, rows
    return count, 1


@njit(nogil=True, cache=True)
def _mix32(x):
    """The finaliser of MurmurHash3 for 32 bits (Appleby, public domain)."""
    x = np.uint32(x)
    x ^= x >> np.uint32(16)
    x = np.uint32(x * np.uint32(0x85EBCA6B))
    x ^= x >> np.uint32(13)
    x = np.uint32(x * np.uint32(0xC2B2AE35))
    return np.uint32(x ^ (x >> np.uint32(16)))


@njit(nogil=True, cache=True)
def _signature(hashes, begin, end, a, b, out):
    """The minima of one row under every permutation."""
    out[:] = np.uint32(0xFFFFFFFF)
    for slot in range(begin, end):
        mixed = _mix32(hashes[slot])
        for place in range(out.size):
            value = np.uint32(a[place] * mixed + b[place])
            out[place] = min(out[place], value)


@njit(nogil=True, cache=True)
def _signature_rows(hashes, starts, first, last, a, b, out):
    for row in range(first, last):
        _signature(hashes, starts[row], starts[row + 1], a, b, out[row])


@njit(nogil=True, cache=True)
def _band_key_rows(hashes, starts, salts, first, last, a, b, out):
    """``a`` and ``b`` hold the first permutation of every band, then the second of every band, and so on.

    So the steps of one hash, each of which waits for the one before, are taken for all bands at once.
    """
    bands = out.shape[1]
    width = a.size // LANES * LANES + (LANES if a.size % LANES else 0)
    padded_a, padded_b = np.zeros(width, np.uint32), np.zeros(width, np.uint32)
    padded_a[: a.size], padded_b[: a.size] = a, b
    signature = np.empty(width, np.uint32)
    for row in range(first, last):
        _signature(hashes, starts[row], starts[row + 1], padded_a, padded_b, signature)
        keys = out[row]
        for band in range(bands):
            keys[band] = _mix32(salts[row] + np.uint32(band + 1) * np.uint32(0x9E3779B9))
        for begin in range(0, a.size, bands):
            for band in range(bands):
                key = np.uint32((keys[band] ^ signature[begin + band]) * np.uint32(0x85EBCA6B))
                keys[band] = np.uint32(key ^ (key >> np.uint32(13)))
        for band in range(bands):
            keys[band] = max(_mix32(keys[band]), np.uint32(1))


def signatures(sets: Shingles, count: int, *, seed: int = 1, workers: int | None = None) -> np.ndarray:
    """MinHash signatures, uint32 of shape (n, ``count``)."""
    a, b = permutations(count, seed)
    out = np.empty((len(sets.starts) - 1, count), np.uint32)
    chunks = spans(len(out), ROWS_PER_CHUNK)
    run_chunks(lambda first, last: _signature_rows(*sets, first, last, a, b, out), chunks, workers)
    return out


def band_keys(
    sets: Shingles,
    bands: int,
    rows: int,
    *,
    salts: np.ndarray | None = None,
    seed: int = 1,
    workers: int | None = None,
    allocate: Callable[[int, Any], np.ndarray] = np.empty,
) -> np.ndarray:
    """Hash of each band of each row's signature, uint32 of shape (n, ``bands``), none 0.

    Rows that share a key share a band and, where ``salts`` (uint32) are given, their salt, but for collisions.
    ``allocate`` gives the array of the keys.
    """
    count = len(sets.starts) - 1
    a, b = (np.ascontiguousarray(part.reshape(bands, rows).T).ravel() for part in permutations(bands * rows, seed))
    keys = allocate(count * bands, np.uint32).reshape(count, bands)
    salts = np.zeros(count, np.uint32) if salts is None else salts
    chunks = spans(count, ROWS_PER_CHUNK)
    run_chunks(lambda first, last: _band_key_rows(*sets, salts, first, last, a, b, keys), chunks, workers)
    return keys
