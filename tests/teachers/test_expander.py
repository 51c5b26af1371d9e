"""What the taxonomy has no leaf for is proposed."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest

from curation.teachers.embedded import expander
from curation.teachers.embedded.expander import Expansion, expand, looked_at
from tests.taxonomy.trees import tree

TREE = tree("music.play", "music.stop", "news.sport", "news.local", version="7")
LEAVES = ["music.play", "music.stop", "news.sport", "news.local"]
START = datetime(2026, 7, 1)
LIMITS = Expansion(least_rows=10, least_weight=20)


def middles(n=7, d=32):
    return np.linalg.qr(np.random.default_rng(9).normal(size=(d, n)))[0].T


def log(*, sizes=(80, 80, 80, 80), new=40, odd=6, seed=0):
    """Rows around four leaves, around a new intent (late, half of it in an Other), and a few odd ones in the root's.

    With vectors, seeds and their vectors.
    """
    random = np.random.default_rng(seed)
    places = middles()
    rows, vectors = [], []

    def put(place, text, primary, confidence, weight, day):
        number = len(rows)
        seen = START + timedelta(days=float(day))
        rows.append((number * 7 % 1009, f"{text} {number}", weight, primary, confidence, seen, seen))
        vectors.append(places[place] + random.normal(size=32) * 0.4 / np.sqrt(32))

    for place, size in enumerate(sizes):
        for _ in range(size):
            put(
                place,
                f"known {LEAVES[place].replace('.', ' ')}",
                LEAVES[place],
                random.uniform(0.7, 1),
                2,
                random.uniform(0, 90),
            )
    for number in range(new):
        put(4, "唱一首生日歌", "music.other" if number % 2 else "music.play", random.uniform(0.1, 0.5), 3, 80)
    for number in range(odd):
        put(5 + number % 2, "odd one", "other", 0.1, 1, 5)
    schema = ["query_id", "text", "weight", "primary", "confidence", "first_seen", "last_seen"]
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("query_id").cast(pl.UInt64))
    seeds = np.repeat(places[:4], 6, axis=0) + random.normal(size=(24, 32)) * 0.3 / np.sqrt(32)
    labels = pl.DataFrame({"primary": np.repeat(LEAVES, 6)})
    return frame, np.array(vectors, np.float32), labels, seeds.astype(np.float32)


def proposals(frame, vectors, seeds, seed_vectors, limits=LIMITS):
    rows = looked_at(frame, limits)
    place = {query_id: at for at, query_id in enumerate(frame["query_id"].to_list())}
    pool = vectors[[place[query_id] for query_id in rows["query_id"].to_list()]]
    return expand(rows, pool, seeds, seed_vectors, TREE, limits)


def test_a_new_intent_is_proposed_with_its_rows_place_size_and_trend():
    found = proposals(*log())
    best = found[0]
    assert (best.source, best.kind, best.node_id, best.base_version) == ("expand", "add", "music", "7")
    assert best.rows == 40
    assert best.weight == 120
    assert best.trend == pytest.approx(2 / 3, abs=1e-3)
    assert best.name
    assert all("生日" in row.text for row in best.evidence)
    assert "40 queries (120 raw rows)" in best.reason
    assert "50% of them are in an Other" in best.reason
    assert best.purity > 0.7
    assert not [one for one in found[1:] if any("生日" in row.text for row in one.evidence)]


def test_small_and_loose_clusters_are_left_alone():
    frame, *rest = log(new=9)
    assert not [one for one in proposals(frame, *rest) if any("生日" in row.text for row in one.evidence)]
    few = frame.with_columns(weight=pl.lit(1))
    assert not proposals(few, *rest, Expansion(least_rows=5, least_weight=1000))
    frame, *rest = log()
    assert not proposals(frame, *rest, Expansion(least_rows=10, least_weight=20, least_cohesion=0.99))


def claimed(frame, words, sure):
    """The log with the rows of some words in a leaf whose teacher is so sure of them."""
    some = pl.col("text").str.contains(words)
    return frame.with_columns(
        primary=pl.when(some).then(pl.lit("music.play")).otherwise("primary"),
        confidence=pl.when(some).then(sure).otherwise("confidence"),
    )


def added(frame, rest, words):
    everything = Expansion(uncertain=1, newer_than=0.0, least_rows=10, least_weight=20)
    found = [one for one in proposals(frame, *rest, everything) if one.kind == "add"]
    return any(words in row.text for one in found for row in one.evidence)


@pytest.mark.parametrize(("sure", "proposed"), [(0.5, True), (0.6, False)])
def test_rows_that_leaves_claim_are_no_new_leaf(sure, proposed):
    frame, *rest = log()
    known = "known music play"  # around the seeds of that leaf
    assert added(claimed(frame, known, sure), rest, known) == proposed


@pytest.mark.parametrize(("sure", "proposed"), [(0.69, True), (0.999, False)])
def test_rows_apart_from_all_seeds_are_new_however_sure_unless_surer_than_others(sure, proposed):
    frame, *rest = log()
    assert added(claimed(frame, "生日", sure), rest, "生日") == proposed


def test_closer_clusters_are_added_to_the_others_and_take_no_place_of_theirs():
    frame, *rest = log()
    frame = claimed(frame, "生日", 0.69)
    both = proposals(frame, *rest, Expansion(uncertain=1, least_rows=10, least_weight=20, most=4))
    assert sum("生日" in one.evidence[0].text for one in both) == 1
    none = proposals(frame, *rest, Expansion(uncertain=1, least_rows=10, least_weight=20, most=3))
    assert not any("生日" in one.evidence[0].text for one in none)


def test_familiar_rows_in_an_other_are_offered_to_their_leaf():
    frame, vectors, seeds, seed_vectors = log(new=60)
    sport = pl.col("text").str.starts_with("known news sport")
    frame = frame.with_columns(
        primary=pl.when(sport).then(pl.lit("news.other")).otherwise("primary"),
        confidence=pl.when(sport).then(0.99).otherwise("confidence"),
    )
    merges = [one for one in proposals(frame, vectors, seeds, seed_vectors) if one.kind == "merge"]
    assert [(one.node_id, one.target) for one in merges] == [("news.other", "news.sport")]
    assert 80 <= merges[0].rows <= 82  # an odd row may lie close enough
    assert all(row.text.startswith("known news sport") for row in merges[0].evidence)


def test_what_one_clustering_alone_finds_is_left_alone():
    def found(first, last, target=None, score=0.5):
        rows = np.arange(first, last)
        return expander._Found(rows, rows[:1], score, 0.5, 0.5, "music", target)

    searches = [
        [found(0, 20), found(50, 70), found(90, 110, score=0.9)],
        [found(0, 22), found(50, 70, target="music.play")],  # the second is of another kind
        [found(0, 30), found(200, 220)],
    ]
    assert [(one.rows[0], one.rows[-1]) for one in expander._agreed(searches, adding=True)] == [(0, 21)]
    assert expander._agreed(searches, adding=False) == []


@pytest.mark.parametrize("seed", range(4))
def test_a_new_intent_is_proposed_whatever_the_seed(seed):
    frame, vectors, seeds, seed_vectors = log()
    rows = looked_at(frame, LIMITS)
    pool = vectors[[frame["query_id"].to_list().index(key) for key in rows["query_id"]]]
    found = [one for one in expand(rows, pool, seeds, seed_vectors, TREE, LIMITS, seed=seed) if one.kind == "add"]
    assert [(one.node_id, one.rows) for one in found] == [("music", 40)]


def test_t10_the_order_of_rows_and_of_seeds_means_nothing():
    frame, vectors, seeds, seed_vectors = log()
    order = np.random.default_rng(1).permutation(frame.height)
    turned = np.random.default_rng(2).permutation(24)
    again = proposals(frame[order], vectors[order], seeds[turned], seed_vectors[turned])
    assert again == proposals(frame, vectors, seeds, seed_vectors)


def test_rows_in_an_other_come_before_the_least_certain_and_failed_ones_never():
    frame, *_ = log()
    frame = frame.with_columns(
        primary=pl.when(pl.col("query_id") == frame["query_id"][0]).then(None).otherwise("primary")
    )
    seen = looked_at(frame, Expansion(uncertain=0.25))
    others = frame.filter(pl.col("primary").str.ends_with("other"))
    assert set(others["query_id"]) <= set(seen["query_id"])
    leaves = frame.filter(~pl.col("primary").str.ends_with("other"))
    taken = leaves.filter(pl.col("query_id").is_in(seen["query_id"].to_list()))
    assert taken.height == leaves.height // 4
    assert (
        taken["confidence"].max()
        <= leaves.filter(~pl.col("query_id").is_in(seen["query_id"].to_list()))["confidence"].min()
    )
    few = looked_at(frame, Expansion(most_rows=10))
    assert set(few["query_id"]) <= set(others["query_id"])
    assert few["query_id"].is_sorted()


def test_without_times_there_is_no_trend_and_without_rows_no_proposal():
    frame, vectors, seeds, seed_vectors = log()
    bare = frame.with_columns(pl.lit(None, pl.Datetime("us")).alias(name) for name in ("first_seen", "last_seen"))
    found = proposals(bare, vectors, seeds, seed_vectors)
    assert [one.trend for one in found] == [None] * len(found)
    assert found[0].rows == 40
    assert proposals(frame.clear(), vectors[:0], seeds, seed_vectors) == []
    assert proposals(frame, vectors, seeds.clear(), seed_vectors[:0]) == []
