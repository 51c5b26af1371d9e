"""Survivors: the table and the index of what the semantic level kept, this day and before."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from curation.algorithms.survivors_index import FILE_NAME, SurvivorsIndex
from curation.stages import semantic, survivors
from tests.helpers import FakeContext
from tests.stages.given import tables


def survived(given, place, **options):
    groups = FakeContext(semantic.STAGE, given, scratch=place, **options).run().out("semantic_groups")
    return groups, groups.filter(pl.col("query_id") == pl.col("representative_id"))


def run(given, groups, place, **options):
    place.mkdir(exist_ok=True)
    inputs = {"semantic_groups": groups, **{name: given[name] for name in ("embeddings", "queries")}}
    return FakeContext(survivors.STAGE, inputs, scratch=place, **options).run()


def test_the_index_holds_the_vectors_of_the_survivors(tmp_path):
    given = tables(300)
    groups, kept = survived(given, tmp_path)
    context = run(given, groups, tmp_path / "day")
    assert context.out("survivors").select("query_id", "bucket").equals(kept.select("query_id", "bucket"))
    assert context.metrics["indexed"] == kept.height < 300
    index = SurvivorsIndex.load(tmp_path / "day" / FILE_NAME)
    vectors = given["embeddings"].join(kept, on="query_id", how="semi")["vector"].to_numpy()
    near = index.query(vectors, k=1)
    assert near.ids.tolist() == kept["query_id"].to_list()
    np.testing.assert_allclose(near.similarity, 1, atol=1e-6)


@pytest.mark.parametrize(("params", "indexed"), [({"index": "never"}, False), ({"auto_limit": 5}, False), ({}, True)])
def test_the_index_is_made_where_it_is_wanted(tmp_path, params, indexed):
    given = tables(60)
    groups, _ = survived(given, tmp_path)
    context = run(given, groups, tmp_path / "day", params=params)
    assert (tmp_path / "day" / FILE_NAME).exists() is indexed
    assert bool(context.metrics["indexed"]) is indexed


@pytest.mark.parametrize(
    ("first_day", "second_day"), [({}, {}), ({"halves_from": 1}, {"halves_from": 1}), ({}, {"halves_from": 1})]
)
def test_a_later_day_holds_the_survivors_of_both(tmp_path, first_day, second_day):
    first, second = tables(200, seed=1), tables(200, seed=2)
    groups, kept = survived(first, tmp_path)
    one = run(first, groups, tmp_path / "one", params=first_day)
    later, new = survived(second, tmp_path)
    two = run(
        second,
        later,
        tmp_path / "two",
        params=second_day,
        earlier={"survivors": one.out("survivors")},
        earlier_companions={FILE_NAME: tmp_path / "one" / FILE_NAME},
    )
    table = two.out("survivors")
    assert set(table["query_id"]) == {*kept["query_id"], *new["query_id"]}
    assert table["earlier"].sum() == kept.height
    ids, vectors = SurvivorsIndex.load(tmp_path / "two" / FILE_NAME).contents()
    assert ids.tolist() == table["query_id"].to_list()
    both = pl.concat([first["embeddings"], second["embeddings"]]).join(table, on="query_id", how="semi")
    np.testing.assert_allclose(
        vectors, both.sort("query_id")["vector"].to_numpy(), atol=1e-6 if second_day == {} else 1e-3
    )
