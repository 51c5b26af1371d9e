"""The lexical level against its peers, in one alternated run: ``python -m tests.benchmarks lexical --rows 1e6``.

All tools get the distinct normal forms of the same log in the same order (see ``peer_worker.py``), each in a process
of its own. ``--peers-python`` names the interpreter of an environment with rensa, datasketch, datatrove, text-dedup
and ``xxhash<4`` (datatrove hashes strings, which xxhash 4 refuses); a tool that is not there is left out and named.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from tests.benchmarks.measure import ROOT, print_table, run_process
from tests.benchmarks.peer_worker import TOOLS

__all__ = ["exact_pairs", "main", "pair_recall", "rule_recall"]

WORKER = Path(__file__).with_name("peer_worker.py")


def distinct_norms(rows: int, family: str, place: Path) -> pl.DataFrame:
    """Distinct normal forms of a generated log with their counts, in the lexical level's order of priority."""
    from curation.engine.recipe import Recipe
    from curation.engine.session import Session
    from curation.engine.workspace import Workspace
    from curation.stages.ingest import STAGE

    stages = {STAGE.name: STAGE}
    make = [sys.executable, "sample_data/make_log.py", "--rows", str(rows), "--family", family, "--no-truth"]
    run_process([*make, "--out", str(place / "log")])
    recipe = Recipe.from_dict(
        {"log": {"path": str(place / "log" / "log"), "text": "query"}}, root=place / "work", stages=stages
    )
    with Session(recipe, place / "work", stages=stages) as session:
        session.run()
    queries = Workspace(place / "work").table("queries").select("query_id", "norm", "count", "n_chars")
    return queries.sort(["count", "n_chars", "query_id"], descending=[True, False, False]).collect()


def exact_pairs(norms: list[str], threshold: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pairs of texts whose shingle sets are at least ``threshold`` similar, by sparse products: an exact join.

    Returns:
        Indices a < b and the Jaccard similarity of each pair.
    """
    from scipy.sparse import csr_array

    from curation.algorithms.shingles import shingles

    sets = shingles(pa.array(norms, pa.large_string()))
    values, offsets = np.asarray(sets[0]), np.asarray(sets[1])
    _, columns = np.unique(values, return_inverse=True)
    matrix = csr_array((np.ones(len(columns), np.int32), columns, offsets), shape=(len(norms), columns.max() + 1))
    sizes, found = np.diff(offsets), []
    for start in range(0, len(norms), 512):
        common = (matrix[start : start + 512] @ matrix.T).tocoo()
        a, b = common.row + start, common.col
        similarity = common.data / (sizes[a] + sizes[b] - common.data)
        good = (a < b) & (similarity >= threshold)
        found.append((a[good], b[good], similarity[good]))
    a, b, s = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return a, b, s


def pair_recall(norms: list[str], threshold: float, bands: tuple[int, int] | None = None) -> tuple[float, int]:
    """Share of the exactly joined pairs that meet in at least one band, and the number of those pairs."""
    from curation.algorithms.lexical import PERMUTATIONS, RECALL
    from curation.algorithms.minhash import band_keys, choose_bands
    from curation.algorithms.shingles import shingles

    a, b, _ = exact_pairs(norms, threshold)
    sets = shingles(pa.array(norms, pa.large_string()))
    keys = band_keys(sets, *(bands or choose_bands(threshold, PERMUTATIONS, RECALL)))
    return float((keys[a] == keys[b]).any(axis=1).mean()) if len(a) else 1.0, len(a)


def rule_recall(norms: list[str], threshold: float) -> tuple[float, int]:
    """Share of the exactly joined pairs alike by the edit rule that have a key in common, and their number."""
    from curation.algorithms.digits import number_hashes
    from curation.algorithms.edit import alike_texts, make_rule
    from curation.algorithms.texts import read_texts

    a, b, _ = exact_pairs(norms, threshold)
    array, rule = pa.array(norms, pa.large_string()), make_rule(2)
    numbers = number_hashes(array)
    same = numbers[a] == numbers[b]
    pairs = zip(a[same].tolist(), b[same].tolist(), strict=True)
    alike = [(left, right) for left, right in pairs if alike_texts(norms[left], norms[right], rule)]
    _, keys, starts = read_texts(array, rule)
    sets = [set(keys[begin:end].tolist()) for begin, end in pairwise(starts.tolist())]
    found = sum(bool(sets[left] & sets[right]) for left, right in alike)
    return found / len(alike) if alike else 1.0, len(alike)


def removals_without_reason(norms: list[str], threshold: float) -> int:
    """Rows removed at ``threshold`` (Jaccard alone) whose representative is not kept or not similar enough."""
    from curation.algorithms.lexical import lexical_groups

    size = len(norms)
    found = lexical_groups(
        pa.array(norms, pa.large_string()),
        np.arange(size, 0, -1),
        np.arange(size, dtype=np.uint64),
        jaccard=threshold,
        edits=None,
        digits="ignore",
    )
    removed = np.flatnonzero(found.representative != np.arange(size))
    a, b, _ = exact_pairs(norms, threshold)
    similar = set(zip(a.tolist(), b.tolist(), strict=True))
    kept = found.representative[found.representative[removed]] == found.representative[removed]
    pairs = (tuple(sorted((int(row), int(found.representative[row])))) for row in removed)
    near = np.array([pair in similar for pair in pairs], dtype=bool)
    return int((~(kept & near)).sum())


def _runs(tool: str, python: str, strings: Path, target: Path) -> dict[str, float] | None:
    command = [python, str(WORKER), tool, str(strings), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if done.returncode or line is None:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        print(f"{tool} is left out: {reason}", file=sys.stderr)
        return None
    return json.loads(line.removeprefix("RESULT "))


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks lexical", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=1e6, help="raw rows")
    parser.add_argument("--family", default="A", choices=["A", "B"])
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=2, help="alternated rounds; slow peers run once")
    parser.add_argument("--tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        frame = distinct_norms(int(options.rows), options.family, place)
        strings = place / "norms.parquet"
        frame.select("norm").write_parquet(strings)
        slow = {"rensa-verified", "datasketch-loop", "datasketch-batch", "text-dedup", "datatrove"}
        results: dict[str, list[dict[str, float]]] = {}
        for number in range(options.rounds):
            for tool in options.tools:
                if number and tool in slow:
                    continue
                python = sys.executable if tool.startswith("curation") else options.peers_python
                if (number == 0 or tool in results) and (one := _runs(tool, python, strings, place / "out.npz")):
                    results.setdefault(tool, []).append(one)
        ours = statistics.median(one["cpu"] for one in results["curation"])
        table = []
        for tool, runs in results.items():
            cpu = statistics.median(one["cpu"] for one in runs)
            rows = runs[0]["rows"]
            table.append(
                [
                    tool,
                    int(rows),
                    1e6 * cpu / rows,
                    cpu / ours,
                    max(one["memory"] for one in runs) / 1e9,
                    int(rows - runs[0]["kept"]),
                ]
            )
        headings = ["tool", "distinct rows", "CPU µs/row", "times ours", "peak GB", "rows removed"]
        print_table(headings, table, options.json)
        sample = frame["norm"].gather_every(max(1, frame.height // 20_000)).head(20_000).to_list()
        for threshold in (0.55, 0.7):
            recall, pairs = pair_recall(sample, threshold)
            print(
                f"pair recall at Jaccard {threshold}: {recall:.4f} of {pairs:,} pairs of an exact join of 20,000 rows"
            )
        recall, pairs = rule_recall(sample, 0.55)
        print(f"recall of the default rule's candidates: {recall:.4f} of {pairs:,} pairs that it finds alike")
        print(f"removals without a kept row at least .7 similar: {removals_without_reason(sample, 0.7)}")


if __name__ == "__main__":
    main()
