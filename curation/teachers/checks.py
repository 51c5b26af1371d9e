"""What a written query must pass before it may stand beside observed ones.

The checks in their order; the first that fails ends them:

1. ``well_formed``: text of the language it is meant in, of a sane length, without open slots or stutter;
2. ``lexical_duplicate``: not the normal form or a near-duplicate of an observed query or of a written one before it;
3. ``semantic_duplicate``: not as close in meaning to an observed query of its bucket <primary, secondary>, or to a
   written one before it, as queries of the log that stand for each other;
4. ``annotation``: labelled afresh, its primary leaf is one that was meant, or whose queries may need its tools;
5. ``executable``: the tool plan simulated from the fresh labels uses exactly the tools of the chain;
6. ``verification``, where an LLM writes: a reader who is not told what was meant finds it natural, solvable, and in
   need of exactly the tools of the chain.

A query that the teacher could not label has no bucket: it goes from the second check to the fourth and fails there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from curation.algorithms.chains import Chain
from curation.algorithms.labels import bucket_name
from curation.teachers.embedded.scorer import INPUT_COLUMNS
from curation.teachers.embedded.writer import Written, chain_of, well_formed

if TYPE_CHECKING:
    from curation.domain.plan_rules import Plans
    from curation.teachers.base import Annotator, Scorer, Verifier

__all__ = ["CHECKS", "Checked", "Checks", "Observed"]

CHECKS = ("well_formed", "lexical_duplicate", "semantic_duplicate", "annotation", "executable", "verification")

VectorBatches = Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]


@dataclass(frozen=True)
class Observed:
    """The observed queries, as far as the checks need them; the large parts are read anew for each batch.

    Attributes:
        ids_among: Those of the given query ids that are observed queries.
        norms: Normal forms of lexical representatives, in batches.
        vectors: Vectors and groups of semantic survivors, in batches, for a numbering of buckets: a group is the
            bucket's number, -1 for a bucket that is not asked for.
    """

    ids_among: Callable[[pl.Series], pl.Series]
    norms: Callable[[], Iterator[pa.LargeStringArray]]
    vectors: Callable[[dict[str, int]], VectorBatches]


@dataclass
class Checked:
    """A written query and what became of it."""

    written: Written
    norm: str
    query_id: int
    checks: list[dict[str, Any]] = field(default_factory=list)
    vector: NDArray[np.float32] | None = None
    labels: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    verified: bool = False
    """Whether it passed every check."""

    @property
    def failed(self) -> str | None:
        """The check it failed."""
        last = self.checks[-1] if self.checks else None
        return last["check"] if last is not None and not last["passed"] else None

    def note(self, check: str, fault: str | None) -> bool:
        """Record a check; True when it passed."""
        self.checks.append({"check": check, "passed": fault is None, "detail": fault})
        return fault is None


class Checks:
    """Runs the checks on batch after batch and remembers what it let through.

    Args:
        observed: The observed queries.
        annotator: Labels them as it labelled the observed ones.
        encode: Texts to unit vectors, as the table `embeddings` has them.
        scorer: Simulates plans.
        plans: The domain's plan rules.
        lexical_threshold: Least Jaccard similarity of a near-duplicate.
        semantic_threshold: Least cosine of two queries that mean the same.
        workers: Threads; they do not change the result.
        verifier: Reads what passed everything else; without one there is no such check.
    """

    def __init__(
        self,
        observed: Observed,
        annotator: Annotator,
        encode: Callable[[list[str]], NDArray[np.float32]],
        scorer: Scorer,
        plans: Plans,
        *,
        lexical_threshold: float,
        semantic_threshold: float,
        workers: int,
        verifier: Verifier | None = None,
    ) -> None:
        self._observed = observed
        self._annotator = annotator
        self._encode = encode
        self._scorer = scorer
        self._plans = plans
        self._lexical_threshold = lexical_threshold
        self._semantic_threshold = semantic_threshold
        self._workers = workers
        self._verifier = verifier
        self._norms: list[str] = []
        self._buckets: dict[str, int] = {}
        self._vectors: list[NDArray[np.float32]] = []
        self._groups: list[int] = []

    def run(self, batch: list[Checked], meant_leaves: Callable[[Written], set[str]]) -> None:
        """Check a batch in place.

        Args:
            batch: Queries without checks, in order of priority; ids differ, here and from earlier batches.
            meant_leaves: The leaves a query was written for.
        """
        rows = [
            row for row in batch if row.note("well_formed", well_formed(row.written.text, row.norm, row.written.lang))
        ]
        rows = self._lexical(rows)
        self._label(rows)
        rows = self._semantic(rows)
        rows = [row for row in rows if row.note("annotation", self._label_fault(row, meant_leaves(row.written)))]
        rows = self._verify(self._executable(rows))
        for row in rows:
            row.verified = True

    def _lexical(self, rows: list[Checked]) -> list[Checked]:
        from curation.algorithms.near import LexicalNeighbours

        if not rows:
            return []
        seen = set(self._observed.ids_among(pl.Series([row.query_id for row in rows], dtype=pl.UInt64)).to_list())
        fresh = [row for row in rows if row.query_id not in seen]
        neighbours = LexicalNeighbours([row.norm for row in fresh], self._lexical_threshold, self._workers)
        best, at = neighbours.against(self._observed.norms()) if fresh else (np.empty(0), np.empty(0, dtype=np.int64))
        similar = {row.query_id: float(best[i]) for i, row in enumerate(fresh) if at[i] >= 0}
        unseen = [row for row in fresh if row.query_id not in similar]
        # Rows kept in earlier batches come first, so that they stay kept.
        before, of = LexicalNeighbours(
            [*self._norms, *(row.norm for row in unseen)], self._lexical_threshold, self._workers
        ).before()
        start = len(self._norms)
        repeats = {row.query_id: float(before[start + i]) for i, row in enumerate(unseen) if of[start + i] >= 0}
        kept = []
        for row in rows:
            fault = None
            if row.query_id in seen:
                fault = "is an observed query"
            elif row.query_id in similar:
                fault = f"similarity {similar[row.query_id]:.2f} to an observed query"
            elif row.query_id in repeats:
                fault = f"similarity {repeats[row.query_id]:.2f} to a query written before"
            if row.note("lexical_duplicate", fault):
                kept.append(row)
        self._norms += [row.norm for row in kept]
        return kept

    def _label(self, rows: list[Checked]) -> None:
        if not rows:
            return
        frame = pl.DataFrame(
            {
                "query_id": pl.Series([row.query_id for row in rows], dtype=pl.UInt64),
                "text": [row.written.text for row in rows],
                "norm": [row.norm for row in rows],
                "lang": [row.written.lang for row in rows],
            }
        )
        vectors = self._encode(frame["text"].to_list())
        labels = self._annotator.annotate(frame, vectors)
        labels = labels.with_columns(bucket=bucket_name(pl.col("primary"), pl.col("secondary")))
        by_id = {label["query_id"]: label for label in labels.iter_rows(named=True)}
        for row, vector in zip(rows, vectors, strict=True):
            row.labels, row.vector = by_id[row.query_id], vector

    def _semantic(self, rows: list[Checked]) -> list[Checked]:
        from curation.algorithms.near import closest_before, closest_in_group

        labelled = [row for row in rows if row.labels["error"] is None]
        if labelled:
            for row in labelled:
                self._buckets.setdefault(row.labels["bucket"], len(self._buckets))
            groups = np.array([self._buckets[row.labels["bucket"]] for row in labelled], dtype=np.int64)
            vectors = np.array([row.vector for row in labelled], dtype=np.float32)
            wanted = {row.labels["bucket"]: self._buckets[row.labels["bucket"]] for row in labelled}
            near, _ = closest_in_group(vectors, groups, self._observed.vectors(wanted))
            far = near < self._semantic_threshold
            all_groups = np.array([*self._groups, *np.where(far, groups, -1)], dtype=np.int64)
            before, of = closest_before(np.array([*self._vectors, *vectors]), all_groups, self._semantic_threshold)
            start = len(self._groups)
            for i, row in enumerate(labelled):
                fault = None
                if not far[i]:
                    fault = f"cosine {near[i]:.2f} to an observed query of {row.labels['bucket']}"
                elif of[start + i] >= 0:
                    fault = f"cosine {before[start + i]:.2f} to a query written before"
                if row.note("semantic_duplicate", fault):
                    self._vectors.append(vectors[i])
                    self._groups.append(int(groups[i]))
        return [row for row in rows if row.failed is None]

    def _label_fault(self, row: Checked, meant: set[str]) -> str | None:
        if row.labels["error"] is not None:
            return f"could not be labelled: {row.labels['error']}"
        primary = row.labels["primary"]
        if primary in meant or self._plans.reachable(primary) & set(row.written.chain):
            return None
        return f"labelled {primary}, which needs none of the tools"

    def _executable(self, rows: list[Checked]) -> list[Checked]:
        if not rows:
            return []
        labels = pl.DataFrame([row.labels for row in rows], infer_schema_length=None)
        texts = pl.DataFrame({"text": [row.written.text for row in rows], "norm": [row.norm for row in rows]})
        frame = pl.concat([labels.drop("text", "norm", strict=False), texts], how="horizontal")
        scored = self._scorer.score(_typed(frame).select(INPUT_COLUMNS))
        chains: list[Chain] = [
            tuple(chain or ()) for chain in scored.select(c=chain_of(pl.col("tool_plan")))["c"].to_list()
        ]
        for row, scores, chain in zip(rows, scored.iter_rows(named=True), chains, strict=True):
            row.scores = scores
            fault = None
            if scores["difficulty"] is None:
                fault = f"could not be scored: {scores['error']}"
            elif scores["reason"] is not None:
                fault = f"unsolvable: {scores['reason']}"
            elif set(chain) != set(row.written.chain):
                fault = f"needs {', '.join(chain)}"
            row.note("executable", fault)
        return [row for row in rows if row.failed is None]

    def _verify(self, rows: list[Checked]) -> list[Checked]:
        if self._verifier is None or not rows:
            return rows
        faults = self._verifier.verify([row.written for row in rows])
        return [row for row, fault in zip(rows, faults, strict=True) if row.note("verification", fault)]


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Types that an empty list or a column of nulls does not tell."""
    constraint = {"dimension": pl.String, "value": pl.String, "text": pl.String, "start": pl.Int32, "end": pl.Int32}
    return frame.with_columns(
        pl.col("query_id").cast(pl.UInt64),
        pl.col("secondary").cast(pl.List(pl.String)),
        pl.col("constraints").cast(pl.List(pl.Struct(constraint))),
        pl.col("unsolvable").cast(pl.String),
        pl.col("confidence", "unsolvable_confidence").cast(pl.Float32),
    )
