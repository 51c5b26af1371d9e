"""A taxonomy grown from tagged seeds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.domain.model import OTHER
from curation.errors import CurationError
from curation.teachers.embedded.inducer import induce
from curation.teachers.induction import Limits, TaggedSeed

TREE = {
    "music": {"play": "play {} by the band", "stop": "stop the song {}", "volume": "make it {} louder"},
    "天气": {"下雨": "{}会下雨吗", "气温": "{}气温多少度", "刮风": "{}刮风大不大"},
    "money": {"pay": "pay the bill of {}", "send": "send ten to {}", "balance": "how much is left on {}"},
}
SAID = {"music": ("music", "songs"), "天气": ("天气", "天气预报"), "money": ("money", "banking")}


def world(size=8, seed=0, noise=0.25, missing=0.3):
    """Seeds whose vectors lie around a leaf's middle, which says little of its domain; tags in two ways to say it."""
    random = np.random.default_rng(seed)
    leaves = [(domain, leaf, text) for domain, below in TREE.items() for leaf, text in below.items()]
    middles = np.linalg.qr(random.normal(size=(24, len(leaves))))[0].T
    seeds, rows, gold = [], [], []
    for middle, (domain, leaf, text) in zip(middles, leaves, strict=True):
        for number in range(size):
            tags = []
            if random.random() > missing:
                tags.append(leaf)
            if random.random() > missing:
                tags.append(SAID[domain][random.integers(2)])
            if random.random() < 0.2:
                tags.append("question")
            lang = "zh" if domain == "天气" else "en"
            words = ["x", "y", "z", "u", "v", "w", "q", "k", "m", "n"][number]
            seeds.append(TaggedSeed(len(seeds) + 1, text.format(words), lang, tuple(tags)))
            rows.append(middle + random.normal(size=24) * noise / np.sqrt(24))
            gold.append((domain, leaf))
    return seeds, np.array(rows, np.float32), gold


def leaf_of(found):
    return {query: leaf for leaf, members in found.members.items() for query in members}


def test_leaves_and_level_1_are_found_and_called_by_their_tags():
    seeds, vectors, gold = world()
    found = induce(seeds, vectors, Limits(depth=2))
    top = {node.name for node in found.taxonomy.children(None)} - {OTHER}
    assert len(top) == 3
    for domain, ways in SAID.items():
        assert top & set(ways), domain
    where = leaf_of(found)
    groups = Counter((gold[seed.query_id - 1], where[seed.query_id]) for seed in seeds)
    assert len(groups) == 9
    names = {leaf.rpartition(".")[2] for leaf in where.values()}
    assert names == {leaf for below in TREE.values() for leaf in below}
    for (domain, _), leaf in {(gold[query - 1], leaf) for query, leaf in where.items()}:
        assert leaf.split(".")[0] in SAID[domain]


def test_every_node_has_evidence_and_a_description_that_tells_it_from_a_sibling():
    seeds, vectors, _ = world()
    found = induce(seeds, vectors, Limits(depth=2))
    where, texts = leaf_of(found), {seed.text: seed.query_id for seed in seeds}
    for node in found.taxonomy.nodes:
        if node.is_other:
            continue
        assert node.examples
        below = {leaf for leaf in found.members if (leaf + ".").startswith(node.node_id + ".")}
        assert {where[texts[text]] for text in node.examples} <= below
        assert node.description.startswith("Queries about “")
        siblings = {other.name for other in found.taxonomy.children(node.parent_id)} - {node.name, OTHER}
        assert any(f"belong to {sibling}." in node.description for sibling in siblings)
    assert all(
        found.taxonomy.by_id.get(f"{node.node_id}.{OTHER}") for node in found.taxonomy.nodes if not node.is_leaf
    )


def test_t10_order_means_nothing_and_labellers_are_joined():
    seeds, vectors, _ = world()
    order = np.random.default_rng(3).permutation(len(seeds))
    first = induce(seeds, vectors)
    assert induce([seeds[at] for at in order], vectors[order]) == first
    apart = [TaggedSeed(seed.query_id, seed.text, seed.lang, (tag,)) for seed in seeds for tag in seed.tags or ("",)]
    rows = np.array([seed.query_id - 1 for seed in apart])
    assert induce(apart, vectors[rows]).members == first.members


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 3), st.integers(2, 6), st.integers(2, 9), st.integers(0, 5))
def test_limits_hold_and_every_seed_is_somewhere(depth, most, evidence, seed):
    seeds, vectors, _ = world(seed=seed, noise=1.0)
    found = induce(seeds, vectors, Limits(depth=depth, most=most, evidence=evidence))
    nodes = found.taxonomy.nodes
    assert max(node.level for node in nodes) <= depth
    children = Counter(node.parent_id for node in nodes if not node.is_other)
    assert max(children.values()) <= most
    assert all(len(found.members[node.node_id]) >= evidence for node in nodes if node.is_leaf and not node.is_other)
    assert sorted(leaf_of(found)) == [one.query_id for one in seeds]
    assert len({node.node_id for node in nodes}) == len(nodes)


def test_overlap_of_siblings_is_reported():
    seeds, vectors, _ = world(noise=0.1)
    assert induce(seeds, vectors, Limits(depth=2)).overlaps == ()
    mixed, loose, _ = world(noise=3.0, missing=0.6)
    overlaps = induce(mixed, loose, Limits(depth=2)).overlaps
    assert overlaps
    assert [one.share for one in overlaps] == sorted((one.share for one in overlaps), reverse=True)
    assert all(one.node_id.rpartition(".")[0] == one.sibling.rpartition(".")[0] for one in overlaps)


def test_too_few_and_all_alike():
    seeds, vectors, _ = world()
    with pytest.raises(CurationError, match="5 tagged seeds, too few"):
        induce(seeds[:5], vectors[:5])
    with pytest.raises(CurationError, match="no two categories"):
        induce([TaggedSeed(at, "same", "en", ()) for at in range(9)], np.ones((9, 4), np.float32))
