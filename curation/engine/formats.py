"""The three formats of a raw log, read row by row in bounded pieces: Parquet, CSV, JSON lines.

Every row of a file comes out, as a row or as a fault; nothing is dropped in silence.
"""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from curation.errors import CurationError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from curation.algorithms.records import Records

__all__ = ["Columns", "CsvHeader", "RawBatch", "csv_header", "open_parquet", "opened", "read_rows"]

BLOCK = 1 << 24  # bytes of a text file looked at in one go
BATCH_BYTES = 1 << 27  # of a batch of Parquet, where rows are long
LONGEST_LINE = 1 << 28
HEAD = 1 << 20
_FAULT_TEXT = 2_000  # characters kept of a row that cannot be read
_FAULTS = {"row": pl.UInt64, "reason": pl.String, "text": pl.String}


class Columns(NamedTuple):
    """Names of the columns that the recipe maps."""

    text: str
    time: str | None = None
    source: str | None = None

    @property
    def names(self) -> list[str]:
        """The mapped columns, each once."""
        return list(dict.fromkeys(name for name in self if name is not None))


@dataclass(frozen=True)
class RawBatch:
    """Consecutive rows of one file.

    Attributes:
        rows: ``row`` (u64), ``text`` (str, nullable), ``time`` (datetime µs, UTC) and ``source`` (str); the last two
            are null where no column is mapped.
        faults: ``row``, ``reason`` (``bad_encoding``, ``bad_row``, ``bad_json`` or ``not_text``) and ``text`` of the
            rows that could not be read.
        unread_times: Rows whose time stamp was there but could not be read.
        share: How much of the file has been read so far, 0 to 1.
    """

    rows: pl.DataFrame
    faults: pl.DataFrame
    unread_times: int
    share: float


class _Fault(NamedTuple):
    rows: np.ndarray | pl.Series
    reason: str
    texts: pa.Array


def read_rows(path: Path, kind: str, columns: Columns, rows: int, first_row: int) -> Iterator[RawBatch]:
    """The rows of a ``kind`` file from ``first_row`` on; see :func:`curation.engine.readers.read_batches`."""
    read = {"parquet": _read_parquet, "csv": _read_csv, "jsonl": _read_jsonl}[kind]
    for batch in read(path, columns, rows, first_row):
        if len(batch.rows) or len(batch.faults):
            yield batch


# -- from Arrow columns to a batch


def _batch(numbers: np.ndarray, arrays: dict[str, pa.Array], faults: list[_Fault], share: float) -> RawBatch:
    """A batch of ``arrays`` (``text``; ``time``, ``source`` where mapped); rows that are not UTF-8 become faults."""
    from curation.algorithms.timestamps import to_utc

    text, wrong = _decoded(arrays["text"])
    time, unread = pl.Series([None] * len(text), dtype=pl.Datetime("us")), 0
    if "time" in arrays:
        raw, undecoded = _decoded(arrays["time"])
        time = to_utc(raw)
        absent = raw.is_null() & ~undecoded
        if raw.dtype == pl.String:
            absent |= (raw == "").fill_null(False)
        unread = int((time.is_null() & ~absent & ~wrong).sum())
    source = pl.Series([None] * len(text), dtype=pl.String)
    if "source" in arrays:
        source = _decoded(arrays["source"])[0].cast(pl.String).replace("", None)
    rows = pl.Series(numbers, dtype=pl.UInt64)
    frame = pl.DataFrame({"row": rows, "text": text.cast(pl.String), "time": time, "source": source})
    if wrong.any():
        faults = [
            *faults,
            _Fault(frame["row"].filter(wrong), "bad_encoding", arrays["text"].filter(wrong.to_arrow())),
        ]
        frame = frame.filter(~wrong)
    return RawBatch(frame, _fault_frame(faults), unread, share)


def _decoded(column: pa.Array) -> tuple[pl.Series, pl.Series]:
    """(``column`` in polars, bytes decoded; which rows are not UTF-8)."""
    import pyarrow as pa

    column = _plain(column)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    series = pl.Series("", column)
    if series.dtype != pl.Binary:
        return series, pl.repeat(False, len(series), dtype=pl.Boolean, eager=True)
    return _utf8(series)


def _plain(column: pa.Array) -> pa.Array:
    """``column`` without a dictionary, and texts as bytes.

    A string column is only a promise of its writer: Parquet readers do not look whether it holds UTF-8.
    """
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_large_string(column.type):
        return column.view(pa.large_binary())
    return (
        column.cast(pa.large_binary())
        if types.is_string(column.type) or types.is_string_view(column.type)
        else column
    )


def _utf8(series: pl.Series) -> tuple[pl.Series, pl.Series]:
    """(bytes as text, null where they are not UTF-8; which rows are not)."""
    try:
        return series.cast(pl.String), pl.repeat(False, len(series), dtype=pl.Boolean, eager=True)
    except pl.exceptions.ComputeError:
        # Rare, so done row by row.
        text = pl.Series([None if value is None else _text_or_none(value) for value in series], dtype=pl.String)
        return text, text.is_null() & series.is_not_null()


def _text_or_none(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _fault_frame(faults: list[_Fault]) -> pl.DataFrame:
    frames = [
        pl.DataFrame(
            {"row": fault.rows, "reason": [fault.reason] * len(fault.texts), "text": _shown(fault.texts)}, _FAULTS
        )
        for fault in faults
        if len(fault.texts)
    ]
    return pl.concat(frames).sort("row") if frames else pl.DataFrame(schema=_FAULTS)


def _shown(texts: pa.Array) -> list[str]:
    """The beginnings of texts or bytes, in characters that can be shown."""
    return [text[: 4 * _FAULT_TEXT].decode("utf-8", "replace")[:_FAULT_TEXT] for text in _plain(texts).to_pylist()]


# -- Parquet


def open_parquet(path: Path) -> pq.ParquetFile:
    """The file, its footer read.

    Raises:
        CurationError: It is cut off or not Parquet.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, memory_map=False, buffer_size=1 << 20)
    except PermissionError as error:
        raise CurationError(f"{path} cannot be read: {error.strerror}") from None
    except (pa.ArrowException, OSError) as error:
        reason = "it is empty" if path.stat().st_size == 0 else _first_line(error)
        raise CurationError(
            f"{path} is damaged or not a Parquet file: {reason}",
            "Copy the file again, remove it, or set log.format to what it holds.",
        ) from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _read_parquet(path: Path, columns: Columns, rows: int, first_row: int) -> Iterator[RawBatch]:
    import numpy as np
    import pyarrow as pa

    mapped = {key: name for key, name in columns._asdict().items() if name is not None}
    with open_parquet(path) as file:
        total, position = file.metadata.num_rows, 0
        for group in range(file.metadata.num_row_groups):
            meta = file.metadata.row_group(group)
            end = position + meta.num_rows
            if end <= first_row or meta.num_rows == 0:
                position = end
                continue
            # A row group may hold one row or a billion, of any length: what bounds memory is the batch.
            most = max(1, min(rows, BATCH_BYTES * meta.num_rows // max(meta.total_byte_size, 1)))
            try:
                for record in file.iter_batches(most, row_groups=[group], columns=columns.names, use_threads=False):
                    start = max(position, first_row)
                    part = record.slice(start - position)
                    position += len(record)
                    if len(part):
                        arrays = {key: part.column(name) for key, name in mapped.items()}
                        yield _batch(np.arange(start, position), arrays, [], position / total)
            except (pa.ArrowException, OSError) as error:
                raise CurationError(
                    f"{path} is damaged at or after row {position}: {_first_line(error)}",
                    "Copy the file again or remove it.",
                ) from None


# -- text files


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[Any, Callable[[], int]]]:
    """(stream of the decompressed bytes, how many bytes of the file have been read); damage becomes a sentence."""
    import pyarrow as pa

    try:
        raw = path.open("rb")
    except OSError as error:
        raise CurationError(f"{path} cannot be read: {error.strerror}") from None
    with raw:
        try:
            packed = path.name.lower().endswith(".gz")
            yield (pa.CompressedInputStream(raw, "gzip") if packed else raw), raw.tell
        except (pa.ArrowException, OSError, EOFError) as error:
            raise CurationError(
                f"{path} is damaged: {_first_line(error)}", "Copy the file again or remove it."
            ) from None


def _blocks(
    path: Path, scan: Callable[[np.ndarray, bool], Records], head: int = 0
) -> Iterator[tuple[np.ndarray, Records, float]]:
    """(bytes, the records in them, share of the file read), block by block; no record is split.

    ``scan(data, final)`` finds the records; the first ``head`` bytes are skipped.
    """
    import numpy as np

    size = max(path.stat().st_size, 1)
    with opened(path) as (stream, told):
        stream.read(head)
        left, final = b"", False
        while not final:
            block = stream.read(BLOCK)
            final = len(block) == 0
            data = np.frombuffer(left + block, np.uint8)
            records = scan(data, final)
            yield data, records, told() / size
            left = data[records.consumed :].tobytes()
            if len(left) > LONGEST_LINE:
                raise CurationError(
                    f"{path} has a line longer than {LONGEST_LINE >> 20} MiB",
                    "Set log.format to what the file holds.",
                )


class CsvHeader(NamedTuple):
    """Column names of a CSV file, the byte that separates fields, and the bytes up to the first record."""

    names: list[str]
    separator: str
    size: int


def csv_header(path: Path, text: str, separators: str = ",\t;|") -> CsvHeader | None:
    """The header of a CSV file; None when the file is empty.

    Fields are separated by the first of ``separators`` that makes a column named ``text``; where none does, by the
    one that makes the most columns.
    """
    with opened(path) as (stream, _):
        lines = stream.read(HEAD).split(b"\n")
    if lines == [b""]:
        return None
    found = []
    for separator in separators:
        try:
            decoded = (line.decode("utf-8-sig" if at == 0 else "utf-8") + "\n" for at, line in enumerate(lines))
            reader = csv.reader(decoded, delimiter=separator)
            names = next(reader)
        except (UnicodeDecodeError, csv.Error):
            raise CurationError(
                f"{path}: the first line is not a CSV header in UTF-8", "Set log.format to what the file holds."
            ) from None
        found.append(CsvHeader(names, separator, sum(len(line) + 1 for line in lines[: reader.line_num])))
    fitting = [header for header in found if text in header.names]
    return fitting[0] if fitting else max(found, key=lambda header: len(header.names))


def _read_csv(path: Path, columns: Columns, rows: int, first_row: int) -> Iterator[RawBatch]:
    import numpy as np

    from curation.algorithms.records import gather, scan_csv

    header = csv_header(path, columns.text)
    if header is None:
        return
    wanted = [header.names.index(name) for name in columns.names]
    position = 0

    def scan(data: np.ndarray, final: bool) -> Records:
        return scan_csv(data, ord(header.separator), len(header.names), wanted, final=final)

    for data, records, share in _blocks(path, scan, header.size):
        numbers = np.arange(position, position + len(records.bounds))
        position += len(records.bounds)
        bad, good = records.broken & (numbers >= first_row), ~records.broken & (numbers >= first_row)
        fields = {
            name: gather(data, records.fields[good, at], records.escaped[good, at])
            for at, name in enumerate(columns.names)
        }
        arrays = {key: fields[name] for key, name in columns._asdict().items() if name is not None}
        fault = _Fault(numbers[bad], "bad_row", gather(data, records.bounds[bad]))
        yield _batch(numbers[good], arrays, [fault], share)


def _json_pointer(key: str) -> str:
    """SQL literal of the pointer to a key of an object: unlike a JSON path it takes any key."""
    return "'/" + key.replace("~", "~0").replace("/", "~1").replace("'", "''") + "'"


_JSON_QUERY = """
    SELECT kind, text_type, {fields} FROM (
        SELECT *, CASE WHEN kind = 'OBJECT' THEN json_type(line, {text}) END AS text_type FROM (
            SELECT line, CASE WHEN json_valid(line) THEN json_type(line) END AS kind FROM lines))
"""


def _read_jsonl(path: Path, columns: Columns, rows: int, first_row: int) -> Iterator[RawBatch]:
    import duckdb
    import numpy as np
    import pyarrow as pa

    from curation.algorithms.records import gather, scan_lines

    mapped = {key: name for key, name in columns._asdict().items() if name is not None}
    pointers = {key: _json_pointer(name) for key, name in mapped.items()}
    fields = ", ".join(
        f"CASE WHEN kind = 'OBJECT' THEN json_extract_string(line, {pointer}) END AS {key}"
        for key, pointer in pointers.items()
    )
    query = _JSON_QUERY.format(fields=fields, text=pointers["text"])
    position = 0
    with duckdb.connect(":memory:") as database:
        for data, records, share in _blocks(path, lambda data, final: scan_lines(data, final=final)):
            numbers = np.arange(position, position + len(records.bounds))
            position += len(records.bounds)
            lines = gather(data, records.bounds[numbers >= first_row])
            numbers = numbers[numbers >= first_row]
            decoded, undecoded = _utf8(pl.Series(lines))
            blank = decoded.str.strip_chars().str.len_bytes().eq(0).fill_null(False).to_numpy()
            wrong = undecoded.to_numpy()
            faults = [_Fault(numbers[wrong], "bad_encoding", lines.filter(pa.array(wrong)))]
            numbers, decoded = numbers[~(blank | wrong)], decoded.filter(~(blank | wrong))
            database.register("lines", pa.table({"line": decoded.to_arrow().cast(pa.large_string())}))
            found = database.sql(query).to_arrow_table().combine_chunks()
            kind, text_type = pl.Series(found["kind"]), pl.Series(found["text_type"])
            no_object = (kind != "OBJECT").fill_null(True).to_numpy()
            no_text = ~(text_type.is_null() | text_type.is_in(["VARCHAR", "NULL"])).to_numpy() & ~no_object
            shown = decoded.to_arrow()
            faults += [
                _Fault(numbers[no_object], "bad_json", shown.filter(pa.array(no_object))),
                _Fault(numbers[no_text], "not_text", shown.filter(pa.array(no_text))),
            ]
            good = ~(no_object | no_text)
            arrays = {key: _joined(found[key]).filter(pa.array(good)) for key in mapped}
            yield _batch(numbers[good], arrays, faults, share)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    import pyarrow as pa

    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)
