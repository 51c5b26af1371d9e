"""The grammar writer: only queries that need the chain, the same for a seed, fillers from its examples."""

from __future__ import annotations

import polars as pl
import pytest

from curation.algorithms.normalise import normalise_one
from curation.domain import load_domain
from curation.teachers.embedded.scorer import PlanScorer
from curation.teachers.embedded.writer import (
    EXAMPLES,
    TRIES,
    Example,
    GrammarWriter,
    Order,
    Written,
    chain_of,
    well_formed,
)
from tests.teachers.test_scorer import PLAN_TYPE, SCALE

DOMAIN = load_domain("map_travel")
SCORER = PlanScorer(DOMAIN, SCALE)
WEATHER_AND_WAY = ("map_compute_routes", "map_search_places", "weather_current_conditions")
FLIGHT_AND_WEATHER = ("travel_search_flights", "weather_forecast_days")


@pytest.fixture(scope="module")
def writer() -> GrammarWriter:
    return GrammarWriter(DOMAIN, SCORER, seed=7)


def write(writer: GrammarWriter, chain: tuple[str, ...], count: int, examples=(), first: int = 0) -> list[Written]:
    (written,) = writer.write([Order(chain, count, examples, first)])
    return written


def test_many_combinations_of_tools_can_be_written_for(writer: GrammarWriter) -> None:
    chains = writer.chains()
    assert chains == sorted(set(chains))
    combinations = {frozenset(chain) for chain in chains}
    assert len(combinations) > 100
    assert set().union(*combinations) == set(DOMAIN.tools)


def test_queries_are_many_distinct_and_well_formed_in_both_languages(writer: GrammarWriter) -> None:
    written = write(writer, WEATHER_AND_WAY, 200)
    texts = {normalise_one(query.text) for query in written}
    assert len(texts) == len(written) == 200
    assert {query.lang for query in written} == {"zh", "en"}
    faults = [well_formed(query.text, normalise_one(query.text), query.lang) for query in written]
    assert set(faults) == {None}


def test_the_order_of_the_wanted_tools_does_not_matter(writer: GrammarWriter) -> None:
    forwards = write(writer, FLIGHT_AND_WEATHER, 5)
    backwards = write(writer, FLIGHT_AND_WEATHER[::-1], 5)
    assert [query.text for query in forwards] == [query.text for query in backwards]


def test_t10_a_seed_gives_the_same_queries_and_another_others(writer: GrammarWriter) -> None:
    first = write(writer, FLIGHT_AND_WEATHER, 10)
    assert write(GrammarWriter(DOMAIN, SCORER, seed=7), FLIGHT_AND_WEATHER, 10) == first
    assert write(GrammarWriter(DOMAIN, SCORER, seed=8), FLIGHT_AND_WEATHER, 10) != first


def test_further_tries_give_further_queries(writer: GrammarWriter) -> None:
    first = {query.text for query in write(writer, FLIGHT_AND_WEATHER, 10)}
    further = {query.text for query in write(writer, FLIGHT_AND_WEATHER, 10, [], first=10 * TRIES)}
    assert len(first & further) <= 1


def test_orders_do_not_change_each_other(writer: GrammarWriter) -> None:
    both = writer.write([Order(FLIGHT_AND_WEATHER, 5), Order(WEATHER_AND_WAY, 5)])
    assert both == [write(writer, FLIGHT_AND_WEATHER, 5), write(writer, WEATHER_AND_WAY, 5)]
    assert writer.write([]) == []


def test_a_chain_that_nothing_needs_gives_nothing(writer: GrammarWriter) -> None:
    assert write(writer, ("no_such_tool",), 5) == []
    assert write(writer, FLIGHT_AND_WEATHER, 0) == []


def test_place_names_come_from_the_examples_and_examples_are_named_as_parents(writer: GrammarWriter) -> None:
    examples = [Example(900 + i, text, "zh") for i, text in enumerate(["导航去翡翠湖怎么走", "从石榴苑到翡翠湖多远"])]
    written = write(writer, WEATHER_AND_WAY, 60, examples)
    chinese = [query for query in written if query.lang == "zh"]
    english = [query for query in written if query.lang == "en"]
    assert all(query.parents and set(query.parents) <= {900, 901} for query in chinese)
    assert all(len(query.parents) <= EXAMPLES for query in chinese)
    assert all(query.parents == () for query in english)
    assert any("翡翠湖" in query.text for query in chinese)


def test_a_filler_that_does_not_look_like_one_is_not_taken(writer: GrammarWriter) -> None:
    examples = [Example(1, "导航去我们那个的", "zh")]
    assert not any("我们那个" in query.text for query in write(writer, WEATHER_AND_WAY, 60, examples))


@pytest.mark.parametrize(
    ("text", "lang", "fault"),
    [
        ("苏州明天天气怎么样", "zh", None),
        ("the weather in {city}", "en", "a slot was left open"),
        ("ab", "en", "2 characters"),
        ("x" * 400, "en", "400 characters"),
        ("hello there", "zh", "not written like zh"),
        ("去苏州看海", "en", "not written like en"),
        ("附近附近的药店", "zh", "'附近' is repeated"),
        ("find the the pharmacy", "en", "'the' is repeated"),
    ],
)
def test_well_formed(text: str, lang: str, fault: str | None) -> None:
    assert well_formed(text, normalise_one(text), lang) == fault


def test_chain_of_a_plan_keeps_the_order_of_first_calls() -> None:
    plan = [{"step": i, "tool": tool, "depends_on": []} for i, tool in enumerate(["b", "a", "b", "c"], 1)]
    frame = pl.DataFrame({"tool_plan": pl.Series([plan, []], dtype=PLAN_TYPE)})
    assert frame.select(chain_of(pl.col("tool_plan")))["tool_plan"].to_list() == [["b", "a", "c"], []]
