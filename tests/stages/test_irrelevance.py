"""The irrelevance stage: observed negatives, tools taken away with their substitutes, even spread, sizes."""

from __future__ import annotations

import dataclasses
from collections import Counter

import polars as pl
import pytest

from curation.algorithms.identity import candidate_ids
from curation.domain import load_domain
from curation.domain.plan_rules import NodePlan, Plans, PlanStep
from curation.stages.irrelevance import STAGE
from curation.stages.pool import PoolParams
from tests.helpers import FakeContext
from tests.taxonomy.given import first_version
from tests.teachers.test_scorer import PLAN_TYPE

DOMAIN = load_domain("map_travel")
ROUTE, POI, WEATHER = "planning_and_decision.route_planning", "discovery.poi_search", "dynamic_information.weather"


def plan(*tools: str) -> list[dict]:
    return [{"step": step, "tool": tool, "depends_on": []} for step, tool in enumerate(tools, 1)]


def inputs(rows: list[tuple], synthetic: int = 0) -> dict[str, pl.DataFrame]:
    """Rows of (primary, difficulty, reason, plan, picked, group_count); the id is the place."""
    primary, difficulty, reason, plans, picked, counts = zip(*rows, strict=True)
    ids = pl.Series("query_id", range(len(rows)), dtype=pl.UInt64)
    return {
        "selection": pl.DataFrame({"query_id": ids}).filter(pl.Series(picked)),
        "semantic_groups": pl.DataFrame({"query_id": ids, "representative_id": ids, "group_count": list(counts)}),
        "difficulty": pl.DataFrame(
            {
                "query_id": ids,
                "difficulty": pl.Series(difficulty, dtype=pl.Int8),
                "reason": pl.Series(reason, dtype=pl.String),
                "tool_plan": pl.Series(plans, dtype=PLAN_TYPE),
            }
        ),
        "annotations": pl.DataFrame({"query_id": ids, "primary": list(primary)}),
        "synthetic": pl.DataFrame({"verdict": ["verified"] * synthetic}, schema={"verdict": pl.String}),
        **first_version(DOMAIN.taxonomy),
    }


def run(rows: list[tuple], domain=DOMAIN, size: int = 100, share: float = 0.2, synthetic: int = 0) -> FakeContext:
    pool = PoolParams(size=size, tool_removed_share=share)
    return FakeContext(STAGE, inputs(rows, synthetic), domain=domain, shared={"pool": pool}).run()


ROWS = [
    (ROUTE, 1, None, plan("map_search_places", "map_compute_routes"), True, 9),
    (ROUTE, 2, None, plan("map_search_places", "map_compute_routes"), False, 8),
    (POI, 1, None, plan("map_search_places"), True, 7),
    (WEATHER, 1, None, plan("weather_current_conditions"), False, 6),
    (WEATHER, -1, "missing_info", [], True, 5),
    ("other", 0, "no_tool_needed", [], True, 4),
    ("other", -1, "no_actionable", [], False, 3),
]


def test_observed_negatives_are_the_picks_at_minus_1_and_0_with_their_reason() -> None:
    context = run(ROWS, share=0.0)
    out = context.out("irrelevance").sort("query_id")
    assert out["query_id"].to_list() == [4, 5]
    assert out["reason"].to_list() == ["missing_info", "no_tool_needed"]
    assert out["level1"].to_list() == ["dynamic_information", "other"]
    assert out["origin"].to_list() == ["observed", "observed"]
    (account,) = context.accounts
    assert (account.rows_in, account.kept, account.added) == (2, 2, 0)


def test_a_tool_goes_together_with_the_tools_that_could_replace_it() -> None:
    out = run(ROWS, size=7, share=0.5).out("irrelevance").filter(pl.col("origin") == "tool_removed")
    removed = dict(out.select("query_id", "removed_tools").iter_rows())
    assert removed[3] == ["weather_current_conditions", "weather_forecast_days"]
    assert removed[0] == ["map_compute_routes"]  # a way can do without looking the places up, which is optional
    assert set(out["difficulty"]) == {-1}
    assert set(out["reason"]) == {"missing_tool"}


def test_no_tool_that_is_left_can_help() -> None:
    plans = DOMAIN.plans
    for row in run(ROWS, size=7, share=0.5).out("irrelevance").iter_rows(named=True):
        for tool in row["removed_tools"]:
            assert set(plans.substitutes.get(tool, ())) <= set(row["removed_tools"])


def test_rows_take_turns_over_tools_then_categories_and_picks_come_first() -> None:
    rows = [(POI, 1, None, plan("map_search_places"), False, 1 + i) for i in range(6)]
    rows += [("other.x", 1, None, plan("map_search_places"), False, 1) for _ in range(6)]
    rows += [(ROUTE, 1, None, plan("map_compute_routes"), i == 3, 1) for i in range(6)]
    rows += [(POI, -1, "missing_info", [], True, 1)] * 2
    out = run(rows, size=20, share=0.4).out("irrelevance").filter(pl.col("origin") == "tool_removed")
    assert out.height == 8
    assert Counter(tool for tools in out["removed_tools"] for tool in tools) == {
        "map_search_places": 4,
        "map_compute_routes": 4,
    }
    searched = out.filter(pl.col("removed_tools").list.contains("map_search_places"))
    assert Counter(searched["level1"]) == {"discovery": 2, "other": 2}
    assert 15 in out["query_id"]  # the pick
    assert {5, 4} <= set(out["query_id"])  # then those that stand for most


def test_a_query_with_several_needed_tools_loses_the_one_that_fewest_rows_need() -> None:
    both = plan("travel_search_flights", "travel_search_trains")
    rows = [("x", 1, None, both, True, 1)] + [("x", 1, None, plan("travel_search_flights"), True, 1)] * 3
    out = run(rows, size=4, share=0.5).out("irrelevance")
    assert dict(out.select("query_id", "removed_tools").iter_rows())[0] == ["travel_search_trains"]


def test_ids_follow_from_query_origin_and_tools() -> None:
    out = run(ROWS, size=7, share=0.5).out("irrelevance")
    assert out["candidate_id"].equals(candidate_ids(out["query_id"], out["origin"], out["removed_tools"]))
    assert out["candidate_id"].is_sorted()


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_t10_the_order_of_rows_does_not_matter(order: slice) -> None:
    first = run(ROWS, size=7, share=0.5).out("irrelevance")
    tables = {name: frame[list(range(frame.height))[order]] for name, frame in inputs(ROWS).items()}
    pool = PoolParams(size=7, tool_removed_share=0.5)
    again = FakeContext(STAGE, tables, domain=DOMAIN, shared={"pool": pool}, workers=1).run()
    assert again.out("irrelevance").equals(first)


def test_no_negatives_and_nothing_removable() -> None:
    out = run([("x", 1, None, [], True, 1)]).out("irrelevance")
    assert out.height == 0


def test_a_plan_of_optional_tools_only_loses_one_of_them() -> None:
    plans = Plans(nodes={"x": NodePlan("x", 1, (PlanStep("web_search", "web_search"),), optional=("web_search",))})
    domain = dataclasses.replace(DOMAIN, plans=plans)
    out = run([("x", 1, None, plan("web_search"), True, 1)], domain, size=1, share=0.5).out("irrelevance")
    assert out["removed_tools"].to_list() == [["web_search"]]
