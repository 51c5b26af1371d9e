"""The journal: the same after a restart as before, undo restores, a kill in mid-write costs nothing that was said."""

import json
import os
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import CurationError
from curation.review_page.journal import History, Journal

KEYS = [f"proposal:{i}" for i in range(6)]


def moves(seed):
    """200 random moves."""
    random = Random(seed)
    for _ in range(200):
        kind = random.choice(["do"] * 6 + ["undo"] * 3 + ["redo"] * 2 + ["fold", "restart"])
        if kind == "do":
            values = [
                None,
                {"decision": "accept"},
                {"decision": "edit", "name": random.choice(["北京", '"', "\n", "\x00"])},
            ]
            yield kind, {random.choice(KEYS): random.choice(values) for _ in range(random.randint(1, 3))}
        else:
            yield kind, None


class Model:
    """Undo by keeping every state."""

    def __init__(self):
        self.states, self.at = [{}], 0

    def do(self, changes):
        now = {k: v for k, v in (self.states[self.at] | changes).items() if v is not None}
        if now != self.states[self.at]:
            self.states = [*self.states[: self.at + 1], now]
            self.at += 1

    def undo(self):
        self.at = max(0, self.at - 1)

    def redo(self):
        self.at = min(len(self.states) - 1, self.at + 1)


@patch("os.fsync", lambda _: None)  # a kill of the machine is not what this is about, and it is slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_200_random_steps_survive_restarts_and_undo_restores_every_state(tmp_path_factory, seed):
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    journal, model = Journal(path), Model()
    for move, changes in moves(seed):
        if move == "do":
            journal.do(changes, "step")
            model.do(changes)
        elif move == "fold":
            journal.note_fold({"decisions.yaml": "digest"})
            assert journal.base == model.states[model.at]
        elif move == "restart":
            base = journal.base
            journal = Journal(path)
            assert journal.base == base
        else:
            getattr(journal, move)()
            getattr(model, move)()
        assert journal.history.values == model.states[model.at]
    while journal.undo() is not None:
        model.undo()
        assert journal.history.values == model.states[model.at]
    assert journal.history.values == {}
    assert Journal(path).history == journal.history


def test_a_step_that_changes_nothing_is_none_and_keeps_what_can_be_redone():
    history = History()
    history.do({"a": {"x": 1}})
    history.undo()
    assert history.do({"a": None}) is None
    assert history.redo().changes == {"a": (None, {"x": 1})}


def test_one_line_a_step_whatever_stands_already(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.do({f"proposal:{i}": {"decision": "accept"} for i in range(50_000)}, "all")
    before = journal.path.stat().st_size
    journal.do({"proposal:7": {"decision": "reject"}}, "one")
    assert journal.path.stat().st_size - before < 150


@pytest.mark.parametrize("cut", range(1, 40, 6))
def test_a_line_cut_short_by_a_kill_is_dropped_and_the_next_step_is_whole(tmp_path, cut):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.do({"a": {"n": 1}}, "first")
    journal.do({"b": {"n": 2}}, "second")
    os.truncate(path, path.stat().st_size - cut)
    again = Journal(path)
    assert again.history.values == {"a": {"n": 1}}
    again.do({"c": {"n": 3}}, "third")
    assert Journal(path).history.values == {"a": {"n": 1}, "c": {"n": 3}}


def test_a_damaged_line_is_named(tmp_path):
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    journal.do({"a": {"n": 1}}, "")
    path.write_text(path.read_text() + '{"unknown": 1}\n' + json.dumps({"undo": 1}) + "\n")
    with pytest.raises(CurationError, match=r"journal\.jsonl, line 2: not a line of a review journal"):
        Journal(path)


def test_a_full_disk_decides_nothing(tmp_path, monkeypatch):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.do({"a": {"n": 1}}, "")
    size = journal.path.stat().st_size

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CurationError, match="cannot be written: No space left"):
        journal.do({"a": {"n": 2}}, "")
    monkeypatch.undo()
    assert journal.history.values == {"a": {"n": 1}}
    assert journal.path.stat().st_size == size
    journal.do({"b": {"n": 3}}, "")
    assert Journal(journal.path).history.values == {"a": {"n": 1}, "b": {"n": 3}}


def test_what_someone_else_wrote_moves_the_base_and_not_what_was_decided_since(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.begin("version 1", {"f": "1"}, {"a": {"n": 1}})
    assert journal.undo() is None
    journal.do({"b": {"n": 2}}, "")
    journal.note_read({"f": "2"}, {"a": None, "c": {"n": 3}})
    for one in (journal, Journal(journal.path)):
        assert one.base == {"c": {"n": 3}}
        assert one.history.values == {"a": {"n": 1}, "b": {"n": 2}}
        assert (one.about, one.folded) == ("version 1", {"f": "2"})


def test_begin_leaves_the_past_behind(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    journal.do({"a": {"n": 1}}, "")
    journal.begin("version 2", {"f": None}, {"b": {"n": 2}})
    journal.do({"c": {"n": 3}}, "")
    again = Journal(journal.path)
    assert again.history.values == {"b": {"n": 2}, "c": {"n": 3}}
    assert again.base == {"b": {"n": 2}}
    again.undo()
    assert again.undo() is None
    assert again.history.values == {"b": {"n": 2}}
