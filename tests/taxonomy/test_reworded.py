"""The domain's rules follow the taxonomy: what a leaf is called does not change what it needs."""

from __future__ import annotations

import polars as pl
import pytest

from curation.domain import load_domain
from curation.taxonomy import operations as ops
from curation.taxonomy.lineage import Lineage
from curation.taxonomy.reworded import reworded
from curation.taxonomy.tables import migrations_frame, nodes_frame
from curation.taxonomy.versions import History, Record
from curation.teachers.embedded.scorer import PlanScorer, Scale

DOMAIN = load_domain("map_travel")
LEAVES = [leaf for leaf in DOMAIN.taxonomy.leaves if not leaf.endswith("other")]


def after(*operations):
    history = History(DOMAIN.taxonomy)
    if operations:
        history.add(Record(version="2", from_="1", operations=operations))
    lineage = Lineage(nodes_frame(history, history.newest.name), migrations_frame(history))
    return reworded(DOMAIN, lineage), lineage


SCALE = Scale((0.3, 0.5, 0.2), 0.1, (1.5, 2.1, 2.7, 3.4), 0.5)
RENAMES = (
    ops.Rename(node="discovery.poi_search", name="places"),
    ops.Rename(node="planning_and_decision.route_planning", name="routes"),
    ops.Move(node="rules_and_policies", parent="planning_and_decision"),
    ops.Rename(node="dynamic_information", name="live"),
)


def test_without_a_change_it_is_the_domain_itself():
    assert after()[0] is DOMAIN
    assert after(ops.Describe(node="discovery", description="x"))[0] is DOMAIN


def rows(leaves, further):
    texts = ["navigate to the airport", "明天去上海的火车票", "a quiet cafe with parking", "is it raining"]
    out = [
        {"query_id": n, "text": text, "norm": text, "primary": leaf, "secondary": [] if leaf == also else [also]}
        for n, (leaf, also, text) in enumerate(
            (leaf, also, text) for leaf, also in zip(leaves, further, strict=True) for text in texts
        )
    ]
    return pl.DataFrame(out).with_columns(
        query_id=pl.col("query_id").cast(pl.UInt64),
        secondary=pl.col("secondary").cast(pl.List(pl.String)),
        constraints=pl.lit([], pl.List(pl.Struct({"dimension": pl.String, "value": pl.String, "text": pl.String,
                                                  "start": pl.Int32, "end": pl.Int32}))),
        confidence=pl.lit(0.9, pl.Float32),
        unsolvable=pl.lit(None, pl.String),
        unsolvable_confidence=pl.lit(0.1, pl.Float32),
    )  # fmt: skip


def test_renamed_and_moved_leaves_are_scored_as_before():
    domain, lineage = after(*RENAMES)
    now = [lineage.carry(leaf, "1", "2") for leaf in LEAVES]
    assert now != LEAVES
    before = PlanScorer(DOMAIN, SCALE).score(rows(LEAVES, LEAVES[1:] + LEAVES[:1]))
    later = PlanScorer(domain, SCALE).score(rows(now, now[1:] + now[:1]))
    assert later.equals(before)
    unmapped = PlanScorer(DOMAIN, SCALE).score(rows(now, now[1:] + now[:1]))
    assert not unmapped.equals(before)


def test_a_merged_leaf_keeps_its_own_rules_and_a_new_one_has_those_of_its_place():
    one, two = "discovery.information_query.basic_attributes", "discovery.information_query.reputation_and_reviews"
    domain, _ = after(
        ops.Merge(nodes=(one,), into=two), ops.Add(parent="discovery", name="hotpot", description="Food.")
    )
    assert domain.plans.of(two).steps == DOMAIN.plans.of(two).steps
    assert domain.plans.of("discovery.hotpot").steps == DOMAIN.plans.of("discovery.other").steps


@pytest.mark.parametrize("leaf", sorted({need.leaf for need in DOMAIN.grammar.needs.values()})[:3])
def test_needs_follow_their_leaf_or_go_with_it(leaf):
    parent = leaf.rpartition(".")[0]
    domain, _ = after(ops.Rename(node=leaf, name="renamed"))
    moved = {name for name, need in DOMAIN.grammar.needs.items() if need.leaf == leaf}
    assert {domain.grammar.needs[name].leaf for name in moved} == {f"{parent}.renamed" if parent else "renamed"}
    parts = tuple(ops.NewLeaf(name=name, description="x") for name in ("part_a", "part_b"))
    split, _ = after(ops.Split(node=leaf, parts=parts))
    assert not moved & split.grammar.needs.keys()
    assert all(follower in split.grammar.needs for need in split.grammar.needs.values() for follower in need.then)
