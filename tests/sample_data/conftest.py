"""The generator is a script's own package: its folder has to be on the path."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data"
sys.path.insert(0, str(SAMPLE))


@pytest.fixture(scope="session")
def log() -> pl.DataFrame:
    """The committed log with its truth, side by side."""
    files = sorted((SAMPLE / "log").glob("*.parquet"))
    raw = pl.concat([pl.read_parquet(path) for path in files])
    return pl.concat([raw, pl.read_parquet(SAMPLE / "truth.parquet")], how="horizontal")


@pytest.fixture(scope="session")
def queries(log: pl.DataFrame) -> pl.DataFrame:
    """The rows that are queries."""
    return log.filter(pl.col("broken").is_null())
