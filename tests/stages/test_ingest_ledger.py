"""Ingest: every row of the log, whatever its format, is an occurrence of a query or a reject, and none is lost."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.errors import CurationError
from tests.stages.given_log import build, counts, ingest_texts, write

# -- occurrences and rejects


def test_every_raw_row_is_an_occurrence_or_a_reject(tmp_path):
    write(tmp_path / "log" / "b.parquet", ["cat", None, "dog"])
    write(tmp_path / "log" / "a" / "x.parquet", ["dog", ""])
    built = build(tmp_path / "out", tmp_path / "log")
    ids = dict(built.queries.select("text", "query_id").iter_rows())
    assert built.occurrences.rows() == [
        ("a/x.parquet", 0, ids["dog"]), ("b.parquet", 0, ids["cat"]), ("b.parquet", 2, ids["dog"])
    ]  # fmt: skip
    assert built.rejects.select("file", "row", "reason").sort("file").rows() == [
        ("a/x.parquet", 1, "empty"), ("b.parquet", 1, "null_text")
    ]  # fmt: skip
    account = {name: built.account[name] for name in ("rows_in", "kept", "merged", "rejected", "failed")}
    assert account == {"rows_in": 5, "kept": 2, "merged": 1, "rejected": 2, "failed": 0}
    assert (built.account["weight_in"], built.account["weight_out"], built.account["weight_rejected"]) == (5, 3, 2)


def test_occurrences_can_be_left_out(tmp_path):
    built = ingest_texts(tmp_path, ["cat", None], occurrences=False)
    assert built.occurrences.is_empty()
    assert (len(built.queries), len(built.rejects)) == (1, 1)


texts_of_a_log = st.lists(
    st.one_of(st.none(), st.text(max_size=8), st.sampled_from(["cat", "Cat", "关灯"])), max_size=12
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=texts_of_a_log)
def test_no_row_is_lost(tmp_path_factory, texts):
    built = ingest_texts(tmp_path_factory.mktemp("log"), texts, batch_rows=5)
    named = [*built.occurrences["row"], *built.rejects["row"]]
    assert sorted(named) == list(range(len(texts)))
    assert built.queries["count"].sum() == len(built.occurrences)
    assert Counter(built.occurrences["query_id"]) == dict(built.queries.select("query_id", "count").iter_rows())


def test_a_log_without_rows(tmp_path):
    built = ingest_texts(tmp_path, [])
    assert built.queries.is_empty() and built.occurrences.is_empty()
    assert built.account["rows_in"] == 0


def test_t14_a_query_of_day_two_has_the_id_of_day_one(tmp_path):
    write(tmp_path / "log" / "day1.parquet", ["open the tv", "关灯"])
    first = build(tmp_path / "out", tmp_path / "log")
    write(tmp_path / "log" / "day2.parquet", ["Open the TV", "new"])
    second = build(tmp_path / "out", tmp_path / "log")
    before = dict(first.queries.select("norm", "query_id").iter_rows())
    row = second.occurrences.filter(pl.col("file") == "day2.parquet", pl.col("row") == 0)
    assert row["query_id"].to_list() == [before["open the tv"]]


# -- columns and formats


def test_times_and_sources(tmp_path):
    start = datetime(2026, 7, 1)
    write(
        tmp_path / "log" / "a.parquet",
        ["cat", "Cat", "dog", "cat"],
        ts=[start + timedelta(hours=5), None, None, start],
        app=["web", "car", None, "web"],
    )
    built = build(tmp_path / "out", {"path": str(tmp_path / "log"), "time": "ts", "source": "app"})
    rows = {row[0]: row[1:] for row in built.queries.select("norm", "first_seen", "last_seen", "sources").rows()}
    assert rows == {"cat": (start, start + timedelta(hours=5), ["car", "web"]), "dog": (None, None, [])}


def test_unreadable_times_are_counted_not_rejected(tmp_path):
    write(tmp_path / "log" / "a.parquet", ["cat", "dog"], ts=["soon", "2026-07-01"])
    built = build(tmp_path / "out", {"path": str(tmp_path / "log"), "time": "ts"})
    assert built.rejects.is_empty()
    assert dict(built.metrics.select("name", "value").rows())["unread_times"] == 1


def test_e6_extra_columns_do_not_matter(tmp_path):
    write(tmp_path / "log" / "a.parquet", ["cat"], extra=[[1]])
    assert counts(build(tmp_path / "out", tmp_path / "log")) == {"cat": 1}


def test_files_of_different_formats_in_one_log(tmp_path):
    write(tmp_path / "log" / "a.parquet", ["cat"])
    (tmp_path / "log" / "b.csv").write_text("query\ncat\n")
    (tmp_path / "log" / "c.jsonl").write_text(json.dumps({"query": "cat"}))
    pq.write_table(pa.table({"query": pa.array(["cat", "dog"]).dictionary_encode()}), tmp_path / "log" / "d.parquet")
    assert counts(build(tmp_path / "out", tmp_path / "log")) == {"cat": 4, "dog": 1}


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_broken_rows_of_text_files_are_rejects(tmp_path, ending):
    (tmp_path / "log").mkdir()
    content = {
        "csv": b'query,ts\ncat,1\nonly one\n"go\nhome",2\ncaf\xe9,3\ndog,\n',
        "jsonl": b'{"query": "cat"}\n[1]\n{"query": "go\\nhome"}\n{"query": "caf\xe9"}\n{"query": "dog"}\n',
    }[ending]
    (tmp_path / "log" / f"a.{ending}").write_bytes(content)
    built = build(tmp_path / "out", tmp_path / "log")
    assert counts(built) == {"cat": 1, "go home": 1, "dog": 1}
    assert built.rejects.sort("row").select("row", "reason").rows() == [
        (1, "bad_row" if ending == "csv" else "bad_json"), (3, "bad_encoding")
    ]  # fmt: skip
    assert built.account["rows_in"] == 5


# -- mistakes


def test_e4_a_truncated_file_is_a_sentence_before_any_work(tmp_path):
    write(tmp_path / "log" / "a.parquet", ["cat"])
    bad = write(tmp_path / "log" / "b.parquet", ["dog"] * 99)
    bad.write_bytes(bad.read_bytes()[:-10])
    with pytest.raises(CurationError, match=r"b\.parquet is damaged"):
        build(tmp_path / "out", tmp_path / "log")


def test_e6_the_wrong_column_is_a_sentence(tmp_path):
    write(tmp_path / "log" / "a.parquet", ["cat"])
    with pytest.raises(CurationError, match="there is no text column 'text'") as error:
        build(tmp_path / "out", {"path": str(tmp_path / "log"), "text": "text"})
    assert "log.text" in error.value.hint
