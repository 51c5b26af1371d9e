"""The cascade: the embedded teacher labels everything, an LLM what is uncertain or new, and a random audit sample.

The embedded teacher is fitted again on what the LLM said, round by round, until it agrees with the audit no better
than before. Rows for the LLM are the uncertain ones, drawn so that they differ from each other and from what is
labelled already (uncertainty and diversity together, after the batch active learning of Zhdanov 2019, section 2). The
audit sample is labelled once, at the start, and never learnt from: it is what agreement is measured on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.algorithms.agreement import krippendorff_alpha, masi_distance
from curation.algorithms.dsquared import d2_sample
from curation.algorithms.identity import seeded_order
from curation.teachers.base import Annotator
from curation.teachers.embedded.labelling import Labeller

__all__ = ["Cascade", "CascadePlan", "Round", "agreement", "as_seeds", "cascade", "leaf_f1"]

Fit = Callable[[pl.DataFrame], Labeller]

_SHORTLIST = 4
"""Times as many uncertain rows as the LLM is asked about stand on the list that these are drawn from."""


@dataclass(frozen=True)
class CascadePlan:
    """How much the LLM is asked.

    Attributes:
        audit: Rows of the audit sample.
        asked: Rows that the LLM labels besides, over all rounds.
        rounds: Most rounds of asking and fitting.
        least_gain: Rise of the agreement (Krippendorff's alpha) in a round under which it is the last.
    """

    audit: int
    asked: int
    rounds: int = 4
    least_gain: float = 0.002


@dataclass(frozen=True)
class Round:
    """A fit of the embedded teacher and how it agrees with the audit sample.

    Attributes:
        asked: Rows labelled by the LLM so far, the audit sample apart.
        alpha: Krippendorff's alpha of leaf sets with MASI distance; NaN where no row of the audit was labelled.
        accuracy: Share of the audit sample with the same primary leaf.
    """

    asked: int
    alpha: float
    accuracy: float


@dataclass(frozen=True)
class Cascade:
    """What came of it.

    Attributes:
        labeller: The embedded teacher of the round that agreed best.
        labelled: Rows of `annotations` by the LLM, by query id: what was asked, and the audit sample.
        rounds: The first is the teacher as the seeds alone make it.
        f1: Leaf to (F1 against the audit, rows of the audit with that leaf), before and after.
    """

    labeller: Labeller
    labelled: pl.DataFrame
    rounds: list[Round]
    f1: dict[str, tuple[float, float, int]] = field(default_factory=dict)


def cascade(
    rows: pl.DataFrame,
    vectors: NDArray[np.float32],
    fit: Fit,
    llm: Annotator,
    plan: CascadePlan,
    seed: int = 0,
) -> Cascade:
    """Teach the embedded teacher by an LLM.

    Args:
        rows: Rows of the log that may be asked about: ``query_id``, ``text``, ``norm``, ``lang``; by query id.
        vectors: float32[n, d], their vectors.
        fit: Makes the embedded teacher from the seeds and what the LLM said, rows of `seeds` too; at first none.
        llm: Whose labels count.
        plan: How much it is asked.
        seed: Of the audit sample and the draws.

    Rows that the LLM fails on are neither learnt from nor counted; they keep the label of the embedded teacher.
    """
    order = seeded_order(rows["query_id"].to_numpy(), seed)
    audit = np.sort(order[: plan.audit])
    truth = llm.annotate(rows[audit], vectors[audit])
    open_ = np.ones(rows.height, bool)
    open_[audit] = False
    said = [truth]
    learnt = as_seeds(rows, truth).clear()
    labeller = fit(learnt)
    labels = labeller.annotate(rows, vectors)
    history = [_round(labels[audit], truth, 0)]
    first, best, asked = labels[audit], labeller, 0
    for number in range(plan.rounds):
        quota = plan.asked * (number + 1) // plan.rounds - asked
        chosen = _choose(labels, vectors, open_, quota, seed + number)
        if len(chosen) == 0:
            break
        open_[chosen] = False
        answers = llm.annotate(rows[chosen], vectors[chosen])
        said.append(answers)
        asked += len(chosen)
        learnt = pl.concat([learnt, as_seeds(rows, answers)])
        labeller = fit(learnt.sort("query_id"))
        labels = labeller.annotate(rows, vectors)
        history.append(_round(labels[audit], truth, asked))
        gain = history[-1].alpha - max(one.alpha for one in history[:-1])
        if not gain < 0:  # more labels are better than fewer where the audit cannot tell
            best = labeller
        if not gain >= plan.least_gain:
            break
    last = best.annotate(rows[audit], vectors[audit])
    before, after = leaf_f1(first, truth), leaf_f1(last, truth)
    f1 = {leaf: (before[leaf][0], score, count) for leaf, (score, count) in after.items()}
    return Cascade(best, pl.concat(said).sort("query_id"), history, f1)


def as_seeds(rows: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    """Rows of `seeds` from what an annotator said of some of ``rows``; those that failed are left out."""
    good = labels.filter(pl.col("error").is_null())
    texts = rows.select("query_id", "text", "lang")
    return good.join(texts, on="query_id", how="left", maintain_order="left").select(
        "query_id",
        "text",
        "lang",
        tags=pl.concat_list(pl.concat_list("primary"), "secondary"),
        primary="primary",
        secondary="secondary",
        reason="unsolvable",
        labelled_by="teacher",
        origin=pl.lit("llm"),
    )


def agreement(labels: pl.DataFrame, truth: pl.DataFrame) -> tuple[float, float]:
    """(Krippendorff's alpha of leaf sets with MASI distance, share of equal primary leaves) of two annotations.

    Rows are matched by place; those that either failed on do not count.
    """
    pairs = [
        (frozenset((a, *also_a)), frozenset((b, *also_b)), a == b)
        for (a, also_a), (b, also_b) in zip(
            labels.select("primary", "secondary").iter_rows(),
            truth.select("primary", "secondary").iter_rows(),
            strict=True,
        )
        if a is not None and b is not None
    ]
    if not pairs:
        return float("nan"), float("nan")
    alpha = krippendorff_alpha([pair[:2] for pair in pairs], masi_distance)
    return alpha, sum(pair[2] for pair in pairs) / len(pairs)


def leaf_f1(labels: pl.DataFrame, truth: pl.DataFrame) -> dict[str, tuple[float, int]]:
    """Leaf to (F1 of the primary label, rows of ``truth`` with it), for the leaves of ``truth``; rows by place."""
    said, true = labels["primary"], truth["primary"]
    out = {}
    for leaf in true.drop_nulls().unique().sort():
        both = int(((said == leaf) & (true == leaf)).sum())
        out[leaf] = (
            2 * both / max(1, int((said == leaf).sum()) + int((true == leaf).sum())),
            int((true == leaf).sum()),
        )
    return out


def _round(labels: pl.DataFrame, truth: pl.DataFrame, asked: int) -> Round:
    return Round(asked, *agreement(labels, truth))


def _choose(
    labels: pl.DataFrame, vectors: NDArray[np.float32], open_: NDArray[np.bool_], count: int, seed: int
) -> NDArray[np.int64]:
    """Rows to ask about, rising: a shortlist of the least sure, from it some that differ."""
    candidates = np.flatnonzero(open_ & labels["error"].is_null().to_numpy())
    count = min(count, len(candidates))
    if count <= 0:
        return np.empty(0, np.int64)
    doubt = 1 - labels["confidence"].to_numpy()[candidates]
    # What fits no leaf is new: an Other is asked about first.
    doubt[labels["primary"].str.ends_with("other").fill_null(False).to_numpy()[candidates]] += 1
    shortlist = candidates[np.lexsort((candidates, -doubt))[: _SHORTLIST * count]]
    picks = d2_sample(vectors[shortlist], count, weights=np.ones(len(shortlist)), seed=seed)
    return np.sort(shortlist[picks])
