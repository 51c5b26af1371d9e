from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curation.engine import formats
from curation.engine.readers import check_log, log_files, read_batches
from curation.engine.recipe import LogSource
from curation.errors import CurationError


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def read(path: Path, **columns) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """(rows, faults, unread times) of a whole file."""
    options = {name: columns.pop(name) for name in ("rows", "first_row") if name in columns}
    batches = list(read_batches(path, LogSource(path=path, **columns), **options))
    rows = pl.concat([batch.rows for batch in batches])
    return rows, pl.concat([batch.faults for batch in batches]), sum(batch.unread_times for batch in batches)


def check(path: Path, **columns) -> CurationError:
    with pytest.raises(CurationError) as error:
        check_log(LogSource(path=path, **columns))
    assert error.value.hint
    return error.value


# -- files


def test_files_of_a_directory_are_sorted_by_path_and_hidden_ones_skipped(tmp_path):
    touch(tmp_path, "b/x.parquet", "b-c/x.csv.gz", "a.JSONL", "_tmp/x.csv", ".h.csv", "_SUCCESS", "notes.txt")
    names = [file.relative_to(tmp_path).as_posix() for file in log_files(tmp_path)]
    assert names == ["a.JSONL", "b-c/x.csv.gz", "b/x.parquet"]
    assert [file.name for file in log_files(tmp_path, "parquet")] == ["x.parquet"]


def test_links_are_followed_but_not_in_circles(tmp_path):
    touch(tmp_path, "real/a.csv", "log/b.csv")
    (tmp_path / "log" / "linked").symlink_to(tmp_path / "real")
    (tmp_path / "log" / "circle").symlink_to(tmp_path / "log")
    names = [file.relative_to(tmp_path / "log").as_posix() for file in log_files(tmp_path / "log")]
    assert names == ["b.csv", "linked/a.csv"]


def test_files_of_a_glob_and_a_single_file(tmp_path):
    touch(tmp_path, "2026-07/a.csv", "2026-08/a.csv", "2026-08/deep/b.csv", "other/a.csv", "_odd")
    assert len(log_files(tmp_path / "2026-*" / "*.csv")) == 2
    assert len(log_files(tmp_path / "2026-*" / "**" / "*.csv")) == 3
    assert log_files(tmp_path / "_odd", "csv") == [tmp_path / "_odd"]


def test_e6_a_log_that_is_not_there_or_holds_nothing_is_a_sentence(tmp_path):
    touch(tmp_path, "odd")
    for path, format, said in (
        (tmp_path / "none", "auto", "does not exist"),
        (tmp_path / "*.csv", "auto", "no file that ends in"),
        (tmp_path, "jsonl", ".ndjson"),
        (tmp_path / "odd", "auto", "says no format"),
    ):
        with pytest.raises(CurationError, match=said) as error:
            log_files(path, format)
        assert "log." in error.value.hint


# -- checks


def test_e6_a_missing_text_column_is_named_with_what_is_there(tmp_path):
    file = tmp_path / "a.parquet"
    pl.DataFrame({"Query": ["x"], "ts": [1]}).write_parquet(file)
    error = check(file)
    assert str(file) in error.message and "Query, ts" in error.message
    assert "'Query'" in error.hint and "log.text" in error.hint
    error = check(file, text="Query", time="tz")
    assert "'ts'" in error.hint and "log.time" in error.hint


@pytest.mark.parametrize("values", [[1], [[1]], [{"a": 1}], [True]])
def test_e6_a_text_column_of_another_type_is_refused(tmp_path, values):
    pl.DataFrame({"query": values, "said": ["x"]}).write_parquet(tmp_path / "a.parquet")
    error = check(tmp_path)
    assert "'query'" in error.message and "not text" in error.message
    assert "'said'" in error.hint


def test_e6_columns_that_are_not_mapped_do_not_matter(tmp_path):
    pl.DataFrame({"query": ["x"], "extra": [[1]]}).write_parquet(tmp_path / "a.parquet")
    check_log(LogSource(path=tmp_path))
    assert read(tmp_path / "a.parquet")[0].columns == ["row", "text", "time", "source"]


def test_e6_time_and_source_of_types_that_cannot_hold_them(tmp_path):
    pl.DataFrame({"query": ["x"], "on": [True], "tags": [["x"]]}).write_parquet(tmp_path / "a.parquet")
    assert "log.time" in check(tmp_path, time="on").hint
    assert "log.source" in check(tmp_path, source="tags").hint


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all"])
def test_e4_a_file_that_is_no_parquet_is_named(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    assert "a.parquet is damaged or not a Parquet file" in check(tmp_path).message


def test_e4_a_truncated_parquet_file_is_named(tmp_path):
    file = tmp_path / "a.parquet"
    pl.DataFrame({"query": ["x"] * 1000}).write_parquet(file)
    file.write_bytes(file.read_bytes()[:-20])
    assert str(file) in check(tmp_path).message


def test_e4_damage_inside_a_parquet_file_is_a_sentence_naming_the_file(tmp_path):
    file = tmp_path / "a.parquet"
    pl.DataFrame({"query": [f"{i} {i * i}" for i in range(50_000)]}).write_parquet(file, compression="zstd")
    content = bytearray(file.read_bytes())
    content[200 : len(content) // 2] = b"\x00" * (len(content) // 2 - 200)
    file.write_bytes(content)
    check_log(LogSource(path=file))
    with pytest.raises(CurationError, match="damaged at or after row"):
        read(file)


def test_csv_and_jsonl_checks(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text("time;Text\n1;x\n")
    assert "time, Text" in check(file, text="text").message
    file.write_text("query,query\n")
    assert "more than one" in check(file).message
    file.write_bytes("query,x\n".encode("utf-16"))
    assert "UTF-8" in check(file).message
    file = tmp_path / "a.jsonl"
    file.write_text('{"q": "x"}\n{"text": 5}\n')
    assert "q, text" in check(file, text="query").message
    assert "int" in check(file, text="text").message
    file.write_text('[{"query": "x"}]')
    assert "JSON array" in check(file).message
    file.write_text("query\nx\n")
    assert "no line is a JSON object" in check(file).message
    file.write_text("")
    check_log(LogSource(path=file))


# -- Parquet


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.binary_view(), pa.large_binary(),
     pa.dictionary(pa.int8(), pa.string())],
)  # fmt: skip
def test_text_of_any_arrow_type(tmp_path, kind):
    texts = pa.array(["关灯", "play", None, "play", ""]).cast(kind)
    pq.write_table(pa.table({"query": texts}), tmp_path / "a.parquet")
    check_log(LogSource(path=tmp_path))
    rows, faults, _ = read(tmp_path / "a.parquet")
    assert rows["text"].to_list() == ["关灯", "play", None, "play", ""]
    assert rows["row"].to_list() == [0, 1, 2, 3, 4]
    assert faults.is_empty()


def test_a_text_column_without_any_value(tmp_path):
    pq.write_table(pa.table({"query": pa.nulls(3)}), tmp_path / "a.parquet")
    check_log(LogSource(path=tmp_path))
    assert read(tmp_path / "a.parquet")[0]["text"].null_count() == 3


def test_text_that_is_not_utf8_is_a_fault_even_in_a_string_column(tmp_path):
    bad = pa.Array.from_buffers(pa.string(), 3, pa.array([b"ok", b"\xff\xfe", b"fine"]).buffers())
    pq.write_table(pa.table({"query": bad}), tmp_path / "a.parquet")
    rows, faults, _ = read(tmp_path / "a.parquet")
    assert rows["text"].to_list() == ["ok", "fine"]
    assert rows["row"].to_list() == [0, 2]
    assert faults.rows() == [(1, "bad_encoding", "\ufffd\ufffd")]


def test_batches_are_bounded_whatever_the_row_groups(tmp_path):
    file = tmp_path / "a.parquet"
    pl.DataFrame({"query": [str(i) for i in range(1000)]}).write_parquet(file, row_group_size=700)
    batches = list(read_batches(file, LogSource(path=file), rows=64))
    assert max(len(batch.rows) for batch in batches) == 64
    assert pl.concat([batch.rows["text"] for batch in batches]).to_list() == [str(i) for i in range(1000)]
    assert batches[-1].share == 1.0


def test_batches_get_smaller_where_rows_are_long(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "BATCH_BYTES", 1 << 16)
    file = tmp_path / "a.parquet"
    texts = [f"{i:05}" * 1000 for i in range(200)]
    pq.write_table(pa.table({"query": texts}), file, use_dictionary=False)
    batches = list(read_batches(file, LogSource(path=file)))
    assert len(batches) > 10
    assert pl.concat([batch.rows["text"] for batch in batches]).to_list() == texts


@pytest.mark.parametrize("first_row", [0, 1, 99, 100, 101, 350, 1000])
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_reading_goes_on_from_any_row(tmp_path, ending, first_row, monkeypatch):
    monkeypatch.setattr(formats, "BLOCK", 300)
    file = tmp_path / f"a.{ending}"
    frame = pl.DataFrame({"query": [f"q{i}" for i in range(400)], "ts": ["?"] * 400})
    if ending == "parquet":
        frame.write_parquet(file, row_group_size=100)
    elif ending == "csv":
        frame.write_csv(file)
    else:
        frame.write_ndjson(file)
    batches = list(read_batches(file, LogSource(path=file, time="ts"), rows=33, first_row=first_row))
    numbers = [row for batch in batches for row in batch.rows["row"].to_list()]
    assert numbers == list(range(first_row, 400))
    assert sum(batch.unread_times for batch in batches) == len(numbers)


@pytest.mark.parametrize(
    "times",
    [
        pa.array([datetime(2026, 7, 1, 8)], pa.timestamp("s")),
        pa.array([datetime(2026, 7, 1, 8)], pa.timestamp("ns")),
        pa.array(
            [datetime(2026, 7, 1, 16, tzinfo=timezone(timedelta(hours=8)))], pa.timestamp("ms", "Asia/Shanghai")
        ),
        pa.array([int(datetime(2026, 7, 1, 8, tzinfo=UTC).timestamp())]),
        pa.array([int(datetime(2026, 7, 1, 8, tzinfo=UTC).timestamp() * 1000)]),
        pa.array(["2026-07-01T10:00:00+02:00"]),
        pa.array(["2026-07-01 08:00:00"]).dictionary_encode(),
    ],
)
def test_time_stamps_of_any_type_come_out_in_utc(tmp_path, times):
    pq.write_table(pa.table({"query": ["x"], "ts": times}), tmp_path / "a.parquet")
    check_log(LogSource(path=tmp_path, time="ts"))
    rows, _, unread = read(tmp_path / "a.parquet", time="ts")
    assert rows["time"].to_list() == [datetime(2026, 7, 1, 8)]
    assert unread == 0


def test_dates_and_unreadable_times(tmp_path):
    pl.DataFrame({"query": ["x"], "ts": [date(2026, 7, 1)]}).write_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", time="ts")[0]["time"].to_list() == [datetime(2026, 7, 1)]
    pl.DataFrame({"query": ["x"] * 4, "ts": ["soon", "", None, "2026-07-01"]}).write_parquet(tmp_path / "b.parquet")
    rows, faults, unread = read(tmp_path / "b.parquet", time="ts")
    assert rows["time"].to_list() == [None, None, None, datetime(2026, 7, 1)]
    assert (unread, len(faults)) == (1, 0)


def test_sources_of_any_type_are_text(tmp_path):
    for values in (["app", None, ""], pl.Series(["app", None, ""], dtype=pl.Categorical)):
        pl.DataFrame({"query": ["x"] * 3, "from": values}).write_parquet(tmp_path / "a.parquet")
        assert read(tmp_path / "a.parquet", source="from")[0]["source"].to_list() == ["app", None, None]
    pl.DataFrame({"query": ["x"], "from": [7]}).write_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", source="from")[0]["source"].to_list() == ["7"]


def test_one_column_may_serve_twice(tmp_path):
    pl.DataFrame({"query": ["x"]}).write_parquet(tmp_path / "a.parquet")
    assert read(tmp_path / "a.parquet", source="query")[0]["source"].to_list() == ["x"]


# -- CSV


def test_csv_rows_faults_and_times(tmp_path):
    file = tmp_path / "a.csv"
    file.write_bytes(
        '\ufeffts,query,from\r\n2026-07-01 08:00:00,"去北京, 明天",app\r\n,only two\r\n\r\nsoon,'.encode()
        + b"caf\xe9,app\r\n,a b,web\n"
    )
    check_log(LogSource(path=file, time="ts", source="from"))
    rows, faults, unread = read(file, time="ts", source="from")
    assert rows.rows() == [(0, "去北京, 明天", datetime(2026, 7, 1, 8), "app"), (3, "a b", None, "web")]
    assert faults.rows() == [(1, "bad_row", ",only two"), (2, "bad_encoding", "caf\ufffd")]
    assert unread == 0


@pytest.mark.parametrize(("separator", "name"), [("\t", "a.tsv"), (";", "a.csv"), ("|", "a.csv")])
def test_the_separator_is_the_one_that_makes_the_text_column(tmp_path, separator, name):
    file = tmp_path / name
    file.write_text(f"id,no{separator}query\n1{separator}x, y\n")
    assert read(file)[0]["text"].to_list() == ["x, y"]


def test_csv_files_are_read_over_block_borders(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "BLOCK", 17)
    file = tmp_path / "a.csv"
    texts = [f'row {i}, "quoted"\nand more' for i in range(100)]
    pl.DataFrame({"n": range(100), "query": texts}).write_csv(file)
    assert read(file)[0]["text"].to_list() == texts


# -- JSON lines


def test_jsonl_rows_and_faults(tmp_path):
    file = tmp_path / "a.jsonl"
    lines = [
        b'{"query": "\\u5173\\u706f", "ts": 1782892800, "from": "app", "extra": [1]}',
        b"",
        b"[1]",
        b'{"query": "cut',
        b'{"query": 5}',
        b'{"query": null, "ts": "soon"}',
        b'{"other": 1}',
        b'{"query": "caf\xe9"}',
        b'{"ts": "2026-07-01T08:00:00Z", "query": "last"}',
    ]
    file.write_bytes(b"\n".join(lines))
    rows, faults, unread = read(file, time="ts", source="from")
    eight = datetime(2026, 7, 1, 8)
    assert rows.rows() == [
        (0, "关灯", eight, "app"), (5, None, None, None), (6, None, None, None), (8, "last", eight, None)
    ]  # fmt: skip
    assert faults.rows() == [
        (2, "bad_json", "[1]"),
        (3, "bad_json", '{"query": "cut'),
        (4, "not_text", '{"query": 5}'),
        (7, "bad_encoding", '{"query": "caf\ufffd"}'),
    ]
    assert unread == 1


def test_any_key_can_be_the_text(tmp_path):
    file = tmp_path / "a.jsonl"
    for name in ("a.b", "it's", 'say "x"', "a/b~c", "查询", "$"):
        file.write_text(json.dumps({name: "x"}) + "\n")
        check_log(LogSource(path=file, text=name))
        assert read(file, text=name)[0]["text"].to_list() == ["x"]


def test_compressed_text_files(tmp_path):
    for name, content in (("a.csv.gz", b"query\nx\ny\n"), ("a.jsonl.gz", b'{"query": "x"}\n{"query": "y"}\n')):
        file = tmp_path / name
        file.write_bytes(gzip.compress(content[:9]) + gzip.compress(content[9:]))
        check_log(LogSource(path=file))
        assert read(file)[0]["text"].to_list() == ["x", "y"]


def test_a_truncated_compressed_file_is_a_sentence(tmp_path):
    file = tmp_path / "a.csv.gz"
    packed = gzip.compress("\n".join(["query", *(str(i * i) for i in range(9999))]).encode())
    file.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(CurationError, match=r"a\.csv\.gz is damaged"):
        read(file)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_row_of_five_megabytes(tmp_path, ending):
    file = tmp_path / f"a.{ending}"
    long = "长 text\n" * 500_000
    frame = pl.DataFrame({"query": ["before", long, "after"]})
    {"parquet": frame.write_parquet, "csv": frame.write_csv, "jsonl": frame.write_ndjson}[ending](file)
    assert read(file)[0]["text"].to_list() == ["before", long, "after"]
