"""Every contract is complete, and dataframely can make rows that keep it."""

from __future__ import annotations

import polars as pl
import pytest

import schemas

NAMES = [contract.name for contract in schemas.TABLES]


@pytest.mark.parametrize("name", NAMES)
def test_every_column_and_table_says_what_it_means(name):
    contract = schemas.load(name)
    assert contract.description.endswith(".")
    for column, definition in contract.columns().items():
        assert definition.description, column
    assert set(contract.sort_by) <= set(contract.columns())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "embeddings"])
def test_an_empty_table_keeps_its_contract(name):
    schema = schemas.load(name).schema
    assert schema.validate(schema.create_empty()).height == 0


def test_rules_find_the_row_that_breaks_them():
    ledger = schemas.load("ledger").schema
    row = dict.fromkeys(ledger.column_names(), 0) | {"stage": "x", "after": None}
    frame = pl.DataFrame(
        [row, row | {"position": 1, "stage": "y", "rows_in": 1}], schema=ledger.create_empty().schema
    )
    good, failures = ledger.filter(frame)
    assert good["stage"].to_list() == ["x"]
    assert failures.counts() == {"rows_balance": 1}


def test_unknown_table_names_what_there_is():
    with pytest.raises(KeyError, match="queries"):
        schemas.load("querys")
