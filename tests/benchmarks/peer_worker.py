"""One near-duplicate tool on one file of distinct strings, in a process of its own.

``python peer_worker.py TOOL STRINGS.parquet OUT.npz``; needs only the tool it is asked for, so that it can run in an
environment where the peers' pins clash with ours. Every tool gets character 3-grams of the same strings in the same
(priority) order, 128 permutations in 16 bands of 8, threshold .7, as far as it lets itself be told.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

THRESHOLD, PERMUTATIONS, BANDS, ROWS, GRAM = 0.7, 128, 16, 8, 3


def grams(text: str) -> list[str]:
    """Distinct character 3-grams; a shorter text is one whole gram."""
    return sorted({text[i : i + GRAM] for i in range(max(1, len(text) - GRAM + 1))})


class Groups:
    """Union-find over row numbers; the smallest number stands for its group."""

    def __init__(self, size: int) -> None:
        self.parent = list(range(size))

    def find(self, x: int) -> int:
        """The row that stands for ``x``."""
        while self.parent[x] != x:
            self.parent[x] = self.parent[self.parent[x]]
            x = self.parent[x]
        return x

    def union(self, a: int, b: int) -> None:
        """Put two rows in one group."""
        a, b = self.find(a), self.find(b)
        self.parent[max(a, b)] = min(a, b)

    def removed(self) -> np.ndarray:
        """Rows that another row stands for."""
        return np.array([self.find(i) != i for i in range(len(self.parent))])


def datasketch_loop(texts: list[str]) -> np.ndarray:
    """The loop of its documentation: a MinHash a row, query, insert."""
    from datasketch import MinHash, MinHashLSH

    index, groups = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, params=(BANDS, ROWS)), Groups(len(texts))
    for number, text in enumerate(texts):
        sketch = MinHash(num_perm=PERMUTATIONS)
        for gram in grams(text):
            sketch.update(gram.encode())
        for other in index.query(sketch):
            groups.union(other, number)
        index.insert(number, sketch)
    return groups.removed()


def datasketch_batch(texts: list[str]) -> np.ndarray:
    """Its fastest documented way: generator, a fast hash, no duplicate check."""
    import xxhash
    from datasketch import MinHash, MinHashLSH

    index, groups = MinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, params=(BANDS, ROWS)), Groups(len(texts))
    rows = ([gram.encode() for gram in grams(text)] for text in texts)
    sketches = MinHash.generator(rows, num_perm=PERMUTATIONS, hashfunc=xxhash.xxh32_intdigest)
    for number, sketch in enumerate(sketches):
        for other in index.query(sketch):
            groups.union(other, number)
        index.insert(number, sketch, check_duplication=False)
    return groups.removed()


def rensa(texts: list[str]) -> np.ndarray:
    """RMinHashDeduplicator, which verifies candidates by sketch similarity."""
    import rensa as library

    tool = library.RMinHashDeduplicator(threshold=THRESHOLD, num_perm=PERMUTATIONS, use_lsh=True, num_bands=BANDS)
    return ~np.array(tool.add_pairs((str(number), grams(text)) for number, text in enumerate(texts)))


def rensa_verified(texts: list[str]) -> np.ndarray:
    """RMinHash and RMinHashLSH for candidates; each is checked by the true Jaccard similarity of the grams.

    Only kept rows are listed, so that a row goes only if a kept row is similar to it, as with ours.
    """
    import rensa as library

    index = library.RMinHashLSH(threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=BANDS)
    kept: dict[int, set[str]] = {}
    removed = np.zeros(len(texts), bool)
    for number, text in enumerate(texts):
        own = grams(text)
        sketch = library.RMinHash(num_perm=PERMUTATIONS, seed=42)
        sketch.update(own)
        cut = set(own)
        for other in index.query(sketch):
            shared = len(cut & kept[other])
            if shared >= THRESHOLD * (len(cut) + len(kept[other]) - shared):
                removed[number] = True
                break
        else:
            index.insert(number, sketch)
            kept[number] = cut
    return removed


def text_dedup(texts: list[str]) -> np.ndarray:
    """Its own embedding function and union-find; words are single characters, so that its n-grams are ours."""
    import re
    from collections import defaultdict

    import text_dedup.minhash as module
    import xxhash

    prime, rng = (1 << 61) - 1, np.random.RandomState(42)
    permutations = (
        rng.randint(1, prime, size=(PERMUTATIONS,), dtype=np.uint64),
        rng.randint(0, prime, size=(PERMUTATIONS,), dtype=np.uint64),
    )
    module.NON_ALPHA = re.compile(r"\W", re.UNICODE)
    tables: list[dict[Any, set[int]]] = [defaultdict(set) for _ in range(BANDS)]
    for number, text in enumerate(texts):
        signature = module.embed_func(
            " ".join(text.replace(" ", "_")),
            number,
            num_perm=PERMUTATIONS,
            ngram_size=GRAM,
            min_length=1,
            hashranges=[(i * ROWS, (i + 1) * ROWS) for i in range(BANDS)],
            permutations=permutations,
            hash_func=xxhash.xxh32_intdigest,
            dtype=np.uint64,
            max_hash=np.uint64((1 << 32) - 1),
            modulo_prime=np.uint64(prime),
        )
        for key, table in zip(signature["__signatures__"], tables, strict=False):
            table[key].add(number)
    groups = Groups(len(texts))
    for table in tables:
        for members in table.values():
            first = min(members)
            for other in members:
                groups.union(first, other)
    return groups.removed()


def datatrove(texts: list[str]) -> np.ndarray:
    """Its four pipeline steps on local disk; tokens are characters, so that its n-grams are ours."""
    import datatrove.pipeline.dedup.minhash as module
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import (
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers.jsonl import JsonlWriter
    from datatrove.utils.hashing import HashConfig

    class Characters:
        def word_tokenize(self, text: str) -> list[str]:
            return list(text)

    module.load_word_tokenizer = lambda language: Characters()
    config = MinhashConfig(
        n_grams=GRAM, num_buckets=BANDS, hashes_per_bucket=ROWS, hash_config=HashConfig(precision=64)
    )
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "in").mkdir()
        with (root / "in" / "a.jsonl").open("w", encoding="utf-8") as stream:
            for number, text in enumerate(texts):
                stream.write(json.dumps({"text": text, "id": str(number)}) + "\n")

        def execute(*pipeline: Any, tasks: int = 1) -> None:
            LocalPipelineExecutor(
                pipeline=list(pipeline),
                tasks=tasks,
                workers=1,
                logging_dir=str(root / f"log{time.monotonic_ns()}"),
                skip_completed=False,
            ).run()

        def reader() -> Any:
            return JsonlReader(str(root / "in"))

        execute(reader(), MinhashDedupSignature(output_folder=str(root / "sig"), config=config))
        execute(
            MinhashDedupBuckets(input_folder=str(root / "sig"), output_folder=str(root / "b"), config=config),
            tasks=BANDS,
        )
        execute(MinhashDedupCluster(input_folder=str(root / "b"), output_folder=str(root / "rm"), config=config))
        execute(
            reader(),
            MinhashDedupFilter(input_folder=str(root / "rm")),
            JsonlWriter(str(root / "out"), compression=None),
        )
        kept = {
            int(json.loads(line)["id"])
            for file in (root / "out").glob("*")
            for line in file.read_text(encoding="utf-8").splitlines()
        }
    return np.array([number not in kept for number in range(len(texts))])


def _curation(texts: list[str], **options: Any) -> np.ndarray:
    import pyarrow as pa

    from curation.algorithms.lexical import lexical_groups

    norms, size = pa.array(texts, pa.large_string()), len(texts)
    # One thread, as the peers have: on two threads of one core each would cost more.
    options |= {"workers": 1}
    found = lexical_groups(norms, np.arange(size, 0, -1), np.arange(size, dtype=np.uint64), **options)
    return found.representative != np.arange(size)


def curation(texts: list[str]) -> np.ndarray:
    """The lexical level of this project, its default rule, compiled beforehand like the compiled peers."""
    return _curation(texts)


def curation_jaccard(texts: list[str]) -> np.ndarray:
    """The same at the peers' task: Jaccard similarity alone decides, at their threshold."""
    return _curation(texts, jaccard=THRESHOLD, edits=None, digits="ignore")


TOOLS = {
    "curation": curation,
    "curation-jaccard": curation_jaccard,
    "rensa": rensa,
    "rensa-verified": rensa_verified,
    "datasketch-batch": datasketch_batch,
    "datasketch-loop": datasketch_loop,
    "text-dedup": text_dedup,
    "datatrove": datatrove,
}


def cpu_seconds() -> float:
    """CPU seconds of this process and its ended children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Run one tool and print one JSON line."""
    import pyarrow.parquet as pq

    tool, source, target = sys.argv[1:4]
    texts = pq.read_table(source)["norm"].to_pylist()
    if tool.startswith("curation"):
        TOOLS[tool](texts[:200])
    cpu, wall = cpu_seconds(), time.perf_counter()
    removed = TOOLS[tool](texts)
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    np.savez(target, removed=removed)
    print(
        "RESULT "
        + json.dumps(
            {
                "tool": tool,
                "rows": len(texts),
                "cpu": cpu,
                "wall": wall,
                "memory": memory * 1024,
                "kept": int((~removed).sum()),
            }
        )
    )


if __name__ == "__main__":
    main()
