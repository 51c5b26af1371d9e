"""The files that ``curate review --file`` writes: pleasant to edit, and nothing a person wrote in them is touched."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence

import polars as pl

from curation.domain.model import OTHER
from curation.taxonomy.proposal import Proposal

__all__ = ["decisions_text", "seeds_text", "summary"]

_HEAD = """\
# Proposals for version {version} of the taxonomy. After `decision:` write accept, reject or edit; nothing is later.
# With edit, take the # away before a field and change it; `again: [some.leaf]` beside a new leaf has rows of leaves
# elsewhere annotated again, which keep their labels else; `examples: [a query, another]` takes the place of
# the evidence, all of which becomes examples of a new leaf else. Changes of your own may stand beside them:
#   - {{op: add, parent: some.node, name: new_leaf, description: What belongs here., examples: [a query]}}
#   - {{op: rename, node: some.node, name: new_name}}
#   - {{op: describe, node: some.node, description: What belongs here.}}
#   - {{op: examples, node: some.leaf, add: [a query], drop: [another]}}
#   - {{op: move, node: some.node, parent: other.node}}
#   - {{op: merge, nodes: [some.leaf, some.other_leaf], into: some.third_leaf}}
#   - {{op: split, node: some.leaf, parts: [{{name: a, description: This.}}, {{name: b, description: That.}}]}}
#   - {{op: drop, node: some.leaf}}          # its rows go to the Other of its parent
# Then: curate review DIR --check, and curate review DIR --apply.
"""
_SHOWN = 5


def summary(proposal: Proposal) -> str:
    """What a proposal asks for, in one line."""
    node = proposal.node_id or "level 1"
    match proposal.kind:
        case "add":
            what = f"add {proposal.name} to {node}"
        case "merge" if node.rpartition(".")[2] == OTHER:
            what = f"let {proposal.target} take in rows of {node}"
        case "merge":
            what = f"merge {node} into {proposal.target}"
        case "split":
            what = f"split {node} into {', '.join(part.name for part in proposal.parts)}"
        case "rename":
            what = f"rename {node} to {proposal.name}"
        case "move":
            what = f"move {node} to {proposal.target or 'level 1'}"
        case "drop":
            what = f"drop {node}"
        case _:
            what = f"describe {node} anew"
    return _line(what)


def decisions_text(text: str, version: str, waiting: Mapping[str, Proposal]) -> str:
    """A decisions file with an entry for each proposal that waits.

    Args:
        text: The file as it is, kept byte for byte; empty for a new one.
        version: The version that the proposals speak of.
        waiting: The proposals by id; those that `text` has already are not added.
    """
    known = set(re.findall(r"(?m)^(?:- |  )proposal:\s*[\"']?([0-9a-f]{12})", text))
    start = text or _HEAD.format(version=version)
    if not start.endswith("\n"):
        start += "\n"
    return start + "".join(_entry(key, proposal) for key, proposal in waiting.items() if key not in known)


def _entry(key: str, proposal: Proposal) -> str:
    size = f"{proposal.rows:,} queries, {proposal.weight:,} raw rows, confidence {proposal.confidence:.2f}"
    trend = "" if proposal.trend is None else f", trend {round(proposal.trend, 2) + 0:+.2f}"  # no -0.00
    lines = [
        f'- proposal: "{key}"',
        f"  # {summary(proposal)}",
        f"  # {_line(proposal.reason)}",
        f"  # {size}{trend}",
        *(f"  #   {_line(row.text)}" for row in proposal.evidence[:_SHOWN]),
        *_more(proposal),
        "  decision:",
    ]
    fields = {"name": proposal.name, "description": proposal.description, "target": proposal.target}
    lines += [f"  # {name}: {_quoted(value)}" for name, value in fields.items() if value]
    if proposal.kind == "add":
        place = _quoted(proposal.node_id) if proposal.node_id else "null"
        lines.append(f"  # target: {place}  # the parent; null is level 1")
    return "\n".join(lines) + "\n"


def _more(proposal: Proposal) -> list[str]:
    """Comments that say what evidence is not shown, and what becomes of all of it."""
    more, all_of_it = len(proposal.evidence) - _SHOWN, len({row.text for row in proposal.evidence})
    lines = [f"  #   ... and {more} more queries (curate review --web shows them)"] if more > 0 else []
    if all_of_it and proposal.takes_examples:
        becomes = "this query becomes an example" if all_of_it == 1 else f"all {all_of_it} become examples"
        lines.append(f"  #   accepted, {becomes} of {_line(proposal.target or proposal.name or '')}")
    return lines


def seeds_text(text: str, proposed: pl.DataFrame) -> str:
    """A seeds file with a row for each query that waits for a label.

    Args:
        text: The file as it is, kept byte for byte; empty for a new one, which begins with a byte order mark, without
            which Excel does not show Chinese.
        proposed: Rows of `seeds`; those whose text stands in `text` already are not added.
    """
    from curation.teachers.seeds_file import COLUMNS, delimiter_of

    stream = io.StringIO(newline="")
    delimiter = delimiter_of(text) if text else ","
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    columns: Sequence[str] = COLUMNS
    known: set[str] = set()
    if text:
        rows = list(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter))
        columns = [name.strip() for name in rows[0]]
        place = columns.index("text")
        known = {row[place].strip() for row in rows[1:] if len(row) > place}
        if not text.endswith("\n"):
            stream.write("\n")
    else:
        stream.write("\ufeff")
        writer.writerow(columns)
    for query, lang in proposed.select("text", "lang").iter_rows():
        if query not in known:
            writer.writerow([{"text": query, "lang": lang}.get(name, "") for name in columns])
    return text + stream.getvalue()


def _quoted(text: str) -> str:
    """A YAML scalar on one line: JSON's string, with what YAML does not print escaped too."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in written)


def _line(text: str) -> str:
    """One line of a comment: no break of any kind, nothing that YAML does not print."""
    visible = "".join(char if char.isprintable() else " " for char in text)
    return " ".join(visible.split())
