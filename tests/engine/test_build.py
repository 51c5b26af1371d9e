from __future__ import annotations

import dataclasses

import polars as pl
import pytest

import schemas
from curation.engine.build import BuildContext, InputTable
from curation.engine.stage import Account, Params, Stage
from curation.engine.store import Store
from curation.errors import CurationError

STAGE = Stage("toy", lambda ctx: None, Params, reads=("queries",), makes=("occurrences", "lexical_groups"))


@pytest.fixture
def context(tmp_path):
    store = Store(tmp_path)
    (tmp_path / "_tmp").mkdir()
    empty = InputTable((), 0, "x")
    return BuildContext(
        STAGE, "k", store, params=None, shared={}, seed=1, workers=1, memory=1, inputs={"queries": empty}
    )


def occurrences(*rows):
    schema = {"file": pl.String, "row": pl.UInt64, "query_id": pl.UInt64}
    return pl.DataFrame([(f, r, 1) for f, r in rows], schema=schema, orient="row")


def test_rows_are_written_in_the_contracts_order(context):
    with context.part() as part:
        part.write("occurrences", occurrences(("b", 0), ("a", 2), ("a", 1)))
    context.finish()
    frame = pl.read_parquet(context.build / "data" / "occurrences" / "0000.parquet")
    assert frame.select("file", "row").rows() == [("a", 1), ("a", 2), ("b", 0)]


def test_a_row_that_breaks_the_contract_stops_the_stage_and_is_named(context):
    frame = pl.DataFrame(
        {"query_id": [7], "representative_id": [7], "similarity": [0.5], "group_count": [1], "kept": [True]},
        schema={
            "query_id": pl.UInt64,
            "representative_id": pl.UInt64,
            "similarity": pl.Float32,
            "group_count": pl.Int64,
            "kept": pl.Boolean,
        },
    )
    with pytest.raises(CurationError, match="kept_is_itself") as caught, context.part() as part:
        part.write("lexical_groups", frame)
    assert "'query_id': 7" in caught.value.hint
    assert not context.done_marker("0000").exists()


def test_a_contract_may_send_a_failing_row_to_rejects_instead(context, monkeypatch):
    contract = dataclasses.replace(schemas.load("lexical_groups"), on_invalid="reject")
    monkeypatch.setitem(schemas.CONTRACTS, "lexical_groups", contract)
    types = dict(schemas.load("lexical_groups").schema.create_empty().schema)
    frame = pl.DataFrame([(7, 7, 0.5, 1, True), (8, 8, 1.0, 1, True)], schema=types, orient="row")
    with context.part() as part:
        part.write("lexical_groups", frame)
        part.account(Account(rows_in=2, kept=1, weight_in=2, weight_out=1))
    assert context.finish()["account"]["rejected"] == 1
    data = context.build / "data"
    assert pl.read_parquet(data / "lexical_groups" / "0000.parquet")["query_id"].to_list() == [8]
    refused = pl.read_parquet(data / "_rejects" / "0000.parquet").row(0, named=True)
    assert (refused["query_id"], refused["reason"]) == (7, "contract_kept_is_itself")


def test_the_same_key_in_two_parts_is_found(context):
    for name in ("0000", "0001"):
        with context.part(name) as part:
            part.write("occurrences", occurrences(("a", 1)))
    with pytest.raises(CurationError, match="two rows of occurrences with the key"):
        context.finish()


def test_wrong_types_missing_columns_and_undeclared_tables_are_told(context):
    with pytest.raises(CurationError, match="without the column 'query_id'"), context.part() as part:
        part.write("occurrences", occurrences(("a", 1)).drop("query_id"))
    with pytest.raises(CurationError, match="wrong column types"), context.part() as part:
        part.write("occurrences", occurrences(("a", 1)).with_columns(pl.col("row").cast(pl.Int8)))
    with pytest.raises(CurationError, match="does not declare to make"), context.part() as part:
        part.write("queries", occurrences(("a", 1)))
    with pytest.raises(CurationError, match="does not declare to read"):
        context.read("seeds")


def test_rejects_are_counted_and_cut(context):
    with context.part() as part:
        part.reject(
            pl.DataFrame({"reason": ["empty"], "file": ["a"], "row": [3], "text": ["x" * 5000], "weight": [4]})
        )
        part.account(Account(rows_in=1, kept=0, weight_in=4))
    built = context.finish()
    assert built["account"]["rejected"] == 1
    assert built["account"]["weight_rejected"] == 4
    frame = pl.read_parquet(context.build / "data" / "_rejects" / "0000.parquet")
    assert frame["text"].str.len_chars().item() == 1000
    assert frame["stage"].item() == "toy"


def test_a_table_without_rows_still_has_its_columns(context):
    with context.part():
        pass
    context.finish()
    frame = pl.read_parquet(context.build / "data" / "lexical_groups" / "0000.parquet")
    assert frame.columns == ["query_id", "representative_id", "similarity", "group_count", "kept"]


def test_accounts_of_parts_add_up_and_metrics_are_unique(context):
    for name in ("0000", "0001"):
        with context.part(name) as part:
            part.account(Account(rows_in=2, kept=1, merged=1, weight_in=5, weight_out=5))
            part.metric("pairs", 1, "pairs")
    with pytest.raises(CurationError, match="reported the metric 'pairs' twice"):
        context.finish()


def test_an_empty_input_has_its_columns(context):
    assert "norm" in context.read("queries").columns
