"""Versions: the file and the trees it stands for, going back, and mistakes told with their lines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import CurationError
from curation.taxonomy import operations as ops
from curation.taxonomy.versions import History, Record, append, next_version
from tests.taxonomy.trees import START, history


def write(path, records):
    for record in records:
        append(path, record)
    return path


def rename(node, name):
    return ops.Rename(node=node, name=name)


def test_without_a_file_there_is_the_base():
    read = History.read(START, None)
    assert read.newest.taxonomy is START
    assert [version.name for version in read.lineage("1")] == ["1"]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_two_hundred_operations_round_trip_through_the_file(tmp_path_factory, seed, data):
    path = tmp_path_factory.mktemp("versions") / "versions.yaml"
    operations, told = history(seed), History(START)
    while operations:
        size = data.draw(st.integers(1, 80))
        some, operations = operations[:size], operations[size:]
        before = told.newest.name
        record = Record(version=next_version(told.versions), from_=before, operations=tuple(some), by="张三: #1")
        told.add(record)
        append(path, record)
    assert History.read(START, path).versions == told.versions


def test_going_back_gives_tree_and_labels_as_they_were(tmp_path):
    path = write(
        tmp_path / "v.yaml",
        [
            Record(version="2", from_="1", operations=(rename("weather", "sky"),)),
            Record(version="3", from_="2", operations=(ops.Drop(node="music"),)),
            Record(version="4", from_="3", return_to="2"),
            Record(version="5", from_="4", operations=(rename("sky", "weather"),)),
        ],
    )
    read = History.read(START, path)
    assert read.get("4").taxonomy.nodes == read.get("2").taxonomy.nodes
    assert read.get("5").taxonomy.nodes == START.nodes
    assert [version.name for version in read.lineage("5")] == ["1", "2", "4", "5"]
    assert all(fate == (leaf, False) for leaf, fate in read.get("4").carried.items())


def test_what_a_person_wrote_stays(tmp_path):
    path = tmp_path / "v.yaml"
    written = "# mine\n- version: 2   # two\n  from: 1\n  operations: [{op: drop, node: weather}]\n  # the end"
    path.write_text(written)
    append(path, Record(version="3", from_="2", return_to="1"))
    assert path.read_text().startswith(written + "\n")
    assert History.read(START, path).get("3").taxonomy.nodes == START.nodes


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("- version: '2'\n  from: '1'\n  operatoins: []\n", 3, "unknown key 'operatoins'\nDid you mean 'operations'"),
        ("- version: '2'\n  from: '7'\n  return_to: '1'\n", 1, "no version '7'"),
        ("- version: '1'\n  from: '1'\n  return_to: '1'\n", 1, "there already"),
        ("- version: '2'\n  from: '1'\n", 1, "either operations or"),
        ("- version: '2'\n  operations: [{op: drop, node: weather}]\n", 1, "what version it is from"),
        (
            "- version: '2'\n  from: '1'\n  operations:\n  - {op: drop, node: news}\n  - op: drop\n    node: news",
            5,
            "operation 2, drop news: there is no node 'news'",
        ),
        ("- version: '2'\n  from: '1'\n  operations:\n  - {op: burn, node: x}\n", 4, "'burn' is no operation"),
        ("- version: '2'\n  from: '1'\n  operations:\n  - op: rename\n    node: weather\n", 4, "there is no 'name'"),
        (
            "- version: '2'\n  from: '1'\n  operations:\n  - op: rename\n    node: weather\n    name: a.b\n",
            6,
            r"name = 'a\.b': a name is made of",
        ),
        ("- version: '2'\n - x", 2, "not valid YAML"),
        ("- just words\n", 1, "is not an entry"),
        ("- by: me\n", 1, "only decline"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path, text, line, said):
    path = tmp_path / "v.yaml"
    path.write_text(text)
    with pytest.raises(CurationError, match=rf"v\.yaml, line {line}: .*{said}"):
        History.read(START, path)


def test_a_file_that_is_no_list_is_refused(tmp_path):
    path = tmp_path / "v.yaml"
    path.write_text("version: 2\n")
    with pytest.raises(CurationError, match="must be a list"):
        History.read(START, path)


@pytest.mark.parametrize(
    ("known", "following"),
    [(["1"], "2"), (["1", "9"], "10"), (["3.1"], "3.2"), (["draft"], "draft.1"), (["2", "1"], "3")],
)
def test_the_next_version_counts_on(known, following):
    assert next_version(known) == following


def test_declined_proposals_are_remembered(tmp_path):
    gist = {"kind": "merge", "node": "weather", "target": "music.play"}
    path = write(tmp_path / "v.yaml", [Record(declined=(gist,), by="anna")])
    read = History.read(START, path)
    assert read.declined == [gist]
    assert read.newest.name == "1"
