from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from curation.errors import CurationError
from curation.stages.semantic import STAGE
from tests.algorithms.clouds import groups_by_definition
from tests.helpers import FakeContext
from tests.stages.given import tables


def run(given, tmp_path, **options):
    context = FakeContext(STAGE, given, scratch=tmp_path, **options).run()
    return SimpleNamespace(
        groups=context.out("semantic_groups"), account=context.accounts[0], metrics=context.metrics
    )


def test_groups_follow_the_definition_bucket_by_bucket(tmp_path):
    given = tables(800, failed=20)
    found = run(given, tmp_path)
    labelled = given["annotations"].filter(pl.col("error").is_null())
    weights = given["lexical_groups"].filter(pl.col("query_id") == pl.col("representative_id"))
    rows = labelled.join(weights.select("query_id", "group_count"), on="query_id").join(
        given["embeddings"], on="query_id", maintain_order="left"
    )
    names = [f"{p}|{'+'.join(sorted(s))}" for p, s in rows.select("primary", "secondary").iter_rows()]
    assert found.groups["bucket"].to_list() == names
    code = np.unique(names, return_inverse=True)[1]
    quality = np.round(rows["confidence"].to_numpy() * np.float32(100))
    order = np.lexsort((rows["query_id"].to_numpy(), -quality, -rows["group_count"].to_numpy()))
    expected = groups_by_definition(rows["vector"].to_numpy(), order, code, 0.92)
    ids = rows["query_id"].to_numpy()
    assert found.groups["representative_id"].to_list() == ids[expected].tolist()
    assert 0.05 < (expected != np.arange(len(expected))).mean() < 0.9


def test_rows_and_weights_are_conserved(tmp_path):
    given = tables(500, failed=30)
    found = run(given, tmp_path)
    failed = given["annotations"].filter(pl.col("error").is_not_null())["query_id"]
    assert not found.groups["query_id"].is_in(failed.implode()).any()
    account = found.account
    assert account.rows_in == 470 == account.kept + account.merged == found.groups.height
    kept = found.groups.filter(pl.col("query_id") == pl.col("representative_id"))
    assert account.kept == kept.height
    assert account.weight_in == account.weight_out == kept["group_count"].sum()
    sums = found.groups.group_by("representative_id").agg(pl.col("group_count").n_unique())
    assert (sums["group_count"] == 1).all()
    assert found.metrics["buckets"] == found.groups["bucket"].n_unique()


def test_the_row_of_larger_weight_stays_then_the_surer_label_then_the_smaller_id(tmp_path):
    given = tables(6, d=4)
    given["embeddings"] = given["embeddings"].with_columns(
        vector=pl.Series(np.tile([1, 0, 0, 0], (6, 1)).astype(np.float32), dtype=pl.Array(pl.Float32, 4))
    )
    same = {"primary": pl.lit("other"), "secondary": pl.lit([], pl.List(pl.String))}
    for weights, confidence, winner in (
        ([1, 1, 9, 1, 1, 1], [0.9, 0.1, 0.1, 0.1, 0.1, 0.1], 2),
        ([9, 9, 9, 9, 9, 1], [0.1, 0.1, 0.1, 0.8, 0.1, 0.9], 3),
        ([9, 9, 9, 9, 9, 9], [0.5, 0.501, 0.504, 0.5, 0.5, 0.5], 0),
    ):
        ids = given["annotations"]["query_id"]
        given["annotations"] = given["annotations"].with_columns(
            confidence=pl.Series(confidence, dtype=pl.Float32), **same
        )
        given["lexical_groups"] = given["lexical_groups"].with_columns(
            group_count=pl.col("representative_id").replace_strict(dict(zip(ids, weights, strict=True)))
        )
        groups = run(given, tmp_path).groups
        assert (groups["representative_id"] == ids[winner]).all()
        assert (groups["group_count"] == sum(weights)).all()


@pytest.mark.parametrize("n", [0, 1, 2])
def test_s2_few_rows(tmp_path, n):
    found = run(tables(n), tmp_path)
    assert found.groups.height == n == found.account.rows_in
    assert found.metrics["largest_bucket"] <= n


def test_t10_s5_memory_threads_and_files_do_not_show(tmp_path):
    given = tables(3000)
    whole = run(given, tmp_path / "whole" if (tmp_path / "whole").mkdir() else tmp_path)
    for memory in (1 << 18, 1 << 14):  # several buckets a partition; then the largest bucket as a memory map
        folder = tmp_path / str(memory)
        folder.mkdir()
        spilled = run(given, folder, memory=memory, workers=1)
        assert list(folder.glob("*.vectors"))
        assert spilled.groups.equals(whole.groups)


def test_t13_survivors_survive_again(tmp_path):
    given = tables(1500)
    first = run(given, tmp_path).groups
    kept = first.filter(pl.col("query_id") == pl.col("representative_id"))["query_id"].implode()
    again = run(
        {name: frame.filter(pl.col("query_id").is_in(kept)) for name, frame in given.items()}, tmp_path
    ).groups
    assert (again["query_id"] == again["representative_id"]).all()
    assert again.columns == first.columns


def test_threshold_and_method_are_those_of_the_recipe(tmp_path):
    given = tables(400)
    merged = [run(given, tmp_path, params={"threshold": t}).account.merged for t in (0.7, 0.92, 0.99)]
    assert merged[0] > merged[1] > merged[2]
    assert run(given, tmp_path, params={"method": "faiss"}).groups.equals(run(given, tmp_path).groups)


def test_a_query_without_a_vector_is_a_sentence(tmp_path):
    given = tables(50)
    given["embeddings"] = given["embeddings"].head(47)
    with pytest.raises(CurationError, match="no vector for 3 of 50 queries"):
        run(given, tmp_path)


def test_s3_a_zero_vector_is_a_sentence_with_its_query(tmp_path):
    given = tables(20, d=4)
    vectors = given["embeddings"]["vector"].to_numpy().copy()
    vectors[13] = 0
    given["embeddings"] = given["embeddings"].with_columns(vector=pl.Series(vectors, dtype=pl.Array(pl.Float32, 4)))
    with pytest.raises(CurationError, match=f"query {given['embeddings']['query_id'][13]} .* zero or not finite"):
        run(given, tmp_path)


def test_annotations_of_strangers_are_a_sentence(tmp_path):
    given = tables(10)
    given["lexical_groups"] = given["lexical_groups"].tail(15)
    with pytest.raises(CurationError, match="not representatives of lexical_groups"):
        run(given, tmp_path)


def test_importing_the_stage_is_light():
    heavy = "{'numba', 'faiss', 'torch', 'sklearn', 'pyarrow.parquet'}"
    program = f"import sys, curation.stages.semantic, curation.stages.geometric; print({heavy} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "set()"


def test_t6_queries_whose_numbers_differ_are_never_merged_by_default(tmp_path):
    """Sentence vectors hardly tell line 4 from line 1: six identical vectors, two numbers, one row without."""
    given = tables(6, d=4)
    given["embeddings"] = given["embeddings"].with_columns(
        vector=pl.Series(np.tile([1, 0, 0, 0], (6, 1)).astype(np.float32), dtype=pl.Array(pl.Float32, 4))
    )
    given["annotations"] = given["annotations"].with_columns(
        primary=pl.lit("other"), secondary=pl.lit([], pl.List(pl.String))
    )
    norms = ["北京4号线末班车", "北京1号线末班车", "4号线北京末班车", "1号线北京末班车", "北京末班车", "北京的末班车"]
    given["queries"] = given["queries"].with_columns(norm=pl.Series(norms))
    found = run(given, tmp_path)
    kept = found.groups.filter(pl.col("query_id") == pl.col("representative_id"))
    assert kept.height == 3
    pairs = found.groups["representative_id"].to_list()
    assert pairs[0] == pairs[2] and pairs[1] == pairs[3] and pairs[4] == pairs[5]
    assert run(given, tmp_path, params={"digits": "ignore"}).account.kept == 1


def earlier_day(given, place, **params):
    """Outcome of the stage `survivors` on what the semantic level keeps of the tables."""
    from curation.algorithms.survivors_index import FILE_NAME
    from curation.stages import survivors

    inputs = {name: given[name] for name in ("embeddings", "queries")} | {"semantic_groups": run(given, place).groups}
    context = FakeContext(survivors.STAGE, inputs, scratch=place, params=params).run()
    beside = {FILE_NAME: place / FILE_NAME} if (place / FILE_NAME).exists() else {}
    return {"earlier": {"survivors": context.out("survivors")}, "earlier_companions": beside}


def test_t14_queries_near_a_survivor_of_an_earlier_day_go_to_it(tmp_path):
    given = tables(500)
    (tmp_path / "then").mkdir()
    # The same vectors and labels under other ids, half of them: a day that brings nothing new, and some that is.
    ids = {name: pl.col(name) + 1 for name in ("query_id", "representative_id")}
    today = {
        name: frame.with_columns(ids[c].alias(c) for c in ids if c in frame.columns) for name, frame in given.items()
    }
    then = {name: frame.filter(pl.col("query_id") % 2 == 0) for name, frame in given.items()}
    options = earlier_day(then, tmp_path / "then")
    survivors = options["earlier"]["survivors"]
    found = run(today, tmp_path, **options)
    merged = found.groups.filter(pl.col("representative_id").is_in(survivors["query_id"].implode()))
    rows = merged.join(survivors, left_on="representative_id", right_on="query_id")
    assert (rows["bucket"] == rows["bucket_right"]).all() and rows["similarity"].min() >= np.float32(0.92)
    assert merged.height == found.metrics["earlier"] > then["annotations"].height * 0.9
    # Against an exact comparison of all pairs.
    vectors = {int(i): v for i, v in given["embeddings"].iter_rows()}
    bucket = dict(survivors.select("query_id", "bucket").iter_rows())
    own = dict(found.groups.select("query_id", "bucket").iter_rows())
    for query_id, representative in found.groups.select("query_id", "representative_id").head(60).iter_rows():
        near = [
            (round(float(np.dot(vectors[query_id - 1], vectors[other])), 5), other)
            for other, where in bucket.items()
            if where == own[query_id]
        ]
        best = max(near, default=(0.0, 0))[0]
        assert (best >= 0.92) == (representative in bucket), (best, representative)
    account = found.account
    assert account.weight_in == account.weight_out + account.weight_earlier
    assert account.rows_in == account.kept + account.merged == 500


def test_an_earlier_day_without_an_index_or_with_other_vectors_is_a_sentence(tmp_path):
    given = tables(50)
    for place in ("none", "other"):
        (tmp_path / place).mkdir()
    with pytest.raises(CurationError, match="no index of its survivors"):
        run(given, tmp_path, **earlier_day(given, tmp_path / "none", index="never"))
    with pytest.raises(CurationError, match="have 8 numbers, these 16"):
        run(given, tmp_path, **earlier_day(tables(50, d=8), tmp_path / "other"))
    ignored = run(given, tmp_path, params={"earlier": "ignore"}, earlier={"survivors": pl.DataFrame()})
    assert ignored.groups.equals(run(given, tmp_path).groups)
