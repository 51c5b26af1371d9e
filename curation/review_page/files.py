"""The files of a review that people edit too: decisions of proposals, and labels of seeds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from curation.domain.model import Taxonomy
from curation.errors import CurationError
from curation.review_page.decisions_text import blank_known, edit_decisions
from curation.review_page.seeds_text import edit_seeds, label_of, seed_key
from curation.taxonomy.entries import replace_text

__all__ = ["DecisionsFile", "SeedsFile"]

_Value = dict[str, Any]


class _TextFile:
    """A text file that is replaced whole or not at all."""

    def __init__(self, path: Path, prefix: str) -> None:
        self.path, self.prefix = path, prefix

    def stamp(self) -> Any:
        """See :class:`curation.review_page.book.ReviewFile`."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def digest(self) -> str | None:
        """See :class:`curation.review_page.book.ReviewFile`."""
        return hashlib.sha256(self._bytes()).hexdigest() if self.path.exists() else None

    def _bytes(self) -> bytes:
        try:
            return self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise CurationError(f"{self.path} cannot be read: {error.strerror}") from None

    def _text(self) -> str:
        return self._bytes().decode("utf-8-sig")

    def _own(self, values: Mapping[str, _Value]) -> dict[str, _Value]:
        return {key.removeprefix(self.prefix): value for key, value in values.items() if key.startswith(self.prefix)}

    def _changes(self, base: Mapping[str, _Value], values: Mapping[str, _Value]) -> dict[str, _Value | None]:
        was, now = self._own(base), self._own(values)
        return {key: now.get(key) for key in now | was if now.get(key) != was.get(key)}


class DecisionsFile(_TextFile):
    """``decisions.yaml``: one entry a decided proposal.

    Args:
        path: The file.
        prefix: Of the keys of decisions.
        parse: Reads the text of a decisions file, given its path for error sentences: the decision of each proposal.
    """

    def __init__(self, path: Path, prefix: str, parse: Callable[[str, Path], dict[str, _Value]]) -> None:
        super().__init__(path, prefix)
        self._parse = parse

    def read(self, base: Mapping[str, _Value]) -> dict[str, _Value]:
        """Decisions by key; only entries that are not as :meth:`write` left them go through the YAML reader."""
        known = self._own(base)
        rest, same = blank_known(self._text(), known)
        found = {key: known[key] for key in same} | (self._parse(rest, self.path) if _says_something(rest) else {})
        return {self.prefix + key: value for key, value in found.items()}

    def write(self, base: Mapping[str, _Value], values: Mapping[str, _Value]) -> None:
        """Set, replace and take out the entries that differ, the others keep their text."""
        if changes := self._changes(base, values):
            try:
                text = edit_decisions(self._text(), changes)
            except ValueError:
                raise CurationError(
                    f"{self.path}: the page cannot write into a file laid out like this",
                    "Begin each entry with `- proposal: ...` at the margin, or move the file away.",
                ) from None
            replace_text(self.path, text)


def _says_something(text: str) -> bool:
    return any(line and not line.isspace() and not line.lstrip().startswith("#") for line in text.split("\n"))


class SeedsFile(_TextFile):
    """``seeds.csv``: a row for each label, and for each query that still waits for one.

    Args:
        path: The file.
        prefix: Of the keys of labels.
        trees: Gives the versions whose leaves labels may use, the current one first.
        proposed: The queries proposed for labelling, by id.
    """

    def __init__(
        self,
        path: Path,
        prefix: str,
        trees: Callable[[], Sequence[Taxonomy]],
        proposed: Callable[[], Mapping[str, dict[str, Any]]],
    ) -> None:
        super().__init__(path, prefix)
        self._trees, self._proposed = trees, proposed

    def read(self, base: Mapping[str, _Value]) -> dict[str, _Value]:
        """Labels by key."""
        from curation.teachers.seeds_file import read_seeds_file

        if not self.path.exists():
            return {}
        rows = read_seeds_file(self.path, self._trees()).to_dicts()
        labelled = [row for row in rows if row["primary"] is not None or row["tags"]]
        return {self.prefix + seed_key(row["query_id"], row["labelled_by"] or ""): label_of(row) for row in labelled}

    def write(self, base: Mapping[str, _Value], values: Mapping[str, _Value]) -> None:
        """Write the labels that differ into their rows."""
        if changes := self._changes(base, values):
            replace_text(self.path, edit_seeds(self._bytes().decode(), changes, self._proposed()))
