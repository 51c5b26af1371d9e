"""Versions: what a person (or an unattended run) made of the taxonomy, kept as operations in one append-only file.

``review/versions.yaml`` is a list of records. A record makes a version from an earlier one by operations, or returns
to an earlier one; or it only notes proposals that were declined, so that they are not made again::

    - version: "2"
      from: "1"
      at: 2026-07-01T10:00:00Z
      by: anna
      operations:
      - op: rename
        node: discovery.area_summaries
        name: area_profiles
    - version: "3"
      from: "2"
      return_to: "1"

:class:`History` is the base tree folded with that file. A version that returns to another has its tree, and the
labels of its rows are those of that other version: nothing in between counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from curation.domain.model import Taxonomy
from curation.errors import CurationError
from curation.taxonomy.editor import edited
from curation.taxonomy.entries import Entries, replace_text
from curation.taxonomy.lineage import Fate
from curation.taxonomy.operations import ANY_OPERATION, AnyOperation, document

__all__ = ["History", "Record", "Version", "append", "next_version", "now"]

_Written = Annotated[str, BeforeValidator(lambda value: value if value is None else str(value))]
_HEAD = """\
# Versions of the taxonomy, oldest first. `curate review` appends to this file and changes nothing in it; what you
# write yourself is kept. `curate review DIR --versions` lists them, `--return-to VERSION` goes back to one.
"""


class Record(BaseModel):
    """One entry of the versions file.

    Attributes:
        version: The version it makes; None for a record that only declines.
        from_: The version before.
        return_to: The earlier version whose tree it takes.
        operations: What makes it from the version before.
        at: When, ISO 8601 in UTC.
        by: Who.
        auto: Whether an unattended run accepted the proposals.
        convergence: How far it is from the version before: see :mod:`curation.taxonomy.rounds`.
        accepted: Ids of the accepted proposals.
        decisions: Digest of the decisions file that it carries out, so that the file is known for done if whoever
            applied it was stopped before the file was put away.
        declined: What declined proposals asked for (:attr:`curation.taxonomy.proposal.Proposal.gist`).
        note: Anything that a person wants to remember.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    version: _Written | None = None
    from_: _Written | None = Field(None, alias="from")
    return_to: _Written | None = None
    at: _Written | None = None
    by: str | None = None
    auto: bool = False
    convergence: dict[str, float] | None = None
    operations: tuple[AnyOperation, ...] = ()
    accepted: tuple[_Written, ...] = ()
    decisions: str | None = None
    declined: tuple[dict[str, Any], ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class Version:
    """One version.

    Attributes:
        taxonomy: Its tree.
        record: What made it; None for the base.
        labels_from: The version whose labels its own follow from: the one before it, or the one it returns to.
        carried: What becomes of the labels of each leaf of `labels_from`.
        nodes: Each node of `labels_from` with its id here, None for one that is gone.
        dropped: Each node of `labels_from` that was dropped, with the leaves whose labels went with it.
    """

    taxonomy: Taxonomy
    record: Record | None = None
    labels_from: str | None = None
    carried: dict[str, Fate] = field(default_factory=dict)
    nodes: dict[str, str | None] = field(default_factory=dict)
    dropped: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The version, e.g. ``2``."""
        return self.taxonomy.version


class History:
    """All versions by name, the base first, the newest last.

    Attributes:
        versions: By name.
        declined: Gists of the proposals that were declined.
        accepted: Ids of the proposals that were accepted, with the version.
        last: The record that was taken in last.
    """

    def __init__(self, base: Taxonomy) -> None:
        self.versions: dict[str, Version] = {base.version: Version(base)}
        self.declined: list[dict[str, Any]] = []
        self.accepted: dict[str, str] = {}
        self.last: Record | None = None

    @classmethod
    def read(cls, base: Taxonomy, path: Path | None) -> History:
        """Fold ``base`` with a versions file; without one there is only the base.

        Raises:
            CurationError: For the first record that is wrong, with its line.
        """
        history = cls(base)
        if path is None:
            return history
        entries = Entries(path)
        for index in range(len(entries)):
            record: Record = entries.read(index, Record)
            try:
                history.add(record)
            except CurationError as error:
                found = re.match(r"operation (\d+)", error.message)
                where = ("operations", int(found[1]) - 1) if found else ()
                raise entries.error(error.message, index, *where, hint=error.hint) from None
        return history

    @property
    def newest(self) -> Version:
        """The version that the last record made."""
        return next(reversed(self.versions.values()))

    def get(self, name: str) -> Version:
        """A version; a sentence when there is none."""
        if name not in self.versions:
            raise CurationError(
                f"the taxonomy has no version {name!r}", f"The versions are {', '.join(self.versions)}."
            )
        return self.versions[name]

    def add(self, record: Record) -> Version | None:
        """Take a record in; the version it makes, if any.

        Raises:
            CurationError: It does not fit the versions there are.
        """
        if record.version is None:
            if record.operations or record.return_to or not record.declined:
                raise CurationError("a record without a version may only decline proposals")
            self.declined += record.declined
            self.last = record
            return None
        if record.version in self.versions:
            raise CurationError(f"version {record.version!r} is there already")
        if record.from_ is None:
            raise CurationError(f"version {record.version!r} does not say what version it is from")
        before = self.get(record.from_)
        if (record.return_to is None) == (not record.operations):
            raise CurationError(f"version {record.version!r} must have either operations or a version to return to")
        if record.return_to is not None:
            made = self._returned(record, self.get(record.return_to))
        else:
            editor = edited(before.taxonomy, record.operations)
            tree, fates = editor.taxonomy(record.version), editor.carried()
            made = Version(tree, record, before.name, fates, editor.ids(), editor.dropped())
        self.versions[made.name] = made
        self.declined += record.declined
        self.accepted |= dict.fromkeys(record.accepted, made.name)
        self.last = record
        return made

    def _returned(self, record: Record, target: Version) -> Version:
        assert record.version is not None
        tree = Taxonomy(record.version, target.taxonomy.nodes)
        carried = {leaf: Fate(leaf, False) for leaf in tree.leaves}
        return Version(tree, record, target.name, carried, {node: node for node in tree.by_id})

    def lineage(self, name: str) -> list[Version]:
        """The versions that the labels of version ``name`` went through, from the base to itself."""
        found = [self.get(name)]
        while (before := found[-1].labels_from) is not None:
            found.append(self.versions[before])
        return found[::-1]


def now() -> str:
    """The time, ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def next_version(known: Iterable[str]) -> str:
    """A name for the version after the last of ``known``: its last number and one, if that is free."""
    names = list(known)
    found = re.fullmatch(r"(.*?)(\d+)", names[-1])
    stem, number = (found[1], int(found[2])) if found else (f"{names[-1]}.", 0)
    while True:
        number += 1
        if f"{stem}{number}" not in names:
            return f"{stem}{number}"


def append(path: Path, record: Record) -> None:
    """Add a record to the versions file, which keeps every byte that was there; all or nothing.

    Hold :func:`curation.taxonomy.entries.review_lock` meanwhile.
    """
    text = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    if text and not text.endswith("\n"):
        text += "\n"
    replace_text(path, text + _block(record))


def _block(record: Record) -> str:
    from ruamel.yaml import YAML

    said = record.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"operations"})
    content: dict[str, Any] = {name: said[name] for name in ("version", "from", "return_to") if name in said}
    content |= {name: value for name, value in said.items() if name not in ("declined", "accepted", *content)}
    if record.operations:
        content["operations"] = [document(ANY_OPERATION.validate_python(one)) for one in record.operations]
    content |= {name: said[name] for name in ("accepted", "declined") if name in said}
    yaml = YAML(pure=True)
    yaml.allow_unicode, yaml.width, yaml.default_flow_style = True, 4096, False
    stream = StringIO()
    yaml.dump([content], stream)
    return stream.getvalue()
