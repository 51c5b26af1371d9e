"""What the committed sample promises in its README."""

from __future__ import annotations

import re
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from curation.domain import load_domain

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
REASONS = {"missing_tool", "missing_info", "no_actionable", "no_tool_needed"}


@pytest.fixture(scope="module")
def domain():
    return load_domain("map_travel")


def test_log_has_the_promised_files_rows_and_columns():
    files = sorted((SAMPLE / "log").glob("*.parquet"))
    assert [path.name for path in files] == ["2026-07.parquet", "2026-08.parquet", "2026-09.parquet"]
    assert sum(pq.read_metadata(path).num_rows for path in files) == 200_000
    for path in files:
        schema = pq.read_schema(path)
        assert [(f.name, str(f.type)) for f in schema] == [
            ("query", "string"), ("ts", "timestamp[us]"), ("session", "string"), ("source", "string"),
        ]  # fmt: skip
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*.parquet")) < 10_000_000


def test_truth_names_every_raw_row_in_its_order(log):
    for path in sorted((SAMPLE / "log").glob("*.parquet")):
        rows = log.filter(pl.col("file") == path.name)
        assert rows["row"].to_list() == list(range(rows.height))
        assert rows["query"].equals(pl.read_parquet(path)["query"])
        assert rows["ts"].is_sorted()


def test_every_leaf_is_there_in_both_languages(queries, domain):
    leaves = {node for node in domain.taxonomy.leaves if not domain.taxonomy.node(node).is_other}
    for lang in ("zh", "en"):
        assert leaves <= set(queries.filter(pl.col("lang") == lang)["leaf"].unique())
    assert set(queries["leaf"].unique()) <= set(domain.taxonomy.leaves)
    assert set(queries["secondary"].explode().drop_nulls().unique()) <= leaves


def test_languages_and_distinct_normal_forms_are_as_promised(queries):
    shares = {lang: n / queries.height for lang, n in queries["lang"].value_counts().iter_rows()}
    assert 0.6 < shares["zh"] < 0.7
    assert 0.27 < shares["en"] < 0.33
    assert {"ja", "ko", "es", "ar", "ru", "und"} <= shares.keys()
    counts = queries["query"].str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", "").value_counts()
    assert 25_000 < counts.height < 40_000
    assert counts["count"].max() > 1_000
    assert (counts["count"] == 1).sum() > 10_000


def test_labels_agree_with_each_other(queries):
    unsolvable = pl.col("difficulty_max") <= 0
    assert queries.filter(unsolvable != pl.col("reason").is_not_null()).height == 0
    assert (
        queries.filter(
            (pl.col("difficulty_max") == 0) != (pl.col("reason") == "no_tool_needed").fill_null(False)
        ).height
        == 0
    )
    assert set(queries["reason"].drop_nulls().unique()) == REASONS
    assert queries.filter(pl.col("secondary").list.contains(pl.col("leaf"))).height == 0


def test_groups_are_nested_and_have_one_label(queries):
    for finer, coarser in (("base", "duplicate_group"), ("base", "paraphrase_group")):
        assert queries.group_by(finer).agg(pl.col(coarser).n_unique())[coarser].max() == 1
    for group in ("duplicate_group", "paraphrase_group"):
        labels = queries.group_by(group).agg(pl.struct("leaf", "reason").n_unique().alias("labels"))
        assert labels["labels"].max() == 1


def test_rows_of_one_duplicate_group_have_the_same_digits(queries):
    """T6: a query with other digits is another query; personal data alone may differ."""
    plain = queries.filter(
        pl.col("personal_data").list.len() == 0, pl.col("noise") != "repeat", pl.col("noise") != "spoken"
    )
    digits = plain.with_columns(pl.col("query").map_elements(_digits, pl.String).alias("digits"))
    assert digits.group_by("duplicate_group").agg(pl.col("digits").n_unique())["digits"].max() == 1


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text.translate({0xFF10 + i: 0x30 + i for i in range(10)}))


def test_constraint_spans_are_the_words_of_the_query(queries, domain):
    spans = (
        queries.select("query", "noise", "constraints")
        .filter(pl.col("constraints").list.len() > 0)
        .unique()
        .explode("constraints")
        .unnest("constraints")
    )
    found = spans.filter(pl.col("start").is_not_null())
    said = found.select(pl.col("query").str.slice(pl.col("start"), pl.col("end") - pl.col("start")))["query"]
    assert said.equals(found["text"], null_equal=False) or (said == found["text"]).all()
    assert spans.filter(pl.col("start").is_null(), pl.col("noise") == "clean").height == 0
    dimensions = {name.split(".")[0] for name in domain.dimensions}
    assert set(spans["dimension"].unique()) == dimensions | {"optional"}
    one = spans.filter(pl.col("noise") == "clean").sort("query", "start")
    assert (one["start"] >= one.select(pl.col("end").shift().over("query")).to_series()).fill_null(True).all()


def test_broken_rows_have_no_labels(log):
    broken = log.filter(pl.col("broken").is_not_null())
    assert set(broken["broken"].unique()) == {"null_text", "empty", "control_characters", "binary", "too_long"}
    for column in ("leaf", "base", "duplicate_group", "paraphrase_group", "noise", "lang", "constraints"):
        assert broken[column].null_count() == broken.height, column
    assert broken.filter((pl.col("broken") == "null_text") != pl.col("query").is_null()).height == 0


def test_personal_data_is_there_and_is_invented(queries):
    personal = queries.filter(pl.col("personal_data").list.len() > 0)
    kinds = set(personal["personal_data"].explode().unique())
    assert kinds == {"phone", "email", "id_card", "plate", "coordinates"}
    mails = personal.filter(pl.col("personal_data").list.contains("email"), pl.col("noise") == "clean")["query"]
    assert mails.str.contains(r"@example\.(com|org|net)").all()
    cards = personal.filter(pl.col("personal_data").list.contains("id_card"), pl.col("noise") == "clean")["query"]
    assert cards.str.contains(r"\d{2}0100\d{8}000[\dX]").all()
    assert cards.str.extract(r"(\d{17}[\dX])").map_elements(_right_check_digit, pl.Boolean).all()


def _right_check_digit(number: str) -> bool:
    """ISO 7064 MOD 11-2 as the standard tells it: the weighted sum of all 18 leaves 1."""
    total = 0
    for char in number:
        total = total * 2 + (10 if char == "X" else int(char))
    return total % 11 == 1
