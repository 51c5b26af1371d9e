"""The student: linear on cheap features, taught by the embedded teacher on rows of the log itself, for millions.

The teacher needs vectors of the better encoder, which take most of its time. The student reads the vectors that the
table `embeddings` holds, whichever encoder made them, and n-grams; it learns the teacher's probabilities, not only
its labels (distillation: Hinton, Vinyals and Dean 2015), on a lesson of rows of the log. Rows where its two likeliest
nodes are close it reads again with a quick copy of the better encoder (products of half precision), and judges as the
teacher would. The teacher itself is asked about the lesson only. A part of the lesson is held out: on it agreement
with the teacher is measured, and confidence calibrated, by what the teacher would bet on the student's label. Rows of
the lesson keep the teacher's labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from curation.domain.model import REASONS
from curation.teachers.embedded.classifier import best_leaf
from curation.teachers.embedded.labelling import Labeller, Verdicts
from curation.teachers.embedded.linear import LOGISTIC, SOFTMAX, Head, Linear, fit_linear
from curation.teachers.embedded.ngrams import Ngrams, fit_ngrams
from curation.teachers.embedded.ridge import Logistic, fit_logistic, logit, softmax

__all__ = ["HELD_OUT", "Lesson", "Student", "lesson_places"]

Floats = NDArray[np.float32]
Encode = Callable[[list[str]], Floats]

HELD_OUT = 10
"""One row of so many of a lesson is not learnt from."""

_LEAST_ROWS = 3
_MOST_NGRAMS = 1 << 17
_BLOCK = 8192
_OLDEST = pl.CompatLevel.oldest()


@dataclass(frozen=True)
class Lesson:
    """Rows of a log that a student is taught on; two or more.

    Attributes:
        rows: ``query_id``, ``text``, ``norm`` and ``lang``.
        typical: bool[n], which rows stand for the rows of the log that are not in the lesson; some do.
        theirs: float32[n, d], vectors that the teacher reads.
        own: float32[n, e], vectors of the same rows as the student will be given them.
        near: Texts to nearly the vectors that the teacher reads, made in less time; None where ``own`` is ``theirs``.
    """

    rows: pl.DataFrame
    typical: NDArray[np.bool_]
    theirs: Floats
    own: Floats
    near: Encode | None = None

    def only(self, good: NDArray[np.bool_]) -> Lesson:
        """The rows with ``good``."""
        return Lesson(self.rows.filter(good), self.typical[good], self.theirs[good], self.own[good], self.near)

    def held_out(self) -> NDArray[np.bool_]:
        """Which rows are not learnt from: typical ones, evenly spread, one of `HELD_OUT` of all as far as they go."""
        places = np.flatnonzero(self.typical)
        wanted = max(1, min(len(self.typical) // HELD_OUT, len(places) // 2))
        out = np.zeros(len(self.typical), bool)
        out[places[np.linspace(0, len(places), wanted, endpoint=False).astype(np.int64)]] = True
        return out


class Student(Labeller):
    """A :class:`Labeller`; make one with :meth:`taught`."""

    name = "embedded-student"

    def __init__(
        self, teacher: Labeller, model: _Model, labelled: pl.DataFrame, width: int, near: Encode | None
    ) -> None:
        super().__init__(teacher.leaves, teacher.version, teacher.choice, teacher._recogniser, width)
        self.least_familiar, self.measures = teacher.least_familiar, list(teacher.measures)
        self._teacher, self._model, self._labelled, self._near = teacher, model, labelled, near
        self._least_margin = 0.0

    @classmethod
    def taught(cls, teacher: Labeller, lesson: Lesson, rereads: float = 0.0) -> Student:
        """A student that has had its lesson.

        Args:
            teacher: Judges the lesson.
            lesson: What it is taught on.
            rereads: Share of rows, those it is least sure of as far as the rows held out tell, that it reads again
                with ``lesson.near`` and judges as the teacher would; the same for a row whatever stands beside it.

        Some 60 CPU-seconds for 100,000 rows. The same for any number of threads.
        """
        from threadpoolctl import threadpool_limits

        lesson = lesson.only(teacher.usable(lesson.theirs) & np.isfinite(lesson.own).all(axis=1))
        verdicts = teacher.judge(lesson.rows, lesson.theirs)
        held_out = lesson.held_out()
        learnt, tested = np.flatnonzero(~held_out), np.flatnonzero(held_out)
        norms = _norms(lesson.rows)
        with threadpool_limits(limits=1):
            model = _learn(teacher.leaves, lesson.own[learnt], norms.take(pa.array(learnt)), verdicts.rows(learnt))
            labels = teacher.labels(lesson.rows, verdicts)
            student = cls(teacher, model, labels, lesson.own.shape[1], lesson.near)
            student._examine(lesson.rows[tested], lesson.own[tested], verdicts.rows(tested), rereads)
        return student

    def annotate(self, queries: pl.DataFrame, vectors: Floats) -> pl.DataFrame:
        """See :meth:`curation.teachers.base.Annotator.annotate`."""
        known = queries["query_id"].is_in(self._labelled["query_id"].implode()).to_numpy()
        good = self.usable(vectors)
        new = good & ~known
        rows = queries.filter(new)
        verdicts, margin = self._judge(rows, vectors[new])
        unsure = margin < self._least_margin
        parts = [
            self.labels(rows.filter(~unsure), verdicts.rows(np.flatnonzero(~unsure))),
            self.lost(queries.filter(~good & ~known)),
            queries.filter(known).select("query_id").join(self._labelled, on="query_id"),
        ]
        if unsure.any():
            again = rows.filter(unsure)
            judged = self._teacher.annotate(again, self._reread(again, vectors[new][unsure]))
            parts.append(judged.with_columns(teacher=pl.lit(self.name)))
        return queries.select("query_id").join(pl.concat(parts), on="query_id", how="left", maintain_order="left")

    def _reread(self, rows: pl.DataFrame, vectors: Floats) -> Floats:
        """Vectors for the teacher's judgement of rows."""
        return vectors if self._near is None else self._near(rows["text"].to_list())

    def judge(self, rows: pl.DataFrame, vectors: Floats) -> Verdicts:
        """See :meth:`Labeller.judge`; what the student thinks itself, on one thread."""
        return self._judge(rows, vectors)[0]

    def _judge(self, rows: pl.DataFrame, vectors: Floats) -> tuple[Verdicts, Floats]:
        """Verdicts, and float32[n]: how much likelier the primary node is than the next one."""
        from threadpoolctl import threadpool_limits

        norms = _norms(rows)
        with threadpool_limits(limits=1):
            blocks = [
                self._model.judge(vectors[at : at + _BLOCK], norms.slice(at, _BLOCK))
                for at in range(0, max(len(vectors), 1), _BLOCK)
            ]
        verdicts = Verdicts(
            primary=pl.concat([block.primary for block, _ in blocks]),
            **{
                name: np.concatenate([getattr(block, name) for block, _ in blocks])
                for name in ("leaves", "confidence", "present", "unsolvable", "reason")
            },
        )
        return verdicts, np.concatenate([margin for _, margin in blocks])

    def _examine(self, rows: pl.DataFrame, vectors: Floats, theirs: Verdicts, rereads: float) -> None:
        """On rows held out measure agreement, and fit the confidence and the margin under which it reads again."""
        said, margin = self._judge(rows, vectors)
        same = (said.primary == theirs.primary).to_numpy()
        bets = _bets(said, theirs, self.leaves, same)
        self._model = self._model.with_certainty(fit_logistic(logit(said.confidence), bets))
        if rereads:
            self._least_margin = float(np.quantile(margin, rereads, method="lower"))
        unsure = margin < self._least_margin
        final = said.primary
        if unsure.any():
            again = rows.filter(unsure)
            judged = self._teacher.judge(again, self._reread(again, vectors[unsure]))
            final = final.scatter(np.flatnonzero(unsure), judged.primary)
        tops = [primary.str.split(".").list.first() for primary in (final, theirs.primary)]
        self.measures += [
            ("student_examined", len(same), "rows"),
            ("student_linear_agreement", float(same.mean()), "share"),
            ("student_agreement", float((final == theirs.primary).to_numpy().mean()), "share"),
            ("student_agreement_level1", float((tops[0] == tops[1]).to_numpy().mean()), "share"),
            ("student_rereads", float(unsure.mean()), "share"),
        ]


@dataclass(frozen=True)
class _Model:
    """The linear heads and how to read them."""

    linear: Linear
    ngrams: Ngrams
    labels: list[str]
    """Node ids of the first head: leaves and Others."""
    columns: NDArray[np.int64]
    """For each leaf its place among the labels; -1 for a leaf that the teacher never gave."""
    level1: NDArray[np.int64]
    certainty: Logistic | None = None

    def with_certainty(self, certainty: Logistic | None) -> _Model:
        return _Model(self.linear, self.ngrams, self.labels, self.columns, self.level1, certainty)

    def judge(self, vectors: Floats, norms: pa.LargeStringArray) -> tuple[Verdicts, Floats]:
        n, n_leaves = len(self.labels), len(self.columns)
        scores = self.linear.scores(vectors, self.ngrams.transform(norms))
        label, present, unsolvable, reason = np.split(scores, [n, n + n_leaves, n + n_leaves + 1], axis=1)
        shares = softmax(label)
        best = best_leaf(shares, self.level1)
        at = np.arange(len(best))
        top = shares[at, best]
        leaves = np.where(self.columns >= 0, shares[:, self.columns], np.float32(0))
        present = _logistic(present)
        here = self.columns[None, :] == best[:, None]
        rest = shares.copy()
        rest[at, best] = 0
        verdicts = Verdicts(
            primary=pl.Series(self.labels, dtype=pl.String).gather(best),
            leaves=leaves,
            confidence=top if self.certainty is None else self.certainty(logit(top)),
            present=np.where(here, np.float32(0), present),
            unsolvable=_logistic(unsolvable[:, 0]),
            reason=reason.argmax(axis=1),
        )
        return verdicts, top - rest.max(axis=1)


def _learn(leaves: list[str], vectors: Floats, norms: pa.LargeStringArray, verdicts: Verdicts) -> _Model:
    labels = sorted(set(verdicts.primary.to_list()))
    place = {label: i for i, label in enumerate(labels)}
    columns = np.array([place.get(leaf, -1) for leaf in leaves])
    shares = np.zeros((len(vectors), len(labels)), np.float32)
    known = columns >= 0
    shares[:, columns[known]] = verdicts.leaves[:, known]
    # A query that the teacher sent to an Other is of that Other, whatever its leaves were.
    given = np.array([place[label] for label in verdicts.primary.to_list()])
    other = ~np.isin(given, columns)
    shares[other] = np.eye(len(labels), dtype=np.float32)[given[other]]
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    ngrams = fit_ngrams(norms, _LEAST_ROWS if len(vectors) > _BLOCK else 1, _MOST_NGRAMS)
    ones = np.ones(len(vectors), np.float32)
    heads = [
        Head(SOFTMAX, shares, ones),
        Head(LOGISTIC, verdicts.present, ones),
        Head(LOGISTIC, verdicts.unsolvable[:, None], ones),
        Head(SOFTMAX, np.eye(len(REASONS), dtype=np.float32)[verdicts.reason], verdicts.unsolvable),
    ]
    tops = sorted({label.split(".")[0] for label in labels})
    level1 = np.array([tops.index(label.split(".")[0]) for label in labels])
    linear = fit_linear(vectors, ngrams.transform(norms), ngrams.width, heads)
    return _Model(linear, ngrams, labels, columns, level1)


def _bets(said: Verdicts, theirs: Verdicts, leaves: list[str], same: NDArray[np.bool_]) -> NDArray[np.float64]:
    """What the teacher would bet on the student's label: its confidence, or the label's share of the rest."""
    place = {leaf: i for i, leaf in enumerate(leaves)}
    at = np.arange(len(same))
    rest = theirs.leaves / np.maximum(1 - theirs.leaves.max(axis=1, keepdims=True), 1e-6)
    column = np.array([place.get(label, -1) for label in said.primary.to_list()])
    share = np.where(column >= 0, rest[at, column], 0)
    return np.where(same, theirs.confidence, np.clip(share, 0, 1) * (1 - theirs.confidence)).astype(np.float64)


def _logistic(scores: Floats) -> Floats:
    return (1 / (1 + np.exp(-scores))).astype(np.float32)


def _norms(rows: pl.DataFrame) -> pa.LargeStringArray:
    return rows["norm"].to_arrow(compat_level=_OLDEST).cast(pa.large_string())


def lesson_places(weight: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows of a lesson: the heaviest for one half, spread evenly over the others for one.

    Args:
        weight: int[n], raw rows behind each row, in the order of query ids, which is as good as chance.
        size: Rows wanted; all where there are no more.

    Returns:
        int64[.], their places, ascending; bool[.], which of them are of the half that stands for the others.
    """
    if len(weight) <= size:
        return np.arange(len(weight)), np.ones(len(weight), bool)
    order = np.argsort(-weight, kind="stable")
    heavy, others = order[: size // 2], np.sort(order[size // 2 :])
    spread = others[np.linspace(0, len(others), size - len(heavy), endpoint=False).astype(np.int64)]
    places = np.sort(np.concatenate([heavy, spread]))
    return places, np.isin(places, spread)
