"""K-Center-Greedy: cost of the partitioned form, and its radius against the exact one.

``python -m tests.benchmarks geometric [--large] [--workspace out]``
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from tests.benchmarks.measure import print_table, spend
from tests.benchmarks.vectors import real_vectors, synthetic_vectors

__all__ = ["main", "radius"]


def radius(vectors: np.ndarray, picks: np.ndarray) -> tuple[float, float]:
    """Largest and mean Euclidean distance of any row to its nearest pick."""
    from curation.algorithms.coverage import nearest_pick, radii

    distance = radii(nearest_pick(vectors, picks)[1])
    return float(distance.max()), float(distance.mean())


def _pick(vectors: np.ndarray, k: int, exact_rows: int) -> np.ndarray:
    from curation.algorithms.partition import partitioned_kcenter

    return np.asarray(partitioned_kcenter(vectors, k, seed=1, workers=2, exact_rows=exact_rows)[0])


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks geometric", description=__doc__)
    parser.add_argument("--rows", type=float, default=2e5)
    parser.add_argument("--picks", type=float, default=2e4)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--large", action="store_true", help="also 1,000,000 rows to 100,000 picks")
    parser.add_argument("--workspace", type=Path, help="compare on its real vectors too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    _pick(synthetic_vectors(3_000, options.dim), 300, 1_000)  # compile
    rows, picks = int(options.rows), int(options.picks)
    samples = {"synthetic": synthetic_vectors(rows, options.dim)}
    if options.workspace:
        samples["real"] = real_vectors(options.workspace, rows)
    table = []
    for name, vectors in samples.items():
        k = min(picks, len(vectors) // 10)
        found = {}
        for form, exact_rows in (("exact", len(vectors)), ("partitioned", len(vectors) // 10)):
            with spend() as spent:
                chosen = _pick(vectors, k, exact_rows)
            found[form] = radius(vectors, chosen)
            table.append(
                [name, form, len(vectors), k, spent.cost.cpu, *found[form], found[form][0] / found["exact"][0]]
            )
    if options.large:
        vectors = synthetic_vectors(1_000_000, options.dim)
        with spend() as spent:
            chosen = _pick(vectors, 100_000, 200_000)
        table.append(["synthetic", "partitioned", len(vectors), len(chosen), spent.cost.cpu, 0.0, 0.0, 0.0])
    headings = ["vectors", "form", "rows", "picks", "CPU s", "radius max", "radius mean", "of exact"]
    print_table(headings, table, options.json)


if __name__ == "__main__":
    main()
