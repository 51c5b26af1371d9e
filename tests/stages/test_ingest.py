"""Ingest: what becomes of a text, a query under its normal form or a reject with its reason, personal data masked."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

from curation.algorithms import normalise
from curation.stages.ingest import IngestParams
from tests.stages.given_log import counts, ingest_texts

# -- queries


def test_t1_short_texts_are_queries_and_empty_ones_rejects(tmp_path):
    built = ingest_texts(tmp_path, ["", "a", "关灯", "play"])
    assert counts(built) == {"a": 1, "关灯": 1, "play": 1}
    assert built.rejects.select("stage", "reason", "file", "row", "text", "weight").rows() == [
        ("ingest", "empty", "a.parquet", 0, "", 1)
    ]


def test_t2_equal_texts_are_counted(tmp_path):
    assert counts(ingest_texts(tmp_path, ["cat", "dog", "cat"])) == {"cat": 2, "dog": 1}


def test_t4_two_queries_of_two_hundred_rows_each(tmp_path):
    assert counts(ingest_texts(tmp_path, ["打开空调", "open the tv"] * 200)) == {"打开空调": 200, "open the tv": 200}


def test_t5_short_chinese_queries_survive_and_a_length_filter_is_opt_in(tmp_path):
    texts = [
        "打开空调",
        "关灯吧",
        "去火车站",
        "今天天气",
        "附近加油站",
        "导航回家",
        "找停车场",
        "播放音乐",
        "几点了",
        "去机场",
    ]
    assert len(ingest_texts(tmp_path / "a", texts).queries) == 10
    built = ingest_texts(tmp_path / "b", texts, min_chars=4)
    assert len(built.queries) == 7
    assert built.rejects["reason"].to_list() == ["too_short"] * 3


def test_t7_visible_texts_of_any_script_are_queries_of_their_own(tmp_path):
    texts = ["أين المحطة", "สถานีรถไฟ", "स्टेशन कहाँ है", "😀", "😀😀", "？？", "！", "…", "★", "👍🏽"]
    built = ingest_texts(tmp_path, texts)
    assert len(built.queries) == len(texts)
    assert built.queries["norm"].str.len_chars().min() > 0
    assert built.rejects.is_empty()


def test_t8_two_spellings_are_one_query(tmp_path):
    built = ingest_texts(tmp_path, ["café", "cafe\u0301", "ＡＢＣ", "abc", "abc"])
    assert sorted(built.queries.select("text", "norm", "count").rows()) == [
        ("abc", "abc", 3),
        ("cafe\u0301", "café", 2),
    ]


def test_the_text_is_the_most_frequent_surface_form_and_of_equals_the_smallest(tmp_path):
    built = ingest_texts(tmp_path, ["Go home!", "go home", "go home", "Go", "go", "GO"])
    assert counts(built) == {"go home": 3, "GO": 3}


def test_texts_are_one_line(tmp_path):
    assert counts(ingest_texts(tmp_path, [" go\n\n home ", "go home"])) == {"go home": 2}


def test_language_script_and_length(tmp_path):
    built = ingest_texts(tmp_path, ["关灯", "open the tv", "打给13812345678", "？？"])
    rows = dict(built.queries.select("norm", pl.concat_list("lang", "script")).rows())
    assert rows["关灯"] == rows["打给 phone"] == ["zh", "Hans"]
    assert rows["open the tv"] == ["en", "Latn"]
    assert rows["??"] == ["und", "Zyyy"]
    assert (built.queries["n_chars"] == built.queries["norm"].str.len_chars()).all()


def test_ids_come_from_the_normal_form_alone(tmp_path):
    built = ingest_texts(tmp_path, ["Open the TV!", "关灯"])
    norms = pa.array(["open the tv", "关灯"], pa.large_string())
    assert set(built.queries["query_id"].to_list()) == set(normalise.query_ids(norms).tolist())
    assert built.queries["query_id"].is_sorted()


# -- rejects


def test_what_is_not_a_query_is_rejected_with_its_reason(tmp_path):
    blob = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 2
    texts = [None, " \u200b", "a\x00b", "x" * 2001, blob, "ok"]
    built = ingest_texts(tmp_path, texts)
    assert dict(built.rejects.sort("row").select("row", "reason").rows()) == dict(
        enumerate(["null_text", "empty", "control_characters", "too_long", "binary"])
    )
    assert counts(built) == {"ok": 1}
    assert built.account["rows_in"] == 6 and built.account["rejected"] == 5


def test_a_row_of_five_megabytes_does_no_harm(tmp_path):
    built = ingest_texts(tmp_path, ["before", "长 text\n" * 500_000, "after"])
    assert built.rejects["reason"].to_list() == ["too_long"]
    assert len(built.rejects["text"][0]) == 1000
    assert len(built.queries) == 2


def test_rejected_texts_are_masked_cut_and_safe_to_show(tmp_path):
    number = "13812345678"
    built = ingest_texts(tmp_path, ["x" * 996 + " " + number + "y" * 2000, f"{number}\x1b\x1b\x1b"])
    first, second = built.rejects.sort("row")["text"].to_list()
    assert len(first) == 1000 and first.endswith(" <ph")
    assert second == "<phone>\ufffd\ufffd\ufffd"


# -- masks and parameters


def test_personal_data_is_masked_and_queries_that_differ_in_it_are_one(tmp_path):
    texts = ["打给13812345678", "打给 139-8765-4321", "mail a@b.cn", "mail c@d.org", "G1234次"]
    built = ingest_texts(tmp_path, texts)
    rows = {row[0]: row[1:] for row in built.queries.select("norm", "count", "masked").rows()}
    assert rows == {"打给 phone": (2, ["phone"]), "mail email": (2, ["email"]), "g1234次": (1, [])}
    assert not built.queries["text"].str.contains("138|139|@").any()
    values = dict(built.metrics.select("name", "value").rows())
    assert (values["masked_phone"], values["masked_email"], values["masked_plate"]) == (2, 2, 0)
    assert "13812345678" in ingest_texts(tmp_path / "b", texts, mask=["email"]).queries["norm"].str.join(" ")[0]


def test_params_are_checked():
    with pytest.raises(ValueError, match="unknown language 'xx'"):
        IngestParams(languages=["en", "xx"])
    with pytest.raises(ValueError, match="mask"):
        IngestParams(mask=["names"])
    assert IngestParams(mask=["phone", "email", "phone"]).mask == ("email", "phone")
