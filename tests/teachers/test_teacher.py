"""The embedded teacher: labels in the shape of `annotations`, Other for the unfamiliar, errors where it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from curation.algorithms.normalise import normalise, query_ids
from curation.domain import load_domain
from curation.errors import CurationError
from curation.stages import taxonomy
from curation.teachers.base import ANNOTATIONS
from curation.teachers.embedded.teacher import Choice, EmbeddedTeacher, Tree, _labelled, _pairs
from schemas.annotations import Annotations
from tests.helpers import FakeContext

TREE = """
title: Tiny
languages: [en]
version: "2"
taxonomy:
  media:
    description: Media.
    children:
      music: {description: Songs., examples: {en: [put on some blues]}}
      radio: {description: Stations.}
  weather: {description: Rain and sun.}
"""
SEEDS = {
    "media.music": ["play some jazz", "play the new album", "put on a song by adele", "play rock music"],
    "media.radio": ["tune to the news station", "switch to radio one", "which station is this", "next radio station"],
    "weather": ["will it rain today", "how warm is it outside", "is it sunny tomorrow", "rain in london today"],
}
GOLD = Path(__file__).resolve().parents[3] / "shared/data/travelbench/dev.jsonl"


def encode(texts):
    """Hashed words, unit rows: near where words are shared."""
    rows = np.zeros((len(texts), 64), np.float32)
    for i, text in enumerate(texts):
        for word in text.lower().split():
            rows[i] += np.random.default_rng(sum(map(ord, word))).normal(size=64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def frame(texts):
    norms = normalise(pa.array(texts, pa.large_string()))
    ids = np.arange(1, len(texts) + 1, dtype=np.uint64)
    return pl.DataFrame({"query_id": ids, "text": texts, "norm": norms.to_pylist(), "lang": ["en"] * len(texts)})


def seed_table(labels):
    """The table `seeds` of (text, primary, secondary, reason)."""
    ids = query_ids(normalise(pa.array([row[0] for row in labels], pa.large_string())))
    table = pl.DataFrame(
        labels,
        schema={"text": pl.String, "primary": pl.String, "secondary": pl.List(pl.String), "reason": pl.String},
        orient="row",
    )
    return table.with_columns(query_id=pl.Series(ids, dtype=pl.UInt64), lang=pl.lit("en")).sort("query_id")


LABELS = [(text, leaf, [], None) for leaf, texts in SEEDS.items() for text in texts]
LABELS += [
    ("play jazz and tell me if it will rain", "media.music", ["weather"], None),
    ("book me a flight", "weather", [], "missing_tool"),
    ("order a pizza", "weather", [], "missing_tool"),
    ("what about that one", "weather", [], "missing_info"),
    ("nobody has labelled this", None, [], None),
]


@pytest.fixture(scope="module")
def domain(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tiny")
    (directory / "taxonomy.yaml").write_text(TREE)
    return load_domain(directory)


@pytest.fixture(scope="module")
def nodes(domain):
    return FakeContext(taxonomy.STAGE, domain=domain).run().out("taxonomy")


@pytest.fixture
def fit(domain, nodes):
    def fitted(labels=LABELS, workers=1, nodes=nodes, **choice):
        return EmbeddedTeacher.fit(seed_table(labels), nodes, domain, encode, Choice(**choice), workers)

    return fitted


def test_labels_have_the_shape_of_the_contract(fit):
    queries = frame(["play some soul", "rain tomorrow", "radio station please"])
    out = fit(other_share=0).annotate(queries, encode(queries["text"].to_list()))
    assert out.schema == ANNOTATIONS
    Annotations.validate(out)
    assert out["query_id"].to_list() == [1, 2, 3]
    assert out["primary"].to_list() == ["media.music", "weather", "media.radio"]
    assert set(out["teacher"]) == {"embedded"} and set(out["taxonomy_version"]) == {"2"}


def test_s3_a_row_without_a_usable_vector_fails_and_says_so(fit):
    queries = frame(["play some soul", "rain tomorrow", "radio station", "song"])
    vectors = encode(queries["text"].to_list())
    vectors[1], vectors[2] = np.nan, 0
    out = fit().annotate(queries, vectors)
    assert out["query_id"].to_list() == [1, 2, 3, 4]
    assert out["error"].is_not_null().to_list() == [False, True, True, False]
    assert out["primary"].is_null().to_list() == [False, True, True, False]
    Annotations.validate(out)


def test_vectors_of_another_encoder_are_told(fit):
    with pytest.raises(CurationError, match="have 3 numbers, those of the seeds 64"):
        fit().annotate(frame(["a"]), np.ones((1, 3), np.float32))


def test_no_rows_no_labels(fit):
    assert fit().annotate(frame(["a"]).clear(), np.empty((0, 64), np.float32)).schema == ANNOTATIONS


def test_t10_workers_and_order_change_nothing(fit, monkeypatch):
    texts = [f"{a} {b}" for a in ("play", "rain", "radio", "pizza") for b in ("jazz", "today", "station", "one", "x")]
    queries, vectors = frame(texts), encode(texts)
    whole = fit(workers=1).annotate(queries, vectors)
    monkeypatch.setattr("curation.teachers.embedded.teacher._BLOCK", 3)
    order = np.random.default_rng(0).permutation(len(texts))
    again = fit(labels=LABELS[::-1], workers=3).annotate(queries[order], vectors[order])
    assert again.sort("query_id").equals(whole)


def test_what_is_like_no_seed_goes_to_other(fit):
    queries = frame(["xylophone quarks", "play some jazz"])
    out = fit(other_share=0.2).annotate(queries, encode(queries["text"].to_list()))
    assert out["primary"].to_list() == ["other", "media.music"]
    assert out["secondary"].to_list()[0] == []
    assert fit(other_share=0).annotate(queries, encode(queries["text"].to_list()))["primary"][0] != "other"


def test_an_unfamiliar_query_goes_to_the_deepest_category_that_is_nearly_certain(fit):
    teacher = fit()
    assert teacher.leaves == ["media.music", "media.radio", "weather"]
    rows = np.array([[0.5, 0.45, 0.05], [0.4, 0.3, 0.3], [0.05, 0, 0.95]], np.float32)
    assert teacher._others(rows).to_list() == ["media.other", "other", "other"]


def test_reasons_come_with_their_probability_above_the_threshold(fit):
    queries = frame(["book a flight to rome", "play some jazz"])
    vectors = encode(queries["text"].to_list())
    out = fit(other_share=0, unsolvable_from=0.05).annotate(queries, vectors)
    assert out["unsolvable"][0] == "missing_tool"
    assert out["unsolvable_confidence"][0] > out["unsolvable_confidence"][1]
    never = fit(other_share=0, unsolvable_from=1.0).annotate(queries, vectors)
    assert never["unsolvable"].null_count() == 2
    assert never["unsolvable_confidence"].equals(out["unsolvable_confidence"])


def test_further_intents_are_sorted_and_never_the_primary(fit):
    texts = ["play jazz and tell me if it will rain", "play some jazz"]
    out = fit(other_share=0, secondary_from=1e-6, most_secondary=2).annotate(frame(texts), encode(texts))
    for primary, secondary in zip(out["primary"], out["secondary"].to_list(), strict=True):
        assert len(secondary) == 2 and secondary == sorted(secondary) and primary not in secondary
    none = fit(other_share=0, secondary_from=1e-6, most_secondary=0).annotate(frame(texts), encode(texts))
    assert none["secondary"].list.len().sum() == 0


def test_pairs_are_of_two_leaves_and_know_their_seeds(nodes):
    rows = _labelled(seed_table(LABELS), Tree(nodes))
    pairs = _pairs(rows, encode)
    assert len(pairs.members) > 4
    for (first, second), norm in zip(pairs.members.tolist(), pairs.norms.to_pylist(), strict=True):
        assert rows[first].leaf != rows[second].leaf
        for row in (rows[first], rows[second]):
            assert row.reason is None and not row.further
            assert row.text.lower() in norm
    assert _pairs(rows[:1], encode) is None


def test_a_clause_alone_makes_a_hint_an_intent(fit):
    texts = ["play some jazz and then will it rain today"]
    teacher = fit(other_share=0, secondary_from=0.6)
    out = teacher.annotate(frame(texts), encode(texts))
    both = {out["primary"][0], *out["secondary"][0]}
    assert both == {"media.music", "weather"}


def test_l8_seeds_of_a_leaf_that_is_gone_fall_to_the_nearest_other(fit, nodes):
    smaller = nodes.filter(pl.col("node_id") != "media.radio").with_columns(version=pl.lit("10"))
    teacher = fit(nodes=pl.concat([nodes, smaller]))
    assert teacher.tree.version == "10"
    assert teacher.leaves == ["media.music", "media.other", "weather"]


def test_examples_of_the_taxonomy_are_learnt_from_where_no_seed_says_otherwise(fit, nodes, domain):
    only = EmbeddedTeacher.fit(seed_table(LABELS).clear(), nodes, domain, encode)
    assert only.leaves == ["media.music"]
    teacher = fit([*LABELS, ("Put on some BLUES!", "weather", [], None)])
    examples = {name: value for name, value, _ in teacher.measures}["examples"]
    assert examples == len(LABELS) - 1 + 1  # the unlabelled one is left out, the example is a seed already


def test_nothing_to_learn_from_is_told(nodes, domain):
    bare = nodes.with_columns(examples=pl.lit([], pl.List(pl.String)))
    with pytest.raises(CurationError, match="no labelled seeds"):
        EmbeddedTeacher.fit(seed_table(LABELS).clear(), bare, domain, encode)


def test_lookups_in_the_tree(nodes):
    tree = Tree(nodes)
    assert tree.leaf("media.radio") == "media.radio"
    assert tree.leaf("media.gone") == tree.other("media") == "media.other"
    assert tree.leaf("gone.too") == tree.other("") == "other"


@pytest.mark.skipif(not GOLD.exists(), reason="the gold queries are not here")
def test_accuracy_on_the_gold_queries():
    """Issue of annotation: level 1 at least .74, leaf at least .44 (the largest classes alone give .47 and .27)."""
    from curation.stages import seeds
    from curation.teachers.encoders import load_encoder

    domain = load_domain("map_travel")
    versions = FakeContext(taxonomy.STAGE, domain=domain).run()
    trees = {name: versions.out(name) for name in ("taxonomy", "taxonomy_migrations")}
    shared = {"taxonomy": taxonomy.STAGE.params()}
    ctx = FakeContext(seeds.STAGE, trees, domain=domain, shared=shared, params={"propose": 0})
    table = ctx.run().out("seeds")
    encoder = load_encoder("use-multilingual", 2)
    teacher = EmbeddedTeacher.fit(table, trees["taxonomy"], domain, encoder.encode, workers=2)
    gold = [json.loads(line) for line in GOLD.read_text().splitlines()]
    queries = frame([row["query"] for row in gold]).with_columns(lang=pl.lit("zh"))
    found = teacher.annotate(queries, encoder.encode(queries["text"].to_list()))["primary"].to_list()
    right = [row["primary_intent"] for row in gold]
    assert np.mean([a == b for a, b in zip(found, right, strict=True)]) >= 0.44
    assert np.mean([a.split(".")[0] == b.split(".")[0] for a, b in zip(found, right, strict=True)]) >= 0.74
