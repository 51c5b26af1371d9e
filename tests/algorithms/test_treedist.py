"""Edit distance of trees, against the paper's example and a plain recursion over forests."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.treedist import tree_distance, tree_of


@cache
def forests(first, second):
    """The definition: take the last root of either forest away, or map one on the other."""
    if not first and not second:
        return 0
    if not first:
        return forests(first, second[:-1] + second[-1][1]) + 1
    if not second:
        return forests(first[:-1] + first[-1][1], second) + 1
    (a, below_a), (b, below_b) = first[-1], second[-1]
    return min(
        forests(first[:-1] + below_a, second) + 1,
        forests(first, second[:-1] + below_b) + 1,
        forests(first[:-1], second[:-1]) + forests(below_a, below_b) + (a != b),
    )


def trees(size=6):
    leaf = st.tuples(st.sampled_from("abc"), st.just(()))
    return st.recursive(
        leaf,
        lambda below: st.tuples(st.sampled_from("abc"), st.lists(below, max_size=3).map(tuple)),
        max_leaves=size,
    )


def test_the_example_of_the_paper():
    def leaf(name):
        return (name, ())

    first = ("f", (("d", (leaf("a"), ("c", (leaf("b"),)))), leaf("e")))
    second = ("f", (("c", (("d", (leaf("a"), leaf("b"))),)), leaf("e")))
    assert tree_distance(first, second) == 2


@settings(max_examples=60, deadline=None)
@given(trees(), trees())
def test_equals_the_definition(first, second):
    assert tree_distance(first, second) == forests((first,), (second,))


def test_tree_of_ids_does_not_depend_on_their_order():
    ids = ["b.y", "a", "b", "b.x.q", "b.x"]
    assert tree_of(ids) == tree_of(ids[::-1]) == ("", (("a", ()), ("b", (("x", (("q", ()),)), ("y", ())))))


def test_a_renamed_leaf_costs_1_and_a_removed_branch_its_nodes():
    old = tree_of(["a.x", "a.y", "b.p.q"])
    assert tree_distance(old, tree_of(["a.x", "a.z", "b.p.q"])) == 1
    assert tree_distance(old, tree_of(["a.x", "a.y"])) == 3
