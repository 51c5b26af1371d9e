"""Annotation along versions: what is touched is asked for again, and what ran before changes nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.taxonomy import operations as ops
from curation.taxonomy.lineage import Fate
from curation.teachers.base import ANNOTATIONS
from curation.teachers.relabel import KnownLabels, Relabeller, carried_labels
from tests.taxonomy.test_tables import lineage, made
from tests.taxonomy.trees import history

TEXTS = [f"query {number}" for number in range(60)]


def labels(rows):
    """Annotations of (query_id, primary, secondary)."""
    columns = {
        "constraints": [],
        "confidence": 0.5,
        "teacher": "t",
        "taxonomy_version": "1",
        "unsolvable": None,
        "unsolvable_confidence": 0.0,
    }
    out = [
        {"query_id": i, "primary": primary, "secondary": secondary, "error": None if primary else "no"} | columns
        for i, primary, secondary in rows
    ]
    return pl.DataFrame(out, schema=ANNOTATIONS)


class Teacher:
    """Gives each text a leaf of its version, by chance but always the same; notes whom it was asked about."""

    def __init__(self, lines, version, asked):
        self.name = "t"
        self.leaves, self.version, self.asked = sorted(lines.taxonomy(version).leaves), version, asked

    def annotate(self, queries, vectors):
        assert len(vectors) == queries.height
        self.asked.append((self.version, queries["query_id"].to_list()))
        rows = []
        for query_id in queries["query_id"]:
            random = np.random.default_rng([query_id, len(self.leaves), ord(self.version[0])])
            count = min(1 + query_id % 3, len(self.leaves))
            leaves = random.choice(self.leaves, count, replace=False).tolist()
            primary = None if query_id % 13 == 12 else leaves[0]
            rows.append((query_id, primary, sorted(leaves[1:]) if primary else []))
        return labels(rows).with_columns(taxonomy_version=pl.lit(self.version))


def run(told, queries, known=None):
    lines, asked = lineage(told), []
    teachers = {version: Teacher(lines, version, asked) for version in lines.versions}
    relabeller = Relabeller(lines, teachers.__getitem__, known)
    return relabeller.annotate(queries, np.zeros((queries.height, 2), np.float32)), relabeller, asked


QUERIES = pl.DataFrame({"query_id": pl.Series(range(60), dtype=pl.UInt64), "text": TEXTS})


def test_only_rows_under_the_node_are_asked_for_again():
    told = made([ops.Add(parent="music", name="pause", description="Wait.")])
    before, *_ = run(made(), QUERIES)
    after, relabeller, asked = run(told, QUERIES)
    touched = before.filter(
        pl.concat_list("primary", "secondary").list.eval(pl.element().str.starts_with("music.")).list.any()
    )
    assert [version for version, _ in asked] == ["1", "2"]
    assert asked[1][1] == touched["query_id"].to_list()
    assert relabeller.again == touched.height > 0
    rest = ~pl.col("query_id").is_in(touched["query_id"].implode())
    assert after.filter(rest).drop("taxonomy_version").equals(before.filter(rest).drop("taxonomy_version"))
    assert set(after["taxonomy_version"]) == {"2"}


def test_renames_and_merges_ask_nobody():
    told = made([ops.Rename(node="news", name="press"), ops.Merge(nodes=("music.stop",), into="music.play")])
    out, relabeller, asked = run(told, QUERIES)
    assert [version for version, _ in asked] == ["1"]
    assert relabeller.again == 0
    assert not out["primary"].str.starts_with("news").any()
    good = out.drop_nulls("primary")
    assert not any(p in s for p, s in good.select("primary", "secondary").iter_rows())


def test_labels_are_mapped_failed_rows_stay_and_lists_stay_sorted_sets():
    fates = {"a": Fate("c", False), "b": Fate("a", False), "c": Fate("c", False), "d": Fate(None, True)}
    given_labels = labels([(0, "a", ["b", "c"]), (1, None, []), (2, "b", ["d"]), (3, "b", ["a", "c"]), (4, "d", [])])
    out, again = carried_labels(given_labels, fates, "2")
    assert again.to_list() == [False, False, True, False, True]
    assert out.row(0, named=True)["primary"] == "c"
    assert out["secondary"][0].to_list() == ["a"]
    assert out["secondary"][3].to_list() == ["c"]
    assert out.row(1, named=True)["error"] == "no" and out["primary"][1] is None


def test_nobody_is_sure_of_a_label_that_fell_to_an_other():
    fates = {"p.a": Fate("p.other", False), "p.other": Fate("p.other", False), "p.b": Fate("q.b", False)}
    fates |= {"q.c": Fate("q", False), "x": Fate("x", False)}
    out, again = carried_labels(labels([(n, leaf, []) for n, leaf in enumerate([*fates, None])]), fates, "2")
    assert not again.any()
    assert out["confidence"].to_list() == [0, 0.5, 0.5, 0.5, 0.5, 0.5]


def test_a_return_gives_the_labels_of_the_version_returned_to():
    change = [ops.Split(node="weather", parts=[ops.NewLeaf(name=n, description="x") for n in ("rain", "sun")])]
    before, *_ = run(made(change), QUERIES)
    after, relabeller, _ = run(made(change, [ops.Drop(node="music")], "2"), QUERIES)
    assert after.drop("taxonomy_version").equals(before.drop("taxonomy_version"))
    assert relabeller.again == 0


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_what_ran_before_changes_nothing_but_the_work(seed, data):
    operations = history(seed, 12)
    steps = [operations[at : at + 4] for at in range(0, 12, 4)]
    whole, one, _ = run(made(*steps), QUERIES)
    place = data.draw(st.integers(0, 3))
    earlier, *_ = run(made(*steps[:place]), QUERIES)
    some = data.draw(st.sets(st.integers(0, 59)))

    def find(queries, vectors):
        return earlier.filter(
            pl.col("query_id").is_in(list(some)) & pl.col("query_id").is_in(queries["query_id"].implode())
        )

    again, two, _ = run(made(*steps), QUERIES, KnownLabels(str(place + 1), find))
    assert again.equals(whole)
    assert two.asked <= one.asked
    if place == 3 and len(some) == 60:
        assert two.asked == 0


@pytest.mark.parametrize("height", [0, 1])
def test_few_rows(height):
    out, *_ = run(made([ops.Drop(node="music")]), QUERIES.head(height))
    assert out.height == height
    assert out.schema == ANNOTATIONS
