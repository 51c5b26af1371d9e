from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.records import gather, scan_csv, scan_lines


def buffer(text: str | bytes) -> np.ndarray:
    return np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)


def read(text: str, columns: int, wanted: list[int] | None = None, **options) -> list:
    """Records as lists of their fields; a broken one as its text."""
    data = buffer(text)
    records = scan_csv(data, ord(","), columns, wanted or list(range(columns)), final=True, **options)
    assert records.consumed == len(data)
    fields = [
        gather(data, records.fields[:, k], records.escaped[:, k]).to_pylist() for k in range(records.fields.shape[1])
    ]
    return [
        bytes(data[start:end]).decode() if broken else [field[row].decode() for field in fields]
        for row, ((start, end), broken) in enumerate(zip(records.bounds, records.broken, strict=True))
    ]


def test_fields_quotes_and_line_ends():
    assert read('a,b\r\n"x, ""y""",\n\n"two\nlines",z', 2) == [["a", "b"], ['x, "y"', ""], ["two\nlines", "z"]]


def test_only_wanted_fields_are_given_in_the_order_asked_for():
    assert read("a,b,c\nd,e,f\n", 3, [2, 0]) == [["c", "a"], ["f", "d"]]


def test_a_quotation_mark_inside_an_unquoted_field_is_text():
    assert read('5" screen,b\n', 2) == [['5" screen', "b"]]


def test_rows_with_too_few_or_too_many_fields_are_broken_alone():
    assert read("a,b\nc\nd,e,f\ng,h\n", 2) == [["a", "b"], "c", "d,e,f", ["g", "h"]]


def test_a_stray_opening_quote_gives_up_its_own_line_only():
    assert read('1,"open\n2,fine\n3,"closed"\n4,last\n', 2) == [
        '1,"open',
        ["2", "fine"],
        ["3", "closed"],
        ["4", "last"],
    ]
    assert read('1,"open to the end\n2,fine', 2) == ['1,"open to the end', ["2", "fine"]]


def test_text_after_a_closing_quote_is_broken():
    assert read('1,"a"b\n2,c\n', 2) == ['1,"a"b', ["2", "c"]]


def test_an_open_quote_is_a_stray_one_when_the_record_gets_too_long():
    data = buffer('"' + "x\n" * 50)
    records = scan_csv(data, ord(","), 1, [0], final=False, longest=40)
    assert records.broken[0] and not records.broken[1:].any()
    assert len(records.bounds) == 50


def test_an_empty_line_is_a_record_only_when_there_is_one_column():
    assert read("a\n\nb\n", 1) == [["a"], [""], ["b"]]
    assert read("a,b\n\n\r\nc,d\n", 2) == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize("text", ['a,"b""c"\n"d\ne",f\n', "a,b\r\nc,d\r\n", 'a,""\n"",b'])
def test_what_does_not_fit_into_the_buffer_is_left_for_the_next(text):
    whole = read(text, 2)
    for cut in range(len(text)):
        data = buffer(text[:cut])
        first = scan_csv(data, ord(","), 2, [0, 1], final=False)
        rows = [
            [gather(data, first.fields[:, k], first.escaped[:, k]).to_pylist()[row].decode() for k in range(2)]
            for row in range(len(first.bounds))
        ]
        assert not first.broken.any()
        assert rows + read(text[first.consumed :], 2) == whole


cells = st.text(st.sampled_from('ab",;\n\r 京é'), max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=8))
def test_reads_what_the_standard_library_writes(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    assert read(out.getvalue(), 2) == [list(row) for row in rows]


@settings(deadline=None)
@given(st.text(st.sampled_from('a",\n\r'), max_size=40))
def test_every_line_is_accounted_for(text):
    """Whatever the bytes are, records cover all non-empty lines without overlap."""
    data = buffer(text)
    records = scan_csv(data, ord(","), 2, [0, 1], final=True)
    ends = [0, *records.bounds[:, 1]]
    for start, before in zip(records.bounds[:, 0], ends, strict=False):
        assert start >= before
        assert not text[before:start].strip("\r\n")
    assert not text[ends[-1] :].strip("\r\n")


def test_lines_keep_their_count_and_lose_their_ends():
    data = buffer("a\r\n\nb\nc")
    assert gather(data, scan_lines(data, final=True).bounds).to_pylist() == [b"a", b"", b"b", b"c"]
    part = scan_lines(data, final=False)
    assert (gather(data, part.bounds).to_pylist(), part.consumed) == ([b"a", b"", b"b"], 6)
    assert len(scan_lines(buffer(""), final=True).bounds) == 0
    assert len(scan_lines(buffer("abc"), final=False).bounds) == 0
