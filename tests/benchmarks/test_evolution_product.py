"""What the figures of the product's evolution rest on."""

from __future__ import annotations

import polars as pl

from curation.domain import load_domain
from curation.taxonomy.proposal import Evidence, Proposal
from tests.benchmarks.evolution_product import (
    SOURCE,
    decided,
    domain_without,
    evenly,
    found_of,
    left_for_development,
    planted_leaves,
    unlike,
)

LEAF = "discovery.poi_search.constrained_poi_search"
TRUTH = dict.fromkeys(range(8), LEAF) | dict.fromkeys(range(8, 20), "discovery.area_summaries")


def proposal(rows, parent, kind="add", target=None):
    evidence = tuple(Evidence(row, f"query {row}", 3) for row in rows)
    return Proposal(
        "expand", kind, parent, "1", "why", target=target, name="new", evidence=evidence, weight=3 * len(rows)
    )


def test_one_leaf_of_each_category_is_hidden():
    tree = load_domain("map_travel").taxonomy
    rows = dict.fromkeys(tree.leaves, 100)
    chosen = planted_leaves(tree, rows)
    assert len({".".join(leaf.split(".")[:2]) for leaf in chosen}) == len(chosen) == 16
    assert "discovery.poi_search.constrained_poi_search" in chosen
    rows["discovery.poi_search.constrained_poi_search"] = 99
    assert "discovery.poi_search.open_ended_poi_exploration" in planted_leaves(tree, rows)


def test_they_are_spread_over_the_list():
    assert evenly(list("abcdefgh"), 4) == list("aceg")
    assert evenly(list("ab"), 4) == list("ab")


def test_code_is_developed_on_other_leaves_than_are_checked():
    counts = {"a.b": 100, "a.c": 99, "d": 500, "e": 200, "other": 300}
    assert left_for_development(counts, ["d"]) == ["a.b", "e"]


def test_a_domain_without_a_leaf_is_one_and_has_nothing_of_it(tmp_path):
    gone = [LEAF, "rules_and_policies.travel_policies"]
    whole, less = load_domain("map_travel"), load_domain(domain_without(gone, SOURCE, tmp_path / "less"))
    assert set(whole.taxonomy.by_id) - set(less.taxonomy.by_id) == set(gone)
    kept = [(seed.text, seed.primary) for seed in whole.seeds if seed.primary not in gone]
    assert [(seed.text, seed.primary) for seed in less.seeds] == kept
    assert any(LEAF in seed.secondary for seed in whole.seeds)
    assert not any(LEAF in seed.secondary for seed in less.seeds)
    # A rule that spoke of the leaf alone must not hold everywhere now.
    assert not [rule for rule in less.plans.rules if not rule.nodes and rule not in whole.plans.rules]


def test_pure_and_right():
    found = found_of(
        {
            "mixed": proposal(range(5, 15), "discovery"),
            "elsewhere": proposal(range(8), "planning_and_decision"),
            "below itself": proposal(range(8), "discovery.poi"),
            "right": proposal(range(0, 10), "discovery.poi_search"),
            "merge": proposal(range(8), "discovery.other", "merge", LEAF),
        },
        LEAF,
        TRUTH,
    )
    assert found.pure == ("elsewhere", "below itself", "right")
    assert (found.right, found.place, found.parent, found.weight) == (
        "right",
        4,
        "discovery.poi_search",
        24 + 24 + 30,
    )
    assert found_of({"root": proposal(range(8), None)}, LEAF, TRUTH).parent == "(root)"
    assert found_of({}, LEAF, TRUTH).right is None


def test_the_reviewer_adds_what_is_missing_and_merges_what_is_of_a_leaf():
    waiting = {
        "one": proposal(range(8), "discovery"),
        "two": proposal(range(7), "discovery"),
        "merge": proposal(range(8, 12), "discovery.other", "merge", "discovery.area_summaries"),
        "wrong": proposal(range(8, 12), "discovery.other", "merge", LEAF),
    }
    entries = {one["proposal"]: one for one in decided(waiting, [LEAF], TRUTH)}
    assert entries["one"] == {
        "proposal": "one",
        "decision": "edit",
        "name": "constrained_poi_search",
        "target": "discovery.poi_search",
    }
    assert {key: one["decision"] for key, one in entries.items()} == {
        "one": "edit",
        "two": "reject",
        "merge": "accept",
        "wrong": "reject",
    }
    assert [one["decision"] for one in decided(waiting, [], TRUTH)] == ["reject", "reject", "accept", "reject"]


def test_rows_that_changed_where_nothing_was_touched():
    before = pl.DataFrame(
        {
            "query_id": [1, 2, 3, 4],
            "primary": ["a.x", "b", "b", "ab.x"],
            "secondary": [[], ["a.y"], [], []],
            "taxonomy_version": ["1"] * 4,
        },
        schema_overrides={"secondary": pl.List(pl.String)},
    )
    again = before.with_columns(taxonomy_version=pl.lit("2"))
    assert unlike(before, again, "a") == (0, 0)
    changed = again.with_columns(primary=pl.Series(["d", "d", "d", "ab.x"]))
    assert unlike(before, changed, "a") == (3, 1)
    assert unlike(before, changed.head(3), "a") == (4, 2)
    assert unlike(before, changed, None) == (3, 0)
