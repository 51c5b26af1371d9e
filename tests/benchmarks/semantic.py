"""The semantic level in one bucket: cost by size, and its removals against exact ones.

``python -m tests.benchmarks semantic --rows 1e5 --rows 1e6 [--method faiss-ivf] [--workspace out]``
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from tests.benchmarks.measure import print_table, spend
from tests.benchmarks.vectors import real_vectors, synthetic_vectors

__all__ = ["main", "removal_recall"]

THRESHOLD = 0.92


def _removed(vectors: np.ndarray, method: str) -> np.ndarray:
    from curation.algorithms.semantic import semantic_groups

    order = np.arange(len(vectors))
    buckets = np.zeros(len(vectors), np.int32)
    representative, _ = semantic_groups(
        vectors, order, buckets, threshold=THRESHOLD, method=method, seed=1, workers=2
    )
    return representative != order


def removal_recall(vectors: np.ndarray) -> tuple[float, int, int]:
    """(share of the exact removals that the projections make, exact removals, removals that exact does not make)."""
    exact, ours = _removed(vectors, "products"), _removed(vectors, "projections")
    return float((exact & ours).sum() / max(exact.sum(), 1)), int(exact.sum()), int((ours & ~exact).sum())


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks semantic", description=__doc__)
    parser.add_argument("--rows", type=float, action="append", help="size of the bucket; may be repeated")
    parser.add_argument("--dim", type=int, default=256)
    methods = ["projections", "products", "faiss", "faiss-ivf"]
    parser.add_argument("--method", choices=methods, action="append", help="may be repeated; projections by default")
    parser.add_argument("--workspace", type=Path, help="take real vectors for the comparison with exact too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    table = []
    for method in options.method or methods[:1]:
        _removed(synthetic_vectors(5_000, options.dim), method)  # compile
        for rows in options.rows or [1e5]:
            vectors = synthetic_vectors(int(rows), options.dim)
            with spend() as spent:
                removed = _removed(vectors, method)
            cost = spent.cost
            table.append([method, int(rows), cost.cpu, cost.wall, cost.memory / 1e9, int(removed.sum())])
    print_table(["method", "rows", "CPU s", "wall s", "peak GB so far", "removed"], table, options.json)
    samples = {"synthetic": synthetic_vectors(50_000, options.dim, seed=3)}
    if options.workspace:
        samples["real"] = real_vectors(options.workspace, 50_000)
    found = []
    for name, vectors in samples.items():
        recall, exact, excess = removal_recall(vectors)
        found.append([name, len(vectors), f"{recall:.5f}", exact, excess])
    print_table(["sample", "rows", "recall of exact removals", "exact removals", "in excess"], found, options.json)


if __name__ == "__main__":
    main()
