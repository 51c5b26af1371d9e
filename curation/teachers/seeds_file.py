"""Reading the seeds that a person labelled: CSV, JSONL, or YAML in the format of a domain's ``seeds.yaml``.

Columns of CSV and keys of JSONL: ``text``, and any of ``lang``, ``tags``, ``primary``, ``secondary``, ``reason``,
``labelled_by``. ``tags`` and ``secondary`` hold several values parted by ``;`` or ``|``, or a JSON list. Every
mistake is told with its line.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import polars as pl

from curation.errors import CurationError

if TYPE_CHECKING:
    from curation.domain.model import Taxonomy

__all__ = ["COLUMNS", "read_seeds_file"]

COLUMNS = ("text", "lang", "tags", "primary", "secondary", "reason", "labelled_by")
_LISTS = ("tags", "secondary")
_TYPES = {name: pl.List(pl.String) if name in _LISTS else pl.String for name in COLUMNS}
_PARTS = re.compile(r"[;|；]")
_LANG = re.compile(r"[a-z]{2,3}")


def read_seeds_file(path: Path, taxonomy: Taxonomy) -> pl.DataFrame:
    """The rows of a seeds file, in its order, equal rows once.

    Args:
        path: ``.csv``, ``.jsonl`` (or ``.ndjson``), ``.yaml`` (or ``.yml``).
        taxonomy: Whose leaves ``primary`` and ``secondary`` must be.

    Returns:
        ``query_id`` and :data:`COLUMNS`; ``lang``, ``primary``, ``reason`` and ``labelled_by`` may be null, and a row
        may be without any label.

    Raises:
        CurationError: naming file and line.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if not path.is_file():
        raise CurationError(f"there is no seeds file {path}", hint="Check seeds.file in the recipe.")
    if suffix in (".yaml", ".yml"):
        rows = list(_yaml_rows(path, taxonomy))
    elif suffix == ".csv":
        rows = list(_csv_rows(path))
    elif suffix in (".jsonl", ".ndjson"):
        rows = list(_json_rows(path))
    else:
        raise CurationError(
            f"{path}: a seeds file ends in .csv, .jsonl or .yaml, not {suffix or 'nothing'!r}",
            hint="Save it in one of these formats.",
        )
    for row in rows:
        row.check(taxonomy)
    return _distinct(path, rows)


@dataclass(frozen=True)
class _Row:
    path: Path
    line: int | None
    values: dict[str, Any]

    def fail(self, what: str, hint: str | None = None) -> NoReturn:
        raise CurationError(f"{self.path}, line {self.line}: {what}", hint=hint)

    def check(self, taxonomy: Taxonomy) -> None:
        """Raise for the first value that cannot be."""
        from curation.domain.model import REASONS

        value = self.values
        if not value["text"]:
            self.fail("the row has no text")
        if value["lang"] and not _LANG.fullmatch(value["lang"]):
            self.fail(
                f"{value['lang']!r} is no language", "Give an ISO 639-1 code such as zh or en, or leave it empty."
            )
        for leaf in (value["primary"], *value["secondary"]):
            if leaf is not None and leaf not in taxonomy.leaf_set:
                self.fail(f"{leaf!r} is no leaf of the taxonomy", _nearest(leaf, taxonomy.leaves))
        if value["reason"] and value["reason"] not in REASONS:
            self.fail(f"{value['reason']!r} is no reason", f"The reasons are {', '.join(REASONS)}.")
        if value["primary"] is None and (value["secondary"] or value["reason"]):
            self.fail("secondary leaves and reasons need a primary leaf", "Fill in `primary`.")


def _nearest(leaf: str, leaves: tuple[str, ...]) -> str:
    same = [known for known in leaves if known.rpartition(".")[2] == leaf.rpartition(".")[2]]
    near = same or difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else "`curate show taxonomy` lists the leaves."


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CurationError(f"{path}, line {line}: not UTF-8", hint="Save the file as UTF-8.") from None


def _csv_rows(path: Path) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for record in reader:
            if header is None:
                header = [name.strip() for name in record]
                _check_names(path, line, header)
            elif any(field.strip() for field in record):
                if len(record) > len(header):
                    raise CurationError(
                        f"{path}, line {line}: {len(record)} fields under {len(header)} column names",
                        hint="Put a text with commas into double quotes.",
                    )
                yield _row(path, line, dict(zip(header, record, strict=False)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise CurationError(f"{path}, line {line}: not valid CSV: {error}") from None
    if header is None:
        raise CurationError(f"{path} is empty", hint=f"Its first line must name columns: {', '.join(COLUMNS)}.")


def _json_rows(path: Path) -> Iterator[_Row]:
    for line, text in enumerate(_text(path).split("\n"), start=1):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            raise CurationError(f"{path}, line {line}: not valid JSON: {error.msg}") from None
        if not isinstance(record, dict):
            raise CurationError(f"{path}, line {line}: not a JSON object")
        _check_names(path, line, list(record))
        yield _row(path, line, record)


def _yaml_rows(path: Path, taxonomy: Taxonomy) -> Iterator[_Row]:
    from curation.domain.load import load_seeds

    for seed in load_seeds(path, taxonomy):
        values = {"text": seed.text, "lang": seed.lang, "primary": seed.primary, "reason": seed.reason}
        yield _row(path, None, values | {"secondary": list(seed.secondary)})


def _check_names(path: Path, line: int, names: list[str]) -> None:
    unknown = next((name for name in names if name not in COLUMNS), None)
    if unknown is not None:
        raise CurationError(
            f"{path}, line {line}: unknown column {unknown!r}", hint=f"The columns are {', '.join(COLUMNS)}."
        )
    if "text" not in names:
        raise CurationError(f"{path}, line {line}: there is no column `text`", hint="It holds the query.")
    if len(set(names)) < len(names):
        raise CurationError(f"{path}, line {line}: a column name stands twice")


def _row(path: Path, line: int | None, record: dict[str, Any]) -> _Row:
    values: dict[str, Any] = {}
    row = _Row(path, line, values)
    for name in COLUMNS:
        value = record.get(name)
        if name in _LISTS:
            parts = _PARTS.split(value) if isinstance(value, str) and not value.startswith("[") else value
            if isinstance(parts, str):
                try:
                    parts = json.loads(parts)
                except json.JSONDecodeError:
                    row.fail(f"{name} begins like a JSON list but is none", "Part the values by semicolons.")
            if not isinstance(parts, list | None) or not all(isinstance(part, str) for part in parts or []):
                row.fail(f"{name} must be a list of texts")
            values[name] = list(dict.fromkeys(part.strip() for part in parts or [] if part.strip()))
        elif value is None or isinstance(value, str):
            values[name] = (value or "").strip() or None
        else:
            row.fail(f"{name} must be a text, not {json.dumps(value)}")
    values["secondary"] = [leaf for leaf in values["secondary"] if leaf != values["primary"]]
    return row


def _distinct(path: Path, rows: list[_Row]) -> pl.DataFrame:
    """One row a query; two rows of the same query with different labels are a mistake."""
    import pyarrow as pa

    from curation.algorithms.normalise import normalise, query_ids

    norms = normalise(pa.array([row.values["text"] for row in rows], pa.large_string()))
    ids = query_ids(norms).tolist()
    first: dict[int, _Row] = {}
    for query_id, norm, row in zip(ids, norms.to_pylist(), rows, strict=True):
        if not norm:
            row.fail("the text has nothing visible in it")
        earlier = first.setdefault(query_id, row)
        labels = [{name: r.values[name] for name in COLUMNS if name not in ("text", "lang")} for r in (earlier, row)]
        if labels[0] != labels[1]:
            where = f"line {earlier.line}" if earlier.line else repr(earlier.values["text"])
            row.fail(f"the same query as in {where}, with other labels", "Keep one of the two rows.")
    frame = pl.DataFrame([row.values for row in first.values()], schema=_TYPES)
    return frame.select(pl.Series("query_id", list(first), dtype=pl.UInt64), *COLUMNS)
