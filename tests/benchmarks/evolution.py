"""The growth of a taxonomy against gold trees: induced from noisy tags, and a planted intent found again.

``python -m tests.benchmarks evolution [PART ...] [--leaves N] [--json]``; all parts by default.

* *clinc*: 20 queries of each of 150 intents, tagged in other words than the names of the gold intents
  (``evolution_tags.yaml``: three ways to say each), with noise (:class:`Noise`).
* *travelbench*: 413 real queries, tagged with their own words; beside the index, the share of the largest category.
* *plant*: for leaves of different level-2 categories of the sample's domain, the leaf, its seeds and its examples are
  hidden and the log is run; is the leaf proposed, and what does accepting that change?
* *rounds*: several leaves are hidden at once, and a scripted reviewer decides round by round until nothing is left to
  accept (both: :mod:`tests.benchmarks.evolution_product`).
* *hidden*: as plant, for one intent of each domain of CLINC (:mod:`tests.benchmarks.evolution_clinc`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from tests.benchmarks import evolution_product as product
from tests.benchmarks.evolution_clinc import hidden_intents
from tests.benchmarks.measure import ROOT, print_table

__all__ = ["Noise", "main", "noisy_tags", "one_to_one"]

SHARED = ROOT.parent / "shared/data"
TAGS = Path(__file__).with_name("evolution_tags.yaml")
GENERAL = ("question", "request", "help", "information", "user query")

Row = list[Any]


@dataclass(frozen=True)
class Noise:
    """How tags go wrong.

    Attributes:
        untagged: Share of the queries that have no tag at all.
        intent, domain: Chance that a query is tagged with its intent, with its domain.
        habit: Chance that a labeller (one of three, drawn for each query) says it in the way that is his own.
        wrong: Chance that a tag is of another intent or domain.
        general: Chance of a tag that says nothing, such as "question".
    """

    untagged: float = 0.1
    intent: float = 0.7
    domain: float = 0.5
    habit: float = 0.7
    wrong: float = 0.1
    general: float = 0.15


def noisy_tags(
    intents: Sequence[str], domains: Sequence[str], noise: Noise, seed: int = 0
) -> Iterator[tuple[str, ...]]:
    """Tags of each query; its intent and its domain are never among them as they are called in the gold."""
    words = yaml.safe_load(TAGS.read_text("utf-8"))
    random = np.random.default_rng(seed)
    habits = {
        kind: {name: random.integers(len(ways), size=3) for name, ways in sorted(words[kind].items())}
        for kind in words
    }

    def said(kind: str, name: str, labeller: int) -> str:
        names = sorted(words[kind])
        of = name if random.random() >= noise.wrong else names[random.integers(len(names))]
        ways = words[kind][of]
        own = random.random() < noise.habit
        return ways[habits[kind][of][labeller] if own else random.integers(len(ways))]

    for intent, domain in zip(intents, domains, strict=True):
        labeller, tags = int(random.integers(3)), []
        if random.random() >= noise.untagged:
            tags += [said("intents", intent, labeller)] if random.random() < noise.intent else []
            tags += [said("domains", domain, labeller)] if random.random() < noise.domain else []
            tags += [GENERAL[random.integers(len(GENERAL))]] if random.random() < noise.general else []
        yield tuple(tags)


def one_to_one(gold: Sequence[str], found: Sequence[str]) -> float:
    """Accuracy where each found category stands for one gold category at most, the best way."""
    from scipy.optimize import linear_sum_assignment

    columns = [np.unique(np.array(labels), return_inverse=True)[1] for labels in (gold, found)]
    counts = np.zeros([column.max() + 1 for column in columns])
    np.add.at(counts, tuple(columns), 1)
    rows, places = linear_sum_assignment(-counts)
    return float(counts[rows, places].sum() / len(gold))


def _encoder() -> Callable[[list[str]], np.ndarray]:
    from curation.teachers.encoders import USE, load_encoder

    return load_encoder(USE, 2).encode


def _induced(
    texts: list[str], tags: Iterable[tuple[str, ...]], lang: str, encode: Callable[[list[str]], np.ndarray]
) -> tuple[list[str], Any]:
    """The leaf of each text, and what was induced."""
    from curation.teachers.embedded.inducer import induce
    from curation.teachers.induction import TaggedSeed

    seeds = [TaggedSeed(at, text, lang, own) for at, (text, own) in enumerate(zip(texts, tags, strict=True))]
    found = induce(seeds, encode(texts))
    leaf = {row: leaf for leaf, rows in found.members.items() for row in rows}
    return [leaf[at] for at in range(len(texts))], found


def _top(leaves: Iterable[str]) -> list[str]:
    return [leaf.split(".")[0] for leaf in leaves]


def clinc(encode: Callable[[list[str]], np.ndarray]) -> Iterator[Row]:
    """ARI of leaves and of level 1, with usual and with twice the noise, and with other draws."""
    from sklearn.metrics import adjusted_rand_score

    from curation.algorithms.treedist import tree_distance, tree_of

    domains = json.loads((SHARED / "clinc/domains.json").read_text("utf-8"))
    domain_of = {intent: domain for domain, intents in domains.items() for intent in intents}
    train = pl.read_parquet(SHARED / "clinc/dev.parquet").filter(pl.col("part") == "train")
    rows = train.filter(pl.int_range(pl.len()).over("intent") < 20)
    intents = rows["intent"].to_list()
    gold = [domain_of[intent] for intent in intents]
    cases = [
        ("", Noise(), (0, 1, 2), 0.60, 0.45),
        (", twice the noise", Noise(0.2, 0.5, 0.3, 0.7, 0.2, 0.3), (0,), None, None),
        (", no tags", Noise(untagged=1), (0,), None, None),
    ]
    for name, noise, draws, leaf_must, top_must in cases:
        scores, trees = [], []
        for draw in draws:
            leaves, found = _induced(rows["query"].to_list(), noisy_tags(intents, gold, noise, draw), "en", encode)
            nodes = [node for node in found.taxonomy.nodes if not node.is_other]
            trees.append([node.node_id for node in nodes])
            sizes = sum(node.is_leaf for node in nodes), sum(node.level == 1 for node in nodes)
            scores.append((adjusted_rand_score(intents, leaves), adjusted_rand_score(gold, _top(leaves)), *sizes))
        worst = [min(column) for column in zip(*scores, strict=True)]
        of = f"least of {len(draws)} draws" if len(draws) > 1 else "1 draw"
        yield [f"CLINC{name}", f"ARI of leaves ({worst[2]} for 150)", worst[0], leaf_must, of]
        yield [f"CLINC{name}", f"ARI of level 1 ({worst[3]} for 10)", worst[1], top_must, of]
        if len(trees) > 1:
            edits = tree_distance(tree_of(trees[0]), tree_of(trees[1])) / (len(trees[0]) + len(trees[1]))
            yield [f"CLINC{name}", "edits from the tree of one draw to another's, over their nodes", edits, None, ""]


def travelbench(encode: Callable[[list[str]], np.ndarray]) -> Iterator[Row]:
    """Level 1 of real queries that are tagged with nothing but their words."""
    from sklearn.metrics import adjusted_rand_score

    from curation.algorithms.terms import find_terms

    rows = pl.read_ndjson(SHARED / "travelbench/dev.jsonl")
    texts, gold = rows["query"].to_list(), _top(rows["primary_intent"])
    names, found = find_terms(texts)
    leaves, _ = _induced(texts, [tuple(names[term] for term in terms) for terms in found], "zh", encode)
    tops = _top(leaves)
    largest = max(gold.count(name) for name in set(gold)) / len(gold)
    majority = pl.DataFrame({"gold": gold, "top": tops}).group_by("top").agg(pl.col("gold").value_counts(sort=True))
    hits = sum(counts[0]["count"] for counts in majority["gold"].to_list())
    count = len(set(tops))
    yield ["TravelBench", f"level-1 accuracy, each of {count} named after most of it", hits / len(gold), 0.40, ""]
    yield ["TravelBench", "level-1 accuracy, one to one", one_to_one(gold, tops), None, ""]
    yield ["TravelBench", "level-1 ARI", adjusted_rand_score(gold, tops), None, ""]
    yield ["TravelBench", "share of the largest gold category", largest, None, "to compare"]


_PLANT = (
    "hidden leaf",
    "its queries",
    "added leaves proposed",
    "pure ones",
    "raw rows of these",
    "pure in the control",
    "raw rows of those",
    "place of the right one",
    "below",
    "found",
    "rows under its parent",
    "annotated again",
    "changed",
    "changed outside",
    "recall of the accepted leaf",
    "its precision",
)
_HIDDEN = (
    "hidden intent",
    "added leaves proposed",
    "pure ones",
    "raw rows of these",
    "raw rows of the control's",
    "place of the right one",
    "below",
    "found",
)
_ROUNDS = (
    "round",
    "version",
    "leaves",
    "still hidden",
    "proposed",
    "accepted",
    "annotated again",
    "leaf accuracy",
    "distance from the version before",
    "versions and differences",
)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks evolution", description=__doc__.split("\n")[0])
    parts = ("clinc", "travelbench", "plant", "rounds", "hidden")
    parser.add_argument("part", nargs="*", metavar="PART", help=f"what to measure, of {', '.join(parts)}")
    parser.add_argument("--leaves", type=int, default=10, help="plant: leaves that are hidden in turn")
    parser.add_argument("--development", action="store_true", help="plant: hide the leaves that the check does not")
    parser.add_argument(
        "--wide", action="store_true", help="plant: accept with the leaves elsewhere named that hold evidence"
    )
    parser.add_argument("--hidden", type=int, default=4, help="rounds: leaves that are hidden at once")
    parser.add_argument("--no-accept", action="store_true", help="plant: look at the proposals only")
    parser.add_argument("--intent", type=int, default=0, help="hidden: which of the 15 intents of each domain")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    options = parser.parse_args(arguments)
    if unknown := set(options.part) - set(parts):
        parser.error(f"there is no part {sorted(unknown)[0]!r}: choose of {', '.join(parts)}")
    for part in options.part or parts:
        if part == "plant":
            rows = product.plant(options.leaves, not options.no_accept, options.development, options.wide)
            print_table(_PLANT, list(rows), as_json=options.json)
        elif part == "rounds":
            print_table(_ROUNDS, list(product.rounds(options.hidden)), as_json=options.json)
        elif part == "hidden" and SHARED.exists():
            print_table(_HIDDEN, list(hidden_intents(options.intent)), as_json=options.json)
        elif SHARED.exists():
            _print_scores((clinc if part == "clinc" else travelbench)(_encoder()), options.json)
    return 0


def _print_scores(rows: Iterable[Row], as_json: bool) -> None:
    shown = [
        [what, name, value if isinstance(value, (int, str)) else f"{value:.3f}", "" if must is None else must, of]
        for what, name, value, must, of in rows
    ]
    print_table(["what", "figure", "value", "must", "of"], shown, as_json=as_json)


if __name__ == "__main__":
    raise SystemExit(main())
