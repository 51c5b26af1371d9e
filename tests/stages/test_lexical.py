from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from curation.algorithms.normalise import normalise, query_ids
from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.workspace import Workspace
from curation.errors import CurationError
from curation.stages import ingest, lexical
from curation.stages.lexical import STAGE
from tests.algorithms.test_lexical import noisy_log
from tests.helpers import FakeContext


def queries(texts: list[str]) -> pl.DataFrame:
    """The columns of `queries` that the stage reads, for raw texts."""
    norms = normalise(pl.Series(texts, dtype=pl.String).to_arrow(compat_level=pl.CompatLevel.oldest()))
    counted = pl.DataFrame({"norm": pl.Series(norms)}).group_by("norm").agg(count=pl.len().cast(pl.Int64))
    ids = query_ids(counted["norm"].to_arrow(compat_level=pl.CompatLevel.oldest()))
    return counted.with_columns(query_id=pl.Series(ids, dtype=pl.UInt64)).sort("query_id")


def run(given: pl.DataFrame, tmp_path: Path, params: dict[str, Any] | None = None, **options: Any) -> SimpleNamespace:
    context = FakeContext(STAGE, {"queries": given}, params=params, scratch=tmp_path, **options).run()
    return SimpleNamespace(
        groups=context.out("lexical_groups"), accounts=context.accounts, metrics=context.metrics, made=context.tables
    )


def raw_log(size: int = 1500) -> list[str]:
    """A log in which the n-th text comes n % 5 + 1 times."""
    texts = noisy_log(9, size)
    return [text for number, text in enumerate(texts) for _ in range(number % 5 + 1)]


def test_t2_t4_repeated_rows_are_one_query_with_their_count(tmp_path):
    found = run(queries(["cat", "dog", "cat"] + ["打开空调"] * 200 + ["open the tv"] * 200), tmp_path)
    assert sorted(found.groups["group_count"]) == [1, 2, 200, 200]
    assert (found.groups["representative_id"] == found.groups["query_id"]).all()


def test_t9_the_table_names_a_kept_representative_and_the_weight_of_its_group(tmp_path):
    given = queries(raw_log())
    groups = run(given, tmp_path).groups
    assert groups["query_id"].to_list() == given["query_id"].to_list()
    kept = groups.filter(pl.col("query_id") == pl.col("representative_id"))
    assert set(groups["representative_id"]) == set(kept["query_id"])
    assert groups["similarity"].min() >= np.float32(0.55)
    weights = Counter[int]()
    for representative, count in zip(groups["representative_id"], given["count"], strict=True):
        weights[representative] += count
    assert groups["group_count"].to_list() == [weights[one] for one in groups["representative_id"]]
    assert kept.height < groups.height


def test_rows_and_weights_are_conserved(tmp_path):
    given = queries(raw_log())
    found = run(given, tmp_path)
    (account,) = found.accounts
    kept = found.groups.filter(pl.col("query_id") == pl.col("representative_id"))
    assert account.rows_in == given.height == account.kept + account.merged
    assert account.kept == kept.height
    assert account.weight_in == account.weight_out == given["count"].sum() == kept["group_count"].sum()
    assert found.metrics["candidate_pairs"] >= found.metrics["compared_pairs"] >= found.metrics["similar_pairs"]
    assert found.metrics["similar_pairs"] >= account.merged
    assert (
        found.metrics["groups"]
        == found.groups.filter(pl.col("query_id") != pl.col("representative_id"))["representative_id"].n_unique()
    )


def test_t10_threads_memory_and_part_sizes_change_nothing(tmp_path, monkeypatch):
    given = queries(raw_log())
    expected = run(given, tmp_path, workers=1).groups
    (tmp_path / "spill").mkdir()
    assert run(given, tmp_path / "spill", workers=3, memory=1000).groups.equals(expected)
    assert len(list((tmp_path / "spill").iterdir())) == 2
    monkeypatch.setattr(lexical, "ROWS_PER_PART", 400)
    parted = run(given, tmp_path)
    assert parted.groups.equals(expected)
    assert len(parted.made["lexical_groups"]) == len(parted.accounts) == -(-given.height // 400)


def test_t13_a_second_run_on_its_own_output_drops_nothing(tmp_path):
    given = queries(raw_log())
    groups = run(given, tmp_path).groups
    kept = given.filter(groups["query_id"] == groups["representative_id"])
    again = run(kept, tmp_path).groups
    assert (again["query_id"] == again["representative_id"]).all()
    assert again.columns == groups.columns


@pytest.mark.parametrize(
    ("params", "survivors"),
    [
        ({}, 4),
        ({"edits": None, "jaccard": 0.45}, 3),
        ({"digits": "ignore"}, 3),
        ({"courtesy": ["kindly"]}, 3),
        ({"edits": 0, "courtesy": []}, 5),
    ],
)
def test_parameters_reach_the_algorithm(tmp_path, params, survivors):
    texts = ["hotels in bremen", "hotels in bremenn", "taxi from gate 14", "taxi from gate 15"]
    texts += ["kindly hotels in bremen"]
    found = run(queries(texts), tmp_path, params)
    assert found.groups["representative_id"].n_unique() == survivors


def test_no_queries_give_an_empty_table(tmp_path):
    found = run(queries([]), tmp_path)
    assert found.groups.height == 0
    assert found.accounts[0].rows_in == found.accounts[0].weight_out == 0


def engine_run(rows: list[str], place: Path) -> Path:
    """Ingest and lexical in the real engine; the workspace."""
    (place / "log").mkdir(parents=True)
    middle = len(rows) // 3
    for number, part in enumerate((rows[:middle], rows[middle:])):
        pl.DataFrame({"query": part}).write_parquet(place / "log" / f"{number}.parquet")
    stages = {stage.name: stage for stage in (ingest.STAGE, STAGE)}
    recipe = Recipe.from_dict(
        {"log": {"path": str(place / "log"), "text": "query"}}, root=place / "work", stages=stages
    )
    with Session(recipe, place / "work", stages=stages) as session:
        session.run()
    return place / "work"


def test_t1_t10_through_the_engine_the_order_of_the_log_changes_nothing(tmp_path):
    rows = ["", *raw_log(400), "a", "关灯", "play"]
    one, other = (
        Workspace(engine_run(log, tmp_path / name)).table("lexical_groups").collect()
        for name, log in (("forth", rows), ("back", rows[::-1]))
    )
    assert one.equals(other)
    short = query_ids(pl.Series(["a", "关灯", "play"]).to_arrow(compat_level=pl.CompatLevel.oldest()))
    assert (
        one.filter(pl.col("query_id").is_in(short.tolist()), pl.col("query_id") == pl.col("representative_id")).height
        == 3
    )


def test_importing_the_stage_compiles_and_loads_no_kernels():
    code = "import sys, curation.stages.lexical; print('numba' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == "False"


def days(tmp_path: Path, *texts: list[str], **options: Any) -> list[SimpleNamespace]:
    """Outcome of each day, the one before it as its earlier workspace."""
    found: list[SimpleNamespace] = []
    for one in texts:
        earlier = {"lexical_index": pl.concat(found[-1].made["lexical_index"])} if found else None
        found.append(run(queries(one), tmp_path, earlier=earlier, **options))
    return found


def id_of(text: str) -> int:
    return queries([text])["query_id"].item()


def test_t14_a_later_day_goes_to_the_representatives_of_the_earlier_one(tmp_path):
    first, second = days(
        tmp_path,
        ["navigate to the airport"] * 3 + ["navigate to the airprot", "weather tomorrow"],
        ["navigate to the airprot", "navigate to the airpotr", "weather tomorrow", "play some jazz", "play some jaz"],
    )
    airport, weather, jaz = map(id_of, ("navigate to the airport", "weather tomorrow", "play some jaz"))
    assert (
        dict(first.groups.select("query_id", "representative_id").iter_rows())[id_of("navigate to the airprot")]
        == airport
    )
    rows = {row["query_id"]: row for row in second.groups.iter_rows(named=True)}
    repeated, near = rows[id_of("navigate to the airprot")], rows[id_of("navigate to the airpotr")]
    assert repeated["representative_id"] == near["representative_id"] == airport
    assert min(repeated["similarity"], near["similarity"]) >= np.float32(0.55)
    assert rows[weather]["representative_id"] == weather
    assert [row["query_id"] for row in rows.values() if row["kept"]] == [jaz]
    (account,) = second.accounts
    assert (account.rows_in, account.kept, account.merged) == (5, 1, 4)
    assert (account.weight_in, account.weight_out, account.weight_earlier) == (5, 2, 3)


def test_a_day_without_anything_new_keeps_nothing_and_leaves_the_index_as_it_was(tmp_path):
    log = raw_log()
    first, second = days(tmp_path, log, log)
    assert not second.groups["kept"].any()
    pairs = ["query_id", "representative_id", "similarity"]
    assert second.groups.select(pairs).equals(first.groups.select(pairs))
    assert pl.concat(second.made["lexical_index"]).equals(pl.concat(first.made["lexical_index"]))


def test_every_row_of_a_later_day_is_kept_or_similar_to_a_kept_one_of_some_day(tmp_path):
    log = raw_log(3000)
    third = len(log) // 3
    found = days(tmp_path, log[:third], log[third : 2 * third], log[2 * third :])
    index = pl.concat(found[-1].made["lexical_index"])
    kept = index.filter(pl.col("place").is_not_null())
    assert sorted(kept["place"]) == list(range(kept.height))
    assert set(index["representative_id"]) == set(kept["query_id"])
    assert set(index["query_id"]) == set().union(*(day.groups["query_id"] for day in found))
    assert sum(day.groups["kept"].sum() for day in found) == kept.height
    for day in found:
        (account,) = day.accounts
        assert account.weight_in == account.weight_out + account.weight_earlier
    # As many rows as in one go, but for near-duplicates whose favourite came on a later day.
    whole = run(queries(log), tmp_path).groups["kept"].sum()
    assert whole <= kept.height <= 1.02 * whole


def test_days_and_parts_give_the_same_bytes(tmp_path, monkeypatch):
    log = raw_log()
    whole = days(tmp_path, log[:900], log[900:])[1]
    monkeypatch.setattr(lexical, "ROWS_PER_PART", 300)
    parted = days(tmp_path, log[:900], log[900:], workers=1)[1]
    for table in ("lexical_groups", "lexical_index"):
        assert pl.concat(parted.made[table]).equals(pl.concat(whole.made[table]))


def test_bands_beside_the_edit_rule_are_a_sentence(tmp_path):
    (tmp_path / "recipe.yaml").write_text("log: {path: .}\nlexical: {bands: [16, 8]}\n")
    with pytest.raises(CurationError, match=r"line 2: .*bands are for `edits: null`"):
        Recipe.load(tmp_path)
