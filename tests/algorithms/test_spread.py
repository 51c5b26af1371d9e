"""Taking turns over groups and groups within them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from curation.algorithms.spread import round_robin


def slow(outer: list[int], inner: list[int], total: int) -> list[int]:
    """The rule as it is told: outer groups take turns, and within each its inner groups do."""
    queues = {o: {i: [] for i in sorted(set(inner))} for o in sorted(set(outer))}
    for row, (o, i) in enumerate(zip(outer, inner, strict=True)):
        queues[o][i].append(row)
    orders = {}
    for o, by_inner in queues.items():
        order = []
        while any(by_inner.values()):
            order += [rows.pop(0) for rows in by_inner.values() if rows]
        orders[o] = order
    picked: list[int] = []
    while any(orders.values()):
        picked += [order.pop(0) for order in orders.values() if order]
    return picked[:total]


def test_by_hand() -> None:
    # tools 0 and 1, categories 0 and 1: tool 0 has three rows of category 0 and one of 1, tool 1 has one row
    outer, inner = [0, 0, 0, 0, 1], [0, 0, 0, 1, 1]
    assert round_robin(outer, inner, 5).tolist() == [0, 4, 3, 1, 2]
    assert round_robin(outer, inner, 2).tolist() == [0, 4]


def test_nothing_to_pick() -> None:
    assert round_robin([], [], 3).tolist() == []
    assert round_robin([0], [0], 0).tolist() == []


GROUPS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40)


@given(GROUPS, st.integers(0, 45))
def test_as_the_rule_is_told(groups: list[tuple[int, int]], total: int) -> None:
    outer, inner = [g[0] for g in groups], [g[1] for g in groups]
    assert round_robin(outer, inner, total).tolist() == slow(outer, inner, total)


@given(GROUPS, st.integers(0, 45))
def test_no_outer_group_gets_two_more_than_one_with_rows_left(groups: list[tuple[int, int]], total: int) -> None:
    outer = np.array([g[0] for g in groups], dtype=int)
    picked = Counter(outer[round_robin(outer, [g[1] for g in groups], total)].tolist())
    left = {o: n - picked[o] for o, n in Counter(outer.tolist()).items()}
    for o, n in left.items():
        if n:
            assert max(picked.values(), default=0) <= picked[o] + 1
