"""Ingest: the same log gives the same bytes, whatever the order, batches, threads, colliding ids and kills."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from curation.algorithms import normalise
from curation.engine.build import BuildContext
from curation.engine.shelf import Shelf
from curation.stages import ingest
from curation.stages.ingest import STAGE, IngestParams
from tests.stages.given_log import build, ingest_texts


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


# -- order, batches, threads


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


def test_e3_batch_size_is_not_part_of_the_key():
    assert STAGE.free == ("batch_rows",)
    for name, field in IngestParams.model_fields.items():
        assert field.description, name


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
