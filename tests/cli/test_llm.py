"""What `plan`, `run` and `doctor` say of an LLM that the recipe asks."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from curation.cli.app import app
from curation.engine.estimates import Estimated
from curation.engine.stage import Ask
from curation.errors import CurationError
from tests.small_log import RECIPE, write_workspace
from tests.teachers.llm.server import KEY, Server


def curate(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def recipe(server=None, **options):
    lines = {"base_url": server.url, "model": "local", "key_env": "LOCAL_KEY"} if server else {}
    settings = "".join(f"  {name}: {value}\n" for name, value in (lines | options).items())
    return RECIPE + "annotate: {teacher: llm}\n" + (f"llm:\n{settings}" if settings else "")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("LOCAL_KEY", KEY)
    with Server() as opened:
        yield opened


def test_a_run_without_an_endpoint_is_refused_before_any_work(tmp_path):
    write_workspace(tmp_path, recipe())
    result = curate("run", tmp_path, "-q")
    assert isinstance(result.exception, CurationError)
    assert "the recipe has no llm.base_url" in str(result.exception) and "section `llm`" in str(result.exception)
    assert not list(tmp_path.glob("objects/*/*"))


def test_a_run_without_the_key_is_refused_before_any_work(tmp_path, server, monkeypatch):
    monkeypatch.delenv("LOCAL_KEY")
    write_workspace(tmp_path, recipe(server))
    result = curate("run", tmp_path, "-q")
    assert "environment variable LOCAL_KEY with the API key is not set" in str(result.exception)
    assert not list(tmp_path.glob("objects/*/*"))


def test_plan_tells_which_table_an_estimate_waits_for(tmp_path, server):
    write_workspace(tmp_path, recipe(server))
    shown = curate("plan", tmp_path)
    assert shown.exit_code == 0, shown.exception
    assert "annotate will ask an LLM; how much can be told when" in shown.stdout
    assert not server.sent


def test_plan_tells_that_the_key_is_missing_as_a_run_would(tmp_path, server, monkeypatch):
    write_workspace(tmp_path, recipe(server))
    assert "refused" not in curate("plan", tmp_path).stdout
    monkeypatch.delenv("LOCAL_KEY")
    refused = curate("run", tmp_path, "-q").exception
    for shown in (curate("plan", tmp_path), curate("run", tmp_path, "--dry-run")):
        assert shown.exit_code == 0, shown.exception
        assert "annotate will ask an LLM" in shown.stdout
        told = shown.stdout.split("A run would be refused: ")[1].splitlines()
        assert told == [refused.message, refused.hint]
    # What asks nobody runs without a key.
    assert "refused" not in curate("plan", tmp_path, "--select", "+embeddings").stdout


def test_plan_shows_estimates_as_a_table(tmp_path, monkeypatch):
    write_workspace(tmp_path)
    found = [
        Estimated("annotate", Ask(33_446, 4_181, 9_000_000, 4.5, "EUR", 3600.0)),
        Estimated("difficulty", Ask(27_000, 3_400, 5_000_000, None, "EUR", 60.0)),
        Estimated("synthesis", None, "difficulty"),
    ]
    monkeypatch.setattr("curation.engine.estimates.estimates", lambda session, steps: found)
    shown = curate("plan", tmp_path).stdout.split("Asked of an LLM, about:")[1]
    rows = [line.split() for line in shown.splitlines()]
    assert any(row[:6] == ["annotate", "33,446", "4,181", "9,000,000", "4.50", "EUR"] for row in rows)
    assert any(row[:4] == ["difficulty", "27,000", "3,400", "5,000,000"] and "price" in row for row in rows)
    assert "synthesis will ask an LLM; how much can be told when difficulty is built" in shown


def test_plan_without_an_llm_says_nothing_of_it(tmp_path):
    write_workspace(tmp_path)
    assert "LLM" not in curate("plan", tmp_path).stdout


def test_doctor_looks_at_the_endpoint(tmp_path, server, monkeypatch):
    write_workspace(tmp_path, recipe(server))
    listed = {"object": "list", "data": [{"id": "local", "object": "model"}]}
    monkeypatch.setattr(server.batches, "answer", lambda *_: (200, listed))
    shown = curate("doctor", tmp_path)
    assert f"local at {server.url} answers, for annotate, synthesis" in " ".join(shown.stdout.split())
    assert KEY not in shown.stdout and not server.sent
    write_workspace(tmp_path, recipe(server, model="another"))
    assert "does not list that model, but local" in " ".join(curate("doctor", tmp_path).stdout.split())
    monkeypatch.delenv("LOCAL_KEY")
    shown = curate("doctor", tmp_path)
    assert "LOCAL_KEY" in shown.stdout and shown.exit_code != 0


def test_doctor_of_an_embedded_workspace(tmp_path):
    write_workspace(tmp_path)
    assert "every teacher is the embedded one" in " ".join(curate("doctor", tmp_path).stdout.split())
