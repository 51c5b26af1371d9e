"""Files that a person edits and the command reads: a YAML list of mappings, every mistake told with its line."""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError

from curation.errors import CurationError

__all__ = ["Entries", "replace_text", "review_lock", "shown"]

_LONGEST_SHOWN = 60


def shown(value: Any) -> str:
    """A value as sentences quote it: cut where it is long, what cannot be seen written out."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


class Entries:
    """The entries of a file; a missing or empty file has none.

    Args:
        path: The file; errors name it.
        text: What is in it, where that is known already.

    Raises:
        CurationError: It is not UTF-8, not YAML, or not a list of mappings.
    """

    def __init__(self, path: Path, text: str | None = None) -> None:
        self.path = path
        self._adapters: dict[int, TypeAdapter[Any]] = {}
        self._root = _parse(path, text)
        if not isinstance(self._root, list):
            raise CurationError(f"{path}: the file must be a list of entries, each begun with `- `")
        for index, entry in enumerate(self._root):
            if not isinstance(entry, dict):
                raise self.error(
                    f"{shown(entry)} is not an entry", index, hint="An entry has keys, such as `version: ...`."
                )

    def __len__(self) -> int:
        return len(self._root)

    def error(self, message: str, *location: Any, hint: str | None = None) -> CurationError:
        """A :class:`CurationError` that begins with the file and the line of ``location`` (steps into the data)."""
        node, line = self._root, 1
        for step in location:
            position = getattr(getattr(node, "lc", None), "data", None) or {}
            if step in position:
                line, node = position[step][0] + 1, node[step]
        return CurationError(f"{self.path}, line {line}: {message}", hint)

    def line(self, index: int) -> int:
        """1-based line at which an entry begins."""
        return int(self._root.lc.data[index][0]) + 1

    def has(self, index: int, key: str) -> bool:
        """Whether an entry has a key."""
        return key in self._root[index]

    def read(self, index: int, kind: Any) -> Any:
        """An entry as ``kind``: a pydantic class, or a type of any sort made of such."""
        from curation.domain.document import plain

        if id(kind) not in self._adapters:
            self._adapters[id(kind)] = TypeAdapter(kind)
        try:
            return self._adapters[id(kind)].validate_python(plain(self._root[index]))
        except ValidationError as error:
            raise self._sentence(index, kind, error) from None

    def _sentence(self, index: int, kind: Any, error: ValidationError) -> CurationError:
        faults = error.errors()
        # A misspelt key is missing under its right name too; the misspelling says more.
        fault = next((one for one in faults if one["type"] == "extra_forbidden"), faults[0])
        location = (index, *fault["loc"])
        named = [step for step in fault["loc"] if isinstance(step, str)]
        name = named[-1] if named else "the entry"
        if fault["type"] == "extra_forbidden":
            known = _keys(kind, fault["loc"][:-1])
            near = difflib.get_close_matches(name, known, 1)
            asked = f"Did you mean {near[0]!r}? " if near else ""
            return self.error(f"unknown key {name!r}", *location, hint=f"{asked}The keys are {', '.join(known)}.")
        if fault["type"] == "missing":
            known = _keys(kind, fault["loc"][:-1])
            return self.error(f"there is no {name!r}", *location, hint=f"The keys are {', '.join(known)}.")
        if fault["type"] == "union_tag_invalid":
            tags = fault["ctx"]["expected_tags"].replace("'", "")
            return self.error(
                f"{shown(fault['ctx']['tag'])} is no operation", *location, "op", hint=f"The operations are {tags}."
            )
        if fault["type"] == "union_tag_not_found":
            return self.error("an operation has no `op`", *location)
        said = fault["msg"].removeprefix("Value error, ")
        if fault["type"] == "string_type" and isinstance(fault["input"], int | float | bool):
            said = "YAML does not read it as text; put it in quotes"
        if fault["type"] in ("tuple_type", "list_type"):
            said = "a list is wanted, such as [this, that]"
        return self.error(f"{name} = {shown(fault['input'])}: {said}", *location)


def _keys(kind: Any, steps: tuple[int | str, ...]) -> list[str]:
    """The keys of the model that `steps`, as pydantic counts them, lead to in a value of type `kind`."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if not steps:
            return [field.alias or name for name, field in kind.model_fields.items()]
        named = {field.alias or name: field for name, field in kind.model_fields.items()}
        return _keys(named[str(steps[0])].annotation, steps[1:])
    inner = [part for part in get_args(kind) if part is not type(None) and part is not Ellipsis]
    if get_origin(kind) is tuple:
        return _keys(inner[0], steps[1:])
    if get_origin(kind) is not Annotated and len(inner) > 1:  # a union whose members are told apart by a word
        (kind,) = (part for part in inner if part.model_fields["op"].default == steps[0])
        return _keys(kind, steps[1:])
    return _keys(inner[0], steps)


def _parse(path: Path, text: str | None) -> Any:
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    from curation.taxonomy.quick_entries import load_entries

    try:
        if text is None:
            text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        root = load_entries(text)
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise CurationError(f"{path}, line {line}: not UTF-8", "Save the file as UTF-8.") from None
    except OSError as error:
        raise CurationError(f"{path} cannot be read: {error.strerror}") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        what = (error.problem or str(error)).splitlines()[0]
        hint = _slip(text or "", mark.line) if mark else None
        raise CurationError(f"{place}: not valid YAML: {what}", hint) from None
    except YAMLError as error:
        raise CurationError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    return [] if root is None else root


_SLIPS = {
    re.compile(r"[ ]*(?:- )?(?:\{ *)?\w+："): "has a full-width colon; write `:` and a space",
    re.compile(r"[ ]*- ?\{.*，\s*\w+:"): "has a full-width comma; write `, `",
    re.compile(r"[ ]*(?:- )?[a-z_]+:[^\s:]"): "needs a space after the colon",
    re.compile(r" *\t"): "is indented by a tab; use spaces",
}
"""Slips of the hand that YAML itself tells of in words for programmers, and often at the next line."""


def _slip(text: str, line: int) -> str | None:
    """What is probably wrong in the line (from 0) at which YAML stopped, or one of the two before it."""
    lines = text.split("\n")
    for at in range(min(line, len(lines) - 1), max(line - 3, -1), -1):
        for form, said in _SLIPS.items():
            if form.match(lines[at]):
                return f"Line {at + 1} {said}."
    return None


def replace_text(path: Path, text: str) -> None:
    """Write a file so that ``path`` holds either the old or the new text, whole, whenever the machine stops.

    What a process that was killed leaves behind is taken up by the next one that writes the file.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(temporary) as stream:
            try:
                stream.truncate(0)
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
                temporary.replace(path)
            except OSError:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise CurationError(f"{path} cannot be written: {error.strerror}") from None


def _alone(path: Path) -> IO[str]:
    """Open a file that no other process writes meanwhile; the kernel lets go of it when it is closed."""
    while True:
        stream = path.open("a", encoding="utf-8")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                return stream
        except FileNotFoundError:
            pass  # whoever had it has put it in its place
        except BaseException:
            stream.close()
            raise
        stream.close()


@contextlib.contextmanager
def review_lock(directory: Path) -> Iterator[None]:
    """Hold the review files of a workspace; the kernel lets go when the process dies.

    Raises:
        CurationError: Another process holds them.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        stream = (directory / ".lock").open("a", encoding="ascii")
    except OSError as error:
        raise CurationError(f"{directory} cannot be written: {error.strerror}") from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CurationError(
                f"another process is changing the files in {directory}", "Try again when it is done."
            ) from None
        yield
