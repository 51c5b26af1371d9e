"""What the tables of a run are worth against the truth: pure functions from frames to scores.

A query's truth is that of its raw rows; where rows that were meant as different things have one normal form, the one
that most rows meant. Counts say what a share is a share of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

__all__ = [
    "Score",
    "calibration_error",
    "constraint_scores",
    "difficulty_scores",
    "f1",
    "group_scores",
    "irrelevance_scores",
    "label_scores",
    "language_scores",
    "masking_scores",
    "noise_recall",
    "query_truth",
    "reject_scores",
]

UNSOLVABLE = pl.col("difficulty_max") <= 0
# Words at the edges of a span that say nothing of where it begins and ends, and what may stand between day and hour.
LEAD = r"^(?i)(?:(?:in|on|at|for|by|with|the|an?|to|of|during)\s+|在|适合|要|想)+"
TRAIL = r"[的去\s]+$"
SEAM = r"^\s*(?:at|on|in|,|的)?\s*$"


@dataclass(frozen=True)
class Score:
    """A number: ``value`` (a share, or a coefficient) of ``of`` things."""

    group: str
    name: str
    value: float | None
    of: int


def share(group: str, name: str, right: float, of: float) -> Score:
    """``right`` out of ``of``; no value where there is nothing to be right about."""
    return Score(group, name, right / of if of else None, int(of))


def f1(group: str, right: int, said: int, true: int, prefix: str = "") -> list[Score]:
    """Precision, recall and their harmonic mean from counts."""
    return [
        share(group, f"{prefix}precision", right, said),
        share(group, f"{prefix}recall", right, true),
        share(group, f"{prefix}F1", 2 * right, said + true),
    ]


def calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """Expected calibration error (Guo et al. 2017): mean distance of confidence and accuracy over bins of equal size.

    Args:
        confidence: float[n], probabilities.
        right: bool[n].
        bins: At most n of them.
    """
    order = np.argsort(confidence, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    gaps = [len(part) * abs(float(confidence[part].mean()) - float(right[part].mean())) for part in parts]
    return sum(gaps) / len(order)


def query_truth(truth: pl.DataFrame, occurrences: pl.DataFrame) -> pl.DataFrame:
    """One row per query: its truth and ``weight``, the raw rows behind it.

    Args:
        truth: The truth of the raw rows, ``file``, ``row`` and the labels.
        occurrences: ``file``, ``row``, ``query_id``.
    """
    rows = occurrences.join(truth.with_columns(pl.col("row").cast(pl.UInt64)), on=["file", "row"])
    # Among the rows that meant the same thing the least distorted one stands for it.
    rows = rows.with_columns(
        pl.len().over("query_id", "duplicate_group").alias("votes"),
        pl.len().over("query_id").alias("weight"),
        (pl.col("noise") != "clean").alias("noisy"),
    )
    return (
        rows.sort(
            "query_id", "votes", "duplicate_group", "noisy", "file", "row", descending=[False, True] + [False] * 4
        )
        .unique("query_id", keep="first", maintain_order=True)
        .drop("votes", "noisy")
    )


def label_scores(annotations: pl.DataFrame, truth: pl.DataFrame, lexical_groups: pl.DataFrame) -> list[Score]:
    """Leaf and level-1 accuracy by annotated queries and by raw rows (through representatives); secondary F1."""
    labels = annotations.filter(pl.col("error").is_null()).select(
        pl.col("query_id").alias("representative_id"),
        pl.col("primary").alias("said"),
        pl.col("secondary").alias("said_secondary"),
    )
    rows = (
        truth.join(lexical_groups.select("query_id", "representative_id"), on="query_id")
        .join(labels, on="representative_id", how="left")
        .filter(pl.col("leaf").is_not_null())
        .with_columns(
            (pl.col("said") == pl.col("leaf")).fill_null(False).alias("leaf_right"),
            (_level1("said") == _level1("leaf")).fill_null(False).alias("level1_right"),
        )
    )
    own = rows.filter(pl.col("query_id") == pl.col("representative_id"))
    scores = []
    for what in ("leaf", "level1"):
        scores.append(share("labels", f"{what} accuracy, queries", _sum(own, f"{what}_right"), own.height))
        right = _sum(rows.filter(pl.col(f"{what}_right")), "weight")
        scores.append(share("labels", f"{what} accuracy, raw rows", right, _sum(rows, "weight")))
    macro = own.group_by("leaf").agg(pl.col("leaf_right").mean())["leaf_right"]
    scores.append(share("labels", "leaf accuracy, mean over leaves", float(macro.sum()), macro.len()))
    pairs = own.select(
        pl.col("secondary").list.set_intersection("said_secondary").list.len().sum().alias("right"),
        pl.col("said_secondary").list.len().sum().alias("said"),
        pl.col("secondary").list.len().sum().alias("true"),
    ).row(0)
    right, said, true = (int(n or 0) for n in pairs)
    return scores + f1("labels", right, said, true, prefix="secondary ")


def language_scores(queries: pl.DataFrame, truth: pl.DataFrame) -> list[Score]:
    """Language of the queries against that of their wording; symbols have none and are left out."""
    said = queries.select("query_id", pl.col("lang").alias("said"))
    rows = truth.filter(pl.col("lang") != "und").join(said, on="query_id")
    right = rows.filter(pl.col("lang") == pl.col("said"))
    scores = [
        share("language", "accuracy, queries", right.height, rows.height),
        share("language", "accuracy, raw rows", _sum(right, "weight"), _sum(rows, "weight")),
    ]
    for lang in sorted(rows["lang"].unique()):
        hits, of = (frame.filter(pl.col("lang") == lang).height for frame in (right, rows))
        scores.append(share("language", f"accuracy, queries in {lang}", hits, of))
    return scores


def group_scores(groups: pl.DataFrame, truth: pl.DataFrame, group: str, level: str) -> list[Score]:
    """Removals of a level of the funnel: right when query and representative have the same ``group`` in the truth.

    Recall is right removals out of the removable: all queries of a group but one.

    Args:
        groups: ``query_id``, ``representative_id``; the queries that the level took in.
        truth: Per query, see :func:`query_truth`.
        group: ``duplicate_group`` or ``paraphrase_group``.
        level: Name of the level in the scores.
    """
    own = truth.select("query_id", "weight", group)
    theirs = own.select(pl.col("query_id").alias("representative_id"), pl.col(group).alias("theirs"))
    rows = (
        groups.select("query_id", "representative_id").join(own, on="query_id").join(theirs, on="representative_id")
    )
    removed = rows.filter(pl.col("query_id") != pl.col("representative_id"))
    right = removed.filter(pl.col(group) == pl.col("theirs"))
    removable = rows.height - rows[group].n_unique()
    name = group.removesuffix("_group")
    return [
        share(level, f"removal precision, same {name}", right.height, removed.height),
        share(level, f"removal precision by raw rows, same {name}", _sum(right, "weight"), _sum(removed, "weight")),
        share(level, f"removal recall, same {name}", right.height, removable),
    ]


def noise_recall(groups: pl.DataFrame, truth: pl.DataFrame) -> list[Score]:
    """By kind of noise, the share of distorted queries that share their representative with one of their own group.

    Only those count that are not the only query of their group.
    """
    rows = groups.select("query_id", "representative_id").join(truth, on="query_id")
    rows = rows.with_columns(
        (pl.len().over("duplicate_group") > 1).alias("has_siblings"),
        (pl.len().over("duplicate_group", "representative_id") > 1).alias("right"),
    ).filter("has_siblings", ~pl.col("noise").is_in(["clean", "surface"]))
    by_kind = rows.group_by("noise").agg(pl.col("right").sum(), pl.len()).sort("noise")
    return [share("lexical by noise", f"recall, {kind}", right, n) for kind, right, n in by_kind.iter_rows()]


def irrelevance_scores(difficulty: pl.DataFrame, truth: pl.DataFrame, group: str = "irrelevance") -> list[Score]:
    """Difficulty -1 or 0 against the truth, and the reason where both say so."""
    rows = truth.join(difficulty.select("query_id", "difficulty", pl.col("reason").alias("said")), on="query_id")
    said, true = rows.filter(pl.col("difficulty") <= 0), rows.filter(UNSOLVABLE)
    both = said.filter(UNSOLVABLE)
    right = both.filter(pl.col("said") == pl.col("reason"))
    sign = both.filter(pl.col("difficulty") == pl.col("difficulty_max"))
    return [
        *f1(group, both.height, said.height, true.height),
        share(group, "reason right where both say unsolvable", right.height, both.height),
        share(group, "-1 or 0 right where both say unsolvable", sign.height, both.height),
    ]


def difficulty_scores(difficulty: pl.DataFrame, truth: pl.DataFrame) -> list[Score]:
    """Agreement with the range that a careful person would accept: within it, and within it or one beside."""
    rows = truth.join(difficulty.select("query_id", "difficulty"), on="query_id")
    scores = []
    low, high, said = pl.col("difficulty_min"), pl.col("difficulty_max"), pl.col("difficulty")
    for name, part in (("all", rows), ("solvable", rows.filter(high > 0, said > 0))):
        exact = part.filter(said.is_between(low, high))
        near = part.filter(said.is_between(low - 1, high + 1))
        scores.append(share("difficulty", f"exact class, {name}", exact.height, part.height))
        scores.append(share("difficulty", f"within one, {name}", near.height, part.height))
    solvable = rows.filter(high > 0, said > 0)
    rank = solvable.select(pl.corr(said, (low + high) / 2, method="spearman")).item() if solvable.height > 1 else None
    return [*scores, Score("difficulty", "Spearman with the class, solvable", rank, solvable.height)]


def constraint_scores(annotations: pl.DataFrame, queries: pl.DataFrame, rows: pl.DataFrame) -> list[Score]:
    """Spans against spans, for the queries whose text is that of a raw row word for word and holds no broken span.

    A span is exact with the same dimension (its top level), start and end, particles and prepositions at its edges
    and the seam between day and hour apart; it overlaps with the same dimension and a common character. What is said
    about optional words alone counts neither way.

    Args:
        annotations: ``query_id``, ``constraints``.
        queries: ``query_id``, ``text``.
        rows: Raw rows with ``query_id``, ``query``, ``lang`` and true ``constraints``.
    """
    true = (
        rows.filter(pl.col("lang").is_in(["zh", "en"]))
        .join(queries.select("query_id", pl.col("text").alias("query")), on=["query_id", "query"])
        .unique("query_id", keep="first", maintain_order=True)
        .filter(~pl.col("constraints").list.eval(pl.element().struct.field("start").is_null()).list.any())
    )
    said = annotations.join(true.select("query_id", "query", "lang"), on="query_id")
    true = true.join(said.select("query_id"), on="query_id")
    marked, told = _spans(true), _spans(said)
    optional, marked = (
        marked.filter(pl.col("dimension") == "optional"),
        marked.filter(pl.col("dimension") != "optional"),
    )
    key = ["query_id", "dimension", "start", "end"]
    touching = _touching(told, marked, ["query_id", "dimension"])
    spare = _touching(told, optional, ["query_id"]).select(key).join(touching, on=key, how="anti")
    told = told.join(spare, on=key, how="anti")
    hits = told.join(marked.select(key), on=key, how="semi")
    scores = f1("constraints", hits.height, told.height, marked.height, "exact span ")
    said_hit = touching.select(key).unique().height
    true_hit = touching.select("query_id", "dimension", "start_true", "end_true").unique().height
    scores.append(share("constraints", "overlap precision", said_hit, told.height))
    scores.append(share("constraints", "overlap recall", true_hit, marked.height))
    for name in ("dimension", "lang"):
        for value in sorted(marked[name].unique()):
            right, out, true_out = (f.filter(pl.col(name) == value).height for f in (hits, told, marked))
            scores.append(f1("constraints", right, out, true_out, prefix=f"exact span, {value}, ")[2])
    return scores


def masking_scores(queries: pl.DataFrame, truth: pl.DataFrame) -> list[Score]:
    """Kinds of personal data masked in the queries against those that are in them."""
    rows = truth.join(queries.select("query_id", "masked"), on="query_id")
    right = pl.col("masked").list.set_intersection("personal_data").list.len()
    counts = rows.select(
        right.sum().alias("right"),
        pl.col("masked").list.len().sum().alias("said"),
        pl.col("personal_data").list.len().sum().alias("true"),
    ).row(0)
    hits, said, true_kinds = (int(n or 0) for n in counts)
    scores = f1("masking", hits, said, true_kinds)[:2]
    for kind in sorted(rows["personal_data"].explode().drop_nulls().unique()):
        true = rows.filter(pl.col("personal_data").list.contains(kind))
        scores.append(share("masking", f"recall, {kind}", int(true["masked"].list.contains(kind).sum()), true.height))
    return scores


def reject_scores(rejects: pl.DataFrame, truth: pl.DataFrame) -> list[Score]:
    """Raw rows that ingest refused against those that are broken, and the reasons."""
    said = rejects.filter(pl.col("stage") == "ingest", pl.col("row").is_not_null()).select(
        "file", pl.col("row").cast(pl.UInt64), pl.col("reason").alias("said")
    )
    true = truth.filter(pl.col("broken").is_not_null()).select("file", pl.col("row").cast(pl.UInt64), "broken")
    both = said.join(true, on=["file", "row"])
    right = both.filter(pl.col("said") == pl.col("broken"))
    scores = f1("rejects", both.height, said.height, true.height)[:2]
    return [*scores, share("rejects", "reason right", right.height, both.height)]


def _sum(frame: pl.DataFrame, column: str) -> int:
    return int(frame[column].sum())


def _level1(column: str) -> pl.Expr:
    return pl.col(column).str.split(".").list.first()


def _touching(told: pl.DataFrame, marked: pl.DataFrame, on: list[str]) -> pl.DataFrame:
    """Pairs of spans with a common character."""
    pairs = told.join(marked, on=on, suffix="_true")
    return pairs.filter(pl.col("start") < pl.col("end_true"), pl.col("start_true") < pl.col("end"))


def _spans(rows: pl.DataFrame) -> pl.DataFrame:
    """Distinct spans of ``constraints``, one a row, at the top level of their dimension, edges and seams evened."""
    spans = (
        rows.select("query_id", "lang", "query", "constraints")
        .explode("constraints")
        .filter(pl.col("constraints").is_not_null())
        .unnest("constraints")
        .with_columns(
            pl.col("dimension").str.split(".").list.first(),
            pl.col("start").cast(pl.Int32),
            pl.col("end").cast(pl.Int32),
        )
    )
    words = pl.col("query").str.slice(pl.col("start"), pl.col("end") - pl.col("start"))
    lead = words.str.extract(LEAD, 0).str.len_chars().fill_null(0).cast(pl.Int32)
    trail = words.str.extract(TRAIL, 0).str.len_chars().fill_null(0).cast(pl.Int32)
    spans = spans.with_columns(
        pl.when(lead + trail < pl.col("end") - pl.col("start"))
        .then(pl.struct((pl.col("start") + lead).alias("start"), (pl.col("end") - trail).alias("end")))
        .otherwise(pl.struct("start", "end"))
        .struct.unnest()
    ).sort("query_id", "dimension", "start", "end")
    before = pl.col("end").shift().over("query_id", "dimension")
    between = pl.col("query").str.slice(before, pl.max_horizontal(pl.col("start") - before, 0))
    joined = (pl.col("dimension") == "time") & between.str.contains(SEAM) & (pl.col("start") >= before)
    spans = spans.with_columns((~joined.fill_null(False)).cum_sum().over("query_id", "dimension").alias("piece"))
    merged = spans.group_by("query_id", "lang", "dimension", "piece").agg(pl.col("start").min(), pl.col("end").max())
    return merged.drop("piece").unique()
