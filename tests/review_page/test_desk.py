"""The desk: it shows the tables as they are, and what its preview shows is what applying makes."""

import pytest

from curation.errors import CurationError
from curation.review_page.desk import Desk
from curation.taxonomy.proposal import Proposal
from curation.taxonomy.review import Review
from tests.review_page.given import ADD, DESCRIBE, HOSTILE, MERGE, POI, PROPOSALS, RENAME, SPLIT, make_workspace

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


def test_the_name_of_who_reviews_is_told_to_the_page(tmp_path):
    root = make_workspace(tmp_path / "w", PROPOSALS)
    for by in ("李雷", None):
        desk = Desk(root, by)
        assert desk.state()["by"] == by
        desk.close()


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
