"""Seeds: the domain's, a person's, and proposals that are far from both."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from curation.algorithms.normalise import normalise, query_ids
from curation.domain import load_domain
from curation.errors import CurationError
from curation.stages import seeds
from curation.taxonomy import operations as ops
from curation.taxonomy.tables import migrations_frame, nodes_frame
from curation.taxonomy.versions import History, Record
from curation.teachers import encoders
from tests.helpers import FakeContext

TREE = """
title: Tiny
languages: [en, zh]
version: "1"
taxonomy:
  music:
    description: Music.
    children:
      play: {description: Start.}
      stop: {description: End.}
  weather: {description: Rain and sun.}
"""
SEEDS = """
seeds:
  music.play: {en: [play some jazz, {text: "play rock, will it rain", secondary: [weather]}], zh: [放首歌]}
  weather: {en: [will it rain]}
negatives:
  - {reason: missing_tool, primary: weather, en: [stop the rain]}
"""
SHARED = {
    "embed": SimpleNamespace(encoder="auto", encoder_directory=None, auto_limit=10),
    "taxonomy": SimpleNamespace(base=None, induce=False),
}


def ids_of(texts):
    return query_ids(normalise(pa.array(texts, pa.large_string())))


def vector(text):
    return np.random.default_rng(int(ids_of([text])[0] % 2**32)).normal(size=8).astype(np.float32)


@pytest.fixture(autouse=True)
def encoder(monkeypatch):
    fake = SimpleNamespace(encode=lambda texts: np.array([vector(t) for t in texts]).reshape(-1, 8))
    monkeypatch.setattr(encoders, "load_encoder", lambda name, workers: fake)


@pytest.fixture
def domain(tmp_path):
    (tmp_path / "taxonomy.yaml").write_text(TREE)
    (tmp_path / "seeds.yaml").write_text(SEEDS)
    return load_domain(tmp_path)


def log(texts, langs):
    """Tables of a log; the last query stands in the group of the first."""
    ids = ids_of(texts)
    rows = pl.DataFrame({"query_id": ids, "text": texts, "lang": langs}).with_row_index()
    first, last = int(ids[0]), int(ids[-1])
    groups = rows.select(
        "query_id",
        representative_id=pl.when(pl.col("query_id") == last).then(pl.lit(first, pl.UInt64)).otherwise("query_id"),
        group_count=pl.col("index").cast(pl.Int64) + 1,
        kept=pl.col("query_id") != last,
    )
    kept = rows.filter(pl.col("query_id") != last)
    vectors = np.array([vector(t) for t in kept["text"]])
    embeddings = kept.select("query_id").with_columns(vector=pl.Series(vectors, dtype=pl.Array(pl.Float32, 8)))
    tables = {"queries": rows.drop("index"), "lexical_groups": groups, "embeddings": embeddings}
    return {name: table.sort("query_id") for name, table in tables.items()}


EMPTY = {name: table.clear() for name, table in log(["a", "b"], ["en", "en"]).items()}


def run(domain, inputs=EMPTY, shared=SHARED, seed=7, history=None, current=None, **params):
    history = history or History(domain.taxonomy)
    tree = {
        "taxonomy": nodes_frame(history, current or history.newest.name),
        "taxonomy_migrations": migrations_frame(history),
    }
    return FakeContext(seeds.STAGE, inputs | tree, domain=domain, shared=shared, seed=seed, params=params).run()


def test_seeds_of_the_domain_come_labelled(domain):
    ctx = run(domain, propose=0)
    out = ctx.out("seeds")
    assert out.height == 5
    assert out["query_id"].is_sorted()
    row = out.filter(pl.col("text") == "play rock, will it rain").row(0, named=True)
    assert (row["primary"], row["secondary"], row["tags"]) == ("music.play", ["weather"], ["play", "weather"])
    assert out.filter(pl.col("reason").is_not_null()).select("text", "reason").rows() == [
        ("stop the rain", "missing_tool")
    ]
    assert set(out["origin"]) == set(out["labelled_by"]) == {"domain"}
    assert ctx.metrics == {"labelled": 5, "proposed": 0, "disputed": 0, "without_leaf": 0}
    assert ctx.accounts[0].rows_in == ctx.accounts[0].kept == 5


def test_a_persons_label_wins_over_the_domains(domain, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("text,tags,primary\nWILL it rain!,,music.stop\n不下雨了吧,rain,\nnothing filled in,,\n")
    out = run(domain, propose=0, file=str(file)).out("seeds")
    assert out.height == 6
    rows = {row["text"]: row for row in out.rows(named=True)}
    assert "will it rain" not in rows and "nothing filled in" not in rows
    assert (rows["WILL it rain!"]["primary"], rows["WILL it rain!"]["origin"]) == ("music.stop", "file")
    assert rows["WILL it rain!"]["labelled_by"] == "mine.csv"
    assert (rows["不下雨了吧"]["lang"], rows["不下雨了吧"]["tags"]) == ("zh", ["rain"])


def test_the_same_query_twice_with_two_labels_is_told(tmp_path):
    (tmp_path / "taxonomy.yaml").write_text(TREE)
    (tmp_path / "seeds.yaml").write_text("seeds: {weather: {en: ['rain?']}, music.stop: {en: ['rain!']}}")
    with pytest.raises(CurationError, match=r"'rain!' and 'rain\?' are one query with different labels"):
        run(load_domain(tmp_path), propose=0)


def test_proposals_are_representatives_that_nobody_labelled(domain):
    texts = [f"query number {'x' * i}" for i in range(1, 40)] + ["will it rain", "merged away"]
    out = run(domain, log(texts, ["en"] * 41), propose=10).out("seeds").filter(pl.col("origin") == "proposed")
    assert out.height == out["query_id"].n_unique() == 10
    assert not set(out["text"]) & {"will it rain", "merged away"}
    assert out["primary"].null_count() == 10 and out["tags"].list.len().sum() == 0


def test_a_small_language_gets_more_than_its_share(domain):
    texts = [f"english {i}" for i in range(90)] + [f"中文{i}" for i in range(10)] + ["merged away"]
    out = run(domain, log(texts, ["en"] * 90 + ["zh"] * 10 + ["en"]), propose=20).out("seeds")
    proposed = out.filter(pl.col("origin") == "proposed").group_by("lang").len().sort("lang")
    # Shares by the square root: 9.49 to 3.16.
    assert proposed.rows() == [("en", 15), ("zh", 5)]


def test_more_proposals_than_queries_take_them_all(domain):
    out = run(domain, log(["one", "two", "three", "merged away"], ["en"] * 4), propose=50).out("seeds")
    assert set(out.filter(pl.col("origin") == "proposed")["text"]) == {"one", "two", "three"}


def test_the_seed_decides_on_the_proposals(domain):
    inputs = log([f"query {i}" for i in range(200)], ["en"] * 200)
    one, same, other = (run(domain, inputs, seed=seed, propose=20).out("seeds") for seed in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)


def test_an_empty_log_proposes_nothing(domain):
    assert run(domain, propose=10).metrics["proposed"] == 0


def test_of_a_large_log_frequent_and_random_queries_are_looked_at(domain, monkeypatch):
    monkeypatch.setattr(seeds, "_CANDIDATES", 20)
    inputs = log([f"query {i}" for i in range(300)], ["en"] * 300)
    ctx = FakeContext(seeds.STAGE, inputs, domain=domain, shared=SHARED)
    kept = seeds._candidates(ctx, pl.DataFrame(schema={"query_id": pl.UInt64}))
    assert kept.height == 20
    assert set(range(290, 300)) <= set(kept["weight"])


def grown(domain):
    """Version 2 renames, version 3 splits."""
    history = History(domain.taxonomy)
    history.add(
        Record(version="2", from_="1", operations=(ops.Rename(node="music.play", name="start"),)),
    )
    rain = ops.NewLeaf(name="rain", description="Wet.", examples=("Will it RAIN",))
    sun = ops.NewLeaf(name="sun", description="Dry.")
    history.add(Record(version="3", from_="2", operations=(ops.Split(node="weather", parts=(rain, sun)),)))
    return history


def test_labels_are_carried_to_the_version_that_counts(domain):
    ctx = run(domain, history=grown(domain), propose=0)
    rows = {row["text"]: row for row in ctx.out("seeds").rows(named=True)}
    jazz, both = rows["play some jazz"], rows["play rock, will it rain"]
    assert (jazz["primary"], jazz["given_primary"], jazz["given_version"]) == ("music.start", "music.play", "1")
    assert (both["primary"], both["secondary"], both["given_secondary"]) == ("music.start", [], ["weather"])
    assert rows["will it rain"]["primary"] == "rain"
    assert rows["stop the rain"]["primary"] is None
    assert (ctx.metrics["labelled"], ctx.metrics["without_leaf"]) == (4, 1)


def test_a_file_may_speak_of_any_version(domain, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("text,primary\nplay one,music.play\nplay two,music.start\nis it dry,sun\n")
    found = {}
    for current in ("1", "3"):
        out = run(domain, history=grown(domain), current=current, propose=0, file=str(file)).out("seeds")
        mine = out.filter(pl.col("origin") == "file").sort("text")
        found[current] = mine["primary"].to_list()
        assert mine["given_version"].to_list() == ["3", "1", "3"]
    assert found == {"1": ["other", "music.play", "music.play"], "3": ["sun", "music.start", "music.start"]}


def test_where_labellers_differ_there_is_no_leaf(domain, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("text,primary,labelled_by\nplay it,music.play,ana\nplay it,music.stop,ben\nhalt,music.stop,ana\n")
    ctx = run(domain, propose=0, file=str(file))
    rows = {row["text"]: row for row in ctx.out("seeds").rows(named=True)}
    assert (rows["play it"]["primary"], rows["play it"]["labelled_by"]) == (None, "ana, ben")
    assert rows["halt"]["primary"] == "music.stop"
    assert ctx.metrics["disputed"] == 1


def test_seeds_of_the_domain_have_no_leaf_in_a_tree_that_is_not_the_domains(domain):
    ctx = run(domain, shared=SHARED | {"taxonomy": SimpleNamespace(base="mine.yaml", induce=False)}, propose=0)
    out = ctx.out("seeds")
    assert out["primary"].null_count() == out["reason"].null_count() == out.height == 5
    assert out["tags"].list.len().min() == 1
