"""The taxonomy answers questions about its nodes, and about ids that are not in it any more."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from curation.domain import Taxonomy, Tool, load_taxonomy

SMALL = """
version: "3"
taxonomy:
  a:
    description: first
    children:
      b:
        description: second
        children:
          c: {description: third, examples: {en: [one], zh: [一]}}
      d: {description: fourth, examples: [two]}
  e: {description: fifth}
"""


@pytest.fixture
def taxonomy(tmp_path: Path) -> Taxonomy:
    path = tmp_path / "taxonomy.yaml"
    path.write_text(SMALL, encoding="utf-8")
    return load_taxonomy(path)


def test_every_inner_node_and_the_root_keep_an_other(taxonomy: Taxonomy) -> None:
    assert [node.node_id for node in taxonomy.nodes] == [
        "a", "a.b", "a.b.c", "a.b.other", "a.d", "a.other", "e", "other",
    ]  # fmt: skip
    assert taxonomy.leaves == ("a.b.c", "a.b.other", "a.d", "a.other", "e", "other")
    others = [node for node in taxonomy.nodes if node.is_other]
    assert all(node.is_leaf and node.name == "other" and node.description for node in others)
    assert [node.parent_id for node in others] == ["a.b", "a", None]


def test_nodes_know_their_place(taxonomy: Taxonomy) -> None:
    assert [node.level for node in taxonomy.nodes] == [1, 2, 3, 3, 2, 2, 1, 1]
    assert taxonomy.node("a.b.c").examples == ("one", "一")
    assert [node.name for node in taxonomy.children("a")] == ["b", "d", "other"]
    assert [node.node_id for node in taxonomy.children(None)] == ["a", "e", "other"]
    assert taxonomy.children("e") == ()
    assert taxonomy.level1("a.b.c") == "a"
    with pytest.raises(KeyError):
        taxonomy.node("a.x")


@pytest.mark.parametrize(
    ("node_id", "other"),
    [
        ("a.b.c", "a.b.other"),
        ("a.b.gone", "a.b.other"),
        ("a.gone.leaf", "a.other"),
        ("a.b", "a.other"),
        ("e", "other"),
        ("e.child", "other"),
        ("gone.every.where", "other"),
    ],
)
def test_l8_labels_of_a_deleted_leaf_fall_to_the_nearest_other(taxonomy: Taxonomy, node_id: str, other: str) -> None:
    assert taxonomy.other_of(node_id) == other


def test_parts_are_frozen(taxonomy: Taxonomy) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        taxonomy.version = "4"  # type: ignore[misc]


def test_arguments_of_a_tool() -> None:
    tool = Tool("t", "g", "d", {"type": "object", "properties": {"a": {}, "b": {}}}, ("b",))
    assert tool.arguments == ("a", "b")
    assert Tool("t", "g", "d", {"type": "object"}, ()).arguments == ()
