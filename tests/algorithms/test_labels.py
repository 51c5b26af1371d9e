from __future__ import annotations

import polars as pl

from curation.algorithms.labels import bucket_name


def test_secondaries_are_sorted_and_may_be_absent():
    frame = pl.DataFrame({"p": ["a.b", "c"], "s": [["z", "y"], []]}, schema_overrides={"s": pl.List(pl.String)})
    assert frame.select(bucket_name(pl.col("p"), pl.col("s")))["p"].to_list() == ["a.b|y+z", "c|"]
