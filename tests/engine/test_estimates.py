"""Sections that stages share: which of them count, when they must be ready; estimates of what a run will ask."""

from __future__ import annotations

import dataclasses

import pytest

from curation.engine.estimates import estimates
from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.stage import Ask, Params
from curation.errors import CurationError
from tests.engine import toy


class Oracle(Params):
    word: str | None = None
    price: float = 1.0

    def ready(self) -> None:
        if self.word is None:
            raise CurationError("the recipe has no oracle.word")


def ask(glimpse):
    if glimpse.params.modulus == 2:
        return None
    rows = glimpse.read("queries", ["query_id"]).height
    assert rows == glimpse.rows("queries")
    return Ask(rows, rows // 2, 10 * rows, glimpse.shared["oracle"].price * rows, "EUR", 1.0)


LEXICAL = dataclasses.replace(
    toy.STAGES["lexical"],
    sections={"oracle": Oracle},
    uses=lambda params, shared: ("oracle",) if params.modulus > 2 else (),
    estimate=ask,
)
STAGES = {"ingest": toy.STAGES["ingest"], "lexical": LEXICAL}


def session(root, modulus=2, **oracle):
    document = {"log": {"path": str(root)}, "lexical": {"modulus": modulus}, "oracle": oracle}
    return Session(Recipe.from_dict(document, root=root, stages=STAGES), root / "out", stages=STAGES)


def run(opened):
    with opened:
        return opened.run()


def status(opened):
    return {step.stage.name: step.status for step in opened.plan()}


def test_a_section_that_is_not_used_neither_counts_nor_has_to_be_ready(tmp_path):
    run(session(tmp_path))
    assert status(session(tmp_path, word="x", price=3)) == {"ingest": "fresh", "lexical": "fresh"}


def test_a_section_that_is_used_must_be_ready_before_any_work(tmp_path):
    with pytest.raises(CurationError, match=r"no oracle\.word"):
        run(session(tmp_path, modulus=4))
    assert not list((tmp_path / "out").glob("objects/*/*"))
    run(session(tmp_path, modulus=4, word="x"))
    assert status(session(tmp_path, modulus=4, word="x")) == {"ingest": "fresh", "lexical": "fresh"}
    assert status(session(tmp_path, modulus=4, word="y")) == {"ingest": "fresh", "lexical": "stale"}


def test_planning_and_fresh_tables_need_nothing_ready(tmp_path):
    assert status(session(tmp_path, modulus=4)) == {"ingest": "stale", "lexical": "stale"}
    run(session(tmp_path, modulus=4, word="x"))
    reverted = session(tmp_path, modulus=2)
    run(reverted)
    assert run(session(tmp_path, modulus=2))["published"] is False


def estimated(opened):
    return [(one.stage, one.ask, one.missing) for one in estimates(opened, opened.plan())]


def test_estimates_of_stale_stages_from_the_tables_there_are(tmp_path):
    assert estimated(session(tmp_path, modulus=4)) == [("lexical", None, "queries")]
    assert estimated(session(tmp_path, modulus=2)) == []  # it will not ask
    run(session(tmp_path))
    rows = toy.IngestParams().rows
    expected = Ask(rows, rows // 2, 10 * rows, 2.0 * rows, "EUR", 1.0)
    assert estimated(session(tmp_path, modulus=4, price=2.0)) == [("lexical", expected, None)]
    assert estimated(session(tmp_path, modulus=2)) == []  # fresh


def test_a_table_that_is_to_be_built_anew_is_taken_as_it_is_published(tmp_path):
    run(session(tmp_path))
    document = {"log": {"path": str(tmp_path)}, "ingest": {"rows": 4}, "lexical": {"modulus": 4}}
    changed = Session(Recipe.from_dict(document, root=tmp_path, stages=STAGES), tmp_path / "out", stages=STAGES)
    ((_, found, missing),) = estimated(changed)
    assert found.rows == toy.IngestParams().rows and missing is None
