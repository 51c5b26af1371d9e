"""The cascade on the sample: how much a teacher that is asked about a few rows takes from the error of the rest.

``python -m tests.benchmarks cascade [--right 0.95]``. Two runs of the product, the second with
``annotate: {teacher: cascade}`` and defaults else, against a local endpoint over HTTP. It knows the sample's hidden
truth and says it for 95 rows of 100, for the others any leaf; what has no true leaf it calls Other. No stage sees the
truth. The error is that of the annotated queries that have a true leaf, those that were asked about among them.
"""

from __future__ import annotations

import argparse
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from tests.benchmarks import scores as s
from tests.benchmarks.corpus import CACHE, sample
from tests.benchmarks.measure import print_table

__all__ = ["Scripted", "leaf_error", "main"]


class Scripted:
    """Labels by the truth, right for a share of the texts, always the same of them.

    Args:
        leaf: Text to true leaf.
        right: Share of the texts that it is right about.
    """

    def __init__(self, leaf: dict[str, str], right: float) -> None:
        self._leaf, self._right, self._leaves = leaf, right, sorted(set(leaf.values()))

    def leaf_of(self, text: str) -> str:
        """The leaf it says."""
        chance = int.from_bytes(sha256(text.encode()).digest()[:8])
        if text not in self._leaf:
            return "other"
        if chance / 2**64 < self._right:
            return self._leaf[text]
        return self._leaves[chance % len(self._leaves)]

    def labels(self, data: Any) -> dict[str, Any]:
        """The answer to a request."""
        rest = {"secondary": [], "constraints": [], "confidence": 0.9}
        rest |= {"unsolvable": None, "unsolvable_confidence": 0.1}
        return {"labels": [{"id": q["id"], "primary": self.leaf_of(q["text"]), **rest} for q in data["queries"]]}


def leaf_error(annotations: pl.DataFrame, leaf: dict[int, str]) -> tuple[float, int]:
    """Share of the annotated queries with a true leaf that have another one, and how many these are."""
    pairs = [(said, leaf[key]) for key, said in annotations.select("query_id", "primary").iter_rows() if key in leaf]
    return sum(said != true for said, true in pairs) / len(pairs), len(pairs)


def _run(root: Path, sections: dict[str, Any]) -> Any:
    from curation import Recipe, Workspace
    from curation.engine.session import Session

    log = {"path": str(sample().log), "text": "query", "time": "ts", "source": "source"}
    with Session(Recipe.from_dict({"log": log, **sections}, root=root), root, select=("+annotations",)) as session:
        session.run()
    return Workspace(root)


def main(arguments: list[str] | None = None) -> int:
    """Run both, print."""
    import pytest

    from tests.teachers.llm.answering import answering

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks cascade", description=__doc__)
    parser.add_argument("--right", type=float, default=0.95, help="share of its answers that are right")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    options = parser.parse_args(arguments)
    root = CACHE / "cascade"
    root.mkdir(parents=True, exist_ok=True)
    alone = _run(root, {})
    truth = s.query_truth(sample().rows(), alone.table("occurrences").collect())
    known = truth.select("query_id", "leaf").drop_nulls()
    texts = alone.table("queries").select("query_id", "text").collect()
    script = Scripted(dict(texts.join(known, on="query_id").select("text", "leaf").iter_rows()), options.right)
    leaf = dict(known.iter_rows())
    before = alone.table("annotations").collect()
    for answers in root.rglob("llm.sqlite*"):
        answers.unlink()
    shutil.rmtree(root / "objects" / "annotate", ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch, answering(patch, labels=script.labels) as server:
        llm = {"base_url": server.url, "model": "scripted", "key_env": "LOCAL_KEY"}
        joined = _run(root, {"annotate": {"teacher": "cascade"}, "llm": llm})
        calls = len(server.sent)
    after = joined.table("annotations").collect()
    metrics = dict(joined.table("metrics").filter(stage="annotate").select("name", "value").collect().iter_rows())
    told = after.filter(teacher="scripted").height
    (first, rows), (last, _) = leaf_error(before, leaf), leaf_error(after, leaf)
    rest = leaf_error(after.filter(pl.col("teacher") != "scripted"), leaf)[0]
    table: list[list[Any]] = [
        ["leaf error, embedded teacher alone", f"{first:.3f}", rows],
        ["leaf error, cascade", f"{last:.3f}", rows],
        ["of these, rows that were not asked about", f"{rest:.3f}", rows],
        ["share of the rows asked about", f"{told / after.height:.4f}", told],
        ["requests", f"{calls:,}", calls],
        ["rounds", f"{metrics['cascade_rounds']:.0f}", told],
        ["alpha on the audit, before", f"{metrics['audit_alpha_before']:.3f}", int(metrics["audit"])],
        ["alpha on the audit, after", f"{metrics['audit_alpha']:.3f}", int(metrics["audit"])],
    ]
    print_table(["what", "value", "of"], table, as_json=options.json)
    return 0
