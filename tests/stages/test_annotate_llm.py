"""Annotate with an LLM over HTTP: labels, failures, what it cost, and nothing asked twice."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from curation.errors import CurationError
from curation.stages import annotate
from curation.stages.annotate import STAGE, AnnotateParams
from tests.helpers import FakeContext
from tests.stages.test_annotate import SHARED, TEXTS, asked, domain, tables  # noqa: F401
from tests.teachers.llm.answering import answering
from tests.teachers.test_teacher import encode

LEAVES = {"play": "media.music", "rain": "weather"}


def label(row, **changes):
    primary = LEAVES.get(row["text"].split()[0], "other")
    blank = {"secondary": [], "constraints": [], "confidence": 0.5, "unsolvable": None, "unsolvable_confidence": 0}
    return {"id": row["id"], "primary": primary, **blank, **changes}


def labels(data):
    return {"labels": [label(row) for row in reversed(data["queries"])]}


def run(domain, server, folder, inputs=None, estimate=False, **options):  # noqa: F811
    ctx = FakeContext(
        STAGE,
        inputs or tables(domain, TEXTS),
        params={"teacher": "llm", "rows_per_request": 4, "nearest_examples": 2},
        domain=domain,
        shared=SHARED | {"llm": server.settings(**options)},
        cache=folder,
    )
    ctx.keep = folder
    return STAGE.estimate(ctx) if estimate else ctx.run()


def test_rows_are_labelled_by_the_model(domain, asked, tmp_path, monkeypatch):  # noqa: F811
    with answering(monkeypatch, labels=labels) as server:
        ctx = run(domain, server, tmp_path)
    out = ctx.out("annotations")
    expected = [LEAVES.get(text.split()[0], "other") for text in TEXTS]
    assert out["query_id"].to_list() == list(range(1, 17)) and out["primary"].to_list() == expected
    assert set(out["teacher"]) == {"local"}
    (account,) = ctx.accounts
    assert (account.rows_in, account.kept, account.weight_in, account.weight_out) == (16, 16, 136, 136)
    assert ctx.calls[0].height == len(server.sent) and set(ctx.calls[0]["stage"]) == {"annotate"}
    assert "examples" not in ctx.metrics  # nothing was fitted
    shown = [row["similar"] for sent in server.sent for row in rows_of(sent)]
    assert all(len(similar) == 2 for similar in shown)


def rows_of(sent):
    import json

    return json.loads(sent.body["messages"][1]["content"])["queries"]


def test_l3_a_row_without_a_usable_answer_is_failed_with_it(domain, asked, tmp_path, monkeypatch):  # noqa: F811
    def answer(data):
        if any(row["text"] == TEXTS[2] for row in data["queries"]):
            return "As a language model I cannot say."
        return labels(data)

    with answering(monkeypatch, labels=answer) as server:
        ctx = run(domain, server, tmp_path, max_failed_share=1)
    out = ctx.out("annotations")
    row = out.row(2, named=True)
    assert row["primary"] is None and "As a language model I cannot say." in row["error"]
    assert out["error"].null_count() == 15
    (account,) = ctx.accounts
    assert (account.kept, account.failed, account.weight_out, account.weight_failed) == (15, 1, 133, 3)
    failed = ctx.calls[0].filter(outcome="failed")
    assert failed.height == 2 and set(failed["answer"]) == {"As a language model I cannot say."}


def test_too_many_failures_stop_the_stage(domain, asked, tmp_path, monkeypatch):  # noqa: F811
    with answering(monkeypatch, labels=lambda data: "no") as server, pytest.raises(CurationError, match="failed"):
        run(domain, server, tmp_path, max_failed_share=0.05)


def test_t10_parts_change_nothing_and_a_warm_cache_asks_nothing(domain, asked, tmp_path, monkeypatch):  # noqa: F811
    inputs = tables(domain, TEXTS)
    with answering(monkeypatch, labels=labels) as server:
        whole = run(domain, server, tmp_path, inputs)
        sent = len(server.sent)
        again = run(domain, server, tmp_path, inputs)
        assert len(server.sent) == sent
        monkeypatch.setattr(annotate, "_PART", 5)
        parts = run(domain, server, tmp_path, inputs)
    assert again.out("annotations").equals(whole.out("annotations"))
    assert again.calls[0].equals(whole.calls[0])
    assert parts.out("annotations").equals(whole.out("annotations"))


def test_what_it_will_cost_is_told_before(domain, asked, tmp_path, monkeypatch):  # noqa: F811
    with answering(monkeypatch, labels=labels) as server:
        before = run(domain, server, tmp_path, estimate=True, price_prompt=1, price_completion=1)
        assert not server.sent
        ctx = run(domain, server, tmp_path)
        after = run(domain, server, tmp_path, estimate=True)
    assert (before.rows, before.calls) == (16, ctx.calls[0].height)
    assert before.money > 0 and before.seconds > 0
    assert (after.rows, after.calls, after.tokens) == (16, 0, 0)
    assert after.money is None  # no price is set


def test_an_embedded_teacher_has_no_estimate_and_needs_no_endpoint():
    assert STAGE.estimate(SimpleNamespace(params=AnnotateParams())) is None
    assert STAGE.uses(AnnotateParams(), {}) == () and STAGE.uses(AnnotateParams(teacher="llm"), {}) == ("llm",)


def test_rows_without_a_vector_are_labelled_all_the_same(domain, asked, tmp_path, monkeypatch):  # noqa: F811
    """It reads text."""
    vectors = encode(TEXTS)
    vectors[2] = np.nan
    with answering(monkeypatch, labels=labels) as server:
        ctx = run(domain, server, tmp_path, tables(domain, TEXTS, vectors))
    assert ctx.out("annotations")["error"].null_count() == 16
