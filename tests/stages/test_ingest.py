from __future__ import annotations

import json
import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.algorithms import normalise
from curation.engine.build import BuildContext
from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.shelf import Shelf
from curation.errors import CurationError
from curation.stages import ingest
from curation.stages.ingest import STAGE, IngestParams

STAGES = {"ingest": STAGE}


def build(workspace: Path, log: Path | dict[str, Any], *, workers: int = 2, memory_gb: float = 8.0, **params) -> Any:
    """Run the stage in the real engine; its tables, metrics and account."""
    source = log if isinstance(log, dict) else {"path": str(log)}
    document = {"log": source, "ingest": params, "run": {"workers": workers, "memory_gb": memory_gb}}
    with Session(Recipe.from_dict(document, root=workspace, stages=STAGES), workspace, stages=STAGES) as session:
        run = session.run()
        manifest = session.store.manifest("ingest", run["stages"]["ingest"])
    tables = workspace / "latest"
    return SimpleNamespace(
        **{
            name: pl.read_parquet(tables / name / "*.parquet")
            for name in ("queries", "occurrences", "rejects", "metrics")
        },
        account=manifest["account"],
        hashes={
            table: {file: entry["sha256"] for file, entry in files.items()}
            for table, files in manifest["tables"].items()
        },
    )


def write(path: Path, texts: list[str | None], **columns) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"query": pl.Series(texts, dtype=pl.String), **columns}).write_parquet(path)
    return path


def ingest_texts(root: Path, texts: list[str | None], **params) -> Any:
    write(root / "log" / "a.parquet", texts)
    return build(root / "out", root / "log", **params)


def counts(built: Any) -> dict[str, int]:
    return dict(built.queries.select("text", "count").iter_rows())


# -- what becomes of texts


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


def test_what_is_not_a_query_is_rejected_with_its_reason(tmp_path):
    blob = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 2
    texts = [None, " \u200b", "a\x00b", "x" * 2001, blob, "ok"]
    built = ingest_texts(tmp_path, texts)
    assert dict(built.rejects.sort("row").select("row", "reason").rows()) == dict(
        enumerate(["null_text", "empty", "control_characters", "too_long", "binary"])
    )
    assert counts(built) == {"ok": 1}
    assert built.account["rows_in"] == 6 and built.account["rejected"] == 5


def test_rejected_texts_are_masked_cut_and_safe_to_show(tmp_path):
    number = "13812345678"
    built = ingest_texts(tmp_path, ["x" * 996 + " " + number + "y" * 2000, f"{number}\x1b\x1b\x1b"])
    first, second = built.rejects.sort("row")["text"].to_list()
    assert len(first) == 1000 and first.endswith(" <ph")
    assert second == "<phone>\ufffd\ufffd\ufffd"


def test_personal_data_is_masked_and_queries_that_differ_in_it_are_one(tmp_path):
    texts = ["打给13812345678", "打给 139-8765-4321", "mail a@b.cn", "mail c@d.org", "G1234次"]
    built = ingest_texts(tmp_path, texts)
    rows = {row[0]: row[1:] for row in built.queries.select("norm", "count", "masked").rows()}
    assert rows == {"打给 phone": (2, ["phone"]), "mail email": (2, ["email"]), "g1234次": (1, [])}
    assert not built.queries["text"].str.contains("138|139|@").any()
    values = dict(built.metrics.select("name", "value").rows())
    assert (values["masked_phone"], values["masked_email"], values["masked_plate"]) == (2, 2, 0)
    assert "13812345678" in ingest_texts(tmp_path / "b", texts, mask=["email"]).queries["norm"].str.join(" ")[0]


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


# -- the ledger


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


def test_t14_a_query_of_day_two_has_the_id_of_day_one(tmp_path):
    write(tmp_path / "log" / "day1.parquet", ["open the tv", "关灯"])
    first = build(tmp_path / "out", tmp_path / "log")
    write(tmp_path / "log" / "day2.parquet", ["Open the TV", "new"])
    second = build(tmp_path / "out", tmp_path / "log")
    before = dict(first.queries.select("norm", "query_id").iter_rows())
    row = second.occurrences.filter(pl.col("file") == "day2.parquet", pl.col("row") == 0)
    assert row["query_id"].to_list() == [before["open the tv"]]


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


# -- scale and shape


def test_a_row_of_five_megabytes_does_no_harm(tmp_path):
    built = ingest_texts(tmp_path, ["before", "长 text\n" * 500_000, "after"])
    assert built.rejects["reason"].to_list() == ["too_long"]
    assert len(built.rejects["text"][0]) == 1000
    assert len(built.queries) == 2


def noisy_log(rows: int = 400, seed: int = 5) -> pl.DataFrame:
    rng = random.Random(seed)
    words = [
        "cat",
        "Cat ",
        "dog",
        "关灯",
        "？？",
        "",
        "a\x00",
        "打给13812345678",
        "call +44 20 7946 0958",
        "café",
        "CAFE\u0301",
    ]
    texts = [rng.choice(words) if rng.random() < 0.5 else f"query {rng.randrange(150)}" for _ in range(rows)]
    start = datetime(2026, 7, 1)
    times = [start + timedelta(minutes=rng.randrange(9999)) if rng.random() < 0.9 else None for _ in range(rows)]
    return pl.DataFrame({"query": texts, "ts": times, "app": [rng.choice(["web", "car", None]) for _ in range(rows)]})


def build_noisy(root: Path, frames: list[pl.DataFrame], **options) -> Any:
    for number, frame in enumerate(frames):
        path = root / "log" / f"{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path, row_group_size=70)
    return build(root / "out", {"path": str(root / "log"), "time": "ts", "source": "app"}, **options)


@pytest.mark.parametrize("parts", [1, 4])
def test_t10_the_same_queries_whatever_order_files_batches_and_threads(tmp_path, parts, monkeypatch):
    monkeypatch.setattr(ingest, "ROWS_PER_PART", 400 // parts)
    monkeypatch.setattr(ingest, "ROWS_PER_MERGE", 60)
    frame = noisy_log()
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    plain = build_noisy(tmp_path / "plain", [frame])
    variants = {
        "shuffled": build_noisy(tmp_path / "shuffled", [shuffled]),
        "cut": build_noisy(tmp_path / "cut", [shuffled[:100], shuffled[100:101], shuffled[101:]], batch_rows=37),
        "one thread": build_noisy(tmp_path / "thread", [frame], workers=1, batch_rows=100),
        "little memory": build_noisy(tmp_path / "memory", [frame[200:], frame[:200]], workers=3, memory_gb=0.0001),
    }
    for name, variant in variants.items():
        assert variant.hashes["queries"] == plain.hashes["queries"], name
        assert variant.account == plain.account, name
        assert variant.metrics.equals(plain.metrics), name
    assert len(plain.hashes["queries"]) == parts
    assert plain.queries["query_id"].is_sorted()


def test_t10_occurrences_follow_the_log_whatever_the_batches(tmp_path):
    frame = noisy_log()
    plain = build_noisy(tmp_path / "plain", [frame[:150], frame[150:]])
    cut = build_noisy(tmp_path / "cut", [frame[:150], frame[150:]], batch_rows=41, workers=3)
    assert cut.occurrences.equals(plain.occurrences)
    assert cut.rejects.sort("file", "row").equals(plain.rejects.sort("file", "row"))


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


# -- ids that collide


@pytest.mark.parametrize("batch_rows", [3, 1_000_000])
def test_two_normal_forms_with_one_hash_are_kept_apart(tmp_path, monkeypatch, batch_rows):
    """In one batch or in two; occurrences agree with queries; and it does not depend on the order of the rows."""
    hashed = normalise.query_ids
    monkeypatch.setattr(normalise, "query_ids", lambda norms: hashed(norms) & np.uint64(0xC000000000000003))
    texts = [f"query {number}" for number in range(40)] * 2 + ["Query 7"]
    built = ingest_texts(tmp_path / "a", texts, batch_rows=batch_rows)
    assert len(built.queries) == 40
    joined = built.occurrences.join(built.queries, on="query_id").sort("row")
    assert joined["norm"].to_list() == [text.lower() for text in texts]
    assert dict(built.metrics.select("name", "value").rows())["id_collisions"] >= 24
    again = ingest_texts(tmp_path / "b", texts[::-1], batch_rows=batch_rows)
    assert again.hashes["queries"] == built.hashes["queries"]


# -- killed and run again


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


def kill_at(monkeypatch: pytest.MonkeyPatch, moment: int) -> list[str]:
    """Die at the ``moment``-th write of the stage; the list grows by every write."""
    writes: list[str] = []

    def counting(function):
        def wrapped(self, name, *rest, **options):
            writes.append(str(name))
            if len(writes) == moment + 1:
                raise Killed
            return function(self, name, *rest, **options)

        return wrapped

    for owner, method in (
        (Shelf, "_write"),
        (Shelf, "put_note"),
        (BuildContext, "write_file"),
        (BuildContext, "done_marker"),
    ):
        monkeypatch.setattr(owner, method, counting(getattr(owner, method)))
    return writes


def test_e1_killed_at_any_write_the_next_run_ends_in_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "ROWS_PER_PART", 200)
    frame = noisy_log()
    options = {"batch_rows": 150, "workers": 1}
    with monkeypatch.context() as patch:
        writes = kill_at(patch, -2)
        clean = build_noisy(tmp_path / "clean", [frame], **options)
    assert len(writes) > 20
    for moment in range(len(writes)):
        root = tmp_path / f"killed{moment}"
        with monkeypatch.context() as patch, pytest.raises(Killed):
            kill_at(patch, moment)
            build_noisy(root, [frame], **options)
        assert not (root / "out" / "latest").exists()
        again = build_noisy(root, [frame], **options | {"batch_rows": 33 if moment % 2 else 150})
        assert again.hashes["queries"] == clean.hashes["queries"], moment
        assert again.occurrences.equals(clean.occurrences), moment
        assert again.account == clean.account, moment
        assert again.metrics.equals(clean.metrics), moment


def test_e1_batches_that_were_read_are_not_read_again(tmp_path, monkeypatch):
    frame = noisy_log()
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(ingest, "_merge", lambda *_: (_ for _ in ()).throw(Killed))
        build_noisy(tmp_path, [frame], batch_rows=100)
    worked: list[int] = []
    digest = ingest._digest
    monkeypatch.setattr(
        ingest,
        "_digest",
        lambda ctx, shelf, number, batch: (worked.append(number), digest(ctx, shelf, number, batch)),
    )
    build_noisy(tmp_path, [frame], batch_rows=100)
    assert worked == []


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


def test_e6_extra_columns_do_not_matter(tmp_path):
    write(tmp_path / "log" / "a.parquet", ["cat"], extra=[[1]])
    assert counts(build(tmp_path / "out", tmp_path / "log")) == {"cat": 1}


def test_params_are_checked():
    with pytest.raises(ValueError, match="unknown language 'xx'"):
        IngestParams(languages=["en", "xx"])
    with pytest.raises(ValueError, match="mask"):
        IngestParams(mask=["names"])
    assert IngestParams(mask=["phone", "email", "phone"]).mask == ("email", "phone")


def test_e3_batch_size_is_not_part_of_the_key():
    assert STAGE.free == ("batch_rows",)
    for name, field in IngestParams.model_fields.items():
        assert field.description, name


def test_files_of_different_formats_in_one_log(tmp_path):
    write(tmp_path / "log" / "a.parquet", ["cat"])
    (tmp_path / "log" / "b.csv").write_text("query\ncat\n")
    (tmp_path / "log" / "c.jsonl").write_text(json.dumps({"query": "cat"}))
    pq.write_table(pa.table({"query": pa.array(["cat", "dog"]).dictionary_encode()}), tmp_path / "log" / "d.parquet")
    assert counts(build(tmp_path / "out", tmp_path / "log")) == {"cat": 4, "dog": 1}
