"""Logs of any size with planted duplicates: `corpus --family B --rows 2e5` makes one and tells what is in it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from tests.benchmarks.measure import ROOT, print_table

__all__ = ["Corpus", "main", "make_corpus", "sample"]

CACHE = ROOT / ".benchmarks"
SEED = 20260701


@dataclass(frozen=True)
class Corpus:
    """A log with its truth.

    Attributes:
        log: Directory of the Parquet files.
        truth: One row per raw row, see ``sample_data/README.md``; may be missing on disk.
    """

    log: Path
    truth: Path

    def rows(self) -> pl.DataFrame:
        """Raw rows and truth side by side."""
        raw = pl.concat([pl.read_parquet(path) for path in sorted(self.log.glob("*.parquet"))])
        return pl.concat([raw, pl.read_parquet(self.truth)], how="horizontal")

    def strings(self) -> pl.DataFrame:
        """Distinct normal forms as ingest makes them: ``norm``, ``text``, ``count``, ``duplicate_group``.

        By ``count`` descending, then ``norm``: the order of priority of a deduplicator.
        """
        from curation.algorithms.normalise import normalise

        rows = self.rows().filter(pl.col("broken").is_null())
        norm = pl.Series("norm", normalise(rows["query"].to_arrow().cast("large_string")))
        votes = rows.with_columns(norm).group_by("norm", "duplicate_group").agg(pl.len(), pl.col("query").min())
        best = votes.sort("norm", "len", "duplicate_group", descending=[False, True, False])
        strings = best.group_by("norm", maintain_order=True).agg(
            pl.col("query").first().alias("text"),
            pl.col("len").sum().alias("count"),
            pl.col("duplicate_group").first(),
        )
        return strings.sort("count", "norm", descending=[True, False])


def sample() -> Corpus:
    """The sample that the project ships."""
    return Corpus(ROOT / "sample_data/log", ROOT / "sample_data/truth.parquet")


def make_corpus(
    rows: int, family: str = "B", seed: int = SEED, *, truth: bool = True, directory: Path | None = None
) -> Corpus:
    """Make a log once and keep it for later calls.

    Args:
        rows: Raw rows.
        family: ``A`` has the words and noise of the sample, ``B`` others that nothing was tuned on.
        seed: Of the generator.
        truth: Whether the truth is made too (some 10 µs a row more).
        directory: Where it goes; a folder for the repository's benchmarks when not given.
    """
    directory = directory or CACHE / f"log-{family}-{rows}-{seed}"
    corpus = Corpus(directory / "log", directory / "truth.parquet")
    done = directory / ("done" if truth else "done-log")
    if not done.exists():
        script = [sys.executable, str(ROOT / "sample_data/make_log.py"), "--rows", str(rows), "--family", family]
        script += ["--seed", str(seed), "--out", str(directory), *([] if truth else ["--no-truth"])]
        subprocess.run(script, check=True, stdout=subprocess.DEVNULL)
        done.touch()
    return corpus


def main(arguments: list[str] | None = None) -> int:
    """Make a corpus and print what is in it."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks corpus", description=__doc__)
    parser.add_argument("--rows", type=float, default=200_000)
    parser.add_argument("--family", choices=["A", "B"], default="B")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--dir", type=Path, help="where it goes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    corpus = make_corpus(int(options.rows), options.family, options.seed, directory=options.dir)
    strings, rows = corpus.strings(), corpus.rows()
    table: list[list[object]] = [
        ["raw rows", rows.height],
        ["broken rows", rows["broken"].count()],
        ["distinct strings", rows["query"].n_unique()],
        ["distinct normal forms", strings.height],
        ["said once", (strings["count"] == 1).sum()],
        ["duplicate groups", strings["duplicate_group"].n_unique()],
        ["planted removals", strings.height - strings["duplicate_group"].n_unique()],
    ]
    print_table(["what", "rows"], table, as_json=options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
