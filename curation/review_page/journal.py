"""What a person decided, with undo and redo: a journal that is only ever appended to.

A key press must be safe on the disk at once and cost the same whether ten or 50,000 decisions stand, so each step is
one line of JSON, forced to the disk. Replaying the lines gives the values and both stacks back, after a restart or a
kill as well. The files that people read and edit are folded from the values now and then; the journal notes what it
folded, so that an edit by hand is told from its own work.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from curation.errors import CurationError
from curation.taxonomy.entries import replace_text

__all__ = ["History", "Journal", "Step"]

Value = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """One step: for each key it touched, the value before and after (None: no value), and what to call it."""

    changes: dict[str, tuple[Value | None, Value | None]]
    title: str = ""


@dataclass
class History:
    """Values by key with an undo and a redo stack; pure, nothing is written anywhere."""

    values: dict[str, Value] = field(default_factory=dict)
    done: list[Step] = field(default_factory=list)
    undone: list[Step] = field(default_factory=list)

    def do(self, after: Mapping[str, Value | None], title: str = "") -> Step | None:
        """Set values (None removes one); None if nothing would change. What was undone can no more be redone."""
        changes = {
            key: (self.values.get(key), value) for key, value in after.items() if self.values.get(key) != value
        }
        if not changes:
            return None
        step = Step(changes, title)
        self._set({key: value for key, (_, value) in changes.items()})
        self.done.append(step)
        self.undone.clear()
        return step

    def undo(self) -> Step | None:
        """Take the last step back; None if there is none."""
        if not self.done:
            return None
        step = self.done.pop()
        self._set({key: before for key, (before, _) in step.changes.items()})
        self.undone.append(step)
        return step

    def redo(self) -> Step | None:
        """Do the last undone step again; None if there is none."""
        if not self.undone:
            return None
        step = self.undone.pop()
        self._set({key: after for key, (_, after) in step.changes.items()})
        self.done.append(step)
        return step

    def _set(self, values: Mapping[str, Value | None]) -> None:
        for key, value in values.items():
            if value is None:
                self.values.pop(key, None)
            else:
                self.values[key] = value


class Journal:
    """A :class:`History` on the disk.

    Args:
        path: The journal; it need not exist. A last line that a kill cut short is dropped.

    Attributes:
        about: What the review is of: version and proposals; None before :meth:`begin`.
        history: What the journal amounts to.
        folded: Digest of each file when it was last written or read, by its name.
        base: What stands in those files: the values at that time.

    Raises:
        CurationError: a line in the middle is damaged, or the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.about: str | None = None
        self.history = History()
        self.folded: dict[str, str | None] = {}
        self.base: dict[str, Value] = {}
        self._size = self._replay()

    def do(self, after: Mapping[str, Value | None], title: str = "") -> Step | None:
        """:meth:`History.do`, on the disk before it returns."""
        changed = {key: value for key, value in after.items() if self.history.values.get(key) != value}
        if not changed:
            return None
        self._append({"do": changed, "title": title, "at": datetime.now(UTC).isoformat(timespec="seconds")})
        return self.history.do(changed, title)

    def undo(self) -> Step | None:
        """:meth:`History.undo`, on the disk before it returns."""
        if self.history.done:
            self._append({"undo": 1})
        return self.history.undo()

    def redo(self) -> Step | None:
        """:meth:`History.redo`, on the disk before it returns."""
        if self.history.undone:
            self._append({"redo": 1})
        return self.history.redo()

    def note_fold(self, digests: Mapping[str, str | None]) -> None:
        """Say that the values as they are now stand in the files with these digests."""
        self._note({"folded": dict(digests)})

    def note_read(self, digests: Mapping[str, str | None], edits: Mapping[str, Value | None]) -> None:
        """Say that the files have these digests, and differ from :attr:`base` by ``edits`` (made by someone else)."""
        self._note({"folded": dict(digests), "edits": dict(edits)})

    def _note(self, entry: dict[str, Any]) -> None:
        self._append(entry)
        self._take(entry)

    def begin(self, about: str, digests: Mapping[str, str | None], values: Mapping[str, Value]) -> None:
        """Begin anew, with values that stand in files with these digests; what led to them is past."""
        entry = {"begin": about, "folded": dict(digests), "values": dict(values)}
        line = _line(entry)
        replace_text(self.path, line.decode())
        self.history, self._size = History(), len(line)
        self._take(entry)

    # -- the file

    def _replay(self) -> int:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise CurationError(f"the journal {self.path} cannot be read: {error.strerror}") from None
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.split(b"\n")[:-1]
        for number, line in enumerate(lines, start=1):
            try:
                self._take(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                raise CurationError(
                    f"{self.path}, line {number}: not a line of a review journal",
                    "What was decided up to the last fold is in the files beside it; move the journal away to go on.",
                ) from None
        return len(whole)

    def _take(self, entry: dict[str, Any]) -> None:
        if "do" in entry:
            self.history.do(entry["do"], entry["title"])
        elif "undo" in entry:
            self.history.undo()
        elif "redo" in entry:
            self.history.redo()
        else:
            self.folded = entry["folded"]
            if "begin" in entry:
                self.about, self.history = entry["begin"], History(entry["values"])
            base = self.base | entry["edits"] if "edits" in entry else self.history.values
            self.base = {key: value for key, value in base.items() if value is not None}

    def _append(self, entry: dict[str, Any]) -> None:
        line = _line(entry)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as stream:
                if stream.tell() != self._size:
                    stream.truncate(self._size)
                try:
                    if stream.write(line) < len(line):
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    os.fsync(stream.fileno())
                except OSError:
                    # A line that may be half on the disk must not stand in front of the next one.
                    with contextlib.suppress(OSError):
                        stream.truncate(self._size)
                    raise
        except OSError as error:
            raise CurationError(
                f"the journal {self.path} cannot be written: {error.strerror}", "Nothing was decided; try again."
            ) from None
        self._size += len(line)


def _line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"
