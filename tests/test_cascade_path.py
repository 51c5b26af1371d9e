"""A cascade over HTTP: the embedded teacher labels, an endpoint is asked about some rows, everything is told."""

from __future__ import annotations

import polars as pl
import pytest

from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.workspace import Workspace
from curation.errors import CurationError
from tests.small_log import RECIPE, write_workspace
from tests.teachers.llm.answering import answering

RAIN, ROUTE = "dynamic_information.realtime_weather", "planning_and_decision.route_planning"


def labels(data):
    return {
        "labels": [
            {
                "id": row["id"],
                "primary": RAIN if "rain" in row["text"].lower() or "雨" in row["text"] else ROUTE,
                "secondary": [],
                "constraints": [],
                "confidence": 0.75,
                "unsolvable": None,
                "unsolvable_confidence": 0.25,
            }
            for row in data["queries"]
        ]
    }


class Seen:
    """An observer that keeps what is told of the stage that asks."""

    def __init__(self):
        self.told = []

    def started(self, step): ...

    def finished(self, step, manifest): ...

    def progress(self, stage, done, total, note):
        if stage == "annotate":
            self.told.append((done, total, note))


SEEN = Seen()


def recipe(folder, server):
    text = RECIPE + (
        "annotate: {teacher: cascade, asked: 40, asked_share: 0.5, audit: 15, rounds: 2, rows_per_request: 4}\n"
        f"llm: {{base_url: {server.url}, model: local, key_env: LOCAL_KEY, price_prompt: 1, price_completion: 1}}\n"
    )
    (folder / "recipe.yaml").write_text(text, encoding="utf-8")
    return Recipe.load(folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = write_workspace(tmp_path_factory.mktemp("cascade"))
    with pytest.MonkeyPatch.context() as monkeypatch, answering(monkeypatch, labels=labels) as server:
        with Session(recipe(folder, server), select=["+annotations"], observer=SEEN) as session:
            session.run()
        yield Workspace(folder), server


def test_a_few_rows_have_the_labels_of_the_endpoint_and_the_rest_those_of_the_embedded_teacher(built):
    workspace, _ = built
    rows = workspace.table("annotations").collect()
    told = rows.filter(teacher="local")
    assert set(rows["teacher"]) == {"local", "embedded"}
    assert 15 < told.height <= 40
    assert set(told["primary"]) <= {RAIN, ROUTE}


def test_progress_counts_the_rows_of_all_rounds_together(built):
    told = [one for one in SEEN.told if one[2]]
    done = [done for done, _, _ in told]
    assert {total for _, total, _ in told} == {40} and done == sorted(done)
    # Learnt from the seeds alone, then from each round.
    learnt = [done for done, _, note in told if note == "learning"]
    assert learnt[0] == 15 and len(learnt) >= 2 and max(learnt) == done[-1]


def test_agreement_and_money_are_in_the_tables(built):
    workspace, server = built
    metrics = dict(workspace.table("metrics").filter(stage="annotate").select("name", "value").collect().iter_rows())
    told = workspace.table("annotations").filter(teacher="local").collect().height
    assert metrics["cascade_asked"] + metrics["audit"] == told
    assert metrics["audit_alpha"] >= metrics["audit_alpha_before"]
    assert f"audit_f1 {ROUTE}" in metrics and 1 <= metrics["cascade_rounds"] <= 2
    calls = workspace.table("teacher_calls").collect()
    assert calls.height == len(server.sent) and calls["cost"].sum() == pytest.approx(110e-6 * len(server.sent))


def test_a_run_that_lost_its_labels_asks_nothing_again(built):
    workspace, server = built
    import shutil

    before, asked = workspace.table("annotations").collect(), len(server.sent)
    shutil.rmtree(workspace.root / "objects" / "annotate")
    with Session(Recipe.load(workspace.root), select=["+annotations"]) as session:
        session.run()
    assert len(server.sent) == asked
    assert workspace.table("annotations").collect().equals(before)
    assert workspace.table("teacher_calls").select(pl.len()).collect().item() == asked


@pytest.mark.parametrize("teacher", ["llm", "cascade"])
def test_a_model_that_labels_nothing_stops_the_run_with_its_reason(tmp_path, monkeypatch, teacher):
    folder = write_workspace(tmp_path / "w")
    with answering(monkeypatch, labels=lambda data: {"labels": []}) as server:
        recipe(folder, server)
        text = (folder / "recipe.yaml").read_text().replace("teacher: cascade", f"teacher: {teacher}")
        (folder / "recipe.yaml").write_text(text)
        loaded = Recipe.load(folder)
        with (
            pytest.raises(
                CurationError, match=r"could not label \d+ of \d+ queries; mostly: .*left it out"
            ) as caught,
            Session(loaded, select=["+annotations"]) as session,
        ):
            session.run()
    assert "llm.sqlite" in caught.value.hint
