"""Records of text files found in their bytes: CSV fields and lines, without losing count when rows are broken.

Library readers either stop at the first broken row or drop it in silence. Here a broken row costs itself alone: it is
reported with its bytes, and reading goes on in the next line. CSV is read as RFC 4180 has it, with LF or CRLF ends.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

__all__ = ["LONGEST_RECORD", "Records", "gather", "scan_csv", "scan_lines"]

LONGEST_RECORD = 1 << 26
"""Bytes after which an open quotation mark counts as a stray one."""

_SEPARATOR, _LINE_END, _DATA_END, _IN_QUOTES, _BROKEN = range(5)
_LF, _CR, _QUOTE = 10, 13, 34


class Records(NamedTuple):
    """Records found in a buffer; positions are byte offsets into it, ends are exclusive.

    Attributes:
        bounds: int64 (n, 2): first byte of the record and the byte after its last, the line end left out.
        broken: bool (n,): a quotation mark in the wrong place, or more or fewer fields than asked for.
        fields: int64 (n, w, 2): the wanted fields, quotation marks left out; (0, 0) in broken records.
        escaped: bool (n, w): the field holds doubled quotation marks.
        consumed: Bytes dealt with; what is left begins a record that the buffer does not hold as a whole.
    """

    bounds: np.ndarray
    broken: np.ndarray
    fields: np.ndarray
    escaped: np.ndarray
    consumed: int


@njit(nogil=True, cache=True)
def _find(data, at, byte):
    """Position of the next ``byte``; the length of ``data`` when there is none."""
    while at < data.size and data[at] != byte:
        at += 1
    return at


@njit(nogil=True, cache=True)
def _next_field(data, at, separator):
    """The field at ``at``: (first, end, position after it, what ended it, whether quotation marks are doubled)."""
    size = data.size
    escaped = False
    first = at
    if at < size and data[at] == _QUOTE:
        first = at + 1
        at = first
        while True:
            at = _find(data, at, _QUOTE)
            if at + 1 >= size:
                break
            if data[at + 1] != _QUOTE:
                break
            escaped = True
            at += 2
        if at >= size:
            return first, size, size, _IN_QUOTES, escaped
        end = at
        at += 1
    else:
        while at < size and data[at] != separator and data[at] != _LF:
            at += 1
        end = at
        if end > first and data[end - 1] == _CR and (at == size or data[at] == _LF):
            end -= 1
    if at < size and data[at] == _CR and (at + 1 == size or data[at + 1] == _LF):
        at += 1
    if at >= size:
        return first, end, at, _DATA_END, escaped
    if data[at] == separator:
        return first, end, at + 1, _SEPARATOR, escaped
    if data[at] == _LF:
        return first, end, at + 1, _LINE_END, escaped
    return first, end, at, _BROKEN, escaped


@njit(nogil=True, cache=True)
def _scan_csv(data, separator, slots, final, longest, bounds, broken, fields, escaped):
    """Fill the arrays; returns (records, consumed bytes). ``slots[k]``: place of field ``k``, -1 when unwanted."""
    size, columns = data.size, slots.size
    at, count = 0, 0
    while at < size:
        start = at
        if columns > 1 and (data[at] == _LF or (data[at] == _CR and at + 1 < size and data[at + 1] == _LF)):
            at = _find(data, at, _LF) + 1
            continue
        field, ended = 0, _SEPARATOR
        while ended == _SEPARATOR:
            first, end, at, ended, doubled = _next_field(data, at, separator)
            if field < columns and slots[field] >= 0:
                fields[count, slots[field], 0] = first
                fields[count, slots[field], 1] = end
                escaped[count, slots[field]] = doubled
            field += 1
        if not final and (ended == _DATA_END or (ended == _IN_QUOTES and size - start < longest)):
            return count, start
        if ended == _DATA_END:
            # A quotation mark as the very last byte may close a field or be the first of two: `final` settles it.
            at = size
        wrong = ended in (_IN_QUOTES, _BROKEN) or field != columns
        if wrong:
            # Only its first line is given up: a stray quotation mark must not take the rows after it along.
            line_end = _find(data, start, _LF)
            if line_end == size and not final:
                return count, start
            at = min(line_end + 1, size)
            fields[count] = 0
            escaped[count] = False
        stop = at
        if stop > start and data[stop - 1] == _LF:
            stop -= 1
        if stop > start and data[stop - 1] == _CR:
            stop -= 1
        bounds[count, 0], bounds[count, 1] = start, stop
        broken[count] = wrong
        count += 1
    return count, size


def scan_csv(
    data: np.ndarray, separator: int, columns: int, wanted: list[int], *, final: bool, longest: int = LONGEST_RECORD
) -> Records:
    """Records of CSV bytes.

    Args:
        data: uint8 buffer that begins with a record.
        separator: Byte between fields.
        columns: Fields a record must have. Empty lines are no records, except with a single column.
        wanted: Indices of the fields to report, each once.
        final: Whether the buffer ends with the file.
        longest: A quotation mark still open after so many bytes is a stray one.
    """
    most = int(np.count_nonzero(data == _LF)) + 1
    slots = np.full(columns, -1, np.int64)
    slots[wanted] = np.arange(len(wanted))
    bounds = np.empty((most, 2), np.int64)
    broken = np.empty(most, np.bool_)
    fields = np.zeros((most, len(wanted), 2), np.int64)
    escaped = np.zeros((most, len(wanted)), np.bool_)
    count, consumed = _scan_csv(data, separator, slots, final, longest, bounds, broken, fields, escaped)
    return Records(bounds[:count], broken[:count], fields[:count], escaped[:count], consumed)


def scan_lines(data: np.ndarray, *, final: bool) -> Records:
    """Lines of ``data`` as records of one field, the line without its end; empty lines are records too."""
    ends = np.flatnonzero(data == _LF)
    consumed = int(ends[-1]) + 1 if len(ends) else 0
    if final and consumed < data.size:
        ends, consumed = np.append(ends, data.size), data.size
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])[: len(ends)]
    bounds = np.stack([starts, ends - ((ends > starts) & (data[ends - 1] == _CR))], axis=1)
    none = np.zeros(len(ends), np.bool_)
    return Records(bounds, none, bounds[:, None, :], none[:, None], consumed)


@njit(nogil=True, cache=True)
def _measure(data, spans, escaped, starts):
    for row in range(spans.shape[0]):
        length = spans[row, 1] - spans[row, 0]
        if escaped[row]:
            at = spans[row, 0]
            while at < spans[row, 1]:
                if data[at] == _QUOTE:
                    at += 1
                    length -= 1
                at += 1
        starts[row + 1] = starts[row] + length


@njit(nogil=True, cache=True)
def _copy(data, spans, escaped, starts, out):
    for row in range(spans.shape[0]):
        to, at = starts[row], spans[row, 0]
        if not escaped[row]:
            out[to : starts[row + 1]] = data[at : spans[row, 1]]
            continue
        while at < spans[row, 1]:
            out[to] = data[at]
            to += 1
            at += 2 if data[at] == _QUOTE else 1


def gather(data: np.ndarray, spans: np.ndarray, escaped: np.ndarray | None = None) -> pa.LargeBinaryArray:
    """The bytes of ``spans`` (int64 (n, 2)) of ``data``; doubled quotation marks become one where ``escaped``."""
    spans = np.ascontiguousarray(spans)
    if escaped is None:
        escaped = np.zeros(len(spans), np.bool_)
    starts = np.zeros(len(spans) + 1, np.int64)
    _measure(data, spans, escaped, starts)
    out = np.empty(starts[-1], np.uint8)
    _copy(data, spans, escaped, starts, out)
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(spans), [None, pa.py_buffer(starts), pa.py_buffer(out)]
    )
