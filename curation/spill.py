"""Vectors of the embeddings table, regrouped so that what is worked on together fits in memory.

The table is sorted by query id, the semantic and geometric levels work bucket by bucket. One pass over the table
copies every wanted vector to the file of its partition (a few buckets, or one large one); a partition is then read
whole. Where everything fits in memory nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curation.errors import CurationError

__all__ = ["Partitions", "plan_partitions", "regroup", "vector_batches"]

_BATCH = 16_384
_COPY = 65_536


def vector_batches(files: Iterable[Path]) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float32]]]:
    """Query ids and float32 vectors (n, d) of the embeddings table, some 16,000 rows at a time.

    Raises:
        CurationError: the vectors are not lists of float32 of one width.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in files:
        with pq.ParquetFile(path) as table:
            for batch in table.iter_batches(batch_size=_BATCH, columns=["query_id", "vector"]):
                vector = batch.column("vector")
                if not pa.types.is_fixed_size_list(vector.type) or vector.type.value_type != pa.float32():
                    raise CurationError(
                        f"the vectors of {path.name} are {vector.type}, not lists of float32 of one width",
                        "Run the embed stage again.",
                    )
                values = vector.flatten().to_numpy(zero_copy_only=False)
                yield batch.column("query_id").to_numpy(), values.reshape(len(vector), vector.type.list_size)


def plan_partitions(rows: NDArray[np.int64], most: int) -> NDArray[np.int32]:
    """Put groups of the given sizes, in order, into partitions of at most ``most`` rows; a larger group is alone.

    Returns:
        int32[len(rows)], the partition of each group, never falling.
    """
    partition = np.empty(len(rows), dtype=np.int32)
    current, filled = 0, 0
    for group, size in enumerate(rows.tolist()):
        if filled and filled + size > most:
            current, filled = current + 1, 0
        partition[group] = current
        filled += size
    return partition


class Partitions:
    """Vectors by partition; rows of a partition lie in the order of their ids until :meth:`load` reorders them."""

    def __init__(self, folder: Path, rows: NDArray[np.int64], resident: bool) -> None:
        self._folder, self._rows, self._resident = folder, rows, resident
        self._held: list[NDArray[Any]] = []
        self._shape: tuple[int, np.dtype[Any]] | None = None

    def append(self, partition: int, vectors: NDArray[Any]) -> None:
        """Add vectors to a partition."""
        self._shape = (vectors.shape[1], vectors.dtype)
        if self._resident:
            self._held.append(vectors)
        else:
            with self._path(partition).open("ab") as out:
                out.write(np.ascontiguousarray(vectors).data)

    def load(self, partition: int, order: NDArray[np.int64], most: int) -> NDArray[Any]:
        """Vectors of a partition in the given order of its rows; a memory map where there are more than ``most``."""
        if self._shape is None:
            return np.empty((0, 0), dtype=np.float32)
        width, dtype = self._shape
        if self._resident:
            if len(self._held) > 1:
                self._held = [np.concatenate(self._held)]
            return self._held[0][order]
        shape = (int(self._rows[partition]), width)
        if shape[0] <= most:
            return np.fromfile(self._path(partition), dtype=dtype).reshape(shape)[order]
        source = np.memmap(self._path(partition), dtype=dtype, mode="r", shape=shape)
        target = np.memmap(self._folder / "ordered.vectors", dtype=dtype, mode="w+", shape=shape)
        for first in range(0, shape[0], _COPY):
            target[first : first + _COPY] = source[order[first : first + _COPY]]
        return target

    def _path(self, partition: int) -> Path:
        return self._folder / f"{partition:06d}.vectors"


def regroup(
    batches: Iterable[tuple[NDArray[np.uint64], NDArray[np.float32]]],
    ids: NDArray[np.uint64],
    partition: NDArray[np.int32],
    folder: Path,
    *,
    convert: Callable[[NDArray[np.float32]], NDArray[Any]] | None = None,
) -> Partitions:
    """Sort vectors into partitions.

    Args:
        batches: ids and vectors, ids rising over all batches.
        ids: uint64[m], the ids wanted, rising.
        partition: int32[m], the partition of each id; with a single one the vectors stay in memory.
        folder: where the files go, made if need be.
        convert: applied to the vectors of each batch before they are stored.

    Raises:
        CurationError: an id has no vector, or a vector cannot be converted.
    """
    sizes = np.bincount(partition) if len(partition) else np.zeros(1, dtype=np.int64)
    parts = Partitions(folder, sizes, resident=len(sizes) == 1)
    if len(sizes) > 1:
        folder.mkdir(parents=True, exist_ok=True)
    found = 0
    for batch_ids, vectors in batches:
        at = np.searchsorted(ids, batch_ids)
        hit = np.flatnonzero(ids[np.minimum(at, len(ids) - 1)] == batch_ids) if len(ids) else at[:0]
        if len(hit) == 0:
            continue
        found += len(hit)
        where = partition[at[hit]]
        chosen = vectors[hit]
        if convert is not None:
            try:
                chosen = convert(chosen)
            except ValueError as error:
                bad = ~np.isfinite(chosen).all(axis=1) | ~chosen.any(axis=1)
                query = batch_ids[hit[np.argmax(bad)]]
                raise CurationError(
                    f"the vector of query {query} in the embeddings table is zero or not finite",
                    "Run the embed stage again.",
                ) from error
        order = np.argsort(where, kind="stable")
        present, start = np.unique(where[order], return_index=True)
        for number, rows in zip(present.tolist(), np.split(order, start[1:]), strict=True):
            parts.append(number, chosen[rows])
    if found != len(ids):
        raise CurationError(
            f"the embeddings table has no vector for {len(ids) - found:,} of {len(ids):,} queries",
            "Run the embed stage again.",
        )
    return parts
