"""Reading the seeds that a person labelled: CSV, JSONL, or YAML in the format of a domain's ``seeds.yaml``.

Columns of CSV and keys of JSONL: ``text``, and any of ``lang``, ``tags``, ``primary``, ``secondary``, ``reason``,
``labelled_by``; others are a person's own notes and left out, unless they look like one of these misspelt. ``tags``
and ``secondary`` hold several values parted by ``;`` or ``|``, or a JSON list. Fields of CSV are parted by commas,
semicolons or tabs, whichever part the names of the first line. Every mistake is told with its line.

Several people may label one query, each in a row of their own; a directory is read as all the files in it, those of
each file labelled by whom it is named after. :mod:`curation.taxonomy.labellers` makes one label of them.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from curation.domain.model import REASONS, Taxonomy
from curation.errors import CurationError

__all__ = ["COLUMNS", "delimiter_of", "other_columns", "read_seeds_file"]

COLUMNS = ("text", "lang", "tags", "primary", "secondary", "reason", "labelled_by")
_LISTS = ("tags", "secondary")
_TYPES = {name: pl.List(pl.String) if name in _LISTS else pl.String for name in COLUMNS}
_PARTS = re.compile(r"[;|；]")
_PARTED = {",": "commas", ";": "semicolons", "\t": "tabs"}
_DELIMITERS = (",", ";", "\t")
_LANG = re.compile(r"[a-z]{2,3}")


def read_seeds_file(path: Path, taxonomy: Taxonomy | Sequence[Taxonomy] | None) -> pl.DataFrame:
    """The rows of a seeds file, in its order, equal rows once.

    Args:
        path: ``.csv``, ``.jsonl`` (or ``.ndjson``), ``.yaml`` (or ``.yml``), or a directory of such files.
        taxonomy: Whose leaves ``primary`` and ``secondary`` must be. Of several versions the first that has all
            leaves of a row is the one it speaks of. None for any leaves, where only tags count.

    Returns:
        A row for each query and labeller: ``query_id``, :data:`COLUMNS`, ``version``, of the taxonomy that it speaks
        of, if any was given, and ``place``, where it stands, such as ``line 3`` (null in YAML). ``lang``,
        ``primary``, ``reason`` and ``labelled_by`` may be null, and a row may be without any label.

    Raises:
        CurationError: naming file and line.
    """
    versions = (taxonomy,) if isinstance(taxonomy, Taxonomy) else tuple(taxonomy or ())
    path = Path(path)
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.suffix.lower() in _READERS]
        if not files:
            raise CurationError(f"the directory {path} has no seeds file", hint=_SUFFIXES)
        rows = [row.by(file.stem) for file in files for row in _rows(file, versions)]
    else:
        rows = _rows(path, versions)
    return _distinct([row.checked(versions) for row in rows], path.is_dir())


def delimiter_of(text: str) -> str:
    """What parts the fields of CSV whose first line names the columns: a comma, unless only ``;`` or a tab finds
    a column `text`. Spreadsheets of many countries write ``;``."""
    line = text.lstrip("\ufeff").split("\n", 1)[0]
    for delimiter in _DELIMITERS:
        names = next(csv.reader([line], delimiter=delimiter), [])
        if "text" in (name.strip() for name in names):
            return delimiter
    return max(_DELIMITERS, key=line.count)


def other_columns(path: Path) -> list[str]:
    """The columns of a seeds file, or of the CSV files of a directory, that are left out: a person's own notes."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    names: dict[str, None] = {}
    for file in files:
        if file.suffix.lower() == ".csv":
            text = _text(file)
            header = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text)), [])
            names |= dict.fromkeys(name.strip() for name in header)
    return [name for name in names if name and name not in COLUMNS]


def _rows(path: Path, versions: Sequence[Taxonomy]) -> list[_Row]:
    if not path.is_file():
        raise CurationError(f"there is no seeds file {path}", hint="Check seeds.file in the recipe.")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise CurationError(
            f"{path}: a seeds file ends in .csv, .jsonl or .yaml, not {path.suffix.lower() or 'nothing'!r}",
            hint=_SUFFIXES,
        )
    return list(reader(path, versions))


@dataclass(frozen=True)
class _Row:
    path: Path
    line: int | None
    values: dict[str, Any]

    def fail(self, what: str, hint: str | None = None) -> NoReturn:
        raise CurationError(f"{self.path}, line {self.line}: {what}", hint=hint)

    def place(self, named: bool) -> str | None:
        """The line, with the file's name if `named`; None where lines are not known."""
        if self.line is None:
            return None
        return f"{self.path.name}, line {self.line}" if named else f"line {self.line}"

    def by(self, labeller: str) -> _Row:
        """The row with a labeller, where it names none."""
        return self if self.values["labelled_by"] else replace(self, values=self.values | {"labelled_by": labeller})

    def checked(self, versions: Sequence[Taxonomy]) -> _Row:
        """The row with its ``version``; raise for the first value that cannot be."""
        value = self.values
        if not value["text"]:
            self.fail("the row has no text")
        if value["lang"] and not _LANG.fullmatch(value["lang"]):
            self.fail(
                f"{value['lang']!r} is no language", "Give an ISO 639-1 code such as zh or en, or leave it empty."
            )
        leaves = {leaf for leaf in (value["primary"], *value["secondary"]) if leaf is not None}
        spoken = next((version for version in versions if leaves <= version.leaf_set), None)
        if spoken is None and versions:
            known = versions[0]
            leaf = next(leaf for leaf in (value["primary"], *value["secondary"]) if leaf not in known.leaf_set)
            self.fail(f"{leaf!r} is no leaf of the taxonomy", _nearest(leaf, known.leaves))
        if value["reason"] and value["reason"] not in REASONS:
            self.fail(f"{value['reason']!r} is no reason", f"The reasons are {', '.join(REASONS)}.")
        if value["primary"] is None and (value["secondary"] or value["reason"]):
            self.fail("secondary leaves and reasons need a primary leaf", "Fill in `primary`.")
        return replace(self, values=value | {"version": spoken and spoken.version})


def _nearest(leaf: str, leaves: tuple[str, ...]) -> str:
    same = [known for known in leaves if known.rpartition(".")[2] == leaf.rpartition(".")[2]]
    near = same or difflib.get_close_matches(leaf, leaves, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else "`curate show taxonomy` lists the leaves."


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        hint = "Save the file as UTF-8; in Excel: Save as, CSV UTF-8."
        raise CurationError(f"{path}, line {line}: not UTF-8", hint=hint) from None


def _csv_rows(path: Path, versions: Sequence[Taxonomy]) -> Iterator[_Row]:
    text = _text(path)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for record in reader:
            if header is None:
                header = [name.strip() for name in record]
                _check_names(path, line, header)
            elif any(field.strip() for field in record):
                if any(field.strip() for field in record[len(header) :]):
                    raise CurationError(
                        f"{path}, line {line}: {len(record)} fields under {len(header)} column names",
                        hint=f"Put a text with {_PARTED[reader.dialect.delimiter]} into double quotes.",
                    )
                yield _row(path, line, dict(zip(header, record, strict=False)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise CurationError(f"{path}, line {line}: not valid CSV: {error}") from None
    if header is None:
        raise CurationError(f"{path} is empty", hint=f"Its first line must name columns: {', '.join(COLUMNS)}.")


def _json_rows(path: Path, versions: Sequence[Taxonomy]) -> Iterator[_Row]:
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


def _yaml_rows(path: Path, versions: Sequence[Taxonomy]) -> Iterator[_Row]:
    from curation.domain.load import load_seeds

    for seed in _first_that_fits(path, versions, load_seeds):
        values = {"text": seed.text, "lang": seed.lang, "primary": seed.primary, "reason": seed.reason}
        yield _row(path, None, values | {"secondary": list(seed.secondary)})


def _first_that_fits(path: Path, versions: Sequence[Taxonomy], load: Callable[[Path, Taxonomy], Any]) -> Any:
    """What ``load`` makes of the file with the first version that it fits; the first version's fault for none."""
    faults = [CurationError(f"{path}: seeds in YAML have no tags", hint="Use CSV or JSONL.")]
    for version in versions:
        try:
            return load(path, version)
        except CurationError as fault:
            faults.append(fault)
    raise faults[1 if versions else 0]


_READERS: dict[str, Callable[[Path, Sequence[Taxonomy]], Iterator[_Row]]] = {
    ".csv": _csv_rows,
    ".jsonl": _json_rows,
    ".ndjson": _json_rows,
    ".yaml": _yaml_rows,
    ".yml": _yaml_rows,
}
_SUFFIXES = "Save it in one of these formats."


def _check_names(path: Path, line: int, names: list[str]) -> None:
    for name in names:
        near = difflib.get_close_matches(name.lower(), COLUMNS, 1, cutoff=0.8)
        if name not in COLUMNS and near and near[0] not in names:
            raise CurationError(
                f"{path}, line {line}: unknown column {name!r}",
                hint=f"Did you mean {near[0]!r}? Call it otherwise if it holds notes of your own.",
            )
    if "text" not in names:
        raise CurationError(
            f"{path}, line {line}: there is no column `text`, which holds the query",
            hint=f"The first line must name columns: {', '.join(COLUMNS)}.",
        )
    twice = next((name for name in COLUMNS if names.count(name) > 1), None)
    if twice is not None:
        raise CurationError(f"{path}, line {line}: the column name {twice!r} stands twice")


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


def _distinct(rows: list[_Row], several: bool) -> pl.DataFrame:
    """One row a query and labeller; two of the same with different labels are a mistake.

    Args:
        rows: All rows.
        several: Whether places must name their file.
    """
    import pyarrow as pa

    from curation.algorithms.normalise import normalise, query_ids

    norms = normalise(pa.array([row.values["text"] for row in rows], pa.large_string()))
    ids = query_ids(norms).tolist()
    first: dict[tuple[int, str | None], _Row] = {}
    for query_id, norm, row in zip(ids, norms.to_pylist(), rows, strict=True):
        if not norm:
            row.fail("the text has nothing visible in it")
        earlier = first.setdefault((query_id, row.values["labelled_by"]), row)
        labels = [{name: r.values[name] for name in COLUMNS if name not in ("text", "lang")} for r in (earlier, row)]
        if labels[0] != labels[1]:
            where = earlier.place(earlier.path != row.path) or repr(earlier.values["text"])
            row.fail(
                f"the same query as in {where}, with other labels",
                "Keep one of the two rows, or say in labelled_by who labelled which.",
            )
    values = [row.values | {"place": row.place(several)} for row in first.values()]
    frame = pl.DataFrame(values, schema=_TYPES | {"version": pl.String, "place": pl.String})
    ids_kept = pl.Series("query_id", [query_id for query_id, _ in first], dtype=pl.UInt64)
    return frame.select(ids_kept, *COLUMNS, "version", "place")
