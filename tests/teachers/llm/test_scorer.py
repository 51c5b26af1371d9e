"""The LLM scorer: plans checked, what follows from them computed, failed rows without a difficulty."""

from __future__ import annotations

import polars as pl
import pytest

import schemas
from curation.domain import load_domain
from curation.stages.difficulty import DifficultyParams
from curation.teachers.base import CONSTRAINTS
from curation.teachers.embedded.scorer import Scale
from curation.teachers.llm.scorer import SCORES, LlmScorer
from tests.teachers.llm.fake import FakeClient

DOMAIN = load_domain("map_travel")
SCALE = Scale((0.3, 0.5, 0.2), 0.1, (1.5, 2.1, 2.7, 3.4), 0.5)
LEAF = "planning_and_decision.route_planning"


def rows(*texts):
    return pl.DataFrame(
        {
            "query_id": pl.Series(range(1, len(texts) + 1), dtype=pl.UInt64),
            "text": texts,
            "primary": [LEAF] * len(texts),
            "secondary": pl.Series([[]] * len(texts), dtype=pl.List(pl.String)),
            "constraints": pl.Series([[]] * len(texts), dtype=CONSTRAINTS),
        }
    )


def step(number, tool, *after):
    return {"step": number, "tool": tool, "depends_on": list(after)}


ROUTE = [step(1, "map_search_places"), step(2, "map_search_places"), step(3, "map_compute_routes", 1, 2)]


def score(row, **changes):
    return {
        "id": row["id"],
        "tool_plan": ROUTE,
        "cognitive_load": 2,
        "constraint_complexity": 1,
        "reason": None,
    } | changes


def answer(**changes):
    return lambda data: {"scores": [score(row, **changes) for row in data["queries"]]}


def scored(client, frame, domain=DOMAIN):
    out = LlmScorer(client, "some-model", domain, SCALE).score(frame)
    assert out.schema == SCORES
    good = out.filter(pl.col("error").is_null()).drop("error")
    schemas.load("difficulty").schema.validate(good)
    return out


def test_the_scale_is_the_recipe_s():
    given = DifficultyParams().model_dump(include={"weights", "emphasis", "thresholds", "unsolvable_threshold"})
    assert Scale(**given) == SCALE


def test_depth_and_difficulty_are_computed_from_the_plan():
    """By hand: N = 3, K = 2, D = 2, so E = 2 + .35 + .25 = 2.6 and depth = 1 + 1.2 log2 2.6 = 2.6542; the mean is
    .3 * 2 + .5 * 2.6542 + .2 * 1 = 2.1271, the score .9 * 2.1271 + .1 * 2.6542 = 2.1798, which is at or above 2.1."""
    row = scored(FakeClient(answer()), rows("way to the station")).row(0, named=True)
    assert row["chain_depth"] == pytest.approx(2.6542, abs=1e-4)
    assert (row["difficulty"], row["cognitive_load"], row["constraint_complexity"]) == (3, 2, 1)
    assert row["tool_plan"] == ROUTE
    assert (row["reason"], row["teacher"], row["error"]) == (None, "some-model", None)


@pytest.mark.parametrize(
    ("reason", "level"), [("missing_tool", -1), ("missing_info", -1), ("no_actionable", -1), ("no_tool_needed", 0)]
)
def test_unsolvable_rows_have_a_reason_and_no_plan(reason, level):
    row = scored(FakeClient(answer(reason=reason, tool_plan=[])), rows("hello")).row(0, named=True)
    assert (row["difficulty"], row["reason"], row["tool_plan"], row["chain_depth"]) == (level, reason, [], 0)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"tool_plan": [step(1, "web_search", 2), step(2, "web_search", 1)]},
            "step 1 of tool_plan depends on step 2",
        ),
        ({"tool_plan": [step(1, "web_search", 1)]}, "step 1 of tool_plan depends on step 1"),
        ({"tool_plan": [step(1, "web_search", 7)]}, "step 1 of tool_plan depends on step 7"),
        ({"tool_plan": [step(1, "web_search"), step(1, "web_search")]}, "not numbered 1, 2, 3"),
        ({"tool_plan": [step(0, "web_search")]}, "not numbered 1, 2, 3"),
        ({"tool_plan": []}, "neither a tool_plan nor a reason"),
        ({"reason": "missing_tool"}, "has no tool_plan"),
    ],
)
def test_plans_that_cannot_be_are_told_once_then_failed(changes, fault):
    client = FakeClient(answer(**changes))
    row = scored(client, rows("x")).row(0, named=True)
    assert row["difficulty"] is None and fault in row["error"] and "the answer: {" in row["error"]
    assert fault in client.data[1]["queries"][0]["fault"]


def test_a_tool_that_does_not_exist_is_never_planned():
    row = scored(FakeClient(answer(tool_plan=[step(1, "teleport")])), rows("x")).row(0, named=True)
    assert row["difficulty"] is None and "teleport" in row["error"]


def test_failed_and_scored_rows_stand_side_by_side():
    def some(data):
        return {
            "scores": [score(row, reason="missing_tool" if row["text"] == "bad" else None) for row in data["queries"]]
        }

    out = scored(FakeClient(some), rows("good", "bad", "fine"))
    assert out["difficulty"].to_list() == [3, None, 3]
    assert out["query_id"].to_list() == [1, 2, 3]


def test_a_domain_without_tools_has_empty_plans(tmp_path):
    (tmp_path / "taxonomy.yaml").write_text("version: '1'\ntaxonomy: [read, lend]\n")
    row = scored(FakeClient(answer(tool_plan=[])), rows("x"), load_domain(tmp_path)).row(0, named=True)
    assert (row["difficulty"], row["chain_depth"]) == (1, 0)


def test_instructions_speak_the_language_of_the_text():
    client = FakeClient(answer())
    scored(client, rows("去车站", "to the station"))
    assert {request.request_id.split("/")[0] for request in client.requests} == {"score.zh.1", "score.en.1"}


def test_no_rows_make_an_empty_table():
    assert scored(FakeClient(answer()), rows("x").clear()).height == 0
