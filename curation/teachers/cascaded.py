"""The cascade of a run: an annotator that joins the embedded teacher, or its student, with the labels of an LLM."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.engine.stage import Context
from curation.teachers.base import Annotator
from curation.teachers.cascade import Cascade, CascadePlan, cascade
from curation.teachers.embedded.labelling import Labeller

if TYPE_CHECKING:
    from curation.taxonomy.lineage import Lineage
    from curation.teachers.llm.rows import Asker

__all__ = ["CascadeAnnotator", "cascade_of_run", "cascade_plan"]


class CascadeAnnotator:
    """A :class:`curation.teachers.base.Annotator`: what the LLM labelled has its labels, the rest the labeller's."""

    name = "cascade"

    def __init__(self, found: Cascade, labeller: Labeller) -> None:
        self._found, self._labeller = found, labeller
        self.least_familiar = labeller.least_familiar
        first, last = found.rounds[0], max(found.rounds, key=lambda one: one.alpha)
        audited = sum(count for _, _, count in found.f1.values())
        self.measures = [
            *labeller.measures,
            ("cascade_rounds", len(found.rounds) - 1, "rounds"),
            ("cascade_asked", found.rounds[-1].asked, "rows"),
            ("audit", audited, "rows"),
            ("audit_alpha_before", first.alpha, "alpha"),
            ("audit_alpha", last.alpha, "alpha"),
            ("audit_accuracy_before", first.accuracy, "share"),
            ("audit_accuracy", last.accuracy, "share"),
            *((f"audit_f1_before {leaf}", before, "F1") for leaf, (before, _, _) in found.f1.items()),
            *((f"audit_f1 {leaf}", after, "F1") for leaf, (_, after, _) in found.f1.items()),
        ]
        self.measures = [one for one in self.measures if not np.isnan(one[1])]

    def annotate(self, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        """See :meth:`curation.teachers.base.Annotator.annotate`."""
        labels = self._labeller.annotate(queries, vectors)
        told = self._found.labelled.filter(pl.col("error").is_null())
        own = labels.join(told, on="query_id", how="anti")
        both = pl.concat([own, told.join(queries, on="query_id", how="semi").select(own.columns)])
        return queries.select("query_id").join(both, on="query_id", how="left", maintain_order="left")


class _Whole:
    """Tells how far the rounds of a cascade are together, not each alone.

    Attributes:
        rows: Rows that will be asked about at most.
        before: Rows of the rounds that have ended.
    """

    def __init__(self, rows: int, on_progress: Callable[[int, int], None]) -> None:
        self.rows, self.before, self._on_progress = rows, 0, on_progress

    def told(self, done: int, total: int) -> None:
        """So many rows of this round are done."""
        self._on_progress(self.before + done, self.rows)

    def of(self, annotator: Annotator) -> Annotator:
        """The annotator, with its rows counted."""
        return _Counted(annotator, self)


class _Counted:
    """An annotator whose rows are counted."""

    def __init__(self, annotator: Annotator, whole: _Whole) -> None:
        self.name, self._annotator, self._whole = annotator.name, annotator, whole

    def annotate(self, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        """See :meth:`curation.teachers.base.Annotator.annotate`."""
        labels = self._annotator.annotate(queries, vectors)
        self._whole.before += queries.height
        return labels


def cascade_plan(ctx: Context, rows: int) -> CascadePlan:
    """How much is asked about a log of so many rows; ``ctx`` is of the stage `annotate`.

    However small the log, two are asked about: one to learn from, one to audit.
    """
    params = ctx.params
    most = min(params.asked, rows, max(2, int(params.asked_share * rows)))
    audit = min(params.audit, most // 2)
    return CascadePlan(audit, most - audit, params.rounds)


def cascade_of_run(
    ctx: Context, client: Asker, lineage: Lineage, version: str, on_progress: Callable[[int, int], None]
) -> CascadeAnnotator:
    """The cascade that the section `annotate` asks for.

    ``ctx`` is of the stage `annotate`. Rows of the lesson of a student may be asked about, in a smaller log all.
    """
    from curation.teachers.embedded.student import Student
    from curation.teachers.fitting import fitted_teacher
    from curation.teachers.llm.of_run import annotator_of_run, check_failed
    from curation.teachers.taught import lesson_of_run, taught_by_log

    encode, lesson = lesson_of_run(ctx)
    plan = cascade_plan(ctx, ctx.rows("embeddings"))
    whole = _Whole(plan.audit + plan.asked, on_progress)
    llm = whole.of(annotator_of_run(ctx, client, encode, lineage, version, on_progress=whole.told))

    def fit(learnt: pl.DataFrame) -> Labeller:
        ctx.progress(whole.before, whole.rows, "learning")
        return fitted_teacher(ctx, encode, lineage, version, learnt)

    good = lesson.only(np.asarray(np.isfinite(lesson.theirs).all(axis=1)))
    found = cascade(good.rows, good.theirs, fit, llm, plan)
    check_failed(ctx, found.labelled)
    if not taught_by_log(ctx):
        return CascadeAnnotator(found, found.labeller)
    return CascadeAnnotator(found, Student.taught(found.labeller, lesson, ctx.params.student_rereads))
