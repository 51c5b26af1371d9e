"""The difficulty stage: survivors only, weights kept, parts and order without influence, contract met."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest

import curation.stages.difficulty as module
from curation.domain import load_domain
from curation.stages.difficulty import STAGE, DifficultyParams
from curation.teachers.embedded.scorer import Scale
from tests.helpers import FakeContext
from tests.taxonomy.given import first_version
from tests.teachers.llm.answering import answering
from tests.teachers.test_scorer import POI, ROUTE, WEATHER, rows

DOMAIN = load_domain("map_travel")


def inputs() -> dict[str, pl.DataFrame]:
    """Five queries: two survivors that stand for one more each, and one that failed in annotation."""
    table = rows(
        ("后天青岛天气怎么样", WEATHER),
        ("青岛后天天气", WEATHER),
        ("从软件园到体育中心怎么走", ROUTE),
        ("附近安静的咖啡馆", POI),
        ("规划路线", ROUTE, [], [], "missing_info", 0.9),
    )
    groups = pl.DataFrame(
        {
            "query_id": [0, 1, 2, 3, 4],
            "representative_id": [0, 0, 2, 3, 4],
            "group_count": [30, 30, 5, 1, 2],
        },
        schema_overrides={"query_id": pl.UInt64, "representative_id": pl.UInt64},
    )
    queries = table.select("query_id", "text", "norm")
    tables = {"semantic_groups": groups, "annotations": table.drop("text", "norm"), "queries": queries}
    return tables | first_version(DOMAIN.taxonomy)


def test_survivors_are_scored_and_weights_kept() -> None:
    context = FakeContext(STAGE, inputs(), domain=DOMAIN).run()
    out = context.out("difficulty")
    assert out["query_id"].to_list() == [0, 2, 3, 4]
    assert out["difficulty"].to_list()[-1] == -1
    assert all(level >= 1 for level in out["difficulty"].to_list()[:-1])
    assert [len(plan) for plan in out["tool_plan"]] == [1, 3, 2, 0]
    (account,) = context.accounts
    assert (account.rows_in, account.kept, account.weight_in, account.weight_out) == (4, 4, 38, 38)


def test_t10_parts_and_input_order_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = FakeContext(STAGE, inputs(), domain=DOMAIN).run()
    monkeypatch.setattr(module, "ROWS_PER_PART", 1)
    parts = FakeContext(STAGE, inputs(), domain=DOMAIN, workers=1).run()
    assert len(parts.accounts) == 4
    assert parts.out("difficulty").equals(whole.out("difficulty"))
    assert sum(account.weight_in for account in parts.accounts) == 38


def test_nothing_survived() -> None:
    empty = {name: frame.clear() for name, frame in inputs().items()} | first_version(DOMAIN.taxonomy)
    context = FakeContext(STAGE, empty, domain=DOMAIN).run()
    assert context.out("difficulty").height == 0
    assert context.accounts[0].rows_in == 0


def test_a_domain_without_tools_is_graded_with_empty_plans() -> None:
    bare = dataclasses.replace(DOMAIN, plans=type(DOMAIN.plans)(), tools={})
    out = FakeContext(STAGE, inputs(), domain=bare).run().out("difficulty")
    assert out["tool_plan"].list.len().to_list() == [0, 0, 0, 0]
    assert out.filter(pl.col("reason").is_null())["difficulty"].min() >= 1


def test_parameters_shape_the_scale() -> None:
    easy = FakeContext(STAGE, inputs(), domain=DOMAIN, params={"thresholds": (4.6, 4.7, 4.8, 4.9)}).run()
    assert easy.out("difficulty")["difficulty"].to_list() == [1, 1, 1, -1]
    never = FakeContext(STAGE, inputs(), domain=DOMAIN, params={"unsolvable_threshold": 0.9999}).run()
    assert never.out("difficulty")["reason"].null_count() == 4


@pytest.mark.parametrize(
    "params", [{"thresholds": (2, 1, 3, 4)}, {"weights": (0, 0, 0)}, {"weights": (-1, 1, 1)}, {"emphasis": 2}]
)
def test_e5_senseless_parameters_are_refused(params: dict) -> None:
    with pytest.raises(ValueError, match=r"thresholds|weights|emphasis"):
        DifficultyParams(**params)


def score(row, **changes):
    call = {"step": 1, "tool": "map_search_places", "depends_on": []}
    blank = {"tool_plan": [call], "cognitive_load": 1, "constraint_complexity": 0, "reason": None}
    return {"id": row["id"], **blank, **changes}


def scored(data):
    return {
        "scores": [score(row, **({"tool_plan": []} if "咖啡馆" in row["text"] else {})) for row in data["queries"]]
    }


def test_an_llm_scores_and_what_it_cannot_is_rejected_with_its_weight(monkeypatch, tmp_path):
    with answering(monkeypatch, scores=scored) as server:
        shared = {"llm": server.settings(max_failed_share=1)}
        context = FakeContext(
            STAGE, inputs(), params={"teacher": "llm"}, domain=DOMAIN, shared=shared, cache=tmp_path
        ).run()
        again = FakeContext(
            STAGE, inputs(), params={"teacher": "llm"}, domain=DOMAIN, shared=shared, cache=tmp_path
        ).run()
        asked = len(server.sent)
    out = context.out("difficulty")
    assert out["query_id"].to_list() == [0, 2, 4]
    assert set(out["teacher"]) == {"local"}
    (account,) = context.accounts
    # The engine adds the rejected row and its weight.
    assert (account.rows_in, account.kept, account.failed, account.weight_in, account.weight_out) == (4, 3, 0, 38, 37)
    assert pl.concat(context.rejects).rows(named=True) == [
        {"query_id": 3, "weight": 1, "text": "附近安静的咖啡馆", "reason": "not_scored"}
    ]
    (calls,) = context.calls
    assert asked == calls.height == 2  # four queries in one request, and one of them again alone
    assert calls["stage"].unique().to_list() == ["difficulty"]
    assert again.out("difficulty").equals(out) and again.calls[0].equals(calls)


def test_what_an_llm_will_be_asked_is_estimated(monkeypatch, tmp_path):
    def estimate(**options):
        context = FakeContext(STAGE, inputs(), domain=DOMAIN, cache=tmp_path, **options)
        return STAGE.estimate(context)

    assert estimate() is None
    with answering(monkeypatch, scores=scored) as server:
        settings = server.settings(price_prompt=1.0, price_completion=2.0, currency="EUR", max_failed_share=1)
        options = {"params": {"teacher": "llm"}, "shared": {"llm": settings}}
        before = estimate(**options)
        assert not server.sent
        FakeContext(STAGE, inputs(), domain=DOMAIN, cache=tmp_path, **options).run()
        after = estimate(**options)
    assert (before.rows, before.calls, before.currency) == (4, 1, "EUR")
    assert before.tokens > 500 and 0 < before.money < 0.01
    assert (after.rows, after.calls, after.money) == (4, 0, 0)


def test_the_llm_section_counts_only_for_the_llm():
    assert STAGE.uses(DifficultyParams(), {}) == ()
    assert STAGE.uses(DifficultyParams(teacher="llm"), {}) == ("llm",)


def test_the_scale_is_the_section_s():
    params = DifficultyParams(emphasis=0.2, unsolvable_threshold=0.6)
    assert params.scale == Scale(params.weights, 0.2, params.thresholds, 0.6)
