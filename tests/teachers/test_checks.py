"""The checks one by one on hand-made queries; the stage's tests run them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from curation.algorithms.normalise import normalise_one, query_ids
from curation.domain import load_domain
from curation.teachers.base import failed
from curation.teachers.checks import Checked, Checks, Observed
from curation.teachers.embedded.scorer import PlanScorer
from curation.teachers.embedded.writer import Written
from tests.teachers.test_scorer import FLIGHT_LEAF, SCALE, WEATHER, rows

DOMAIN = load_domain("map_travel")
SCORER = PlanScorer(DOMAIN, SCALE)
CHAIN = ("travel_search_flights", "weather_forecast_days")
GOOD = "how much are flights to Oslo tomorrow and will it rain there"
OBSERVED = "cheapest flights to Oslo tomorrow and the forecast there"


class Teacher:
    name = "test"

    def __init__(self, leaf: str = FLIGHT_LEAF, error: str | None = None) -> None:
        self.leaf, self.error = leaf, error

    def annotate(self, queries: pl.DataFrame, vectors: np.ndarray) -> pl.DataFrame:
        if self.error:
            return failed(queries, pl.Series([self.error] * queries.height), "test", "1")
        labels = rows(*[(text, self.leaf) for text in queries["text"]]).with_columns(queries["query_id"])
        return labels.with_columns(error=pl.lit(None, pl.String)).drop("text", "norm")


def checked(text: str, lang: str = "en") -> Checked:
    norm = normalise_one(text)
    return Checked(
        Written(text, lang, CHAIN, ("flight",), ()), norm, int(query_ids(pa.array([norm], pa.large_string()))[0])
    )


def encode(texts: list[str]) -> np.ndarray:
    """Rain has a direction of its own, everything else another."""
    return np.array([[1.0, 0.0] if "rain" in text else [0.0, 1.0] for text in texts], dtype=np.float32).reshape(-1, 2)


def checks(teacher: Any = None, bucket: str = f"{FLIGHT_LEAF}|") -> Checks:
    norms = [normalise_one(OBSERVED)]
    ids = pl.Series(query_ids(pa.array(norms, pa.large_string())), dtype=pl.UInt64)

    def vectors(wanted: dict[str, int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if bucket in wanted:
            yield encode([OBSERVED]), np.array([wanted[bucket]])

    observed = Observed(
        lambda asked: asked.filter(asked.is_in(ids.implode())),
        lambda: iter([pa.array(norms, pa.large_string())]),
        vectors,
    )
    return Checks(
        observed,
        teacher or Teacher(),
        encode,
        SCORER,
        DOMAIN.plans,
        lexical_threshold=0.8,
        semantic_threshold=0.92,
        workers=1,
    )


def outcome(text: str, lang: str = "en", **options: Any) -> tuple[str | None, str | None]:
    row = checked(text, lang)
    checks(**options).run([row], lambda written: set())
    assert row.verified == (row.failed is None)
    return row.failed, row.checks[-1]["detail"]


def test_a_good_query_passes_all() -> None:
    assert outcome(GOOD) == (None, None)


def test_well_formed() -> None:
    assert outcome("flights to {city}") == ("well_formed", "a slot was left open")
    assert outcome(GOOD, "zh") == ("well_formed", "not written like zh")


def test_lexical_duplicate_of_an_observed_query() -> None:
    assert outcome(OBSERVED.upper()) == ("lexical_duplicate", "is an observed query")
    check, detail = outcome(OBSERVED + "s")
    assert check == "lexical_duplicate"
    assert detail is not None and detail.endswith("to an observed query")


def test_semantic_duplicate_within_the_bucket_only() -> None:
    check, detail = outcome("what does flying to Lima cost tomorrow, weather forecast")
    assert check == "semantic_duplicate"
    assert detail == f"cosine 1.00 to an observed query of {FLIGHT_LEAF}|"
    assert outcome("flights to Lima tomorrow and the weather forecast", bucket="other|") == (None, None)


CONTROL = "application_interaction.system_control"


def test_annotation() -> None:
    fault = f"labelled {CONTROL}, which needs none of the tools"
    assert outcome(GOOD, teacher=Teacher(CONTROL)) == ("annotation", fault)
    assert outcome(GOOD, teacher=Teacher(error="prose")) == ("annotation", "could not be labelled: prose")


def test_a_leaf_that_was_meant_is_right_whatever_its_queries_need() -> None:
    row = checked(GOOD)
    checks(Teacher(CONTROL)).run([row], lambda written: {CONTROL})
    assert row.failed == "executable"


def test_executable() -> None:
    assert outcome("is it going to rain in Oslo tomorrow", teacher=Teacher(WEATHER)) == (
        "executable",
        "needs weather_forecast_days",
    )
    assert outcome("book me a seat on a flight to Oslo tomorrow if there is no rain, and mute the navigation") == (
        "executable",
        "unsolvable: missing_tool",
    )


def test_what_a_batch_let_through_counts_for_the_next() -> None:
    both = checks()
    first, second = checked(GOOD), checked(GOOD + " please")
    both.run([first], lambda written: set())
    both.run([second], lambda written: set())
    assert first.verified
    assert second.failed == "lexical_duplicate"
    assert second.checks[-1]["detail"].endswith("to a query written before")
    third = checked("rain forecast in Bergen tomorrow, and what is the airfare to get there")
    both.run([third], lambda written: set())
    assert third.failed == "semantic_duplicate"


def test_an_empty_batch() -> None:
    checks().run([], lambda written: set())
