"""A YAML list of mappings as it is mostly written: read line by line, a hundred times faster than by a YAML library.

A file with 50,000 decisions takes a minute otherwise. Entries laid out in any other way go through the library one by
one; where even that fails the whole file does, so that every mistake is told by it, at its line.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

__all__ = ["load_entries"]

_ENTRY = re.compile(r"(?m)^- ")
_FIELD = re.compile(r"(?:- |  )(\w+):(?: (.*))?")
_WORD = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)\Z)[a-z]+")
_ITEM = "    - "


def load_entries(text: str) -> Any:
    """What ruamel's round-trip loader makes of ``text``, with positions of entries and keys; not for writing back."""
    starts = [found.start() for found in _ENTRY.finditer(text)]
    head = text[: starts[0]] if starts else text
    if not starts or any(line and not line.startswith("#") for line in head.split("\n")):
        return _load(text)
    entries, line = CommentedSeq(), head.count("\n")
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        piece = text[start:end]
        entry = _quick(piece, line)
        if entry is None:
            try:
                (entry,) = _load("\n" * line + piece)
            except (YAMLError, TypeError, ValueError):
                return _load(text)
        entries.append(entry)
        entries._yaml_set_idx_line_col(len(entries) - 1, [line, 2])
        line += piece.count("\n")
    return entries


def _load(text: str) -> Any:
    return YAML(typ="rt", pure=True).load(text)


def _quick(piece: str, first: int) -> CommentedMap | None:
    """An entry whose fields are words, JSON values, or lists of JSON values; None for any other."""
    entry = CommentedMap()
    items: list[Any] | None = None
    bare: list[str] = []
    try:
        for number, line in enumerate(piece.split("\n"), start=first):
            if not line.strip(" ") or line.lstrip(" ").startswith("#"):
                continue
            if items is not None and line.startswith(_ITEM):
                items.append(_value(line.removeprefix(_ITEM)))
                continue
            found = _FIELD.fullmatch(line)
            if found is None or found[1] in entry or line.startswith("- ") != (number == first):
                return None
            name, given = found[1], found[2]
            items = [] if given is None else None
            bare += [name] if given is None else []
            entry[name] = items if given is None else _value(given)
            entry._yaml_set_kv_line_col(name, [number, 2, number, 4 + len(name)])
    except ValueError:
        return None
    for name in bare:
        entry[name] = entry[name] or None
    return entry


def _value(text: str) -> Any:
    """A word, or a JSON text, list, object or null; ValueError for anything else."""
    if _WORD.fullmatch(text):
        return text
    if text != "null" and text[:1] not in ('"', "[", "{"):
        raise ValueError(text)
    return json.loads(text)
