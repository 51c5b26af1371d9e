"""The desk: what it shows of the tables, decisions and labels into files and back, edits by hand, versions."""

import csv
import io
import json
import shutil
from random import Random
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from curation.errors import CurationError
from curation.review_page.desk import Desk
from curation.taxonomy.proposal import Evidence, Proposal
from curation.taxonomy.review import Review
from tests.review_page.given import HOSTILE, POI, PROPOSALS, SEEDS, ids_of, make_workspace, publish

ADD, MERGE, RENAME, DESCRIBE, SPLIT = (one.proposal_id for one in PROPOSALS)


@pytest.fixture
def root(tmp_path):
    return make_workspace(tmp_path / "w", PROPOSALS)


@pytest.fixture
def desk(root):
    desk = Desk(root)
    yield desk
    desk.close()


def decisions(root):
    rows = YAML(typ="safe").load((root / "review" / "decisions.yaml").read_text(encoding="utf-8")) or []
    return {row.pop("proposal"): row for row in rows}


def labels(root):
    text = (root / "review" / "seeds.csv").read_text(encoding="utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


# -- looking


def test_nodes_count_what_is_at_or_below_them(desk):
    tree = {row["node_id"]: row for row in desk.tree()}
    assert [tree["discovery"][name] for name in ("rows", "raw_rows", "candidates")] == [3, 60, 3]
    assert tree[f"{POI}.constrained_poi_search"]["raw_rows"] == 57
    assert tree["rules_and_policies"]["rows"] == 0
    assert (tree["dynamic_information.realtime_weather"]["waiting"], tree[POI]["waiting"]) == (1, 0)
    assert desk.node("")["counts"] == {"rows": 7, "raw_rows": 185, "candidates": 4}


def test_rows_of_a_node_by_frequency_and_by_doubt(desk):
    frequent = desk.node(POI)["evidence"]
    assert [row["weight"] for row in frequent] == [50, 7, 3]
    assert frequent[2]["text"] == HOSTILE
    assert [row["confidence"] for row in desk.node(POI, "unsure")["evidence"]] == [0.3, 0.6, 0.9]
    assert [row["weight"] for row in desk.node(POI, "frequent", 2)["evidence"]] == [3]
    assert desk.node("rules_and_policies")["evidence"] == []


def test_neighbours_are_siblings_and_the_leaves_whose_rows_lie_closest(desk):
    node = desk.node(f"{POI}.constrained_poi_search")
    assert {row["node_id"].rpartition(".")[2] for row in node["siblings"]} == {
        "open_ended_poi_exploration", "spatial_optimized_poi_search", "other",
    }  # fmt: skip
    closest = desk.closest(f"{POI}.constrained_poi_search")
    # The mean of (1, 0, 0) and (.9, .1, 0) against (.8, .2, 0), by hand: .78 / (.9513 * .8246).
    assert closest[0]["node_id"] == f"{POI}.open_ended_poi_exploration"
    assert closest[0]["similarity"] == pytest.approx(0.982, abs=0.001)
    assert [row["node_id"] for row in closest[1:3]] == ["other", "dynamic_information.realtime_weather"]
    assert desk.closest("rules_and_policies") == []


def test_a_workspace_without_any_run_shows_its_tree(tmp_path):
    (tmp_path / "recipe.yaml").write_text("log: {path: log.parquet, text: query}\n")
    desk = Desk(tmp_path)
    state = desk.state()
    assert (state["proposals"]["all"], state["seeds"]["all"], state["has_proposals"]) == (0, 0, False)
    assert desk.tree()[0]["name"] == "application_interaction"
    assert "rows" not in desk.tree()[0]
    assert desk.node("discovery")["evidence"] == desk.closest("discovery") == desk.find_proposals({}) == []
    desk.close()


def test_proposals_are_narrowed_and_sorted(desk):
    assert desk.find_proposals({}) == [ADD, RENAME, SPLIT, MERGE, DESCRIBE]
    assert desk.find_proposals({"sort": "weight"}) == [ADD, SPLIT, MERGE, RENAME, DESCRIBE]
    assert desk.find_proposals({"sort": "trend"}) == [ADD, SPLIT, RENAME, MERGE, DESCRIBE]
    assert desk.find_proposals({"kind": "merge"}) == [MERGE]
    assert desk.find_proposals({"source": "expand"}) == [ADD]
    assert desk.find_proposals({"node": "discovery"}) == [RENAME, MERGE]
    assert desk.find_proposals({"node": f"{POI}.constrained_poi_search"}) == [MERGE]
    assert desk.find_proposals({"words": "露营"}) == [ADD]
    assert desk.find_proposals({"words": "ＣＡＭＰＩＮＧ lake"}) == [ADD]
    assert desk.find_proposals({"words": '"><script>'}) == []
    assert desk.find_proposals({"words": "<SCRIPT>"}) == [ADD, DESCRIBE]
    assert desk.find_proposals({"words": RENAME}) == [RENAME]
    desk.decide({"ids": [ADD], "decision": "accept"})
    assert desk.find_proposals({"status": "accepted"}) == [ADD]
    assert ADD not in desk.find_proposals({"status": "waiting"})


def test_a_proposal_that_cannot_be_carried_out_says_why_and_is_not_accepted(tmp_path):
    stuck = Proposal("refine", "rename", "no.such", "1", "r", name="x", problem="there is no node 'no.such'")
    old = Proposal("refine", "drop", "discovery", "0", "of an older version")
    desk = Desk(make_workspace(tmp_path / "w", [*PROPOSALS, stuck, old]))
    assert desk.state()["proposals"] == {
        "waiting": 5, "accepted": 0, "edited": 0, "rejected": 0, "impossible": 1, "all": 6,
    }  # fmt: skip
    with pytest.raises(CurationError, match=r"no node 'no\.such'"):
        desk.decide({"ids": [stuck.proposal_id], "decision": "accept"})
    answer = desk.decide({"ids": desk.find_proposals({}), "decision": "accept", "waiting_only": True})
    assert len(answer["proposals"]) == 5
    desk.close()


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


# -- other hands


def test_an_edit_by_hand_is_taken_in_as_a_step_and_keeps_its_comments(root):
    desk = Desk(root)
    desk.decide({"ids": [ADD], "decision": "accept"})
    desk.book.fold()
    file = root / "review" / "decisions.yaml"
    file.write_text(
        file.read_text().replace("accept", "reject  # no") + f'# mine\n- proposal: "{MERGE}"\n  decision: accept\n'
    )
    state = desk.state()
    assert (state["proposals"]["rejected"], state["proposals"]["accepted"]) == (1, 1)
    assert state["undo"] == "edits in decisions.yaml"
    desk.decide({"ids": [RENAME], "decision": "accept"})
    desk.book.fold()
    assert "reject  # no" in file.read_text() and "# mine" in file.read_text()
    desk.undo()
    desk.undo()
    assert desk.proposal(ADD)["status"] == "accepted"
    desk.close()
    assert decisions(root) == {ADD: {"decision": "accept"}}


def test_a_mistake_in_the_file_is_shown_left_alone_and_mended(root):
    desk = Desk(root)
    desk.decide({"ids": [ADD], "decision": "accept"})
    desk.book.fold()
    file = root / "review" / "decisions.yaml"
    good = file.read_text()
    file.write_text(good + '- proposal: "ffffffffffff"\n  decision: accept\n')
    trouble = desk.state()["trouble"]
    assert "decisions.yaml, line 4" in trouble["message"] and "ffffffffffff" in trouble["message"]
    desk.decide({"ids": [MERGE], "decision": "reject"})
    desk.book.fold()
    assert file.read_text().endswith('"ffffffffffff"\n  decision: accept\n')
    with pytest.raises(CurationError, match="line 4"):
        desk.preview()
    file.write_text(good)
    assert desk.state()["trouble"] is None
    desk.close()
    assert decisions(root) == {ADD: {"decision": "accept"}, MERGE: {"decision": "reject"}}


def test_a_file_that_is_wrong_from_the_start_may_be_put_away(root):
    file = root / "review" / "decisions.yaml"
    file.parent.mkdir()
    file.write_text("- proposal: [\n")
    desk = Desk(root)
    assert "decisions.yaml, line" in desk.state()["trouble"]["message"]
    with pytest.raises(CurationError, match="not valid YAML"):
        desk.decide({"ids": [ADD], "decision": "accept"})
    assert desk.put_away()["state"]["trouble"] is None
    assert [kept.read_text() for kept in (root / "review" / "decided").iterdir()] == ["- proposal: [\n"]
    desk.decide({"ids": [ADD], "decision": "accept"})
    desk.put_away()  # there is no trouble: nothing is put away
    assert desk.proposal(ADD)["status"] == "accepted"
    desk.close()


def test_two_pages_on_one_review_are_refused(desk, root):
    with pytest.raises(CurationError, match="another review page"):
        Desk(root)


def test_a_command_that_holds_the_files_delays_folding_and_no_decision(desk, root):
    from curation.taxonomy.entries import review_lock

    desk.decide({"ids": [ADD], "decision": "accept"})
    desk.book._changed -= 10
    with review_lock(root / "review"):
        desk.book.fold_when_quiet()
        assert "another process" in desk.state()["trouble"]["message"]
        desk.decide({"ids": [MERGE], "decision": "accept"})
    desk.book._changed -= 10
    desk.book.fold_when_quiet()
    assert set(decisions(root)) == {ADD, MERGE}
    assert desk.state()["trouble"] is None


# -- versions


def test_what_the_preview_shows_is_what_applying_makes(root):
    desk = Desk(root)
    desk.decide({"ids": [ADD, RENAME], "decision": "accept"})
    desk.decide({"ids": [MERGE], "decision": "reject"})
    shown = desk.preview()
    assert (shown["from"], shown["to"], shown["accepted"], shown["rejected"]) == ("1", "2", 2, 1)
    assert {(line["sign"], line["text"]) for line in shown["changes"]} == {
        ("+", "camping added"), ("~", "discovery.area_profiles renamed"),
    }  # fmt: skip
    # A new leaf at level 1 touches the root's Other and the leaf that holds some of its evidence: a row in each.
    assert (shown["again"], shown["rows"]) == (2, 7)
    answer = desk.apply({"seal": shown["seal"], "by": "ann"})
    assert answer["version"] == "2"
    assert answer["state"]["proposals"]["all"] == 0
    assert answer["state"]["undo"] is None
    assert "camping" in {row["name"] for row in desk.tree()}
    newest, first = desk.versions()
    assert (newest["version"], newest["by"], newest["current"], first["version"]) == ("2", "ann", True, "1")
    assert desk.compare("1", "2") == shown["changes"]
    assert sorted(line["sign"] for line in desk.compare("2", "1")) == ["~", "−"]
    assert not (root / "review" / "decisions.yaml").exists()
    assert len(list((root / "review" / "decided").iterdir())) == 1
    back = desk.return_to({"version": "1"})
    assert back["version"] == "3"
    assert desk.compare("1", "3") == []
    desk.close()
    assert Review(root).current.name == "3"


def test_applying_is_refused_when_something_was_decided_since_the_preview(desk):
    desk.decide({"ids": [ADD], "decision": "accept"})
    shown = desk.preview()
    desk.decide({"ids": [RENAME], "decision": "accept"})
    with pytest.raises(CurationError, match="changed since"):
        desk.apply({"seal": shown["seal"]})
    assert len(desk.versions()) == 1


def test_a_command_that_applies_while_the_page_is_open_is_seen(root):
    desk = Desk(root)
    charger = str(ids_of(SEEDS)[0])
    desk.decide({"ids": [ADD], "decision": "accept"})
    desk.book.fold()
    before = desk.state()["material"]
    desk.label({"query_id": charger, "primary": "other"})  # not folded yet
    Review(root).apply("bob")
    state = desk.state()
    assert (state["version"], state["proposals"]["all"]) == ("2", 0)
    assert state["material"] != before
    assert desk.find_seeds({})[1]["label"]["primary"] == "other"
    assert state["undo"] == "what the files did not hold yet"
    desk.close()
    assert {row["primary"] for row in labels(root)} == {"", "other"}


def test_a_new_run_brings_new_proposals_and_leaves_decisions_on_the_same_ones(root):
    desk = Desk(root)
    desk.decide({"ids": [RENAME], "decision": "accept"})
    desk.book.fold()
    fresh = Proposal("refine", "drop", "rules_and_policies", "1", "No rows.", evidence=(Evidence(1, "x"),))
    other = make_workspace(root.parent / "other", [PROPOSALS[2], fresh])
    tables = {
        path.name: pl.read_parquet(path / "*.parquet") for path in (other / "latest").iterdir() if path.is_dir()
    }
    publish(root, tables, run="2")
    assert desk.state()["proposals"] | {"edited": 0} == {
        "waiting": 1, "accepted": 1, "edited": 0, "rejected": 0, "impossible": 0, "all": 2,
    }  # fmt: skip
    desk.close()
    shutil.rmtree(other)


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


def test_the_name_of_who_reviews_is_told_to_the_page(tmp_path):
    root = make_workspace(tmp_path / "w", PROPOSALS)
    for by in ("李雷", None):
        desk = Desk(root, by)
        assert desk.state()["by"] == by
        desk.close()


def test_what_was_applied_and_not_put_away_is_put_away(tmp_path, monkeypatch):
    root = make_workspace(tmp_path / "w", PROPOSALS)
    file = root / "review" / "decisions.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("- {op: rename, node: discovery, name: 发现}\n", encoding="utf-8")
    with monkeypatch.context() as stopped:
        stopped.setattr(Review, "put_away", lambda self: None)
        Review(root).apply("ann")
    desk = Desk(root)
    assert desk.state()["trouble"] is None and not file.exists()
    desk.close()
