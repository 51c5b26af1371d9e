"""The decisions file as text: entries are set, replaced and taken out in place, all else stays as a person wrote it.

Writing 50,000 entries through a YAML library takes minutes and is done often while a person reviews, so the text is
edited entry by entry: what did not change keeps its bytes, comments and order among them. Reading and checking is
:mod:`curation.taxonomy.decisions`' work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["blank_known", "edit_decisions", "entry_text"]

_ENTRY = re.compile(r"(?m)^- ")
_ID = re.compile(r"(?m)^(?:- |  )proposal:[ ]+[\"']?([0-9a-f]{12})[\"']?[ ]*(?:#.*)?$")
_OPERATION = re.compile(r"(?m)^(?:- \{?|  )op:[ ]")
_COMMENT = re.compile(r"(?m)^[ ]*#.*\n")
_TAIL = re.compile(r"(?:(?<=\n)(?:#[^\n]*)?\n)+\Z")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_HEAD = "# What was decided of the proposals. `curate review` checks and applies it.\n"


def edit_decisions(text: str, changes: Mapping[str, dict[str, Any] | None]) -> str:
    """The decisions file after some changes.

    Args:
        text: The file as it is; empty for none.
        changes: By proposal id, the decision that now stands, or None where there is none any more.

    Comments inside an entry stay with it; an entry that has some stays, undecided, when its decision is taken back.

    Raises:
        ValueError: The entries are not begun by ``- `` at the margin: YAML can be written in ways this cannot edit.
    """
    head, entries = _entries(text)
    if entries is None:
        raise ValueError("entries do not begin with `- ` at the margin")
    for key, value in changes.items():
        body, rest = entries.get(key, ("", ""))
        comments = "".join(_COMMENT.findall(body))
        entries[key] = (entry_text(key, value or {}, comments) if comments or value is not None else "", rest)
    return (head if text else _HEAD) + "".join(body + rest for body, rest in entries.values())


def blank_known(text: str, known: Mapping[str, Mapping[str, Any]]) -> tuple[str, set[str]]:
    """The file with the entries that are as this module writes them blanked out, and their ids.

    What is left has its line numbers still, and is all that must be read again after an edit by hand.
    """
    head, entries = _entries(text)
    if entries is None:
        return text, set()
    same = {key for key, (body, _) in entries.items() if key in known and body == entry_text(key, known[key])}
    pieces = ["\n" * body.count("\n") if key in same else body for key, (body, _) in entries.items()]
    rests = [rest for _, rest in entries.values()]
    return head + "".join(body + rest for body, rest in zip(pieces, rests, strict=True)), same


def entry_text(proposal_id: str, value: Mapping[str, Any], comments: str = "") -> str:
    """One entry of the list, in block style, texts in double quotes; ``comments`` are lines below its first."""
    lines = [f'- proposal: "{proposal_id}"', *comments.split("\n")[:-1]]
    if not value:
        lines.append("  decision:")
    for name, content in value.items():
        if isinstance(content, list):
            lines.append(f"  {name}:" if content else f"  {name}: []")
            lines += [f"    - {_scalar(item)}" for item in content]
        elif name == "decision":
            lines.append(f"  decision: {content}")
        else:
            lines.append(f"  {name}: {_scalar(content)}")
    return "\n".join(lines) + "\n"


def _scalar(content: Any) -> str:
    """YAML on one line: JSON, with what YAML does not take unescaped escaped too."""
    text = json.dumps(content, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _entries(text: str) -> tuple[str, dict[str, tuple[str, str]] | None]:
    """What stands before the first entry; by id each entry and the comments behind it; None if laid out otherwise.

    An entry that is an operation of the person's own has its place as its id.
    """
    starts = [found.start() for found in _ENTRY.finditer(text)]
    if not starts:
        head = text if all(not line or line.startswith("#") for line in text.split("\n")) else ""
        return head and head.rstrip("\n") + "\n", {} if head == text else None
    entries: dict[str, tuple[str, str]] = {}
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        piece = text[start:end] if text.endswith("\n", start, end) else text[start:end] + "\n"
        ids = _ID.findall(piece) or [f"operation {start}"] * bool(_OPERATION.search(piece))
        if len(ids) != 1 or ids[0] in entries:
            return text[: starts[0]], None
        body = _TAIL.sub("", piece)
        entries[ids[0]] = (body, piece[len(body) :])
    return text[: starts[0]], entries
