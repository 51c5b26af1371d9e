"""Small trees, and random operations that make sense on them."""

from __future__ import annotations

from random import Random

from curation.domain.model import OTHER, Node, Taxonomy
from curation.errors import CurationError
from curation.taxonomy import operations as ops


def tree(*leaves: str, version: str = "1") -> Taxonomy:
    """A taxonomy with these leaves, and an Other at every inner node and the root."""
    below: dict[str, list[str]] = {"": []}
    for leaf in leaves:
        parts = leaf.split(".")
        for depth in range(1, len(parts) + 1):
            node, parent = ".".join(parts[:depth]), ".".join(parts[: depth - 1])
            below.setdefault(parent, [])
            if node not in below[parent]:
                below[parent].append(node)
    nodes: list[Node] = []

    def walk(parent: str) -> None:
        for node in below[parent]:
            name, level = node.rpartition(".")[2], node.count(".") + 1
            nodes.append(Node(node, parent or None, level, name, f"All of {name}.", False, node not in below))
            if node in below:
                walk(node)
        said = f"What belongs to {parent or 'the taxonomy'} but to none of its other categories."
        other = f"{parent}.{OTHER}" if parent else OTHER
        nodes.append(Node(other, parent or None, other.count(".") + 1, OTHER, said, True, True))

    walk("")
    return Taxonomy(version, tuple(nodes))


START = tree("music.play", "music.stop", "news.sport.ball", "news.sport.ski", "news.local", "weather")
_NAMES = ["play", "stop", "ball", "天气", "a", "b", "c-1", "sport", "music"]
_TEXTS = ["play it", "关灯", "is it: raining?", "- #x", "'q' \"r\"", "null", "1"]
_KINDS = ["add", "add", "drop", "rename", "move", "merge", "split", "describe", "examples"]


def step(random: Random, nodes: list[str]) -> ops.Operation:
    """An operation on some of `nodes`; it may well be refused."""
    node, place = random.choice(nodes), random.choice([None, *nodes])
    texts = tuple(random.sample(_TEXTS, random.randrange(3)))
    match random.choice(_KINDS):
        case "add":
            return ops.Add(parent=place, name=random.choice(_NAMES), description="新的 one: #1", examples=texts)
        case "drop":
            return ops.Drop(node=node)
        case "rename":
            return ops.Rename(node=node, name=random.choice(_NAMES))
        case "move":
            return ops.Move(node=node, parent=place)
        case "merge":
            return ops.Merge(nodes=tuple(random.sample(nodes, min(len(nodes), 1 + random.randrange(2)))), into=node)
        case "split":
            parts = [ops.NewLeaf(name=name, description=f"of {name}") for name in random.sample(_NAMES, 2)]
            return ops.Split(node=node, parts=tuple(parts))
        case "describe":
            return ops.Describe(node=node, description=random.choice(["short", "长一点的说明：别的不算"]))
    return ops.Examples(node=node, add=texts)


def history(seed: int, length: int = 200) -> list[ops.Operation]:
    """`length` random operations on :data:`START`, one after the other, each of which makes sense where it stands."""
    random, done, now = Random(seed), [], START
    while len(done) < length:
        operation = step(random, [node.node_id for node in now.nodes if not node.is_other])
        try:
            now = ops.apply(now, [operation], "x")
        except CurationError:
            continue
        done.append(operation)
    return done
