"""Rare chains, how often each is written, and the observed chains most like another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from curation.algorithms.chains import combination_counts, nearest_combinations, rare_chains, shares

OBSERVED = {("search", "route"): 60, ("route", "search"): 30, ("search",): 9, ("search", "web"): 1}


def test_order_makes_no_other_combination() -> None:
    assert combination_counts(OBSERVED)[frozenset({"search", "route"})] == 90


def test_rare_is_what_has_at_most_its_share_and_enough_tools() -> None:
    possible = [("route", "search"), ("web", "search"), ("search", "web"), ("train", "web"), ("train",), ("search",)]
    assert rare_chains(possible, OBSERVED, 0.01, 2) == [(("train", "web"), 0), (("search", "web"), 1)]
    assert rare_chains(possible, OBSERVED, 0.0, 2) == [(("train", "web"), 0)]
    assert rare_chains(possible, OBSERVED, 0.09, 1)[-1] == (("search",), 9)


def test_nothing_observed_makes_everything_rare() -> None:
    assert rare_chains([("b", "a")], {}, 0.01, 2) == [(("b", "a"), 0)]


def test_the_rarer_the_more_and_failure_costs() -> None:
    assert shares([0, 3], [0, 0], [0, 0], 30).tolist() == [20, 10]  # weights 1 and 1/2
    assert shares([0, 0], [8, 0], [0, 0], 6).tolist() == [1, 5]  # success 1/10 against 1/2


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9), st.integers(0, 9)), min_size=1), st.integers(0, 50))
def test_shares_add_up(rows: list[tuple[int, int, int]], total: int) -> None:
    counts, failed, passed = zip(*rows, strict=True)
    tried = [f + p for f, p in zip(failed, passed, strict=True)]
    assert shares(counts, tried, passed, total).sum() == total


def test_nearest_combinations_by_jaccard_then_name() -> None:
    observed = [frozenset(tools) for tools in ({"a"}, {"a", "b"}, {"b", "c"}, {"x"}, {"a", "b", "c", "d"})]
    nearest = nearest_combinations(("a", "b"), observed, 3)
    assert nearest == [frozenset({"a", "b"}), frozenset({"a"}), frozenset({"a", "b", "c", "d"})]
