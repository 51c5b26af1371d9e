from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import schemas
from curation.algorithms.vectors import to_grid
from curation.errors import CurationError
from curation.stages import semantic
from curation.stages.geometric import STAGE
from curation.stages.pool import PoolParams
from tests.algorithms.clouds import picks_by_definition, unit
from tests.helpers import FakeContext
from tests.stages.given import build, scored, tables


def synthetic(difficulties=(), rejected=0):
    schema = schemas.load("synthetic").schema
    rows = len(difficulties) + rejected
    frame = schema.create_empty().clear(rows)
    return frame.with_columns(
        verdict=pl.Series(["verified"] * len(difficulties) + ["rejected"] * rejected, dtype=pl.String),
        difficulty=pl.Series([*difficulties, *[3] * rejected], dtype=pl.Int8),
    )


def given_survivors(tmp_path, n=1200, seed=0):
    given = tables(n, seed=seed)
    context = FakeContext(semantic.STAGE, given, scratch=tmp_path, params={"threshold": 0.97}).run()
    groups = context.out("semantic_groups")
    survivors = groups.filter(pl.col("query_id") == pl.col("representative_id"))
    return {
        "semantic_groups": groups,
        "embeddings": given["embeddings"],
        "difficulty": scored(survivors, seed),
        "synthetic": synthetic(),
    }


def run(given, tmp_path, *, params=None, workers=2, memory=2 << 30, earlier=None, **pool):
    context = FakeContext(
        STAGE,
        given,
        scratch=tmp_path,
        params=params,
        workers=workers,
        memory=memory,
        earlier=earlier,
        shared={"pool": PoolParams(**{"tool_removed_share": 0.0, **pool})},
    ).run()
    return SimpleNamespace(
        selection=context.out("selection"),
        groups=context.out("geometric_groups"),
        account=context.accounts[0],
        metrics=context.metrics,
    )


def labelled(given):
    kept = given["semantic_groups"].filter(pl.col("query_id") == pl.col("representative_id"))
    return (
        given["difficulty"]
        .select("query_id", "difficulty")
        .join(kept.select("query_id", "bucket", "group_count"), on="query_id", maintain_order="left")
    )


def test_exactly_as_many_picks_as_the_pool_has_places(tmp_path):
    given = given_survivors(tmp_path)
    assert run(given, tmp_path, size=200).selection.height == 200
    # 10 % tool-removed and 30 synthetic rows leave 150 of 200.
    given["synthetic"] = synthetic([3] * 30, rejected=10)
    found = run(given, tmp_path, size=200, tool_removed_share=0.1)
    assert found.selection.height == 150 == found.metrics["asked"]
    assert found.metrics["shortfall"] == 0


def test_rows_and_weights_are_conserved(tmp_path):
    given = given_survivors(tmp_path)
    rows = labelled(given)
    found = run(given, tmp_path, size=200)
    account = found.account
    assert account.rows_in == rows.height == found.groups.height == account.kept + account.merged
    assert account.kept == 200
    assert account.weight_in == account.weight_out == rows["group_count"].sum()
    kept = found.groups.filter(pl.col("query_id") == pl.col("representative_id"))
    assert sorted(kept["query_id"]) == sorted(found.selection["query_id"])
    assert kept["group_count"].sum() == account.weight_in


def test_every_bucket_keeps_a_row_and_covers_its_own(tmp_path):
    given = given_survivors(tmp_path)
    rows = labelled(given)
    found = run(given, tmp_path, size=150)
    assert set(found.selection["bucket"]) == set(rows["bucket"])
    bucket = dict(rows.select("query_id", "bucket").iter_rows())
    pairs = found.groups.select("query_id", "representative_id").iter_rows()
    assert all(bucket[query] == bucket[representative] for query, representative in pairs)


def test_rows_are_covered_by_the_nearest_pick_of_their_bucket(tmp_path):
    given = given_survivors(tmp_path)
    rows = labelled(given)
    found = run(given, tmp_path, size=150)
    vectors = dict(zip(given["embeddings"]["query_id"], unit(given["embeddings"]["vector"].to_numpy()), strict=True))
    bucket = dict(rows.select("query_id", "bucket").iter_rows())
    picks = {name: frame["query_id"].to_list() for (name,), frame in found.selection.group_by("bucket")}
    chosen = set(found.selection["query_id"])
    for query, representative, similarity in found.groups.select(
        "query_id", "representative_id", "similarity"
    ).iter_rows():
        products = {pick: float(vectors[query] @ vectors[pick]) for pick in picks[bucket[query]]}
        if query in chosen:
            assert representative == query and similarity == 1
        else:
            assert products[representative] >= max(products.values()) - 5e-4
            assert similarity == pytest.approx(max(products[representative], 0), abs=1e-6)
    distance = np.sqrt(2 - 2 * found.groups["similarity"].to_numpy().astype(float))
    assert found.metrics["radius_max"] == pytest.approx(distance.max())
    assert found.metrics["radius_mean"] == pytest.approx(distance.mean())


def test_picks_of_a_cell_follow_the_definition_and_ranks_the_radius(tmp_path):
    given = given_survivors(tmp_path)
    rows = labelled(given)
    found = run(given, tmp_path, size=200)
    for (bucket, level), picks in found.selection.group_by("bucket", "difficulty"):
        cell = rows.filter((pl.col("bucket") == bucket) & (pl.col("difficulty") == level)).sort("query_id")
        vectors = cell.join(given["embeddings"], on="query_id", maintain_order="left")["vector"].to_numpy()
        rank = np.argsort(np.argsort(-cell["group_count"].to_numpy(), kind="stable"), kind="stable")
        expected = picks_by_definition(to_grid(vectors), picks.height, rank=rank)
        assert set(picks["query_id"]) == set(cell["query_id"].to_numpy()[expected].tolist())
    radius = found.selection.sort("rank")["radius"].to_numpy()
    assert found.selection["rank"].to_list() == list(range(1, 201))
    assert (np.diff(radius) <= 0).all()
    assert (radius == 2).sum() == found.metrics["cells"]


def test_difficulty_targets_are_those_of_the_whole_pool(tmp_path):
    given = given_survivors(tmp_path)
    given["synthetic"] = synthetic([5] * 20)
    shares = {-1: 0.2, 0: 0.1, 1: 0.2, 2: 0.2, 3: 0.1, 4: 0.1, 5: 0.1}
    found = run(given, tmp_path, size=200, difficulty=shares, tool_removed_share=0.1, min_per_bucket=0)
    counts = dict(found.selection.group_by("difficulty").len().iter_rows())
    # Of 200: 40 at -1 less 20 tool-removed; all 20 at 5 are synthetic.
    assert counts == {-1: 20, 0: 20, 1: 40, 2: 40, 3: 20, 4: 20}


def test_negatives_are_balanced_over_level_1(tmp_path):
    given = given_survivors(tmp_path, n=3000)
    found = run(given, tmp_path, size=300, difficulty={-1: 0.2, 1: 0.8}, min_per_bucket=0)
    negatives = found.selection.filter(pl.col("difficulty") == -1)
    available = labelled(given).filter(pl.col("difficulty") == -1)
    level1 = pl.col("bucket").str.extract(r"^([a-z]+)")
    have = dict(available.group_by(level1).len().iter_rows())
    took = dict(negatives.group_by(level1).len().iter_rows())
    short = {name for name, count in have.items() if took.get(name, 0) == count}
    full = [took[name] for name in have if name not in short]
    assert sum(took.values()) == 60
    assert max(full) - min(full) <= 1 and all(took.get(name, 0) <= min(full) for name in short)


def test_with_too_few_survivors_all_are_picked_and_the_shortfall_is_told(tmp_path):
    given = given_survivors(tmp_path, n=200)
    found = run(given, tmp_path, size=10_000)
    assert found.selection.height == found.groups.height == given["difficulty"].height
    assert found.metrics["shortfall"] == 10_000 - found.selection.height
    assert found.account.merged == 0
    assert found.metrics["radius_max"] == 0


@pytest.mark.parametrize(("size", "level"), [(200, 0), (6, 1), (4, 2), (2, 3)])
def test_more_buckets_than_places_are_taken_together(tmp_path, size, level):
    given = given_survivors(tmp_path)
    rows = labelled(given)
    found = run(given, tmp_path, size=size)
    assert found.metrics["coarsened"] == level
    assert found.selection.height == size
    assert found.groups["group_count"].min() > 0
    total = found.groups.filter(pl.col("query_id") == pl.col("representative_id"))["group_count"].sum()
    assert total == rows["group_count"].sum()
    names = [pl.col("bucket"), pl.col("bucket").str.extract(r"^([^|]*)"), pl.col("bucket").str.extract(r"^([a-z]+)")]
    if level < 3:
        unit_name = names[level]
        assert set(found.selection.select(unit_name).to_series()) == set(rows.select(unit_name).to_series())
        # A row is covered from its own unit, and from its own bucket where that has a pick.
        names = dict(rows.select("query_id", unit_name.alias("unit")).iter_rows())
        bucket = dict(rows.select("query_id", "bucket").iter_rows())
        with_picks = set(found.selection["bucket"])
        for query, representative in found.groups.select("query_id", "representative_id").iter_rows():
            assert names[query] == names[representative]
            assert bucket[query] == bucket[representative] or bucket[query] not in with_picks


def test_without_a_minimum_a_bucket_may_go_empty_but_its_rows_are_covered(tmp_path):
    given = given_survivors(tmp_path)
    found = run(given, tmp_path, size=12, min_per_bucket=0, bucket_shares="proportional")
    assert found.metrics["coarsened"] == 0
    assert set(found.selection["bucket"]) < set(labelled(given)["bucket"])
    total = found.groups.filter(pl.col("query_id") == pl.col("representative_id"))["group_count"].sum()
    assert total == labelled(given)["group_count"].sum()


def test_s2_no_survivors(tmp_path):
    given = given_survivors(tmp_path, n=40)
    given["semantic_groups"], given["difficulty"] = given["semantic_groups"].clear(), given["difficulty"].clear()
    found = run(given, tmp_path, size=10)
    assert found.selection.height == found.groups.height == found.account.rows_in == 0
    assert found.metrics["shortfall"] == 10
    assert not np.isnan(list(found.metrics.values())).any()


def test_t10_s5_memory_and_threads_do_not_show(tmp_path):
    given = given_survivors(tmp_path)
    whole = run(given, tmp_path, size=200)
    for memory in (1 << 18, 1 << 13):
        folder = tmp_path / str(memory)
        folder.mkdir()
        spilled = run(given, folder, size=200, memory=memory, workers=1)
        assert list(folder.glob("*.vectors"))
        assert spilled.selection.equals(whole.selection) and spilled.groups.equals(whole.groups)
        assert spilled.metrics == whole.metrics


def test_large_cells_are_partitioned(tmp_path):
    given = given_survivors(tmp_path)
    found = run(given, tmp_path, size=200, params={"exact_rows": 10})
    assert found.selection.height == 200
    assert found.metrics["radius_max"] < 1.2 * run(given, tmp_path, size=200).metrics["radius_max"]


def test_the_selection_covers_better_than_chance(tmp_path):
    given = given_survivors(tmp_path)
    given["semantic_groups"] = given["semantic_groups"].with_columns(bucket=pl.lit("other|"))
    given["difficulty"] = given["difficulty"].with_columns(difficulty=pl.lit(1, pl.Int8))
    found = run(given, tmp_path, size=150).metrics
    assert found["radius_max"] == pytest.approx(found["selected_radius_max"], abs=1e-3)
    assert found["selected_radius_max"] < found["stratified_radius_max"]
    assert found["selected_radius_max"] < found["random_radius_max"]


def test_a_pool_full_of_synthetic_rows_is_a_sentence(tmp_path):
    given = given_survivors(tmp_path, n=60)
    given["synthetic"] = synthetic([2] * 30)
    with pytest.raises(CurationError, match=r"no place for observed queries next to 20 synthetic"):
        run(given, tmp_path, size=20)


def test_difficulty_of_strangers_is_a_sentence(tmp_path):
    given = given_survivors(tmp_path, n=60)
    given["semantic_groups"] = given["semantic_groups"].head(20)
    with pytest.raises(CurationError, match="not representatives of semantic_groups"):
        run(given, tmp_path, size=20)


def test_t10_same_bytes_from_the_engine_whatever_workers_and_memory(tmp_path):
    given = tables(1500, failed=15)
    one = build(tmp_path / "a", given, workers=1, pool={"size": 120})
    two = build(tmp_path / "b", given, workers=3, memory_gb=0.0001, pool={"size": 120})
    assert one.hashes == two.hashes
    assert len({table for table, _ in one.hashes}) >= 3
    ledger = {row["stage"]: row for row in one.ledger.iter_rows(named=True)}
    assert ledger["semantic"]["rows_in"] == 1485 and ledger["geometric"]["kept"] == one.selection.height == 118
    assert ledger["semantic"]["weight_in"] == ledger["geometric"]["weight_out"]


@pytest.mark.parametrize("params", [{}, {"exact_rows": 50}])
def test_rows_near_an_earlier_selection_are_picked_late(tmp_path, params):
    given = given_survivors(tmp_path)
    first = run(given, tmp_path, params=params, size=100)
    earlier = {"selection": first.selection, "embeddings": given["embeddings"]}
    second = run(given, tmp_path, params=params, size=100, earlier=earlier)
    assert second.selection.height == 100
    # The same log again: what was picked then is at distance 0 from a pick, and all else comes first.
    both = set(first.selection["query_id"]) & set(second.selection["query_id"])
    alone = first.groups.join(given["difficulty"], on="query_id").join(given["semantic_groups"], on="query_id")
    sizes = alone.group_by("bucket", "difficulty").len()
    assert len(both) <= (sizes["len"] == 1).sum()
    again = run(given, tmp_path, params=params, size=100, earlier=earlier, workers=1)
    assert again.selection.equals(second.selection)


def test_an_earlier_selection_of_another_encoder_or_another_bucket_does_not_count(tmp_path):
    given = given_survivors(tmp_path)
    first = run(given, tmp_path, size=100)
    wider = given["embeddings"].with_columns(
        vector=pl.Series(np.ones((given["embeddings"].height, 3), np.float32), dtype=pl.Array(pl.Float32, 3))
    )
    elsewhere = first.selection.with_columns(bucket=pl.lit("nowhere|"))
    for earlier in (
        {"selection": first.selection, "embeddings": wider},
        {"selection": elsewhere, "embeddings": given["embeddings"]},
    ):
        assert run(given, tmp_path, size=100, earlier=earlier).selection.equals(first.selection)
