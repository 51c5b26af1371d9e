"""Seeds that the taxonomy labels badly, and what is proposed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from curation.domain.model import Taxonomy
from curation.teachers.embedded.refiner import Refinement, ambiguous, refine
from tests.taxonomy.trees import tree

LEAVES = ["music.play", "music.stop", "news.sport", "news.local", "news.abroad"]
TREE = tree(*LEAVES, version="3")
EXAMPLES = Taxonomy("3", tuple(replace(node, examples=("x",)) if node.is_leaf else node for node in TREE.nodes))


def seeds(*groups, seed=0):
    """Seeds from (leaf or None, place, number, text, tags, lang) and their vectors around the places."""
    random = np.random.default_rng(seed)
    places = np.linalg.qr(np.random.default_rng(5).normal(size=(24, 12)))[0].T
    rows, vectors = [], []
    for leaf, place, number, text, *rest in groups:
        tags, lang = rest or ([], "en")
        for _ in range(number):
            rows.append((len(rows) * 11 % 997, f"{text} {len(rows)}", lang, tags, leaf))
            vectors.append(places[place] + random.normal(size=24) * 0.3 / np.sqrt(24))
    schema = {"query_id": pl.UInt64, "text": pl.String, "lang": pl.String}
    schema |= {"tags": pl.List(pl.String), "primary": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row"), np.array(vectors, np.float32)


GOOD = [(leaf, place, 12, leaf.replace(".", " ")) for place, leaf in enumerate(LEAVES)]


def kinds(found):
    return [(one.kind, one.node_id, one.target) for one in found]


def test_nothing_is_proposed_where_nothing_is_wrong():
    assert refine(*seeds(*GOOD), TREE) == []
    assert ambiguous(*seeds(*GOOD), TREE).is_empty()
    assert refine(seeds(*GOOD)[0].clear(), np.empty((0, 24), np.float32), TREE) == []


def test_leaves_that_share_a_place_are_merged_the_smaller_into_the_larger():
    frame, vectors = seeds(*GOOD[:3], ("news.local", 3, 30, "local"), ("news.abroad", 3, 20, "abroad"))
    found = refine(frame, vectors, TREE)
    assert kinds(found) == [("merge", "news.abroad", "news.local")]
    assert found[0].confidence > 0.7
    assert {row.text.split()[0] for row in found[0].evidence} == {"local", "abroad"}
    doubtful = ambiguous(frame, vectors, TREE)
    assert set(doubtful["primary"]) == {"news.local", "news.abroad"}
    assert doubtful["lead"].is_sorted()


def test_leaves_that_overlap_in_part_get_descriptions_that_tell_them_apart():
    frame, vectors = seeds(
        *GOOD[:3], ("news.local", 3, 20, "town"), ("news.local", 4, 6, "town"),
        ("news.abroad", 4, 20, "world"), ("news.abroad", 3, 6, "world"),
    )  # fmt: skip
    found = refine(frame, vectors, TREE, Refinement(split_from=2))
    assert kinds(found) == [("describe", "news.abroad", None), ("describe", "news.local", None)]
    assert found[0].description == "All of abroad. Queries about “town” belong to local."
    told = [
        replace(node, description=one.description)
        for one in found
        for node in TREE.nodes
        if node.node_id == one.node_id
    ]
    by_id = {node.node_id: node for node in told}
    nodes = tuple(by_id.get(node.node_id, node) for node in TREE.nodes)
    assert refine(frame, vectors, Taxonomy("4", nodes), Refinement(split_from=2)) == []


def test_a_leaf_among_the_leaves_of_another_node_is_moved_there():
    frame, vectors = seeds(*GOOD[1:], *[("music.play", place, 4, "play") for place in (2, 3, 4)])
    moves = [one for one in refine(frame, vectors, TREE, Refinement(split_from=2)) if one.kind == "move"]
    assert kinds(moves) == [("move", "music.play", "news")]


def test_a_leaf_in_two_parts_is_split_unless_the_parts_are_languages():
    frame, vectors = seeds(*GOOD[1:], ("music.play", 0, 8, "jazz tune"), ("music.play", 7, 8, "piano lesson"))
    (found,) = refine(frame, vectors, TREE)
    assert (found.kind, found.node_id) == ("split", "music.play")
    assert sorted(part.name for part in found.parts) == ["jazz_tune", "piano_lesson"]
    assert [len(part.examples) for part in found.parts] == [8, 8]
    frame, vectors = seeds(*GOOD[1:], ("music.play", 0, 8, "jazz"), ("music.play", 7, 8, "爵士", [], "zh"))
    assert refine(frame, vectors, TREE) == []


def test_uncovered_seeds_that_lie_together_become_a_leaf():
    frame, vectors = seeds(
        *GOOD,
        ("news.other", 8, 6, "horoscope", ["stars"], "en"),
        (None, 9, 3, "lonely"),
        ("gone.leaf", 10, 5, "cooking"),
    )
    found = refine(frame, vectors, TREE)
    assert [(one.kind, one.node_id, one.name, one.rows) for one in found] == [
        ("add", None, "cooking", 5),
        ("add", "news", "stars", 6),
    ]
    assert all("horoscope" in row.text for row in found[1].evidence)


def test_a_leaf_that_all_call_otherwise_is_renamed():
    groups = [(leaf, place, 12, text, [leaf.rpartition(".")[2]], "en") for leaf, place, _, text in GOOD[:4]]
    found = refine(*seeds(*groups, ("news.abroad", 4, 12, "far away", ["foreign affairs"], "en")), TREE)
    assert [(one.kind, one.node_id, one.name) for one in found] == [("rename", "news.abroad", "foreign_affairs")]
    assert found[0].confidence == pytest.approx(1)


def test_a_leaf_with_neither_seed_nor_example_is_dropped():
    assert kinds(refine(*seeds(*GOOD[:4]), TREE)) == [("drop", "news.abroad", None)]
    assert refine(*seeds(*GOOD[:4]), EXAMPLES) == []


def test_the_order_of_seeds_means_nothing():
    frame, vectors = seeds(*GOOD[:3], ("news.local", 3, 30, "local"), ("news.abroad", 3, 20, "abroad"))
    order = np.random.default_rng(4).permutation(frame.height)
    assert refine(frame[order], vectors[order], TREE) == refine(frame, vectors, TREE)
