"""A shelf: numbered pieces of work, set aside in a directory so that a killed run finds them again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Shelf"]


class Shelf:
    """Arrow tables by number and kind, each number with a note (JSON) that is written last and says it is whole.

    Args:
        directory: Where it lies; numbers that follow one another from 0 are taken up, all others are dropped.

    Attributes:
        notes: The notes of the numbers that are whole.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.notes: dict[int, Any] = {}
        while (note := self.note(f"{len(self.notes):06d}")) is not None:
            self.notes[len(self.notes)] = note
        for file in directory.iterdir():
            prefix = file.name.partition(".")[0]
            if file.name.startswith(".") or (prefix.isdigit() and int(prefix) >= len(self.notes)):
                file.unlink()

    def put(self, number: int, tables: dict[str, pl.DataFrame], note: Any, cuts: dict[str, list[int]]) -> None:
        """Set tables aside, then the note. Threads may put different numbers at the same time.

        Args:
            number: Of the piece of work.
            tables: By kind.
            note: Anything that JSON can say.
            cuts: By kind, the lengths of the sections of a table that are read one by one; others are one section.
        """
        for kind, frame in tables.items():
            self._write(f"{number:06d}.{kind}", frame, cuts.get(kind, [frame.height]))
        self.put_note(f"{number:06d}", note)
        self.notes[number] = note

    def take(
        self, number: int, kind: str, columns: list[str] | None = None, sections: Iterable[int] | None = None
    ) -> pl.DataFrame:
        """A table, or only some columns or sections of it."""
        import pyarrow as pa

        with pa.memory_map(str(self._directory / f"{number:06d}.{kind}")) as source:
            schema = pa.ipc.open_file(source).schema
            fields = None if columns is None else [schema.get_field_index(name) for name in columns]
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=fields))
            if sections is None:
                return pl.DataFrame(reader.read_all())
            return pl.DataFrame(pa.Table.from_batches([reader.get_batch(section) for section in sections]))

    def put_note(self, name: str, note: Any) -> None:
        """Write a note so that it is there as a whole or not at all."""
        self._replace(f"{name}.json", json.dumps(note, sort_keys=True).encode())

    def note(self, name: str) -> Any:
        """A note, or None if there is none of that name."""
        path = self._directory / f"{name}.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def _write(self, name: str, frame: pl.DataFrame, lengths: Iterable[int]) -> None:
        import pyarrow as pa

        table = frame.to_arrow().combine_chunks()
        temporary = self._directory / f".{name}"
        with pa.OSFile(str(temporary), "wb") as sink:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            with pa.ipc.new_file(sink, table.schema, options=options) as writer:
                start = 0
                for length in lengths:
                    writer.write_batch(_section(table, start, length))
                    start += length
        temporary.replace(self._directory / name)

    def _replace(self, name: str, content: bytes) -> None:
        temporary = self._directory / f".{name}"
        with temporary.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self._directory / name)


def _section(table: pa.Table, start: int, length: int) -> pa.RecordBatch:
    import pyarrow as pa

    batches = table.slice(start, length).to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
