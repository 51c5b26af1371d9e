"""The LLM annotator: labels joined by id, spans computed, faults told once, failed rows kept with their answer."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from curation.domain import load_domain
from curation.teachers.base import ANNOTATIONS
from curation.teachers.llm.annotator import LlmAnnotator
from curation.teachers.llm.few_shot import FewShot
from tests.teachers.llm.fake import FakeClient
from tests.teachers.llm.test_few_shot import seeds

DOMAIN = load_domain("map_travel")
TAXONOMY = DOMAIN.taxonomy
LEAF, FURTHER = "planning_and_decision.route_planning", "dynamic_information.realtime_weather"


def queries(*texts, langs=None):
    return pl.DataFrame(
        {
            "query_id": pl.Series(range(1, len(texts) + 1), dtype=pl.UInt64),
            "text": texts,
            "norm": texts,
            "lang": langs or ["en"] * len(texts),
        }
    )


def label(row, **changes):
    return {
        "id": row["id"], "primary": LEAF, "secondary": [], "constraints": [], "confidence": 0.75,
        "unsolvable": None, "unsolvable_confidence": 0.125,
    } | changes  # fmt: skip


def answer(**changes):
    return lambda data: {"labels": [label(row, **changes) for row in data["queries"]]}


def annotate(client, frame, **options):
    few = FewShot(seeds([]), TAXONOMY.leaves)
    annotator = LlmAnnotator(client, "some-model", TAXONOMY, DOMAIN, few, **options)
    out = annotator.annotate(frame, np.zeros((frame.height, 2), np.float32))
    assert out.schema == ANNOTATIONS
    schemas.load("annotations").schema.validate(out)
    assert out["query_id"].to_list() == frame["query_id"].to_list()
    return out


def test_labels_arrive_in_the_columns_of_the_contract():
    client = FakeClient(answer(secondary=[FURTHER, LEAF], unsolvable="missing_info"))
    row = annotate(client, queries("how do I get to the station")).row(0, named=True)
    assert row == {
        "query_id": 1, "primary": LEAF, "secondary": [FURTHER], "constraints": [], "confidence": 0.75,
        "teacher": "some-model", "taxonomy_version": TAXONOMY.version, "unsolvable": "missing_info",
        "unsolvable_confidence": 0.125, "error": None,
    }  # fmt: skip


def constraint(dimension, value, text):
    return {"dimension": dimension, "value": value, "text": text}


def test_offsets_are_computed_and_sorted():
    found = [constraint("route.avoid", "tolls", "NO TOLLS"), constraint("budget", "low", "cheap")]
    out = annotate(FakeClient(answer(constraints=found)), queries("cheap way to Rome, no tolls"))
    assert out["constraints"].to_list()[0] == [
        {"dimension": "budget", "value": "low", "text": "cheap", "start": 0, "end": 5},
        {"dimension": "route.avoid", "value": "tolls", "text": "no tolls", "start": 19, "end": 27},
    ]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"constraints": [constraint("budget", "low", "very cheap")]}, "'very cheap' does not occur in the query"),
        ({"constraints": [constraint("budget", " ", "cheap")]}, "the constraint 'cheap' has no value"),
    ],
)
def test_a_fault_is_told_once_then_the_row_fails_with_its_answer(changes, fault):
    client = FakeClient(answer(**changes))
    row = annotate(client, queries("cheap hotel")).row(0, named=True)
    assert row["primary"] is None and fault in row["error"] and '"confidence":0.75' in row["error"]
    assert len(client.requests) == 2
    assert fault in client.data[1]["queries"][0]["fault"]

    def learns(data):
        return answer(**({} if "fault" in data["queries"][0] else changes))(data)

    assert annotate(FakeClient(learns), queries("cheap hotel"))["error"].to_list() == [None]


def test_a_leaf_that_does_not_exist_is_never_taken(monkeypatch):
    import curation.teachers.llm.answers as answers

    monkeypatch.setattr(answers, "_MOST_VALUES", 1)  # as for a taxonomy too large for a closed list
    answers.labels_answer.cache_clear()
    out = annotate(FakeClient(answer(primary="planning_and_decision")), queries("x y"))
    answers.labels_answer.cache_clear()
    assert "'planning_and_decision' is no leaf" in out["error"][0]


def test_rows_are_asked_in_the_language_of_their_text():
    client = FakeClient(answer())
    annotate(client, queries("怎么去车站", "way to the station", "chemin", langs=["zh", "en", "fr"]))
    told = {
        request.messages[0]["content"][:10]: len(client.data[at]["queries"])
        for at, request in enumerate(client.requests)
    }
    assert told == {"你为用户向助手输入的": 1, "You label ": 2}
    assert {request.request_id.split("/")[0] for request in client.requests} == {"annotate.zh.1", "annotate.en.1"}


def test_nearest_seeds_stand_with_their_query_and_balanced_ones_in_the_instructions():
    table = seeds([1, 2]).with_columns(primary=pl.lit(LEAF), secondary=pl.lit([], pl.List(pl.String)))
    few = FewShot(table, TAXONOMY.leaves, np.eye(2, dtype=np.float32))
    client = FakeClient(answer())
    annotator = LlmAnnotator(client, "m", TAXONOMY, DOMAIN, few, per_leaf=1, nearest=1)
    annotator.annotate(queries("first", "second"), np.array([[0, 1], [1, 0]], np.float32))
    shown = {
        row["text"]: [seed["text"] for seed in row["similar"]] for data in client.data for row in data["queries"]
    }
    assert shown == {"first": ["a en"], "second": ["a zh"]}
    assert '{"text": "a en", "primary": "' in client.requests[0].messages[0]["content"]


@settings(max_examples=30)
@given(st.lists(st.text(min_size=1), min_size=1, max_size=9, unique=True))
def test_any_text_reaches_the_model_and_its_label_comes_back_to_it(texts):
    """Leaves stand for texts here, so a label on the wrong row would show."""
    leaves = {text: TAXONOMY.leaves[at] for at, text in enumerate(texts)}

    def by_text(data):
        return {"labels": [label(row, primary=leaves[row["text"]]) for row in reversed(data["queries"])]}

    out = annotate(FakeClient(by_text), queries(*texts), rows=3)
    assert out["primary"].to_list() == list(TAXONOMY.leaves[: len(texts)])


def test_t10_the_order_of_rows_changes_no_label():
    texts = [f"query {number}" for number in range(30)]

    def by_text(data):
        return {"labels": [label(row, confidence=len(row["text"]) / 10) for row in data["queries"]]}

    frame = queries(*texts)
    one = annotate(FakeClient(by_text), frame)
    other = annotate(FakeClient(by_text), frame.reverse())
    assert one.equals(other.reverse())


def test_no_rows_make_an_empty_table():
    client = FakeClient(answer())
    assert annotate(client, queries("x").clear()).height == 0 and client.requests == []
