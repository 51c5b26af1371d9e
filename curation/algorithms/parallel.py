"""Run compiled kernels on several threads without letting the number of threads into the result.

Kernels are compiled with ``nogil`` and called from a pool of our own. numba's own ``prange`` would do too, but its
``workqueue`` layer aborts the process when two Python threads enter it at once, as two stages of a flow may.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["cores", "run_chunks", "spans"]

T = TypeVar("T")


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spans(total: int, size: int) -> list[tuple[int, int]]:
    """Half-open ranges of ``size`` that cover ``0 .. total``; they depend on nothing but the two numbers."""
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def run_chunks(work: Callable[..., T], chunks: Iterable[tuple[int, ...]], workers: int | None = None) -> list[T]:
    """``[work(*chunk) for chunk in chunks]`` on ``workers`` threads (all cores when None), results in order.

    ``work`` must write only to what belongs to its chunk. The first error of a chunk is raised.
    """
    chunks = list(chunks)
    workers = min(workers or cores(), len(chunks))
    if workers <= 1:
        return [work(*chunk) for chunk in chunks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda chunk: work(*chunk), chunks))
