"""Ingest: any raw log becomes distinct normalised queries, with a ledger of every raw row.

Three phases, each taken up where a killed run stopped:

1. *Read*: the log is cut into batches of about a million raw rows. Texts are made distinct first; what is left is
   screened, tidied to one line, masked and normalised. Groups (surface form, source, count, times) are set aside by
   the top bits of their id, and with them which group each row belongs to.
2. *Merge*: partition by partition, the groups of all batches become ``queries``.
3. *Ledger*: batch by batch, the rows become ``occurrences``, refused rows go to ``rejects``.

The output depends neither on the order of the rows (but for ``occurrences``, which follow it) nor on how they are cut
into files and batches, nor on threads.

Metrics: ``unread_times`` (rows whose time stamp could not be read), ``masked_<kind>`` (rows in which personal data
was masked), ``id_collisions`` (normal forms whose hash another one has).
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from pydantic import Field, field_validator

from curation.algorithms.mask import KINDS, PLACEHOLDERS, Kind, mask, masked_kinds, without_placeholders
from curation.algorithms.scripts import DEFAULT_LANGUAGES, LANGUAGES
from curation.engine.stage import Account, Context, Params, Part, Stage

if TYPE_CHECKING:
    from curation.algorithms.distinct import Collision
    from curation.engine.recipe import LogSource
    from curation.engine.shelf import Shelf

__all__ = ["STAGE", "IngestParams", "run"]

ROWS_PER_PART = 2_000_000
ROWS_PER_MERGE = 500_000
_BYTES_A_ROW = 1_000  # of memory while a batch is worked on; measured 400 with texts of 36 bytes
_TEXT_BYTES_A_ROW = 200  # a batch of longer texts has fewer rows
_REJECT_CHARS, _REJECT_MARGIN = 1_000, 200  # the margin keeps personal data whole that the cut would split


class IngestParams(Params):
    """What counts as a query, and what is kept of it."""

    max_chars: int = Field(
        2_000, ge=1, description="longest query in characters; longer rows are rejected (too_long)"
    )
    min_chars: int | None = Field(
        None, ge=1, description="shortest query in characters; no limit unless set (too_short)"
    )
    max_control_share: float = Field(
        0.1, ge=0, le=1, description="largest share of control and replacement characters (control_characters)"
    )
    mask: tuple[Kind, ...] = Field(KINDS, description="kinds of personal data that placeholders replace")
    languages: tuple[str, ...] = Field(
        DEFAULT_LANGUAGES, description="languages to tell apart, ISO 639-1; the first of each script is preferred"
    )
    occurrences: bool = Field(True, description="write the ledger line of every raw row (table occurrences)")
    batch_rows: int = Field(1_000_000, ge=1, description="raw rows worked on at a time; sets the memory needed")

    @field_validator("mask")
    @classmethod
    def _in_order(cls, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        return tuple(sorted(set(kinds)))

    @field_validator("languages")
    @classmethod
    def _known(cls, languages: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [language for language in languages if language not in LANGUAGES]
        if unknown:
            raise ValueError(f"unknown language {unknown[0]!r}; known are {', '.join(sorted(LANGUAGES))}")
        return tuple(dict.fromkeys(languages))


def run(ctx: Context) -> None:
    """Build ``queries``, ``occurrences`` and the rejects of the raw log."""
    from curation.engine.readers import check_log
    from curation.engine.shelf import Shelf

    check_log(ctx.log)
    shelf = Shelf(ctx.keep)
    _read(ctx, shelf)
    collisions = _merge(ctx, shelf)
    _write_ledger(ctx, shelf, collisions)


def _lanes(ctx: Context) -> int:
    """Batches worked on at the same time."""
    return max(1, min(ctx.workers, ctx.memory // (2 * _BYTES_A_ROW * ctx.params.batch_rows)))


# -- phase 1: read


@dataclass(frozen=True)
class _Batch:
    """Raw rows cut from the log.

    ``rows`` and ``faults`` are those of :class:`curation.engine.readers.RawBatch` with the number of the ``file``.
    ``next`` is the file and the row where the following batch begins; ``share`` of the log has been read by then.
    """

    rows: pl.DataFrame
    faults: pl.DataFrame
    unread_times: int
    next: tuple[int, int]
    share: float


def _cut(log: LogSource, batch_rows: int, start: tuple[int, int]) -> Iterator[_Batch]:
    """Batches from ``start`` (file, row) on: pieces of files put together to about ``batch_rows`` rows."""
    from curation.engine.readers import read_batches

    files = log.files()
    sizes = [max(file.stat().st_size, 1) for file in files]
    rows: list[pl.DataFrame] = []
    faults: list[pl.DataFrame] = []
    unread, held, text_bytes, position = 0, 0, 0, start

    def batch() -> _Batch:
        return _Batch(pl.concat(rows), pl.concat(faults), unread, position, share)

    for number in range(start[0], len(files)):
        first_row = start[1] if number == start[0] else 0
        for piece in read_batches(files[number], log, rows=min(batch_rows, 250_000), first_row=first_row):
            file = pl.lit(number, dtype=pl.UInt32).alias("file")
            rows.append(piece.rows.select(file, pl.all()))
            faults.append(piece.faults.select(file, pl.all()))
            unread += piece.unread_times
            held += len(piece.rows) + len(piece.faults)
            text_bytes += int(piece.rows["text"].str.len_bytes().sum())
            position = (number, 1 + max(int(frame["row"][-1]) for frame in (piece.rows, piece.faults) if len(frame)))
            share = (sum(sizes[:number]) + piece.share * sizes[number]) / sum(sizes)
            if held >= batch_rows or text_bytes >= batch_rows * _TEXT_BYTES_A_ROW:
                yield batch()
                rows, faults, unread, held, text_bytes = [], [], 0, 0, 0
    if held:
        yield batch()


def _read(ctx: Context, shelf: Shelf) -> None:
    """Set every batch of the log aside."""
    lanes = _lanes(ctx)
    start = tuple(shelf.notes[len(shelf.notes) - 1]["next"]) if shelf.notes else (0, 0)
    done = sum(note["rows"] + note["rejected"] for note in shelf.notes.values())
    waiting: deque[Future[None]] = deque()
    with ThreadPoolExecutor(lanes) as pool:
        for number, batch in enumerate(_cut(ctx.log, ctx.params.batch_rows, start), len(shelf.notes)):
            waiting.append(pool.submit(_digest, ctx, shelf, number, batch))
            done += len(batch.rows) + len(batch.faults)
            while len(waiting) >= lanes:
                waiting.popleft().result()
            ctx.progress(done, max(done, round(done / max(batch.share, 1e-9))), "reading")
        for future in waiting:
            future.result()


def _digest(ctx: Context, shelf: Shelf, number: int, batch: _Batch) -> None:
    """Set aside the groups, rows and refused rows of a batch."""
    import numpy as np

    from curation.algorithms.distinct import PARTITION_BITS, encode, group_rows, partition_of
    from curation.algorithms.screen import screen, tidy

    params: IngestParams = ctx.params
    codes, texts = encode(batch.rows["text"])
    reasons = screen(
        texts,
        max_chars=params.max_chars,
        min_chars=params.min_chars,
        max_control_share=params.max_control_share,
    )
    queries = reasons.is_null().arg_true()
    places, surfaces = encode(mask(tidy(texts.gather(queries)), params.mask))
    norms, ids = _identified(surfaces, 1 if _lanes(ctx) > 1 else ctx.workers)

    # One more place, for the texts that are missing: their code is -1.
    slots = np.full(len(texts) + 1, -1, np.int64)
    slots[queries.to_numpy()] = places
    invisible = np.flatnonzero((slots >= 0) & (norms == "").to_numpy()[slots] if len(norms) else slots >= 0)
    slots[invisible] = -1
    reasons = reasons.scatter(invisible, "empty").append(pl.Series(["null_text"]))

    rows = batch.rows.with_columns(slot=pl.Series(slots[codes]))
    groups = group_rows(rows.filter(pl.col("slot") >= 0).select("slot", "source", "time"))
    at = groups["slot"]
    groups = groups.with_columns(query_id=ids.gather(at), norm=norms.gather(at), text=surfaces.gather(at))
    partitions = partition_of(groups["query_id"].to_numpy())
    groups = groups[np.argsort(partitions, kind="stable")]
    rejects = _refused(rows.with_columns(code=pl.Series(codes)), texts, reasons, batch.faults, params)
    shelf.put(
        number,
        {
            "groups": groups,
            "rows": rows.filter(pl.col("slot") >= 0).select("file", "row", pl.col("slot").cast(pl.UInt32)),
            "rejects": rejects,
        },
        {
            "rows": int(groups["count"].sum()),
            "rejected": len(rejects),
            "unread_times": batch.unread_times,
            "next": batch.next,
        },
        {"groups": np.bincount(partitions, minlength=1 << PARTITION_BITS).tolist()},
    )


def _identified(surfaces: pl.Series, workers: int) -> tuple[pl.Series, pl.Series]:
    """(normal form, id) of each surface form."""
    import pyarrow as pa

    from curation.algorithms import normalise

    norms = normalise.normalise(surfaces.to_arrow().cast(pa.large_string()), workers)
    return pl.Series(norms, dtype=pl.String), pl.Series(normalise.query_ids(norms), dtype=pl.UInt64)


def _refused(
    rows: pl.DataFrame, texts: pl.Series, reasons: pl.Series, faults: pl.DataFrame, params: IngestParams
) -> pl.DataFrame:
    """``file``, ``row``, ``reason`` and ``text`` (masked, cut, fit to be shown) of the refused rows, in order."""
    from curation.algorithms.screen import shown

    def fit(raw: pl.Series) -> pl.Series:
        return shown(mask(raw.str.slice(0, _REJECT_CHARS + _REJECT_MARGIN), params.mask), _REJECT_CHARS)

    refused = rows.filter(pl.col("slot") < 0).select("file", "row", "code")
    code = pl.when(pl.col("code") < 0).then(len(texts)).otherwise("code")
    different = refused.select(code.unique().sort()).to_series()
    why = pl.DataFrame(
        {
            "code": different,
            "reason": reasons.gather(different),
            "text": fit(texts.extend_constant(None, 1).gather(different)),
        }
    )
    refused = refused.with_columns(code=code).join(why, on="code", how="left").drop("code")
    faults = faults.with_columns(text=fit(faults["text"])) if len(faults) else faults
    return pl.concat([refused, faults.select(refused.columns)]).sort("file", "row")


# -- phase 2: merge


class _Merged(NamedTuple):
    """Queries of some partitions, collisions of ids among them, raw rows by kind of personal data masked."""

    queries: pl.DataFrame
    collisions: list[Collision]
    masked: dict[Kind, int]


def _merge(ctx: Context, shelf: Shelf) -> list[Collision]:
    """Write ``queries``; returns the collisions of ids there were."""
    from curation.algorithms.distinct import PARTITION_BITS, Collision

    accepted, partitions = sum(note["rows"] for note in shelf.notes.values()), 1 << PARTITION_BITS
    # Parts go by raw rows, which do not depend on batches; so neither do the part files.
    parts = _pieces(accepted, ROWS_PER_PART, partitions)
    width = partitions // parts
    step = width // _pieces(accepted // parts, ROWS_PER_MERGE, width)
    notes = []
    with ThreadPoolExecutor(_lanes(ctx)) as pool:
        for number in range(parts):
            name, first = f"queries-{number:02d}", number * width
            with ctx.part(name) as part:
                if not part.done:
                    chosen = [range(at, at + step) for at in range(first, first + width, step)]
                    merged = list(pool.map(lambda some: _merge_partitions(ctx, shelf, some), chosen))
                    shelf.put_note(name, _write_queries(part, merged))
                notes.append(shelf.note(name))
                if number == parts - 1 and not part.done:
                    _report(part, shelf, notes)
            ctx.progress(number + 1, parts, "merging")
    return [Collision(*collision) for note in notes for collision in note["collisions"]]


def _pieces(total: int, size: int, most: int) -> int:
    """The smallest power of two, up to ``most``, that cuts ``total`` to pieces of at most ``size``."""
    pieces = 1
    while pieces < most and total > pieces * size:
        pieces *= 2
    return pieces


def _write_queries(part: Part, merged: list[_Merged]) -> dict[str, Any]:
    """Write and account for the queries of a part; returns the note about it."""
    queries = pl.concat([some.queries for some in merged])
    kept, rows = len(queries), int(queries["count"].sum())
    part.write("queries", queries)
    part.account(Account(rows_in=rows, kept=kept, merged=rows - kept, weight_in=rows, weight_out=rows))
    return {
        "collisions": [collision for some in merged for collision in some.collisions],
        "masked": {kind: sum(some.masked[kind] for some in merged) for kind in PLACEHOLDERS},
    }


def _report(part: Part, shelf: Shelf, notes: list[dict[str, Any]]) -> None:
    part.metric("unread_times", sum(note["unread_times"] for note in shelf.notes.values()), "rows")
    part.metric("id_collisions", sum(len(note["collisions"]) for note in notes), "queries")
    for kind in PLACEHOLDERS:
        part.metric(f"masked_{kind}", sum(note["masked"][kind] for note in notes), "rows")


def _merge_partitions(ctx: Context, shelf: Shelf, partitions: range) -> _Merged:
    from curation.algorithms.distinct import merge_groups, separate
    from curation.algorithms.language import detect

    columns = ["query_id", "norm", "text", "source", "count", "first", "last"]
    batches = [shelf.take(number, "groups", columns, partitions) for number in sorted(shelf.notes)]
    if not batches:
        return _Merged(_no_queries(), [], dict.fromkeys(PLACEHOLDERS, 0))
    groups, collisions = separate(pl.concat(batches))
    queries, surfaces = merge_groups(groups)
    words = without_placeholders(queries["text"])
    lang, script = detect(words, ctx.params.languages, 1 if _lanes(ctx) > 1 else ctx.workers)
    queries = queries.with_columns(
        lang=lang,
        script=script,
        n_chars=pl.col("norm").str.len_chars().cast(pl.Int32),
        masked=masked_kinds(queries["text"]),
    )
    marked = surfaces.filter(pl.col("text").str.contains("<", literal=True))
    masked = {
        kind: int(marked.filter(pl.col("text").str.contains(placeholder, literal=True))["count"].sum())
        for kind, placeholder in PLACEHOLDERS.items()
    }
    return _Merged(queries, collisions, masked)


def _no_queries() -> pl.DataFrame:
    from schemas import load

    return load("queries").schema.create_empty()


# -- phase 3: ledger


def _write_ledger(ctx: Context, shelf: Shelf, collisions: list[Collision]) -> None:
    """Write ``occurrences`` and the rejects."""
    names = pl.Series(
        [os.path.relpath(file, ctx.log.root).replace(os.sep, "/") for file in ctx.log.files()], dtype=pl.String
    )
    for number in sorted(shelf.notes):
        rejected = shelf.notes[number]["rejected"]
        if ctx.params.occurrences or rejected:
            with ctx.part(f"rows-{number:06d}") as part:
                if not part.done:
                    if ctx.params.occurrences:
                        part.write("occurrences", _occurrences(shelf, number, names, collisions))
                    rejects = shelf.take(number, "rejects")
                    part.reject(rejects.with_columns(file=names.gather(rejects["file"]), weight=pl.lit(1, pl.Int64)))
                    part.account(Account(rows_in=rejected, kept=0, weight_in=rejected))
        ctx.progress(number + 1, len(shelf.notes), "writing the ledger")


def _occurrences(shelf: Shelf, number: int, names: pl.Series, collisions: list[Collision]) -> pl.DataFrame:
    import numpy as np

    from curation.algorithms.distinct import replace_ids

    rows = shelf.take(number, "rows")
    groups = shelf.take(number, "groups", ["slot", "query_id"] + (["norm"] if collisions else []))
    groups = replace_ids(groups, collisions)
    slots = groups["slot"].to_numpy()
    ids = np.zeros(slots.max(initial=0) + 1, np.uint64)
    ids[slots] = groups["query_id"].to_numpy()
    query_id = pl.Series(ids[rows["slot"].to_numpy()], dtype=pl.UInt64)
    return rows.select(file=names.gather(rows["file"]), row="row", query_id=query_id)


STAGE = Stage(
    name="ingest",
    run=run,
    params=IngestParams,
    makes=("queries", "occurrences"),
    title="raw log to distinct queries",
    source="log",
    seeded=False,
    libraries=("polars", "polars-hash", "pyarrow", "duckdb", "py3langid"),
    free=("batch_rows",),
)
