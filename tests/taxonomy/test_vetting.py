"""Proposals that make no sense, or come again and again."""

from __future__ import annotations

from dataclasses import replace

from curation.taxonomy import operations as ops
from curation.taxonomy.versions import History, Record
from curation.taxonomy.vetting import vetted
from tests.taxonomy.test_decisions import ADD, MERGE, RENAME, SPLIT, proposal
from tests.taxonomy.trees import START


def problems(history, *proposals):
    return [one.problem for one in vetted(proposals, history, history.newest.name).proposals]


def test_an_unknown_parent_is_a_problem_and_the_rest_waits():
    lost = proposal("add", "nowhere", name="x", description="x")
    taken = proposal("rename", "weather", name="music")
    nameless = proposal("add", "music", name="", description="x")
    found = problems(History(START), ADD, lost, taken, nameless, MERGE, RENAME, SPLIT)
    assert found[0] is found[4] is found[5] is found[6] is None
    assert found[1] == "add nowhere.x: there is no node 'nowhere'"
    assert "already" in found[2]
    assert "name = ''" in found[3]


def test_a_merge_that_is_proposed_for_ever_is_carried_out_once():
    history = History(START)
    history.add(Record(version="2", from_="1", operations=(ops.Merge(nodes=("music.stop",), into="music.play"),)))
    (again,) = problems(history, replace(MERGE, base_version="2"))
    assert "no node 'music.stop'" in again


def test_a_teacher_that_goes_to_and_fro_is_told():
    history = History(START)
    for number, (old, new) in enumerate([("music", "sound"), ("sound", "music")]):
        history.add(
            Record(version=str(number + 2), from_=str(number + 1), operations=(ops.Rename(node=old, name=new),))
        )
    (again,) = problems(history, replace(RENAME, base_version="3"))
    assert "round in circles" in again


def test_declined_proposals_do_not_come_again_from_other_rows():
    history = History(START)
    history.add(Record(declined=(MERGE.gist,)))
    found = vetted([replace(MERGE, rows=99), RENAME], history, "1")
    assert (found.declined, found.proposals, found.impossible) == (1, [RENAME], 0)


def test_proposals_for_another_version_are_told():
    assert "it speaks of version 1" in problems_of_old()


def problems_of_old():
    history = History(START)
    history.add(Record(version="2", from_="1", operations=(ops.Drop(node="weather"),)))
    return problems(history, RENAME)[0]
