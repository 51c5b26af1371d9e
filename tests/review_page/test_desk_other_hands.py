"""The desk: what others do while it is open, by hand or by a command, is taken in and overwrites no decision."""

import shutil

import polars as pl
import pytest

from curation.errors import CurationError
from curation.review_page.desk import Desk
from curation.taxonomy.proposal import Evidence, Proposal
from curation.taxonomy.review import Review
from tests.review_page.given import (
    ADD,
    MERGE,
    PROPOSALS,
    RENAME,
    SEEDS,
    decisions,
    ids_of,
    labels,
    make_workspace,
    publish,
)

# -- files


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


# -- commands


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
