from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.components import components

EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=20)


def test_a_chain_is_one_component_named_by_its_smallest_row() -> None:
    assert components(6, np.array([5, 3, 4]), np.array([3, 1, 2])).tolist() == [0, 1, 2, 1, 2, 1]


@given(EDGES)
@settings(max_examples=200, deadline=None)
def test_components_are_what_paths_reach(edges: list[tuple[int, int]]) -> None:
    reach = np.eye(12, dtype=bool)
    for a, b in edges:
        reach[a, b] = reach[b, a] = True
    for middle in range(12):
        reach |= reach[:, [middle]] & reach[[middle], :]
    left, right = np.array(edges, np.int64).reshape(-1, 2).T
    assert components(12, left, right).tolist() == reach.argmax(axis=1).tolist()
