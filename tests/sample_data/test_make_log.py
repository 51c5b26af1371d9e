"""The script: the same bytes again, whatever the processes; other families; sentences for wrong calls."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import make_log
import polars as pl
import pytest
from logmaker.generate import generate, plan

SEED = 20260701
SAMPLE = Path(make_log.__file__).parent


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*.parquet"))}


def test_t10_same_settings_give_the_same_bytes_whatever_the_processes(tmp_path):
    for name, processes in (("one", 1), ("two", 2)):
        generate(tmp_path / name, 3000, "A", SEED, True, processes)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    generate(tmp_path / "other", 3000, "A", SEED + 1, True, 1)
    assert contents(tmp_path / "one") != contents(tmp_path / "other")


def test_committed_files_are_what_the_script_makes(tmp_path, log):
    assert make_log.main(["--out", str(tmp_path), "--no-truth", "--processes", "1"]) == 0
    made = pl.concat([pl.read_parquet(path) for path in sorted((tmp_path / "log").glob("*.parquet"))])
    assert made.equals(log.select(made.columns))
    assert not (tmp_path / "truth.parquet").exists()


def test_family_b_shares_no_wording_with_family_a(tmp_path):
    for family in "AB":
        generate(tmp_path / family, 4000, family, SEED, True, 1)
    said = {f: set(pl.read_parquet(tmp_path / f / "log/2026-07.parquet")["query"].drop_nulls()) for f in "AB"}
    assert {text for text in said["A"] & said["B"] if any(c.isalnum() for c in text)} == set()
    truth = pl.read_parquet(tmp_path / "B/truth.parquet").filter(pl.col("broken").is_null())
    assert truth["duplicate_group"].null_count() == 0
    assert truth.group_by("base").agg(pl.col("duplicate_group").n_unique())["duplicate_group"].max() == 1


def test_plan_splits_long_months_and_keeps_every_row():
    files = plan(30_000_000)
    assert sum(file.rows for file in files) == 30_000_000
    assert max(file.rows for file in files) <= 1_000_000
    assert all(a.end == b.start for a, b in pairwise(files))
    assert [file.name for file in plan(1)] == ["2026-07.parquet", "2026-08.parquet", "2026-09.parquet"]
    assert sum(file.rows for file in plan(1)) == 1


def test_wrong_calls_get_a_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit):
        make_log.main(["--rows", "many"])
    assert "is not a number of rows" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        make_log.main(["--rows", "0"])
    assert "at least 1 row" in capsys.readouterr().err
    occupied = tmp_path / "file"
    occupied.write_text("", encoding="utf-8")
    assert make_log.main(["--rows", "10", "--out", str(occupied)]) == 2
    assert "cannot write to" in capsys.readouterr().err
