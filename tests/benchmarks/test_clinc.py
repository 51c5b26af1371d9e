"""The CLINC benchmark: what it writes loads as a domain, and its scores are right by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from curation.domain import load_domain
from tests.benchmarks.clinc import auroc, draw_seeds, measured_rows, scores_of, write_workspace
from tests.benchmarks.scores import calibration_error
from tests.benchmarks.student import agreement

DOMAINS = {"food": ["recipe", "menu"], "cars": ["fuel"]}
ROWS = pl.DataFrame(
    {
        "part": ["train"] * 9 + ["val"] * 3 + ["oos_val", "oos_train"],
        "query": [f"{intent} number {i}" for i in range(3) for intent in ("recipe", "menu", "fuel")]
        + ["a recipe", "the menu", "some fuel", "is it art", "why"],
        "intent": ["recipe", "menu", "fuel"] * 3 + ["recipe", "menu", "fuel", "oos", "oos"],
    }
)


def test_seeds_are_some_of_every_intent_and_another_draw_takes_others():
    drawn = draw_seeds(ROWS, 2, 0)
    assert dict(drawn.group_by("intent").len().iter_rows()) == {"recipe": 2, "menu": 2, "fuel": 2}
    assert drawn.equals(draw_seeds(ROWS.reverse(), 2, 0))
    assert any(not drawn.equals(draw_seeds(ROWS, 2, draw)) for draw in range(1, 6))


def test_what_is_written_is_a_domain_without_the_measured_rows(tmp_path):
    write_workspace(tmp_path, ROWS, DOMAINS, draw_seeds(ROWS, 2, 0))
    domain = load_domain(tmp_path / "clinc")
    assert {"food.recipe", "food.menu", "cars.fuel"} <= set(domain.taxonomy.leaves)
    seeds = pl.read_csv(tmp_path / "seeds.csv")
    assert seeds.height == 6 and not set(seeds["text"]) & set(measured_rows(ROWS)["query"])


def test_scores_by_hand():
    labels = measured_rows(ROWS).with_columns(
        primary=pl.Series(["food.recipe", "food.recipe", None, "food.menu", "other"]),
        confidence=pl.Series([0.9, 0.5, None, 0.6, 0.1], dtype=pl.Float32),
    )
    found = {score.name: score.value for score in scores_of(labels, DOMAINS)}
    assert found["leaf accuracy"] == pytest.approx(1 / 3)
    assert found["level1 accuracy"] == pytest.approx(2 / 3)
    # Of six pairs .9 wins two, .5 one, and the unlabelled row, which counts as 0, none.
    assert found["out-of-scope AUROC of confidence"] == pytest.approx(3 / 6)


def test_auroc_of_ties_is_a_half():
    assert auroc(np.array([1.0, 1.0]), np.array([1.0])) == 0.5


def test_calibration_error_by_hand():
    confidence = np.array([0.9, 0.9, 0.3, 0.3])
    assert calibration_error(confidence, np.array([True, False, False, False]), bins=2) == pytest.approx(0.35)
    assert calibration_error(confidence, np.array([True, True, False, False]), bins=1) == pytest.approx(0.1)


def test_agreement_by_hand():
    theirs = pl.DataFrame({"primary": ["a.b", "a.c", "d"], "unsolvable": [None, "missing_tool", None]})
    own = pl.DataFrame({"primary": ["a.b", "a.b", "e"], "unsolvable": [None, "missing_info", "missing_tool"]})
    values = [(score.value, score.of) for score in agreement(theirs, own, pl.Series([8, 1, 1]))]
    assert values == [(1 / 3, 3), (0.8, 10), (2 / 3, 3), (2 / 3, 3)]
