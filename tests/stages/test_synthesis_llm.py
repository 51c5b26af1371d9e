"""Synthesis with LLM teachers over HTTP: writing, labels, plans and a fresh reader, from one request cache."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from types import SimpleNamespace

import polars as pl
import pytest

import curation.teachers.fitting as fitting
from curation.stages import taxonomy
from curation.stages.difficulty import DifficultyParams
from curation.stages.pool import PoolParams
from curation.stages.synthesis import STAGE
from tests.helpers import FakeContext
from tests.stages.test_synthesis import domain, encode, tables  # noqa: F401
from tests.teachers.llm.answering import answering

PLAN = [{"step": 1, "tool": "find_book", "depends_on": []}, {"step": 2, "tool": "print_page", "depends_on": [1]}]
CHAIN = ["find_book", "print_page"]
WORDS = [a + b for a in ("am", "bo", "cy", "du", "eg", "fi") for b in ("rak", "lost", "nim", "pev", "tuz", "wich")]
numbers = itertools.count()


def written(data):
    """Seven queries that have little in common; of the last two one needs another tool, one nobody would type."""
    texts = []
    for _ in range(7):
        words = random.Random(next(numbers)).sample(WORDS, 6)
        texts.append(f"{words[0]} {words[1]} {words[2]} book, {words[3]} page in {words[4]} {words[5]}")
    texts[5:] = [f"tower {texts[5]}", f"{texts[6]} stiltedly"]
    return {"queries": [{"text": text, "primary": "read"} for text in texts[::-1]]}


def labels(data):
    blank = {"secondary": [], "constraints": [], "confidence": 0.9, "unsolvable": None, "unsolvable_confidence": 0.1}
    return {"labels": [{"id": row["id"], "primary": "read", **blank} for row in data["queries"]]}


def scores(data):
    """What is in the tower needs one tool more."""
    lend = [*PLAN, {"step": 3, "tool": "lend_book", "depends_on": [1]}]
    return {
        "scores": [
            {
                "id": row["id"], "tool_plan": lend if "tower" in row["text"] else PLAN, "cognitive_load": 2,
                "constraint_complexity": 1, "reason": None,
            }
            for row in data["queries"]
        ]
    }  # fmt: skip


def verdicts(data):
    return {
        "verdicts": [
            {
                "id": row["id"], "natural": "stiltedly" not in row["text"], "solvable": True, "detail": None,
                "tools": [*CHAIN, "lend_book"] if "tower" in row["text"] else CHAIN,
            }
            for row in data["queries"]
        ]
    }  # fmt: skip


def run(domain, folder, monkeypatch, server, estimate=False, **teachers):  # noqa: F811
    monkeypatch.setattr(fitting, "encoder_of_run", lambda ctx: encode)
    teacher = {"annotate": "llm", "difficulty": "llm", "synthesis": "llm"} | teachers
    seed = ("read Emma to me", "en", "read", [], None)
    schema = {
        "text": pl.String,
        "lang": pl.String,
        "primary": pl.String,
        "secondary": pl.List(pl.String),
        "reason": pl.String,
    }
    seeds = pl.DataFrame([seed], schema=schema, orient="row").with_columns(query_id=pl.lit(1, pl.UInt64))
    inputs = tables(domain) | {
        "seeds": seeds,
        "taxonomy": FakeContext(taxonomy.STAGE, domain=domain).run().out("taxonomy"),
    }
    shared = {
        "pool": PoolParams(size=40, synthetic_share=0.2),
        "difficulty": DifficultyParams(teacher=teacher["difficulty"]),
        "semantic": SimpleNamespace(threshold=0.92),
        "annotate": SimpleNamespace(
            teacher=teacher["annotate"], nearest_examples=1, examples_per_leaf=1, rows_per_request=4, most_secondary=0
        ),
        "llm": server.settings(price_prompt=1, price_completion=1),
    }
    context = FakeContext(
        STAGE,
        inputs,
        params={"rare_share": 0.05, "teacher": teacher["synthesis"]},
        domain=domain,
        shared=shared,
        scratch=folder,
        cache=folder / "cache",
    )
    return STAGE.estimate(context) if estimate else context.run()


def failed(out):
    return Counter(row["checks"][-1]["check"] for row in out.to_dicts() if row["verdict"] == "rejected")


@pytest.fixture
def server(monkeypatch):
    with answering(monkeypatch, queries=written, labels=labels, scores=scores, verdicts=verdicts) as opened:
        yield opened


def test_what_an_llm_writes_goes_through_every_check(domain, tmp_path, monkeypatch, server):  # noqa: F811
    (tmp_path / "cache").mkdir()
    context = run(domain, tmp_path, monkeypatch, server)
    out = context.out("synthetic")
    verified = out.filter(pl.col("verdict") == "verified")
    assert verified.height == 8
    assert set(out["teacher"]) == {"local"}
    for row in verified.iter_rows(named=True):
        assert {call["tool"] for call in row["tool_plan"]} == set(row["tool_chain"])
        assert [check["check"] for check in row["checks"]][-2:] == ["executable", "verification"]
        assert all(check["passed"] for check in row["checks"])
        assert ("tower" in row["text"]) == ("lend_book" in row["tool_chain"])
        assert "stiltedly" not in row["text"]
    assert failed(out)["executable"] > 0 and failed(out)["verification"] > 0
    last = pl.col("checks").list.last().struct
    read = out.filter(last.field("check") == "verification").select("text", detail=last.field("detail"))
    assert all(("stiltedly" in text) == (detail is not None) for text, detail in read.iter_rows())
    (calls,) = context.calls
    assert calls.height == len(server.sent) and set(calls["outcome"]) == {"ok"}


def test_a_second_run_asks_nothing_and_is_the_same(domain, tmp_path, monkeypatch, server):  # noqa: F811
    (tmp_path / "cache").mkdir()
    first = run(domain, tmp_path, monkeypatch, server)
    asked = len(server.sent)
    second = run(domain, tmp_path, monkeypatch, server)
    assert len(server.sent) == asked
    assert second.out("synthetic").equals(first.out("synthetic"))
    assert second.calls[0].equals(first.calls[0])


def test_the_grammar_may_write_what_llms_check(domain, tmp_path, monkeypatch, server):  # noqa: F811
    (tmp_path / "cache").mkdir()
    out = run(domain, tmp_path, monkeypatch, server, synthesis="embedded").out("synthetic")
    assert set(out["teacher"]) == {"embedded"}
    assert "verification" not in {check["check"] for row in out["checks"] for check in row}
    forms = {sent.body["response_format"]["json_schema"]["name"] for sent in server.sent}
    assert forms == {"Labels", "Scores"}


def test_what_it_will_cost_is_told_before(domain, tmp_path, monkeypatch, server):  # noqa: F811
    told = run(domain, tmp_path, monkeypatch, server, estimate=True)
    # Eight queries are wanted, so 20 will be written for two chains, four at most labelled in one request.
    assert (told.rows, told.currency) == (20, "USD") and not server.sent
    assert 3 + 20 / 4 + 20 / 8 + 20 / 8 <= told.calls <= 3 + 20 / 2 + 20 / 4 + 20 / 4 + 3
    assert told.money > 0 and told.tokens > 1000
    part = run(domain, tmp_path, monkeypatch, server, estimate=True, synthesis="embedded", difficulty="embedded")
    assert part.calls < told.calls
    teachers = dict.fromkeys(("annotate", "difficulty", "synthesis"), "embedded")
    assert run(domain, tmp_path, monkeypatch, server, estimate=True, **teachers) is None


def test_the_section_llm_is_used_where_any_teacher_is_one():
    def used(*teachers):
        own, annotate, difficulty = (SimpleNamespace(teacher=teacher) for teacher in teachers)
        return STAGE.uses(own, {"annotate": annotate, "difficulty": difficulty})

    assert used("embedded", "embedded", "embedded") == ()
    for at in range(3):
        assert used(*("llm" if place == at else "embedded" for place in range(3))) == ("llm",)
