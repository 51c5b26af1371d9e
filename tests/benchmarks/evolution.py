"""The growth of a taxonomy against gold trees: induced from noisy tags, and a planted intent found again.

``python -m tests.benchmarks evolution [clinc] [travelbench] [plant] [--leaves N] [--json]``; all three by default.

* *clinc*: 20 queries of each of 150 intents, tagged in other words than the names of the gold intents
  (``evolution_tags.yaml``: three ways to say each), with noise (:class:`Noise`).
* *travelbench*: 413 real queries, tagged with their own words; beside the index, the share of the largest category.
* *plant*: for one leaf of each level-2 category of the sample's domain, its seeds, its examples and the leaf itself
  are hidden, the log is annotated anew, and the proposals of `expand` are looked through for one whose evidence is of
  that leaf. Printed is its place among them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml

from tests.benchmarks.measure import ROOT, print_table

__all__ = ["Noise", "main", "noisy_tags", "one_to_one", "planted_leaves"]

SHARED = ROOT.parent / "shared/data"
TAGS = Path(__file__).with_name("evolution_tags.yaml")
GENERAL = ("question", "request", "help", "information", "user query")
PURE = 0.8

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


def planted_leaves(taxonomy: Any, rows: dict[str, int], least: int = 100) -> list[str]:
    """The first leaf of each level-2 category (or level-1 leaf) with enough queries in the log."""
    first: dict[str, str] = {}
    for node in taxonomy.nodes:
        if node.is_leaf and not node.is_other and rows.get(node.node_id, 0) >= least:
            first.setdefault(".".join(node.node_id.split(".")[:2]), node.node_id)
    return list(first.values())


def plant(encode: Callable[[list[str]], np.ndarray], most: int | None) -> Iterator[Row]:
    """A hidden leaf in the proposals."""
    from curation.domain import load_domain
    from tests.benchmarks import scores as s
    from tests.benchmarks.corpus import CACHE, sample
    from tests.benchmarks.truth import build

    corpus, domain = sample(), load_domain("map_travel")
    log = {"path": str(corpus.log), "text": "query", "time": "ts", "source": "source"}
    workspace = build(CACHE / "truth", log, ("+annotations",))
    truth = s.query_truth(corpus.rows(), workspace.table("occurrences").collect()).select("query_id", "leaf")
    log_rows = _log_rows(workspace).join(truth, on="query_id", how="left", maintain_order="left")
    counts = dict(log_rows["leaf"].drop_nulls().value_counts().iter_rows())
    found = 0
    leaves = list(islice(planted_leaves(domain.taxonomy, counts), most))
    for leaf in leaves:
        proposals, place = _hidden(leaf, workspace, domain, log_rows, _remembered(encode))
        found += place is not None
        said = f"{counts[leaf]:,} queries, {len(proposals)} proposals"
        yield ["plant", leaf, "-" if place is None else place + 1, None, said]
    yield ["plant", f"found with {PURE:.0%} pure evidence, of {len(leaves)}", found / len(leaves), 0.8, ""]


def _log_rows(workspace: Any) -> pl.DataFrame:
    weights = workspace.table("lexical_groups").select("query_id", weight="group_count")
    columns = ("query_id", "text", "norm", "lang", "first_seen", "last_seen")
    rows = workspace.table("embeddings").join(workspace.table("queries").select(columns), on="query_id", how="left")
    return rows.join(weights, on="query_id", how="left").sort("query_id").collect()


def _remembered(encode: Callable[[list[str]], np.ndarray], known: dict[str, np.ndarray] = {}) -> Any:  # noqa: B006
    """An encoder that reads every seed once, however many teachers are fitted on it."""

    def encoded(texts: list[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, encode(new), strict=True))
        return np.array([known[text] for text in texts])

    return encoded


def _hidden(leaf: str, workspace: Any, domain: Any, log_rows: pl.DataFrame, encode: Any) -> tuple[list[Any], Any]:
    """The proposals of a taxonomy without ``leaf``, and the place of the first one whose evidence is of it."""
    from curation.domain.model import Taxonomy
    from curation.teachers.embedded.expander import Expansion, expand, looked_at
    from curation.teachers.embedded.teacher import EmbeddedTeacher

    seeds = workspace.table("seeds").filter(pl.col("primary").is_not_null(), pl.col("primary") != leaf).collect()
    seeds = seeds.with_columns(pl.col("secondary").list.set_difference([leaf]))
    table = workspace.table("taxonomy").filter(pl.col("node_id") != leaf).collect()
    teacher = EmbeddedTeacher.fit(seeds, table, domain, encode, workers=2)
    vectors = log_rows["vector"].to_numpy()
    labels = teacher.annotate(log_rows.select("query_id", "text", "norm", "lang"), vectors)
    rows = log_rows.with_columns(labels["primary"], labels["confidence"], row=pl.int_range(pl.len()))
    limits = Expansion()
    seen = looked_at(rows, limits)
    pool = vectors[seen.join(rows, on="query_id", how="left", maintain_order="left")["row"].to_numpy()]
    tree = Taxonomy("1", tuple(node for node in domain.taxonomy.nodes if node.node_id != leaf))
    proposals = expand(seen, pool, seeds, encode(seeds["text"].to_list()), tree, limits)
    true = dict(rows.select("query_id", "leaf").iter_rows())
    pure = (
        place
        for place, one in enumerate(proposals)
        if one.kind == "add" and np.mean([true[row.query_id] == leaf for row in one.evidence]) >= PURE
    )
    return proposals, next(pure, None)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks evolution", description=__doc__.split("\n")[0])
    parts = ("clinc", "travelbench", "plant")
    parser.add_argument("part", nargs="*", metavar="PART", help=f"what to measure, of {', '.join(parts)}")
    parser.add_argument("--leaves", type=int, help="leaves that are hidden in turn, at most")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    options = parser.parse_args(arguments)
    if unknown := set(options.part) - set(parts):
        parser.error(f"there is no part {sorted(unknown)[0]!r}: choose of {', '.join(parts)}")
    encode, rows = _encoder(), []
    for part in options.part or parts:
        if part == "plant":
            rows += plant(encode, options.leaves)
        elif SHARED.exists():
            rows += (clinc if part == "clinc" else travelbench)(encode)
    shown = [
        [what, name, value if isinstance(value, (int, str)) else f"{value:.3f}", "" if must is None else must, of]
        for what, name, value, must, of in rows
    ]
    print_table(["what", "figure", "value", "must", "of"], shown, as_json=options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
