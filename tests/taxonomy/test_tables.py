"""The tables of a history, and labels carried along them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import schemas
from curation.taxonomy import operations as ops
from curation.taxonomy.compare import compare
from curation.taxonomy.lineage import Lineage
from curation.taxonomy.tables import changes_frame, migrations_frame, nodes_frame
from curation.taxonomy.versions import History, Record
from tests.taxonomy.trees import START, history


def made(*steps):
    """A history in which each step is operations, or the version to return to."""
    told = History(START)
    for step in steps:
        what = {"return_to": step} if isinstance(step, str) else {"operations": tuple(step)}
        told.add(Record(version=str(len(told.versions) + 1), from_=told.newest.name, **what))
    return told


def lineage(told, current=None):
    return Lineage(nodes_frame(told, current or told.newest.name), migrations_frame(told))


RENAME = ops.Rename(node="news.sport", name="games")
SPLIT = ops.Split(
    node="weather", parts=[ops.NewLeaf(name="rain", description="x"), ops.NewLeaf(name="sun", description="y")]
)
ADD = ops.Add(parent="music", name="pause", description="Wait.")
MERGE = ops.Merge(nodes=("music.stop",), into="music.play")


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_every_history_keeps_the_contracts(seed, size):
    operations = history(seed, 120)
    told = made(*(operations[at : at + size] for at in range(0, 120, size)), "1")
    for name, frame in (
        ("taxonomy", nodes_frame(told, "1")),
        ("taxonomy_changes", changes_frame(told)),
        ("taxonomy_migrations", migrations_frame(told)),
    ):
        schemas.load(name).schema.validate(frame)
    read = lineage(told)
    assert read.current == told.newest.name
    assert read.versions == ["1", told.newest.name]
    for name, version in told.versions.items():
        assert read.taxonomy(name).by_id == version.taxonomy.by_id
        assert read.fates(name) == version.carried


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32))
def test_changes_back_and_forth_mirror_each_other(seed):
    told = made(history(seed, 60))
    there, back = compare(told, "1", "2"), compare(told, "2", "1")
    mirror = {"added": "removed", "removed": "added"}
    assert sorted((mirror.get(c.change, c.change), c.before or "", c.after or "") for c in back) == sorted(
        (c.change, c.after or "", c.before or "") for c in there
    )
    assert compare(told, "2", "2") == []


def test_changes_follow_a_node_through_its_ids():
    told = made([RENAME], [ops.Move(node="news.games", parent="music")])
    found = [(c.node_id, c.change, c.before, c.after) for c in compare(told, "1", "3")]
    assert found == [("music.games", "renamed", "sport", "games"), ("music.games", "moved", "news", "music")]


@pytest.mark.parametrize(
    ("steps", "leaf", "version", "to", "meant"),
    [
        ([[RENAME]], "news.sport.ski", "1", "2", "news.games.ski"),
        ([[RENAME]], "news.games.ski", "2", "1", "news.sport.ski"),
        ([[SPLIT]], "weather", "1", "2", None),
        ([[SPLIT]], "rain", "2", "1", "other"),
        ([[ADD]], "music.pause", "2", "1", "music.other"),
        ([[MERGE]], "music.stop", "1", "2", "music.play"),
        ([[MERGE]], "music.play", "2", "1", None),
        ([[RENAME], [ADD], "1"], "news.games.ski", "3", "4", "news.sport.ski"),
        ([[RENAME], "1", [ADD]], "news.sport.ski", "4", "2", "news.games.ski"),
    ],
)
def test_labels_mean_the_same_in_other_versions(steps, leaf, version, to, meant):
    assert lineage(made(*steps)).carry(leaf, version, to) == meant


def test_labels_by_hand_speak_rather_of_the_current_line():
    told = made([RENAME], [MERGE], "2", [ADD])
    assert lineage(told).preferred == ["5", "4", "2", "1", "3"]
    assert lineage(told, "3").preferred == ["3", "2", "1", "5", "4"]
