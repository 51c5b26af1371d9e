"""A person's labelled seeds: a CSV or JSON-lines file, read with a sentence for every mistake."""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from curation.domain.model import REASONS, Taxonomy
from curation.errors import CurationError

__all__ = ["COLUMNS", "read_seeds_file"]

COLUMNS = ("text", "lang", "tags", "primary", "secondary", "reason", "labelled_by")
"""Columns of the file; only ``text`` is required. ``tags`` and ``secondary`` hold several values, separated by ``;``."""

_LISTS = ("tags", "secondary")


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        for row in reader:
            if None in row or None in row.values():
                raise CurationError(f"{path}, line {reader.line_num}: the row has not as many cells as the header")
            yield reader.line_num, row
        if reader.fieldnames is None:
            raise CurationError(f"{path} is empty", f"It needs a header with {', '.join(COLUMNS)}.")


def _json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise CurationError(f"{path}, line {number}: not valid JSON: {error.msg}") from None
            if not isinstance(row, dict):
                raise CurationError(f"{path}, line {number}: a seed is an object with keys {', '.join(COLUMNS)}")
            yield number, row


def _values(value: Any) -> list[str]:
    parts = value if isinstance(value, list) else str(value or "").replace("；", ";").split(";")
    return [str(part).strip() for part in parts if str(part).strip()]


def _checked(path: Path, line: int, row: dict[str, Any], taxonomy: Taxonomy) -> dict[str, Any]:
    unknown = [name for name in row if name not in (*COLUMNS, "query_id")]
    if unknown:
        raise CurationError(
            f"{path}, line {line}: unknown column {unknown[0]!r}", f"The columns are {', '.join(COLUMNS)}."
        )
    text = str(row.get("text") or "").strip()
    if not text:
        raise CurationError(f"{path}, line {line}: the text is empty")
    seed: dict[str, Any] = {"text": text, "tags": _values(row.get("tags"))}
    for name in ("lang", "primary", "reason", "labelled_by"):
        seed[name] = str(row.get(name) or "").strip() or None
    seed["secondary"] = sorted(set(_values(row.get("secondary"))) - {seed["primary"]})
    for leaf in filter(None, (seed["primary"], *seed["secondary"])):
        if leaf not in taxonomy.leaf_set:
            close = difflib.get_close_matches(leaf, taxonomy.leaves, 1)
            hint = f"Did you mean {close[0]!r}?" if close else "`curate show taxonomy` lists the leaves."
            raise CurationError(f"{path}, line {line}: {leaf!r} is not a leaf of the taxonomy", hint)
    if seed["reason"] not in (None, *REASONS):
        raise CurationError(
            f"{path}, line {line}: {seed['reason']!r} is not a reason", f"The reasons are {', '.join(REASONS)}."
        )
    if seed["secondary"] and seed["primary"] is None:
        raise CurationError(f"{path}, line {line}: secondary leaves without a primary one")
    return seed


def read_seeds_file(path: Path, taxonomy: Taxonomy) -> pl.DataFrame:
    """Read a seeds file.

    Returns:
        Columns ``text``, ``lang``, ``tags``, ``primary``, ``secondary``, ``reason``, ``labelled_by``, in file order.

    Raises:
        CurationError: The file or a line of it is wrong; the line is named.
    """
    path = Path(path)
    if not path.is_file():
        raise CurationError(f"there is no seeds file at {path}")
    kinds = {".csv": _csv_rows, ".jsonl": _json_rows, ".ndjson": _json_rows}
    if path.suffix.lower() not in kinds:
        raise CurationError(f"{path} is neither .csv nor .jsonl", "Save it as one of the two.")
    try:
        seeds = [_checked(path, line, row, taxonomy) for line, row in kinds[path.suffix.lower()](path)]
    except UnicodeDecodeError as error:
        raise CurationError(f"{path} is not UTF-8 text (byte {error.start})", "Save it as UTF-8.") from None
    schema = {name: pl.List(pl.String) if name in _LISTS else pl.String for name in COLUMNS}
    return pl.DataFrame(seeds, schema=schema)
