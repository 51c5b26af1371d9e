"""Plans, cognitive load and solvability of queries in both languages by hand; what a domain without rules gets."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from curation.algorithms.normalise import normalise_one
from curation.domain import load_domain
from curation.domain.model import Domain
from curation.teachers.embedded.scorer import PlanScorer, Scale

SCALE = Scale((0.35, 0.45, 0.20), 0.2, (1.5, 2.1, 2.7, 3.4), 0.5)
PLAN_TYPE = pl.List(pl.Struct({"step": pl.Int32, "tool": pl.String, "depends_on": pl.List(pl.Int32)}))
CONSTRAINTS = pl.List(
    pl.Struct({"dimension": pl.String, "value": pl.String, "text": pl.String, "start": pl.Int32, "end": pl.Int32})
)
LETTERS = {
    "S": "map_search_places",
    "R": "map_compute_routes",
    "A": "map_search_along_route",
    "C": "map_search_central_places",
    "K": "map_search_ranking_list",
    "F": "travel_search_flights",
    "T": "travel_search_trains",
    "W": "weather_current_conditions",
    "D": "weather_forecast_days",
    "Q": "web_search",
}
DISCOVERY, DYNAMIC, PLANNING = "discovery", "dynamic_information", "planning_and_decision"
OPEN_POI = f"{DISCOVERY}.poi_search.open_ended_poi_exploration"
POI = f"{DISCOVERY}.poi_search.constrained_poi_search"
SPATIAL = f"{DISCOVERY}.poi_search.spatial_optimized_poi_search"
PLACES = f"{DISCOVERY}.destination_discovery.constrained_destination_discovery"
OPEN_PLACES = f"{DISCOVERY}.destination_discovery.open_ended_destination_discovery"
FACTS = f"{DISCOVERY}.information_query.basic_attributes"
REVIEWS = f"{DISCOVERY}.information_query.reputation_and_reviews"
AREA = f"{DISCOVERY}.area_summaries"
WEATHER = f"{DYNAMIC}.realtime_weather"
FLIGHT_LEAF = PRICE = f"{DYNAMIC}.dynamic_pricing_and_availability"
TRANSIT = f"{DYNAMIC}.realtime_traffic_and_transit.public_transit_schedules_and_routes"
FARES = f"{DYNAMIC}.realtime_traffic_and_transit.public_transit_fares"
LIVE = f"{DYNAMIC}.realtime_traffic_and_transit.public_transit_realtime_status"
TRAFFIC = f"{DYNAMIC}.realtime_traffic_and_transit.road_traffic_status"
ROUTE = f"{PLANNING}.route_planning"
FEASIBLE = f"{PLANNING}.feasibility_assessment"
DAY = f"{PLANNING}.itinerary_planning.simple_route_itinerary"
SHORT = f"{PLANNING}.itinerary_planning.short_trip_itinerary"
LONG = f"{PLANNING}.itinerary_planning.long_trip_itinerary"
MODES = f"{PLANNING}.solution_comparison.transportation_mode_comparison"
WAYS = f"{PLANNING}.solution_comparison.route_comparison"
TOWNS = f"{PLANNING}.solution_comparison.destination_comparison"
SHOPS = f"{PLANNING}.solution_comparison.poi_comparison"
POLICY = "rules_and_policies.travel_policies"
CONTROL = "application_interaction.system_control"


@pytest.fixture(scope="module")
def domain() -> Domain:
    return load_domain("map_travel")


@pytest.fixture(scope="module")
def scorer(domain: Domain) -> PlanScorer:
    return PlanScorer(domain, SCALE)


def rows(*queries: tuple, confidence: float = 0.9) -> pl.DataFrame:
    """Annotated queries: (text, primary[, secondary[, constraints[, unsolvable, its confidence]]])."""
    full = [(*query, *([], [], None, 0.05)[len(query) - 2 :]) for query in queries]
    columns = list(zip(*full, strict=True))
    return pl.DataFrame(
        {
            "query_id": pl.Series(range(len(full)), dtype=pl.UInt64),
            "text": list(columns[0]),
            "norm": [normalise_one(text) for text in columns[0]],
            "primary": list(columns[1]),
            "secondary": pl.Series(columns[2], dtype=pl.List(pl.String)),
            "constraints": pl.Series(columns[3], dtype=CONSTRAINTS),
            "confidence": pl.Series([confidence] * len(full), dtype=pl.Float32),
            "unsolvable": pl.Series(columns[4], dtype=pl.String),
            "unsolvable_confidence": pl.Series(columns[5], dtype=pl.Float32),
        }
    )


def plan_of(tool_plan: list[dict]) -> str:
    """``S S R<1,2``: tools by letter with the steps they wait for."""
    letter = {tool: key for key, tool in LETTERS.items()}
    assert [call["step"] for call in tool_plan] == list(range(1, len(tool_plan) + 1))
    return " ".join(
        letter[call["tool"]] + ("<" + ",".join(map(str, call["depends_on"])) if call["depends_on"] else "")
        for call in tool_plan
    )


GOLDEN = [
    # one tool, said outright
    ("后天青岛天气怎么样", WEATHER, [], "D"),
    ("现在外面多少度", WEATHER, [], "W"),
    ("what is the weather like in Leeds", WEATHER, [], "W"),
    ("will it rain in Leeds tomorrow", WEATHER, [], "D"),
    ("附近有没有药店", OPEN_POI, [], "S"),
    ("find a petrol station", OPEN_POI, [], "S"),
    ("三公里内评分高的粤菜馆", POI, [], "S"),
    ("高铁票退票收多少手续费", POLICY, [], "Q"),
    ("can I take a power bank on board", POLICY, [], "Q"),
    ("沪宁高速封路了吗", TRAFFIC, [], "R"),
    # a way: each named end is looked up
    ("导航去南山公园", ROUTE, [], "S R<1"),
    ("从软件园到体育中心怎么走", ROUTE, [], "S S R<1,2"),
    ("南湖小区到火车东站多少公里", ROUTE, [], "S S R<1,2"),
    ("navigate to the botanical garden", ROUTE, [], "S R<1"),
    ("how far is it from Oak Lane to the town hall", ROUTE, [], "S S R<1,2"),
    ("去人民医院坐几路公交", TRANSIT, [], "S R<1"),
    ("机场线末班车几点", TRANSIT, [], "S Q R<1"),
    ("from Elm Park to Harbour View by metro", FARES, [], "R"),
    # via, along, between
    ("导航去中山公园顺路找个加油站", ROUTE, [], "S A<1 R<1,2"),
    ("从软件园到机场沿途有什么好吃的面馆", SPATIAL, [], "S S A<1,2"),
    ("find a bakery on the way to the stadium", SPATIAL, [], "S A<1"),
    ("我在东站她在西站找个折中的咖啡馆", SPATIAL, [], "S S C<1,2"),
    ("a cafe half way between Elm Park and Mill Road", SPATIAL, [], "S S C<1,2"),
    # search and go
    ("找最近的充电站然后导航过去", POI, [], "S R<1"),
    ("the nearest pharmacy and take me there", POI, [], "S R<1"),
    ("离我最近的充电站在哪", POI, [ROUTE], "S R<1"),
    # facts and opinions
    ("天坛的门票要预约吗", FACTS, [], "S Q<1"),
    ("省图书馆在哪个区", FACTS, [], "S"),
    ("is the aquarium worth it", REVIEWS, [], "S Q<1"),
    ("望京这一带住着怎么样", AREA, [], "Q Q S"),
    # tickets and rooms
    ("明天从广州飞三亚的机票多少钱", PRICE, [], "F"),
    ("train tickets from Leeds to York on Sunday", PRICE, [], "T"),
    ("那家温泉酒店今晚还有空房吗", PRICE, [], "S Q<1"),
    # destinations
    ("秋天看红叶去什么地方", OPEN_PLACES, [], "Q S<1 S<1"),
    ("两小时车程以内适合带老人的景点", PLACES, [], "Q S<1 S<1 R<2,3"),
    ("苏州必去的景点排行前十", OPEN_PLACES, [], "Q K S<1,2 S<1,2"),
    # trips: places a day, ways between them
    ("一天逛完老城区怎么安排", DAY, [], "S S S R<1,2,3"),
    ("帮我做一份大理三天的攻略", SHORT, [], "Q S<1 S<1 S<1 R<2,3,4 R<2,3,4"),
    ("周末两天去苏州怎么玩", SHORT, [], "Q D S<1 S<1 R<3 R<4"),
    ("三周自驾新疆环线怎么安排", LONG, [], "Q D S<1 S<1 S<1 S<1 S<1 " + " ".join(["R<3,4,5,6,7"] * 4)),
    # comparison: one call an option
    ("坐高铁还是坐飞机去武汉划算", MODES, [], "F T"),
    ("打车还是地铁去机场快", MODES, [], "S R<1 R<1"),
    ("带娃去珠海还是去三亚好", TOWNS, [], "Q Q S S"),
    ("走隧道近还是走大桥近", WAYS, [], "S S R<1 R<2"),
    ("Costco or Aldi or Lidl for fruit", SHOPS, [], "S S S Q<1 Q<2 Q<3"),
    # two needs
    ("查一下大理今天的天气然后导航去苍山索道", WEATHER, [ROUTE], "W S R<2"),
    ("明天从上海飞成都的机票，那边会不会下雨", PRICE, [WEATHER], "D F"),
    ("下午三点的飞机我几点出发来得及", FEASIBLE, [], "S R<1"),
]


@pytest.mark.parametrize(("text", "primary", "secondary", "expected"), GOLDEN, ids=[case[0] for case in GOLDEN])
def test_golden_plans(scorer: PlanScorer, text: str, primary: str, secondary: list[str], expected: str) -> None:
    scored = scorer.score(rows((text, primary, secondary)))
    assert plan_of(scored["tool_plan"][0].to_list()) == expected
    assert scored["difficulty"][0] >= 1
    assert scored["reason"][0] is None


def test_golden_plans_in_one_table_are_those_of_single_rows(scorer: PlanScorer, domain: Domain) -> None:
    table = rows(*[case[:3] for case in GOLDEN])
    together = scorer.score(table)
    assert [plan_of(plan.to_list()) for plan in together["tool_plan"]] == [case[3] for case in GOLDEN]
    assert together.equals(PlanScorer(domain, SCALE).score(table))
    order = pl.Series(list(reversed(range(len(GOLDEN)))))
    backwards = PlanScorer(domain, SCALE).score(table[order])
    assert backwards.sort("query_id").equals(together)


LOADS = [
    ("导航去南山公园", ROUTE, 1.0),  # 1, less a half for being said outright, but never below 1
    ("从家到公司骑车要久", ROUTE, 1.0),
    ("附近安静的咖啡馆", POI, 3.0),  # 2, and 1 for a wish that no tool takes as it is
    ("a quiet place to read within 20 minutes drive", PLACES, 5.0),  # 3.5 + 1 (wish) + 0.5 (reach)
    ("我困了", OPEN_POI, 3.5),  # 1.5, and 2 for a state instead of a need
    ("先去接孩子再去超市", ROUTE, 2.0),  # 1 + 0.5 (one thing after another) + 0.5 (a second stop)
    ("不走高速去德清", ROUTE, 1.5),  # 1 + 0.5 (something ruled out)
]


@pytest.mark.parametrize(("text", "primary", "expected"), LOADS, ids=[case[0] for case in LOADS])
def test_cognitive_load_explicit_is_1_to_2_and_implicit_4_to_5(
    scorer: PlanScorer, text: str, primary: str, expected: float
) -> None:
    assert scorer.score(rows((text, primary)))["cognitive_load"][0] == pytest.approx(expected)


def test_further_leaves_raise_cognitive_load_by_a_half_each(scorer: PlanScorer) -> None:
    scored = scorer.score(
        rows(("去机场", ROUTE), ("去机场", ROUTE, [WEATHER]), ("去机场", ROUTE, [TRAFFIC, WEATHER]))
    )
    assert scored["cognitive_load"].to_list() == [1.0, 1.5, 2.0]


def constraint(dimension: str, value: str, text: str, start: int) -> dict:
    return {"dimension": dimension, "value": value, "text": text, "start": start, "end": start + len(text)}


def test_complexity_by_hand_from_weights_pairs_and_density(scorer: PlanScorer) -> None:
    text = "人均一百以内安静的咖啡馆"  # 12 letters, 8 of them state a constraint
    budget = constraint("budget", "<=100cny_per_person", "人均一百以内", 0)
    quiet = constraint("preference.quality", "quiet", "安静", 6)
    scored = scorer.score(rows((text, POI, [], [budget, quiet]), (text, POI, [], [budget]), (text, POI)))
    both = 1.8 * (0.8 + 0.4 * 8 / 12) + 0.5 * (0.5 + 1)  # a second dimension, and budget pulls against preference
    one = 1.0 * (0.8 + 0.4 * 6 / 12)
    expected = [5 * (1 - np.exp(-both / 3)), 5 * (1 - np.exp(-one / 3)), 0.0]
    assert scored["constraint_complexity"].to_list() == pytest.approx(expected, abs=1e-6)


def test_a_constraint_stated_twice_counts_once(scorer: PlanScorer) -> None:
    once = constraint("budget", "low", "便宜", 0)
    again = constraint("budget", "low", "便宜", 4)
    scored = scorer.score(rows(("便宜的又便宜", POI, [], [once, again]), ("便宜的又便宜", POI, [], [once])))
    both, one = scored["constraint_complexity"]
    assert both == pytest.approx(5 * (1 - np.exp(-1.0 * (0.8 + 0.4 * 4 / 6) / 3)), abs=1e-6)
    assert one == pytest.approx(5 * (1 - np.exp(-1.0 * (0.8 + 0.4 * 2 / 6) / 3)), abs=1e-6)


UNSOLVABLE = [
    # text, primary, annotated reason and confidence, expected reason
    ("退出导航", CONTROL, None, 0.1, "missing_tool"),  # odds 1/9 * 8 (label) * 6 (cue) > 1
    ("mute the navigation voice", CONTROL, None, 0.1, "missing_tool"),
    ("给我画一个一小时可达圈", FEASIBLE, None, 0.1, "missing_tool"),  # 1/9 * 12
    ("上面这四个地方帮我排个顺序", DAY, None, 0.1, "missing_info"),  # 1/9 * 12
    ("规划路线", ROUTE, None, 0.1, "missing_info"),  # no destination: 1/9 * 12
    ("plan a route", ROUTE, None, 0.1, "missing_info"),
    ("从软件园到体育中心怎么走", ROUTE, "missing_info", 0.6, None),  # 1.5 * 0.5: both ends are there
    ("谢谢", "other", None, 0.2, "no_tool_needed"),  # 1/4 * 8 * 2
    ("他们得先去买票呀", POLICY, "no_actionable", 0.8, "no_actionable"),
    ("附近有没有药店", OPEN_POI, "missing_tool", 0.97, "missing_tool"),
    ("还有几分钟到站", LIVE, "no_actionable", 0.55, "no_actionable"),  # the annotation alone is enough
    ("还有几分钟到站", LIVE, "no_actionable", 0.45, "missing_tool"),  # it is not: the rules decide
]


@pytest.mark.parametrize("case", UNSOLVABLE, ids=[case[0] for case in UNSOLVABLE])
def test_solvability_pools_the_annotation_with_the_rules(scorer: PlanScorer, case: tuple) -> None:
    text, primary, annotated, confidence, expected = case
    scored = scorer.score(rows((text, primary, [], [], annotated, confidence)))
    assert scored["reason"][0] == expected
    if expected is None:
        assert scored["difficulty"][0] >= 1
        assert scored["chain_depth"][0] > 0
    else:
        assert scored["difficulty"][0] == (0 if expected == "no_tool_needed" else -1)
        assert scored["chain_depth"][0] == 0
        assert scored["tool_plan"][0].to_list() == []


def test_an_unknown_leaf_takes_the_plan_of_its_nearest_ancestor(scorer: PlanScorer) -> None:
    new = f"{DYNAMIC}.realtime_traffic_and_transit.parking_status"
    scored = scorer.score(
        rows(("万象城还有车位吗", new), ("随便说说", "something.new"), ("天气", f"{DYNAMIC}.other"))
    )
    assert [plan_of(plan.to_list()) for plan in scored["tool_plan"]] == ["S R<1", "Q", "Q"]


def test_no_rows(scorer: PlanScorer) -> None:
    scored = scorer.score(rows(("天气", WEATHER)).clear())
    assert scored.height == 0
    assert scored.columns == [
        "query_id",
        "difficulty",
        "cognitive_load",
        "chain_depth",
        "constraint_complexity",
        "tool_plan",
        "reason",
        "teacher",
    ]


def test_without_plan_rules_a_leaf_gets_the_tool_that_fits_it_best(domain: Domain) -> None:
    bare = dataclasses.replace(domain, plans=type(domain.plans)())
    scored = PlanScorer(bare, SCALE).score(rows(("后天青岛天气怎么样", WEATHER), ("从家到公司怎么走", ROUTE)))
    assert [len(plan) for plan in scored["tool_plan"]] == [1, 1]
    assert scored["tool_plan"][0][0]["tool"].startswith("weather_")


def test_without_tools_plans_are_empty_and_the_load_is_the_entropy_of_the_label(domain: Domain) -> None:
    bare = dataclasses.replace(domain, plans=type(domain.plans)(), tools={})
    scorer = PlanScorer(bare, SCALE)
    sure, unsure = (scorer.score(rows(("天气", WEATHER), confidence=p)) for p in (1.0, 0.5))
    assert sure["cognitive_load"][0] == 1.0
    assert unsure["cognitive_load"][0] == 5.0
    assert unsure["tool_plan"][0].to_list() == []
    assert unsure["chain_depth"][0] == 0
    assert sure["difficulty"][0] == 1
    assert unsure["difficulty"][0] > sure["difficulty"][0]
