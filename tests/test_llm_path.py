"""The whole path with an LLM at every stage that may ask one, over HTTP: stopped, resumed, some rows failed."""

from __future__ import annotations

import hashlib
import itertools
import re
import shutil

import polars as pl
import pytest

from curation.domain import load_domain
from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.workspace import Workspace
from curation.errors import CurationError
from tests.small_log import RECIPE, write_workspace
from tests.teachers.llm.answering import answering
from tests.teachers.llm.server import Act

LEAVES = (
    "discovery.poi_search.constrained_poi_search",
    "planning_and_decision.route_planning",
    "dynamic_information.realtime_weather",
)
TOOLS = ("map_search_places", "map_compute_routes", "weather_forecast_days")
DOMAIN = load_domain("map_travel")
numbers = itertools.count()


def number(text):
    return hashlib.sha256(text.encode()).digest()[0]


def labels(data):
    """Every eleventh query is left out of the answer the first time; some get no usable answer at all."""
    if any(number(row["text"]) % 17 == 0 for row in data["queries"]):
        return "no"
    blank = {
        "secondary": [],
        "constraints": [],
        "confidence": 0.75,
        "unsolvable": None,
        "unsolvable_confidence": 0.25,
    }
    return {
        "labels": [
            {"id": row["id"], "primary": LEAVES[number(row["text"]) % 3], **blank}
            for row in data["queries"]
            if number(row["text"]) % 11 or "fault" in row
        ]
    }


def scores(data):
    """Written queries need the tools they name, observed ones that of their leaf; some get no usable answer."""
    if any(number(row["text"]) % 19 == 1 for row in data["queries"]):
        return "no"
    made = []
    for row in data["queries"]:
        tools = needed(row["text"]) or [TOOLS[LEAVES.index(row["primary"])]]
        plan = [{"step": at + 1, "tool": tool, "depends_on": [at] if at else []} for at, tool in enumerate(tools)]
        made.append(
            {"id": row["id"], "tool_plan": plan, "cognitive_load": 2, "constraint_complexity": 1, "reason": None}
        )
    return {"scores": made}


def needed(text):
    """The tools that a written query names in its words."""
    return [tool for tool in DOMAIN.tools if tool.replace("_", " ") in text]


def queries(data):
    """Queries of words that nobody knows, with the names of the tools of their chain in them."""
    chain = " then ".join(tool.replace("_", " ") for tool in re.findall(r"^\d+\. (\w+)$", data.told, re.MULTILINE))
    words = [hashlib.sha256(str(next(numbers)).encode()).hexdigest().translate(LETTERS) for _ in range(8)]
    return {"queries": [{"text": f"{w[:7]} {w[7:15]} {chain} {w[15:24]}", "primary": LEAVES[0]} for w in words]}


LETTERS = str.maketrans("0123456789", "ghijklmnop")


def verdicts(data):
    good = {"natural": True, "solvable": True, "detail": None}
    return {"verdicts": [{"id": row["id"], "tools": needed(row["text"]), **good} for row in data["queries"]]}


def stopping(server, after):
    """The server refuses the key from a certain call on."""
    script = server.script
    return lambda sent: Act(status=401) if len(server.sent) > after else script(sent)


def recipe(folder, server):
    settings = {
        "base_url": server.url, "model": "local", "key_env": "LOCAL_KEY", "price_prompt": 1, "price_completion": 1,
        "max_failed_share": 1,
    }  # fmt: skip
    lines = "".join(f"  {name}: {value}\n" for name, value in settings.items())
    stages = "".join(f"{name}: {{teacher: llm}}\n" for name in ("annotate", "difficulty"))
    text = RECIPE + stages + f"synthesis: {{teacher: llm, rare_share: 0.2}}\nllm:\n{lines}"
    (folder / "recipe.yaml").write_text(text, encoding="utf-8")
    return Recipe.load(folder)


def run(loaded):
    with Session(loaded) as session:
        return session.run()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A workspace, its server, and the requests it was asked."""
    folder = write_workspace(tmp_path_factory.mktemp("llm"))
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        answering(monkeypatch, labels=labels, scores=scores, queries=queries, verdicts=verdicts) as server,
    ):
        loaded = recipe(folder, server)
        script = server.script
        server.script = stopping(server, 5)
        with pytest.raises(CurationError, match=r"401|refuse"):
            run(loaded)
        refused = list(server.sent[5:])
        server.script = script
        run(loaded)
        yield folder, server, len(server.sent) - len(refused)


def tables(folder):
    workspace = Workspace(folder)
    return {name: workspace.table(name).collect() for name in workspace.tables()}


def test_every_stage_asked_and_nothing_was_asked_twice(built):
    folder, _, answered = built
    found = tables(folder)
    assert set(found["annotations"]["teacher"]) == {"local"} == set(found["difficulty"]["teacher"])
    assert found["candidate_pool"].height == 60
    written = found["synthetic"].filter(verdict="verified")
    assert written.height > 0 and set(written["teacher"]) == {"local"}
    calls = found["teacher_calls"]
    assert set(calls["stage"]) == {"annotate", "difficulty", "synthesis"}
    # A request that was repaired, or tried to be, took two calls; a call costs 110 tokens.
    took = calls.select((pl.col("prompt_tokens") / 100).sum()).item()
    assert took == answered and calls["cost"].sum() == pytest.approx(110e-6 * answered)


def test_failed_rows_are_told_and_accounted(built):
    found = tables(built[0])
    ledger = {row["stage"]: row for row in found["ledger"].to_dicts()}
    failed = found["annotations"].filter(pl.col("error").is_not_null())
    assert ledger["annotate"]["failed"] == failed.height > 0
    assert all(error.endswith("; the answer: no") for error in failed["error"])
    rejects = found["rejects"].filter(stage="difficulty", reason="not_scored")
    assert ledger["difficulty"]["rejected"] == rejects.height > 0
    assert ledger["difficulty"]["kept"] == ledger["geometric"]["rows_in"]


def test_a_warm_cache_makes_the_same_bytes_and_no_call(built):
    folder, server, _ = built
    names = ("annotations", "difficulty", "synthetic", "candidate_pool")
    before, asked = {name: digests(folder, name) for name in names}, len(server.sent)
    for stage in ("annotate", "difficulty", "synthesis"):
        shutil.rmtree(folder / "objects" / stage)
    run(recipe(folder, server))
    assert len(server.sent) == asked
    assert {name: digests(folder, name) for name in names} == before


def digests(folder, table):
    files = sorted((folder / "latest" / table).glob("*.parquet"))
    assert files
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]
