"""The log of hidden intents."""

from __future__ import annotations

import polars as pl

from tests.benchmarks.evolution_clinc import log_of


def test_the_log_has_no_seed_and_nothing_out_of_scope():
    rows = pl.DataFrame(
        {
            "part": ["train", "train", "val", "oos_val", "oos_train"],
            "query": ["a seed", "balance please", "my balance", "sing", "dance"],
            "intent": ["balance", "balance", "balance", "oos", "oos"],
        }
    )
    assert log_of(rows, rows.head(1))["query"].to_list() == ["balance please", "my balance"]
