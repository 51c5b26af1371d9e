"""Makes the sample log and its hidden truth: ``python sample_data/make_log.py [--rows N] [--out DIR]``.

The same rows, family and seed give the same bytes (with the same pyarrow and numpy). What is in the files is told in
``README.md`` next to this script.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and generate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=_rows, default=200_000, help="raw rows (default 200000; 3e7 is understood)")
    parser.add_argument("--out", type=Path, default=HERE, help="directory for log/ and truth.parquet")
    parser.add_argument("--seed", type=int, default=20260701, help="seed of every random stream")
    parser.add_argument("--family", choices=["A", "B"], default="A", help="A: the map log; B: other words and noise")
    parser.add_argument("--no-truth", action="store_true", help="write the log alone (faster)")
    parser.add_argument("--processes", type=int, default=2, help="processes; they do not change the result")
    options = parser.parse_args(arguments)
    from logmaker.generate import generate

    start = time.perf_counter()
    try:
        generate(options.out, options.rows, options.family, options.seed, not options.no_truth, options.processes)
    except OSError as error:
        print(f"cannot write to {options.out}: {error.strerror or error}", file=sys.stderr)
        return 2
    seconds = time.perf_counter() - start
    print(f"{options.rows:,} rows in {options.out / 'log'}: {seconds:.1f} s, {options.rows / seconds:,.0f} rows/s")
    return 0


def _rows(text: str) -> int:
    try:
        rows = int(float(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of rows") from error
    if rows < 1:
        raise argparse.ArgumentTypeError("a log has at least 1 row")
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
