"""Edit distance of ordered trees: fewest nodes to insert, delete and rename (Zhang and Shasha 1989).

Own code, since the one Python package for it (zss) has had no release since 2018 and is slow on trees of 500 nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["Tree", "tree_distance", "tree_of"]

Tree = tuple[str, tuple["Tree", ...]]
"""A label and the children."""

Ints = NDArray[np.int64]


def tree_of(paths: Iterable[str], root: str = "") -> Tree:
    """The tree of dotted ids such as ``a``, ``a.b``; siblings by name, so that their order means nothing."""
    children: dict[str, set[str]] = {root: set()}
    for path in paths:
        parts = path.split(".")
        for depth in range(len(parts)):
            parent = ".".join(parts[:depth]) if depth else root
            children.setdefault(parent, set()).add(".".join(parts[: depth + 1]))

    def build(node: str) -> Tree:
        return node.rpartition(".")[2], tuple(build(child) for child in sorted(children.get(node, ())))

    return build(root)


def tree_distance(first: Tree, second: Tree) -> int:
    """Fewest insertions, deletions and renamings that make one tree of the other; each costs 1.

    Time grows with the product of the numbers of nodes, times the product of the depths at most: some seconds for two
    trees of 2,000 nodes.
    """
    names: dict[str, int] = {}
    sides = [_postorder(tree, names) for tree in (first, second)]
    return int(_distance(*sides[0], *sides[1]))


def _postorder(tree: Tree, names: dict[str, int]) -> tuple[Ints, Ints, Ints]:
    """Labels as numbers, leftmost leaf below each node, and the key roots: the last node of each leftmost leaf."""
    labels: list[int] = []
    leftmost: list[int] = []

    def visit(node: Tree) -> int:
        name, children = node
        places = [visit(child) for child in children]
        labels.append(names.setdefault(name, len(names)))
        leftmost.append(leftmost[places[0]] if places else len(labels) - 1)
        return len(labels) - 1

    visit(tree)
    last = {left: place for place, left in enumerate(leftmost)}
    return np.array(labels), np.array(leftmost), np.array(sorted(last.values()))


@njit(cache=True)
def _distance(a: Ints, left_a: Ints, roots_a: Ints, b: Ints, left_b: Ints, roots_b: Ints) -> int:
    trees = np.zeros((len(a), len(b)), np.int64)
    forest = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in roots_a:
        for j in roots_b:
            first_a, first_b = left_a[i], left_b[j]
            n, m = i - first_a + 2, j - first_b + 2
            for x in range(n):
                forest[x, 0] = x
            for y in range(m):
                forest[0, y] = y
            for x in range(1, n):
                u = first_a + x - 1
                for y in range(1, m):
                    v = first_b + y - 1
                    best = min(forest[x - 1, y], forest[x, y - 1]) + 1
                    if left_a[u] == first_a and left_b[v] == first_b:
                        forest[x, y] = min(best, forest[x - 1, y - 1] + (a[u] != b[v]))
                        trees[u, v] = forest[x, y]
                    else:
                        forest[x, y] = min(best, forest[left_a[u] - first_a, left_b[v] - first_b] + trees[u, v])
    return trees[len(a) - 1, len(b) - 1]
