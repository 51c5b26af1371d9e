"""The seeds file as text: labels are written into its rows, rows of other labellers and without labels stay."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from curation.teachers.seeds_file import COLUMNS, delimiter_of

__all__ = ["edit_seeds", "label_of", "seed_key", "split_seed_key"]

_FREE = "\0free"
_NOTE = "\0note "
_LABELS = ("tags", "primary", "secondary", "reason", "labelled_by")


def seed_key(query_id: int | str, labeller: str) -> str:
    """The key of a labeller's label: labellers do not overwrite each other."""
    return f"{query_id}/{labeller}"


def split_seed_key(key: str) -> tuple[str, str]:
    """Query id and labeller of a key."""
    query_id, _, labeller = key.partition("/")
    return query_id, labeller


def label_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The label in a row of a seeds file, or in what the page sends."""
    return {name: row[name] for name in ("text", "tags", "primary", "secondary", "reason")}


def edit_seeds(
    text: str, changes: Mapping[str, dict[str, Any] | None], proposed: Mapping[str, dict[str, Any]]
) -> str:
    """The seeds file after some changes.

    Args:
        text: The file as it is (CSV, already read and checked); empty for none, then one is made.
        changes: By :func:`seed_key`, the label that now stands (``text``, ``tags``, ``primary``, ``secondary``,
            ``reason``), or None where there is none any more.
        proposed: ``text`` and ``lang`` of the queries proposed for labelling, by id; they fill a new file.

    A label goes to the row of its query and labeller, else to a row of the query without labels, else to a new row.
    Where a label is taken away its row goes, but a query's last row stays and waits, and so does one with notes of a
    person's own. A new file begins with a byte order mark, without which Excel does not show Chinese.
    """
    delimiter = delimiter_of(text) if text else ","
    if text:
        reader = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter, strict=True)
        names, *rows = [row for row in reader if any(row)]
        # Columns of a person's own may be called alike, or nothing at all.
        header = [name.strip() if name.strip() in COLUMNS else f"{at}{_NOTE}{name}" for at, name in enumerate(names)]
        header += [name for name in COLUMNS if name not in header]
        records = [dict(zip(header, row + [""] * len(header), strict=False)) for row in rows]
    else:
        header = list(COLUMNS)
        records = [dict.fromkeys(header, "") | {"text": s["text"], "lang": s["lang"]} for s in proposed.values()]
    places: dict[str, dict[str, dict[str, str]]] = {}
    for query_id, record in zip(_ids([record["text"] for record in records]), records, strict=True):
        name = record["labelled_by"].strip()
        used = name or any(record[label].strip() for label in ("tags", "primary"))
        places.setdefault(query_id, {})[name if used else _FREE] = record
    for key, value in changes.items():
        query_id, labeller = split_seed_key(key)
        rows_of_query = places.setdefault(query_id, {})
        if value is None:
            if labeller in rows_of_query:
                _take_away(rows_of_query, labeller)
            continue
        if labeller in rows_of_query:
            record = rows_of_query.pop(labeller)
        elif _FREE in rows_of_query:
            record = rows_of_query.pop(_FREE)
        else:
            record = dict.fromkeys(header, "") | {"text": value["text"]}
            record["lang"] = str(proposed.get(query_id, {}).get("lang", ""))
            records.append(record)
        record.update({name: _cell(value.get(name)) for name in _LABELS[:-1]} | {"labelled_by": labeller})
        rows_of_query[labeller] = record
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(name.rpartition(_NOTE)[2] for name in header)
    writer.writerows([record[name] for name in header] for record in records if record)
    return ("\ufeff" if not text or text.startswith("\ufeff") else "") + out.getvalue()


def _take_away(rows_of_query: dict[str, dict[str, str]], labeller: str) -> None:
    record = rows_of_query.pop(labeller)
    if rows_of_query and not any(value for name, value in record.items() if _NOTE in name):
        record.clear()
    else:
        record.update(dict.fromkeys(_LABELS, ""))
        rows_of_query[_FREE] = record


def _cell(value: Any) -> str:
    if isinstance(value, list):
        plain = not any(mark in item for item in value for mark in ";|；") and not "".join(value[:1]).startswith("[")
        return ";".join(value) if plain else json.dumps(value, ensure_ascii=False)
    return value or ""


def _ids(texts: list[str]) -> list[str]:
    import pyarrow as pa

    from curation.algorithms.normalise import normalise, query_ids

    return [str(query_id) for query_id in query_ids(normalise(pa.array(texts, pa.large_string())))]
