"""Operations on the tree: what each does to nodes and to the labels of rows, and what no sequence of them breaks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.domain import load_domain
from curation.domain.model import OTHER, other_description
from curation.errors import CurationError
from curation.taxonomy import operations as ops
from curation.taxonomy.editor import edited
from tests.taxonomy.trees import START, history, tree


def ids(taxonomy):
    return [node.node_id for node in taxonomy.nodes]


def done(*operations, start=START):
    return ops.apply(start, operations, "2")


def moved(*operations, start=START):
    """Leaves whose labels change or whose rows are annotated again."""
    return {leaf: to for leaf, to in ops.migration(start, operations).items() if to != leaf}


def part(name):
    return ops.NewLeaf(name=name, description=f"All of {name}.")


def test_add_puts_the_leaf_before_other_and_sends_other_and_its_neighbours_back():
    operation = ops.Add(parent="music", name="pause", description="Wait.", examples=("hold on",))
    new = done(operation)
    assert ids(new)[:5] == ["music", "music.play", "music.stop", "music.pause", "music.other"]
    assert new.node("music.pause").examples == ("hold on",)
    assert moved(operation) == {"music.play": None, "music.stop": None, "music.other": None}


def test_add_may_name_other_nodes_that_hold_some_of_its_rows():
    operation = ops.Add(name="maps", description="Ways.", again=("news.sport.ski", "music"))
    sent = {"weather", "other", "news.sport.ski", "music.play", "music.stop", "music.other"}
    assert set(moved(operation)) == sent


def test_add_at_level_1_leaves_the_other_categories_alone():
    operation = ops.Add(name="maps", description="Ways.")
    assert done(operation).node("maps").parent_id is None
    assert moved(operation) == {"weather": None, "other": None}


def test_a_leaf_that_gets_a_child_becomes_an_inner_node_with_other():
    operation = ops.Add(parent="weather", name="rain", description="Wet.")
    new = done(operation)
    assert not new.node("weather").is_leaf
    assert new.node("weather.other").description == other_description("weather")
    assert edited(START, [operation]).carried()["weather"] == ("weather.other", True)


def test_labels_of_a_dropped_node_fall_to_its_parents_other():
    assert moved(ops.Drop(node="news.sport.ball")) == {"news.sport.ball": "news.sport.other"}
    assert moved(ops.Drop(node="news.sport")) == dict.fromkeys(
        ["news.sport.ball", "news.sport.ski", "news.sport.other"], "news.other"
    )
    assert moved(ops.Drop(node="weather")) == {"weather": "other"}


def test_a_node_that_loses_its_last_child_becomes_a_leaf_and_keeps_the_labels():
    operations = ops.Drop(node="music.play"), ops.Drop(node="music.stop")
    assert done(*operations).node("music").is_leaf
    assert moved(*operations) == dict.fromkeys(["music.play", "music.stop", "music.other"], "music")


def test_rename_and_move_carry_all_that_is_below():
    new = done(ops.Rename(node="news.sport", name="games"), ops.Move(node="news.games", parent="music"))
    assert new.node("music.games.ski").level == 3
    assert new.node("music.games.other").description == other_description("music.games")
    assert moved(ops.Move(node="news.sport", parent=None)) == {
        "news.sport.ball": "sport.ball",
        "news.sport.ski": "sport.ski",
        "news.sport.other": "sport.other",
    }


def test_merge_into_a_leaf_takes_labels_and_examples():
    start = done(ops.Examples(node="music.stop", add=("halt",)))
    operation = ops.Merge(nodes=("music.stop", "news.sport"), into="music.play")
    assert done(operation, start=start).node("music.play").examples == ("halt",)
    assert moved(operation) == {
        "music.stop": "music.play",
        "news.sport.ball": "music.play",
        "news.sport.ski": "music.play",
        "news.sport.other": "music.play",
    }


def test_merge_of_inner_nodes_joins_children_of_one_name():
    start = tree("a.x", "a.y", "b.x", "b.z.w")
    operation = ops.Merge(nodes=("b",), into="a")
    assert ids(done(operation, start=start)) == ["a", "a.x", "a.y", "a.z", "a.z.w", "a.z.other", "a.other", "other"]
    assert moved(operation, start=start) == {
        "b.x": "a.x",
        "b.z.w": "a.z.w",
        "b.z.other": "a.z.other",
        "b.other": "a.other",
    }


def test_split_stands_in_the_place_of_the_leaf_and_its_rows_have_no_label():
    operation = ops.Split(node="music.play", parts=(part("play"), part("shuffle")))
    assert ids(done(operation))[1:4] == ["music.play", "music.shuffle", "music.stop"]
    assert edited(START, [operation]).carried()["music.play"] == (None, True)
    assert moved(operation) == {"music.play": None}


def test_describe_and_examples_send_the_node_and_its_parents_other_back():
    for operation in (ops.Describe(node="news.sport", description="x"), ops.Examples(node="news.sport", add=("x",))):
        assert set(moved(operation)) == {"news.sport.ball", "news.sport.ski", "news.sport.other", "news.other"}


def test_examples_may_name_an_other_whose_rows_are_annotated_again():
    operation = ops.Examples(node="music.play", add=("x",), again=("other", "news.sport"))
    sent = {"music.play", "music.other", "other", "news.sport.ball", "news.sport.ski", "news.sport.other"}
    assert set(moved(operation)) == sent


def test_rows_that_come_after_the_change_are_not_sent_back():
    first = ops.Describe(node="music.play", description="x")
    then = ops.Merge(nodes=("music.stop",), into="music.play")
    assert moved(first, then)["music.stop"] == "music.play"
    assert moved(then, first)["music.stop"] is None


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        (
            ops.Drop(node="music.plai"),
            r"drop music\.plai: there is no node 'music\.plai'\nDid you mean music\.play\?",
        ),
        (ops.Drop(node="music.other"), "is an Other"),
        (ops.Rename(node="music.play", name="stop"), "music has a category 'stop' already"),
        (ops.Move(node="news", parent="news.sport"), "circle"),
        (ops.Move(node="music.play", parent="other"), "is an Other"),
        (ops.Add(name="weather", description="x"), "level 1 has a category 'weather' already"),
        (ops.Merge(nodes=("weather",), into="weather"), "into itself"),
        (ops.Merge(nodes=("weather",), into="music"), r"weather is a leaf and music is none\nMerge it into"),
        (ops.Merge(nodes=("news.sport",), into="news"), "one below the other"),
        (ops.Split(node="news", parts=(part("x"), part("y"))), "is not a leaf"),
        (ops.Split(node="weather", parts=(part("x"), part("x"))), "'x' already"),
        (ops.Examples(node="weather", drop=("x",)), "is no example"),
    ],
)
def test_nonsense_names_operation_and_node(operation, said):
    with pytest.raises(CurationError, match=r"operation 1, .*" + said):
        done(operation)


def test_the_last_category_stays():
    with pytest.raises(CurationError, match="without categories"):
        done(ops.Drop(node="a"), start=tree("a.b"))


@pytest.mark.parametrize("name", ["", "other", "a.b", "two words", "a:b"])
def test_illegal_names_are_refused(name):
    with pytest.raises(ValueError, match="name"):
        ops.Rename(node="weather", name=name)


def check(taxonomy):
    """What holds for every version: a tree with unique names, Other at every inner node and nowhere else."""
    assert len(set(ids(taxonomy))) == len(taxonomy.nodes)
    for node in taxonomy.nodes:
        parent = node.node_id.rpartition(".")[0]
        assert node.parent_id == (parent or None)
        assert node.name == node.node_id.rpartition(".")[2]
        assert node.level == node.node_id.count(".") + 1
        assert node.is_other == (node.name == OTHER)
        assert node.is_leaf == (not taxonomy.children(node.node_id))
    for inner in [None, *(node.node_id for node in taxonomy.nodes if not node.is_leaf)]:
        children = taxonomy.children(inner)
        assert len(children) > 1
        assert [child.is_other for child in children] == [False] * (len(children) - 1) + [True]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_two_hundred_operations_keep_the_tree_whole_and_lose_no_label(seed):
    operations = history(seed)
    now = START
    for number, operation in enumerate(operations):
        now = ops.apply(now, [operation], str(number + 2))
        check(now)
    at_once = edited(START, operations)
    assert at_once.taxonomy(now.version) == now
    carried = at_once.carried()
    assert set(carried) == set(START.leaves)
    assert all(fate.becomes in now.leaf_set or (fate.becomes is None and fate.again) for fate in carried.values())
    assert {new for new in at_once.ids().values() if new} <= set(now.by_id)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 60), st.integers(0, 60))
def test_the_migration_of_a_sequence_is_that_of_its_parts_one_after_the_other(seed, first, second):
    operations = history(seed, first + second)
    middle = ops.apply(START, operations[:first], "2")
    one, two = ops.migration(START, operations[:first]), ops.migration(middle, operations[first:])
    both = {leaf: None if to is None else two[to] for leaf, to in one.items()}
    assert ops.migration(START, operations) == both


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_the_difference_of_two_trees_makes_one_the_other(one, two):
    old = ops.apply(START, history(one, 40), "2")
    new = ops.apply(START, history(two, 40), "3")
    again = ops.apply(old, ops.diff(old, new), "3")
    key = {node.node_id: node for node in again.nodes}
    assert key == new.by_id


def test_other_is_described_as_the_loader_of_domains_does():
    domain = load_domain("map_travel").taxonomy
    assert edited(domain, []).taxonomy(domain.version) == domain
