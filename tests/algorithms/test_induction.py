"""The tree below the names: leaves, levels, limits."""

from __future__ import annotations

import numpy as np

from curation.algorithms.induction import Group, Shape, between, grow, overlaps
from curation.algorithms.tagging import count_tags


def rows(sizes=(8, 8, 8, 8), d=16, noise=0.2, seed=0):
    random = np.random.default_rng(seed)
    middles = np.linalg.qr(random.normal(size=(d, len(sizes))))[0].T
    vectors = np.repeat(middles, sizes, axis=0)
    return (vectors + random.normal(size=vectors.shape) * noise / np.sqrt(d)).astype(np.float32)


def tagged(tags):
    return count_tags([[tag] if tag else [] for tag in tags], np.arange(len(tags)), len(tags))


def shape_of(group):
    return [shape_of(child) for child in group.children] if group.children else len(group.rows)


def test_general_tags_join_leaves_that_texts_do_not():
    root = grow(rows(), tagged((["day"] * 8 + ["night"] * 8) * 2), Shape(depth=2, breadth=3)).root
    assert shape_of(root) == [[8, 8], [8, 8]]
    assert root.children[0].all_rows() == [*range(8), *range(16, 24)]


def test_depth_1_is_flat_and_no_broader_than_allowed():
    root = grow(rows(), tagged([""] * 32), Shape(depth=1, breadth=4)).root
    assert shape_of(root) == [8, 8, 8, 8]
    root = grow(rows(), tagged([""] * 32), Shape(depth=1, breadth=3)).root
    assert len(root.children) <= 3
    assert root.all_rows() == list(range(32))


def test_rows_of_too_small_a_leaf_stay_with_the_node_above():
    vectors = rows((10, 10, 2))
    root = grow(vectors, tagged([""] * 22), Shape(depth=1, breadth=9, least=3)).root
    assert shape_of(root) == [10, 10]
    assert root.rows == [20, 21]


def test_too_few_rows_for_two_leaves_are_no_tree():
    assert grow(rows((2, 2)), tagged([""] * 4), Shape(least=3)).root == Group([0, 1, 2, 3])


def test_overlap_is_the_share_of_rows_nearer_to_a_sibling():
    places = np.array([0.0, 1, 2, 9, 10, 11, 1.5])
    distances = abs(places[:, None] - places)
    members = [[0, 1, 2], [3, 4, 5, 6]]
    # Row 6 is 1 from the first on average (1.5, 0.5, 0.5), and 8.5 from the others of its own.
    np.testing.assert_allclose(overlaps(distances, members), [[0, 0], [0.25, 0]])
    assert overlaps(distances, [[0], [1, 2]])[0].tolist() == [0, 0]
    assert between(distances, [[0, 1], [3, 4]]).tolist() == [[0.5, 9], [9, 0.5]]
