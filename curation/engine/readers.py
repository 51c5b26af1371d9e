"""The raw log: which files it is, whether they fit the recipe, and their rows in bounded batches."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curation.engine.formats import HEAD, Columns, RawBatch, csv_header, open_parquet, opened, read_rows
from curation.errors import CurationError

if TYPE_CHECKING:
    import pyarrow as pa

    from curation.engine.recipe import LogSource

__all__ = ["RawBatch", "check_log", "column_names", "log_files", "read_batches"]

SUFFIXES = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".csv.gz", ".tsv", ".tsv.gz"),
    "jsonl": (".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"),
}
_NOUNS = {"text": "text column", "time": "time column", "source": "source column"}


def log_files(path: Path, format: str = "auto") -> list[Path]:
    """The files of a log, in the byte order of their paths.

    Args:
        path: A directory (searched with all below it), a file, or a glob (``**`` goes down any number of
            directories). Entries whose names begin with ``.`` or ``_`` are skipped, except a file named itself.
        format: ``auto`` takes every file whose name ends like a known format; else only those of that format. A file
            that is named itself is taken whatever its ending, when the format is given.

    Raises:
        CurationError: The path does not exist or nothing there fits.
    """
    if path.is_file():
        if format == "auto" and _kind_by_name(path) is None:
            raise CurationError(f"{path}: its name says no format", "Set log.format to parquet, csv or jsonl.")
        return [path]
    kinds = SUFFIXES if format == "auto" else {format: SUFFIXES[format]}
    suffixes = tuple(suffix for group in kinds.values() for suffix in group)
    if path.is_dir():
        found = _below(path)
    elif any(char in str(path) for char in "*?["):
        first = next(i for i, part in enumerate(path.parts) if any(char in part for char in "*?["))
        root = Path(*path.parts[:first])
        matches = root.glob(str(Path(*path.parts[first:])))
        found = [file for file in matches if not any(part[0] in "._" for part in file.relative_to(root).parts)]
    else:
        raise CurationError(f"the log {path} does not exist", "Set log.path in the recipe to a directory or a file.")
    files = [file for file in found if file.name.lower().endswith(suffixes) and file.is_file()]
    if not files:
        raise CurationError(
            f"the log {path} has no file that ends in {', '.join(suffixes)}",
            "Set log.path to where the files are, or log.format to what they hold.",
        )
    for file in files:
        if os.fsencode(file).decode("utf-8", "replace") != str(file):
            raise CurationError(f"the file name {str(file)!a} is not UTF-8", "Rename the file.")
    return sorted(files, key=lambda file: file.as_posix())


def _below(directory: Path) -> list[Path]:
    found: list[Path] = []
    seen: set[str] = set()
    for parent, directories, names in os.walk(directory, followlinks=True):
        real = os.path.realpath(parent)
        if real in seen:  # links may lead round in circles
            directories.clear()
            continue
        seen.add(real)
        directories[:] = sorted(name for name in directories if name[0] not in "._")
        found += [Path(parent, name) for name in names if name[0] not in "._"]
    return found


def _kind_by_name(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for kind, suffixes in SUFFIXES.items() if name.endswith(suffixes)), None)


def _kind(path: Path, format: str) -> str:
    kind = _kind_by_name(path) if format == "auto" else format
    assert kind is not None, "log_files gives only files with a format"
    return kind


def read_batches(path: Path, log: LogSource, *, rows: int = 250_000, first_row: int = 0) -> Iterator[RawBatch]:
    """The rows of one file from ``first_row`` on, in order, in bounded batches.

    Row numbers are 0-based: the row of a Parquet file, the record of a CSV file without its header (empty lines do
    not count), the line of a JSONL file (blank lines count but are no rows).

    Args:
        path: One of ``log.files()``.
        log: Its format and its mapped columns.
        rows: Most rows of a batch of Parquet, fewer where rows are long; text files come in blocks of about 16 MiB.
        first_row: Rows before this one are left out.

    Raises:
        CurationError: The file is damaged.
    """
    columns = Columns(log.text, log.time, log.source)
    return read_rows(path, _kind(path, log.format), columns, rows, first_row)


def check_log(log: LogSource) -> None:
    """Look at the head of every file of the log, so that a damaged file or a wrong column costs no work.

    Raises:
        CurationError: A file cannot be read in its format, or a column that the recipe maps is missing or of a type
            that does not fit. The sentence names the file, what was found and the setting to change.
    """
    columns = {key: name for key in _NOUNS if (name := getattr(log, key)) is not None}
    for path in log.files():
        kind = _kind(path, log.format)
        if kind == "parquet":
            _check_parquet(path, columns)
        elif kind == "csv":
            header = csv_header(path, log.text)
            for key, name in columns.items():
                if header is not None:
                    _check_name(path, key, name, header.names)
        else:
            _check_jsonl(path, columns)


def column_names(path: Path, format: str = "auto") -> list[str]:
    """Names of a log file's columns: of a JSON-lines file, the keys of its first objects.

    Raises:
        CurationError: The file cannot be read in its format.
    """
    kind = _kind(path, format)
    if kind == "parquet":
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    if kind == "csv":
        header = csv_header(path, "")
        return list(header.names) if header else []
    return list(dict.fromkeys(name for value in _head_objects(path)[0] for name in value))


def _check_name(path: Path, key: str, name: str, names: Sequence[str]) -> None:
    """Refuse a column that is missing or there twice."""
    if names.count(name) == 1:
        return
    if name in names:
        raise CurationError(f"{path}: more than one column is called {name!r}", "Rename one of them.")
    folded = {column.lower(): column for column in names}
    close = difflib.get_close_matches(name.lower(), list(folded), 1, cutoff=0.5)
    guess = f"Did you mean {folded[close[0]]!r}? " if close else ""
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    raise CurationError(
        f"{path}: there is no {_NOUNS[key]} {name!r}; its columns are {listed or 'none'}",
        f"{guess}Set log.{key} in the recipe to one of them.",
    )


def _check_parquet(path: Path, columns: dict[str, str]) -> None:
    fits: dict[str, tuple[Callable[[pa.DataType], bool], str]] = {
        "text": (_is_text, "text"),
        "time": (_is_time, "a time stamp, a date, a number or text"),
        "source": (_is_scalar, "text or a number"),
    }
    with open_parquet(path) as file:
        schema = file.schema_arrow
    for key, name in columns.items():
        _check_name(path, key, name, schema.names)
        fit, wanted = fits[key]
        kind = schema.field(name).type
        if not fit(kind):
            others = ", ".join(repr(field.name) for field in schema if fit(field.type))
            hint = (
                f"another column; those that fit are {others}." if others else "a column of that kind; none here is."
            )
            raise CurationError(
                f"{path}: column {name!r} is {kind}, not {wanted}", f"Set log.{key} in the recipe to {hint}"
            )


def _plain(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    """Text, bytes that may hold text (some writers do not mark text), or a column without any value."""
    import pyarrow as pa

    t, kind = pa.types, _plain(kind)
    strings = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)
    return strings or t.is_null(kind) or t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind)


def _is_time(kind: pa.DataType) -> bool:
    import pyarrow as pa

    t, kind = pa.types, _plain(kind)
    numbers = t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind)
    return numbers or t.is_timestamp(kind) or t.is_date(kind) or _is_text(kind)


def _is_scalar(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return not pa.types.is_nested(_plain(kind))


def _head_objects(path: Path) -> tuple[list[dict[str, Any]], bytes]:
    """The JSON objects among the first lines of a file, and the bytes they were read from."""
    with opened(path) as (stream, _):
        head = stream.read(HEAD)
    objects = []
    for line in head.split(b"\n")[:1000]:
        with contextlib.suppress(ValueError, RecursionError):
            value = json.loads(line)
            if isinstance(value, dict):
                objects.append(value)
    return objects, head


def _check_jsonl(path: Path, columns: dict[str, str]) -> None:
    objects, head = _head_objects(path)
    if not objects:
        if head.lstrip().startswith(b"["):
            raise CurationError(f"{path} holds a JSON array", "Write one object a line, without the brackets.")
        if head.strip() and len(head) < HEAD:
            raise CurationError(f"{path}: no line is a JSON object", "Set log.format to what the file holds.")
        return
    names = list(dict.fromkeys(name for value in objects for name in value))
    _check_name(path, "text", columns["text"], names)  # the others may be left out of objects that have no value
    values = [value[columns["text"]] for value in objects if value.get(columns["text"]) is not None]
    if values and not any(isinstance(value, str) for value in values):
        raise CurationError(
            f"{path}: {columns['text']!r} holds {type(values[0]).__name__} values, not text",
            "Set log.text in the recipe to another key of the objects.",
        )
