"""The desk: decisions and labels reach the files, are checked first, and come back; any of them can be undone."""

import json
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import CurationError
from curation.review_page.desk import Desk
from tests.review_page.given import (
    ADD,
    DESCRIBE,
    HOSTILE,
    MERGE,
    POI,
    PROPOSALS,
    RENAME,
    SEEDS,
    SPLIT,
    decisions,
    ids_of,
    labels,
    make_workspace,
)

# -- deciding


def test_decisions_are_in_the_file_after_closing_and_undo_goes_on_after_opening(root):
    desk = Desk(root)
    desk.decide({"ids": [ADD, MERGE], "decision": "accept", "by": "ann"})
    desk.decide({"ids": [RENAME], "decision": "reject", "note": "说不清"})
    desk.close()
    assert decisions(root) == {
        ADD: {"decision": "accept", "by": "ann"},
        MERGE: {"decision": "accept", "by": "ann"},
        RENAME: {"decision": "reject", "note": "说不清"},
    }
    desk = Desk(root)
    assert desk.undo()["title"] == "reject: rename discovery.area_summaries"
    assert desk.undo()["title"] == "accept: 2 proposals"
    assert desk.undo()["title"] is None
    desk.close()
    assert decisions(root) == {}


def test_what_was_decided_right_before_a_kill_is_there(root):
    desk = Desk(root)
    desk.decide({"ids": [ADD], "decision": "accept"})
    desk.book._held.close()  # as a kill: nothing is folded
    assert not (root / "review" / "decisions.yaml").exists()
    again = Desk(root)
    assert again.proposal(ADD)["status"] == "accepted"
    again.close()
    assert decisions(root) == {ADD: {"decision": "accept"}}


def test_an_edit_keeps_what_differs_and_is_checked(desk, root):
    body = {"ids": [ADD], "decision": "edit", "name": "露营", "description": "Where and how to camp.", "target": None}
    desk.decide(body | {"examples": ["周末去哪里露营", "帐篷"]})
    desk.book.fold()
    assert decisions(root)[ADD] == {"decision": "edit", "name": "露营", "examples": ["周末去哪里露营", "帐篷"]}
    desk.decide({"ids": [ADD], "decision": "edit", "again": ["", "discovery"]})
    assert desk.proposal(ADD)["decided"] == {"decision": "edit", "again": ["discovery"]}
    desk.decide({"ids": [ADD], "decision": "edit", "name": "camping", "again": [""]})
    assert desk.proposal(ADD)["decided"] == {"decision": "accept"}
    for wrong, words in [
        ({"name": "two words"}, "letters, digits"),
        ({"name": "  "}, "name = ''"),
        ({"name": None}, "name = ''"),
        ({"name": "x" * 10_000}, "at most 100 characters, this one 10,000"),
        ({"name": "a\nb"}, "letters, digits"),
        ({"name": "evil\u202egnol"}, r"name = 'evil\\u202egnol'"),
        ({"description": " "}, "the text is empty"),
        ({"name": "discovery"}, "discovery"),
        ({"name": "other"}, "other"),
        ({"target": "no.such"}, "no.such"),
        ({"again": ["no.such"]}, "no.such"),
        ({"name": "half \ud800"}, "half a character"),
    ]:
        with pytest.raises(CurationError, match=words):
            desk.decide({"ids": [ADD], "decision": "edit"} | wrong)
    with pytest.raises(CurationError, match="about one proposal"):
        desk.decide({"ids": [ADD, RENAME], "decision": "edit", "name": "x"})
    assert desk.proposal(ADD)["decided"] == {"decision": "accept"}


@pytest.mark.parametrize(
    ("proposal_id", "body", "said"),
    [
        (DESCRIBE, {"decision": "edit", "description": "x", "again": ["discovery"]}, "to describe has no again"),
        (RENAME, {"decision": "edit", "name": "x", "target": None}, "to rename has no target"),
        (MERGE, {"decision": "edit", "parts": []}, "to merge has no parts"),
        (ADD, {"decision": "accept", "again": ["discovery"]}, "accept takes a proposal as it is, .* changes again"),
        (ADD, {"decision": "reject", "name": "x"}, "reject takes a proposal as it is, .* changes name"),
        (ADD, {"decision": None, "name": "x"}, "nothing is decided, and this changes name"),
    ],
)
def test_fields_that_a_decision_does_not_take_are_refused_and_not_dropped(desk, proposal_id, body, said):
    with pytest.raises(CurationError, match=said):
        desk.decide({"ids": [proposal_id]} | body)
    assert desk.proposal(proposal_id)["decided"] is None


def test_parts_of_a_split_are_edited(desk, root):
    parts = [
        {"name": "now", "description": "Now.", "examples": ["下雨吗"]},
        {"name": "later", "description": "Later."},
    ]
    desk.decide({"ids": [SPLIT], "decision": "edit", "parts": parts})
    desk.book.fold()
    assert decisions(root)[SPLIT] == {"decision": "edit", "parts": parts}
    assert {change["text"] for change in desk.preview()["changes"]} >= {"dynamic_information.now added"}
    with pytest.raises(CurationError, match="parts"):
        desk.decide({"ids": [SPLIT], "decision": "edit", "parts": [{"name": "?", "description": ""}, {}]})


# -- labelling


def test_labellers_do_not_see_or_overwrite_each_other(desk, root):
    charger, table, _ = (str(i) for i in ids_of(SEEDS))
    desk.label({"query_id": charger, "primary": f"{POI}.constrained_poi_search", "by": "ann"})
    desk.label({"query_id": charger, "tags": ["充电", "a;b"], "by": "bob"})
    desk.label({"query_id": table, "primary": "other", "secondary": ["other", "discovery.area_summaries"],
                "reason": "missing_tool", "by": "ann"})  # fmt: skip
    seen = {row["query_id"]: row for row in desk.find_seeds({"by": "bob"})}
    assert (seen[charger]["label"]["tags"], seen[charger]["others"]) == (["充电", "a;b"], 1)
    assert (seen[table]["label"], seen[table]["others"]) == (None, 1)
    assert len(desk.find_seeds({"by": "ann", "status": "labelled"})) == 2
    assert [row["text"] for row in desk.find_seeds({"words": "<script>"})] == [HOSTILE]
    desk.book.fold()
    rows = labels(root)
    assert [row["text"] for row in rows[:3]] == [seed["text"] for seed in desk.find_seeds({})]
    by = {(row["text"], row["labelled_by"]): row for row in rows}
    assert by[SEEDS[0], "bob"]["tags"] == '["充电", "a;b"]'
    assert by[SEEDS[1], "ann"] | {"lang": ""} == {
        "text": SEEDS[1], "lang": "", "tags": "", "primary": "other", "secondary": "discovery.area_summaries",
        "reason": "missing_tool", "labelled_by": "ann",
    }  # fmt: skip
    desk.label({"query_id": charger, "by": "ann"})
    desk.book.fold()
    assert [row["labelled_by"] for row in labels(root) if row["text"] == SEEDS[0]] == ["bob"]
    desk.label({"query_id": charger, "by": "bob"})
    desk.book.fold()
    assert [row["tags"] for row in labels(root) if row["text"] == SEEDS[0]] == [""]
    for wrong, words in [
        ({"primary": "discovery"}, "no leaf"),
        ({"reason": "missing_tool"}, "need a primary"),
        ({"primary": "other", "reason": "tired"}, "none of missing_tool"),
    ]:
        with pytest.raises(CurationError, match=words):
            desk.label({"query_id": charger} | wrong)


def test_labels_go_where_the_recipe_says(tmp_path):
    root = make_workspace(tmp_path / "w", [])
    (root / "mine").mkdir()
    (root / "mine" / "ann.csv").write_text(f"text,primary\n{SEEDS[0]},other\n")
    recipe = root / "recipe.yaml"
    start = recipe.read_text()
    recipe.write_text(start + "seeds: {file: mine}\n")
    desk = Desk(root)
    desk.label({"query_id": str(ids_of(SEEDS)[0]), "primary": "other", "by": "bob"})
    desk.close()
    assert "bob" in (root / "mine" / "review_page.csv").read_text()
    recipe.write_text(start + "seeds: {file: mine/ann.jsonl}\n")
    (root / "mine" / "ann.jsonl").write_text(json.dumps({"text": "x", "primary": "other"}))
    desk = Desk(root)
    with pytest.raises(CurationError, match=r"cannot write labels into .*ann\.jsonl"):
        desk.label({"query_id": str(ids_of(SEEDS)[0]), "primary": "other"})
    desk.close()


# -- 200 random edits


@patch("os.fsync", lambda _: None)
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_200_random_edits_round_trip_through_the_files_and_undo_restores(tmp_path_factory, seed):
    root, random = make_workspace(tmp_path_factory.mktemp("edits") / "w", PROPOSALS), Random(seed)
    desk = Desk(root)
    states = [dict(desk.book.values)]
    for _ in range(200):
        _edit(desk, random)
        if desk.book.values != states[-1]:
            states.append(dict(desk.book.values))
        if random.random() < 0.05:
            desk.book.fold()
        if random.random() < 0.03:
            desk.close()
            desk = Desk(root)
        assert desk.book.values == states[-1]
    desk.close()
    # The files alone give the same values: the journal is not what is read here.
    (root / "review" / "journal.jsonl").rename(root / "journal.jsonl")
    desk = Desk(root)
    assert (desk.book.wrong, desk.book.values) == (None, states[-1])
    desk.close()
    (root / "journal.jsonl").rename(root / "review" / "journal.jsonl")
    desk = Desk(root)
    for state in reversed(states[:-1]):
        desk.undo()
        assert desk.book.values == state
    desk.close()
    assert decisions(root) == {}
    assert not any(row["primary"] or row["tags"] for row in labels(root))


def _edit(desk, random):
    some = random.sample([ADD, MERGE, RENAME, DESCRIBE, SPLIT], random.randint(1, 3))
    kind = random.choice(["accept", "reject", "wait", "name", "examples", "target", "label", "label"])
    by = random.choice([None, "ann", '李雷, "x"'])
    if kind in ("accept", "reject"):
        desk.decide({"ids": some, "decision": kind, "by": by, "note": random.choice([None, "# x: '", "为什么\n- a"])})
    elif kind == "wait":
        desk.decide({"ids": some, "decision": None})
    elif kind == "name":
        desk.decide({"ids": [RENAME], "decision": "edit", "name": random.choice(["区域", "profiles", "no", "12"])})
    elif kind == "examples":
        texts = random.sample(["a: b", "[x]", "\x85\u2028y", "🍜", "'", '"', "- z", "null"], 3)
        desk.decide({"ids": [ADD], "decision": "edit", "examples": texts, "description": random.choice(texts)})
    elif kind == "target":
        desk.decide(
            {"ids": [ADD], "decision": "edit", "target": random.choice([None, "discovery", "other", POI][:2])}
        )
    else:
        tags = random.sample(["a;b", "[c", "，", '"d"', "e\nf", " g"], 2)
        primary = random.choice([None, "other", f"{POI}.constrained_poi_search"])
        desk.label({"query_id": str(random.choice(ids_of(SEEDS))), "by": by, "tags": tags[: random.randint(0, 2)],
                    "primary": primary, "secondary": ["discovery.area_summaries"] if primary else []})  # fmt: skip
