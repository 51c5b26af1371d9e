"""Reading YAML with the line of every key at hand, so that a mistake is told where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from curation.errors import CurationError

__all__ = ["Document", "plain"]


class Document:
    """A YAML file: ``root`` is its data (ruamel containers, which know their lines).

    The checks below return the value when it is right and raise a :class:`CurationError` that names file and line
    when it is not. ``owner`` is always the mapping or sequence that holds the value, ``key`` its key or index.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = _read(path)

    def line(self, owner: Any, key: Any = None) -> int | None:
        """1-based line of ``owner[key]`` (of its key, for a mapping), or of ``owner`` itself."""
        position = getattr(owner, "lc", None)
        if position is None:
            return None
        if key is not None and position.data and key in position.data:
            return int(position.data[key][0]) + 1
        return None if position.line is None else int(position.line) + 1

    def error(self, message: str, owner: Any = None, key: Any = None, hint: str | None = None) -> CurationError:
        """A :class:`CurationError` that begins with the file and, where known, the line."""
        line = self.line(owner, key)
        place = str(self.path) if line is None else f"{self.path}, line {line}"
        return CurationError(f"{place}: {message}", hint=hint)

    def mapping(self, owner: Any, key: Any, what: str) -> dict[str, Any]:
        """``owner[key]`` as a mapping with string keys."""
        value = owner[key]
        if not isinstance(value, dict):
            raise self.error(f"{what} must be a mapping of names, not {_kind(value)}", owner, key)
        for name in value:
            if not isinstance(name, str):
                raise self.error(f"the key {name!r} of {what} is not text", value, name, hint="Put it in quotes.")
        return value

    def sequence(self, owner: Any, key: Any, what: str) -> list[Any]:
        """``owner[key]`` as a list."""
        value = owner[key]
        if not isinstance(value, list):
            raise self.error(f"{what} must be a list, not {_kind(value)}", owner, key)
        return value

    def text(self, owner: Any, key: Any, what: str, *, empty: bool = False) -> str:
        """``owner[key]`` as text, outer white space removed; it may be empty only where ``empty`` says so."""
        value = owner[key]
        if isinstance(value, bool | int | float) or (value is not None and not isinstance(value, str | dict | list)):
            raise self.error(
                f"{what} is {value!r}, which YAML does not read as text", owner, key, "Put it in quotes."
            )
        if value is not None and not isinstance(value, str):
            raise self.error(f"{what} must be text, not {_kind(value)}", owner, key)
        stripped = (value or "").strip()
        if not stripped and not empty:
            raise self.error(f"{what} is empty", owner, key)
        return str(stripped)

    def texts(self, owner: Any, key: Any, what: str) -> Iterator[tuple[str, int]]:
        """The items of the list ``owner[key]`` as text, with their indexes."""
        values = self.sequence(owner, key, what)
        for index in range(len(values)):
            yield self.text(values, index, f"an entry of {what}"), index

    def keys(self, value: dict[str, Any], allowed: tuple[str, ...], required: tuple[str, ...], what: str) -> None:
        """Check that ``value`` has no key but ``allowed`` and every one of ``required``."""
        for name in value:
            if name not in allowed:
                raise self.error(
                    f"{what} has an unknown key {name!r}", value, name, f"The keys are {', '.join(allowed)}."
                )
        for name in required:
            if name not in value:
                raise self.error(f"{what} has no {name!r}", value)


def plain(value: Any) -> Any:
    """``value`` with ruamel's containers and scalars replaced by those of Python."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CurationError(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise CurationError(f"{path}: byte {error.start} is not UTF-8", hint="Save the file as UTF-8.") from None
    except OSError as error:
        raise CurationError(f"{path} cannot be read: {error.strerror}") from None
    try:
        root = YAML(typ="rt", pure=True).load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}, line {mark.line + 1}" if mark else str(path)
        raise CurationError(f"{place}: not valid YAML: {(error.problem or str(error)).splitlines()[0]}") from None
    except YAMLError as error:
        raise CurationError(f"{path}: not valid YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(root, dict):
        raise CurationError(f"{path}: the file must be a mapping of names, not {_kind(root)}")
    return root


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"the single value {value!r}"
