"""The saved Faiss index of the survivors: which kept queries lie near a vector, for later runs and for people.

Up to 200,000 survivors the index is exact (``IndexIDMap2`` over ``IndexFlatIP``), beyond it has inverted lists
(``IndexIVFFlat``; Jegou et al. 2011, section IV), which a search looks up on disk instead of reading them all. Of
millions, 16 bits a number are kept (``IndexIVFScalarQuantizer``), by which cosines are off by .0003 at the most. The
file is an ordinary Faiss index of unit vectors with inner products, so it opens without this package too::

    import faiss, numpy as np
    index = faiss.read_index("survivors.faiss", faiss.IO_FLAG_MMAP)
    similarity, labels = index.search(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 10)  # float32
    query_ids = labels.view(np.uint64)  # Faiss knows int64 alone: the bits of a label are those of the query id

A label that goes with a similarity of -3.4e38 is none: fewer rows were found than asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.faiss_search import faiss_threads, inverted_lists
from curation.algorithms.parallel import cores, spans
from curation.algorithms.products import units
from curation.algorithms.vectors import FloatRows, blas_threads, to_fixed
from curation.errors import CurationError

__all__ = ["FILE_NAME", "FLAT_ROWS", "Neighbours", "SurvivorsIndex"]

FILE_NAME = "survivors.faiss"
"""What the file is called that lies beside the table `survivors`."""

FLAT_ROWS = 200_000
"""Up to so many rows a search compares with all of them."""

_ADD = 65_536  # rows brought to unit length and added at a time
_HINT = "Run the semantic stage again to write it anew."


Batch = tuple[NDArray[np.uint64], FloatRows]


class Neighbours(NamedTuple):
    """Survivors near each of m vectors: those of vector i at ``starts[i]:starts[i + 1]``, best first, ties by id."""

    starts: NDArray[np.int64]
    """int64[m + 1]."""
    ids: NDArray[np.uint64]
    """uint64[starts[m]], query ids."""
    similarity: NDArray[np.float32]
    """float32[starts[m]], cosines in [-1, 1]."""


class SurvivorsIndex:
    """An index over the unit vectors of survivors; make one with :meth:`build` or :meth:`load`."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        return int(self._index.d)

    @classmethod
    def build(
        cls, ids: NDArray[np.uint64], vectors: FloatRows, *, seed: int = 0, flat_rows: int = FLAT_ROWS
    ) -> SurvivorsIndex:
        """Index vectors by query id. The order of the rows does not show in the file.

        Training and adding use one thread: with several, BLAS would add in another order, and a row between two lists
        could go to either.

        Args:
            ids: uint64[n], each once.
            vectors: float32[n, d] of any lengths but zero.
            seed: of the choice of training rows and of the lists' centres.
            flat_rows: up to so many rows the index is exact.

        Raises:
            ValueError: an id occurs twice, a vector has no direction, or lengths do not match.
        """
        if len(ids) != len(vectors):
            raise ValueError(f"{len(ids)} ids, but {len(vectors)} vectors")
        order = np.argsort(ids, kind="stable")
        ranked = np.asarray(ids, dtype=np.uint64)[order]
        if (twice := ranked[1:][ranked[1:] == ranked[:-1]]).size:
            raise ValueError(f"query {twice[0]} occurs more than once")
        n, d = vectors.shape
        with faiss_threads(1) as faiss, blas_threads(1, 0):
            if n <= flat_rows:
                index = faiss.IndexIDMap2(faiss.IndexFlatIP(d))
            else:
                index = inverted_lists(
                    faiss, n, d, lambda chosen: _unit(vectors[order[chosen]]), lists=max(1, int(n**0.5)), seed=seed
                )
            for first, last in spans(n, _ADD):
                index.add_with_ids(_unit(vectors[order[first:last]]), ranked[first:last].view(np.int64))
        return cls(index)

    @classmethod
    def build_lean(cls, batches: Callable[[], Iterable[Batch]], n: int, *, seed: int = 0) -> SurvivorsIndex:
        """Index so many vectors that memory should hold but one copy of them, at 16 bits a number, with lists.

        For 5,000,000 survivors of 512 numbers some 260 CPU-seconds, 5.2 GB of index and 9 GB while it is made.

        Args:
            batches: gives ids (uint64[m], each once) and vectors (float32[m, d], of any lengths but zero) in a fixed
                order; called to choose training rows, and again to add all.
            n: how many rows it gives.
            seed: of the choice of training rows and of the lists' centres.

        Raises:
            ValueError: it gives another number of rows, or a vector has no direction.
        """

        def take(chosen: NDArray[np.int64]) -> FloatRows:
            found, start = [], 0
            for _, vectors in batches():
                first, last = np.searchsorted(chosen, [start, start + len(vectors)])
                found.append(vectors[chosen[first:last] - start])
                start += len(vectors)
            return _unit(np.concatenate(found))

        d = next(vectors.shape[1] for _, vectors in batches())
        with faiss_threads(1) as faiss, blas_threads(1, 0):
            index = inverted_lists(faiss, n, d, take, lists=max(1, int(n**0.5)), seed=seed, halves=True)
            for ids, vectors in batches():
                index.add_with_ids(_unit(vectors), np.ascontiguousarray(ids, dtype=np.uint64).view(np.int64))
        if index.ntotal != n:
            raise ValueError(f"{index.ntotal} vectors, not {n}")
        return cls(index)

    def save(self, path: Path) -> None:
        """Write the index; a file that is there already is replaced at once, and stays as it is where writing fails.

        Raises:
            CurationError: the file cannot be written.
        """
        import faiss

        draft = path.with_name(path.name + ".draft")
        try:
            faiss.write_index(self._index, str(draft))
            draft.replace(path)
        except (OSError, RuntimeError) as error:
            draft.unlink(missing_ok=True)
            raise CurationError(
                f"cannot write the index of survivors to {path}", "Is there space, and may this user write there?"
            ) from error

    @classmethod
    def load(cls, path: Path) -> SurvivorsIndex:
        """Open a saved index; inverted lists stay on disk and are read as searches need them.

        Raises:
            CurationError: there is no such file, or it is not a whole index of this kind.
        """
        import faiss

        if not path.is_file():
            raise CurationError(f"there is no index of survivors at {path}", _HINT)
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
        except (RuntimeError, MemoryError) as error:  # a broken length can ask for more memory than there is
            raise CurationError(f"the index of survivors {path} is damaged, or no Faiss index", _HINT) from error
        if not isinstance(index, faiss.IndexIDMap2 | faiss.IndexIVFFlat | faiss.IndexIVFScalarQuantizer):
            raise CurationError(f"{path} is a Faiss index, but of {type(index).__name__} and not of survivors", _HINT)
        return cls(index)

    def contents(self) -> Batch:
        """Ids (uint64[n], rising) and unit vectors (float32[n, d]) of everything in the index."""
        parts = list(self.batches())
        ids = np.concatenate([np.empty(0, np.uint64), *(ids for ids, _ in parts)])
        vectors = np.concatenate([np.empty((0, self.dimensions), np.float32), *(vectors for _, vectors in parts)])
        order = np.argsort(ids, kind="stable")
        return ids[order], vectors[order]

    def batches(self) -> Iterator[Batch]:
        """The contents part by part, in the order they lie in."""
        import faiss

        if isinstance(self._index, faiss.IndexIDMap2):
            if len(self):
                ids = faiss.vector_to_array(self._index.id_map)
                yield ids.view(np.uint64), self._index.index.reconstruct_n(0, len(self))
            return
        lists, size = self._index.invlists, self._index.code_size
        kind = np.float32 if isinstance(self._index, faiss.IndexIVFFlat) else np.float16
        for number in range(lists.nlist):
            if length := lists.list_size(number):
                ids = np.array(faiss.rev_swig_ptr(lists.get_ids(number), length))
                codes = np.array(faiss.rev_swig_ptr(lists.get_codes(number), length * size))
                vectors = np.asarray(codes.view(kind).reshape(-1, self.dimensions), np.float32)
                yield ids.view(np.uint64), vectors if kind == np.float32 else _unit(vectors)

    def query(
        self, vectors: FloatRows, *, k: int | None = None, threshold: float | None = None, workers: int | None = None
    ) -> Neighbours:
        """The ``k`` survivors most similar to each vector, or all at or above ``threshold``, or the best k of these.

        Args:
            vectors: float32[m, d] of any lengths but zero.
            k: how many at the most, from 1 on.
            threshold: smallest cosine.
            workers: threads, all cores when None.

        Raises:
            ValueError: neither ``k`` nor ``threshold`` is given, the vectors are not of the index's length, or one
                has no direction.
        """
        if k is None and threshold is None:
            raise ValueError("say how many neighbours (k) or how similar (threshold)")
        if k is not None and k < 1:
            raise ValueError(f"k must be 1 or more, not {k}")
        if vectors.ndim != 2 or vectors.shape[1] != self.dimensions:
            raise ValueError(f"vectors of shape {vectors.shape} do not go with {self.dimensions} dimensions")
        asked, m = _unit(vectors), len(vectors)
        with faiss_threads(workers or cores()):
            if threshold is None:
                assert k is not None
                similarity, labels = self._index.search(asked, min(k, max(1, len(self))))
                found = similarity > -2.0  # Faiss marks what it did not find by the smallest float
                row, similarity, labels = np.nonzero(found)[0], similarity[found], labels[found]
            else:
                limits, similarity, labels = self._index.range_search(asked, np.nextafter(np.float32(threshold), -1))
                row = np.repeat(np.arange(m), np.diff(limits.astype(np.int64)))
        similarity, ids = np.clip(similarity, -1.0, 1.0), np.ascontiguousarray(labels).view(np.uint64)
        order = np.lexsort((ids, -similarity, row))
        row, similarity, ids = row[order], similarity[order], ids[order]
        if k is not None:
            place = np.arange(len(row)) - np.searchsorted(row, row)
            row, similarity, ids = row[place < k], similarity[place < k], ids[place < k]
        return Neighbours(np.searchsorted(row, np.arange(m + 1)).astype(np.int64), ids, similarity)


def _unit(vectors: FloatRows) -> FloatRows:
    return units(to_fixed(vectors))
