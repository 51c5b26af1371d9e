"""The student against its teacher: agreement on rows it was not taught, speed, and accuracy of both where truth is.

``python -m tests.benchmarks student [--rows 1e6] [--lesson 110000] [--measured 100000]``. A log of family A is made
and run up to the lexical level; its representatives are encoded, judged by the teacher (better encoder) and by the
student (static encoder; for the rows it reads again, a copy of the better encoder in half precision). The teacher
labels no row that is measured. CPU seconds on one thread.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from tests.benchmarks import scores as s
from tests.benchmarks.corpus import CACHE, Corpus, make_corpus
from tests.benchmarks.measure import print_table, spend
from tests.benchmarks.truth import build

__all__ = ["agreement", "main"]


def agreement(theirs: pl.DataFrame, own: pl.DataFrame, weight: pl.Series) -> list[s.Score]:
    """Scores of one labeller's rows against those of another, by rows and by the raw rows behind them.

    Args:
        theirs: Rows of `annotations`.
        own: The same queries in the same order.
        weight: Raw rows behind each.
    """
    same = theirs["primary"] == own["primary"]
    tops = [labels["primary"].str.split(".").list.first() for labels in (theirs, own)]
    unsolvable = theirs["unsolvable"].is_null() == own["unsolvable"].is_null()
    heavy = weight.to_numpy()
    return [
        s.share("student", "leaf agreement, queries", int(same.sum()), len(same)),
        s.share("student", "leaf agreement, raw rows", int(heavy[same.to_numpy()].sum()), int(heavy.sum())),
        s.share("student", "level1 agreement, queries", int((tops[0] == tops[1]).sum()), len(same)),
        s.share("student", "agreement on solvable, queries", int(unsolvable.sum()), len(same)),
    ]


def _against_truth(name: str, labels: pl.DataFrame, truth: pl.DataFrame) -> list[s.Score]:
    rows = labels.join(truth.filter(pl.col("leaf").is_not_null()).select("query_id", "leaf"), on="query_id")
    hit = (rows["primary"] == rows["leaf"]).fill_null(False)
    error = s.calibration_error(rows["confidence"].to_numpy(), hit.to_numpy())
    return [
        s.share(name, "leaf accuracy against truth", int(hit.sum()), rows.height),
        s.Score(name, "expected calibration error", error, rows.height),
    ]


def _rows(corpus: Corpus, rows: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Representatives of the log with ``weight``, by id; the truth of the queries; the taxonomy."""
    log = {"path": str(corpus.log), "text": "query", "time": "ts", "source": "source"}
    workspace = build(CACHE / f"student-{rows}", log, ("+lexical_groups", "+taxonomy"))
    groups = workspace.table("lexical_groups").filter("kept").select("query_id", weight="group_count")
    queries = workspace.table("queries").select("query_id", "text", "norm", "lang")
    truth = s.query_truth(corpus.rows(), workspace.table("occurrences").collect())
    taxonomy = workspace.table("taxonomy").collect()
    return groups.join(queries, on="query_id").sort("query_id").collect(), truth, taxonomy


def _teacher(encode: Any, taxonomy: pl.DataFrame) -> Any:
    from curation.algorithms.normalise import normalise, query_ids
    from curation.domain import load_domain
    from curation.teachers.embedded.teacher import EmbeddedTeacher

    domain = load_domain("map_travel")
    schema = {"text": pl.String, "lang": pl.String, "primary": pl.String, "secondary": pl.List(pl.String)}
    schema["reason"] = pl.String
    rows = [[getattr(seed, name) for name in schema] for seed in domain.seeds]
    seeds = pl.DataFrame(rows, schema=schema, orient="row")
    ids = query_ids(normalise(pa.array(seeds["text"].to_list(), pa.large_string())))
    seeds = seeds.with_columns(query_id=pl.Series(ids, dtype=pl.UInt64))
    return EmbeddedTeacher.fit(seeds.unique("query_id", keep="first", maintain_order=True), taxonomy, domain, encode)


def main(arguments: list[str] | None = None) -> int:
    """Make the log, teach, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks student", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=float, default=1e6, help="raw rows of the log")
    parser.add_argument("--lesson", type=float, default=110_000, help="rows the student is taught on")
    parser.add_argument("--measured", type=float, default=100_000, help="other rows it is measured on")
    parser.add_argument("--rereads", type=float, default=0.15, help="share that the student reads again")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    options = parser.parse_args(arguments)
    from curation.teachers.embedded.student import Lesson, Student, lesson_places
    from curation.teachers.encoders import STATIC, USE, load_encoder

    rows, truth, taxonomy = _rows(make_corpus(int(options.rows), "A"), int(options.rows))
    taught, typical = lesson_places(rows["weight"].to_numpy(), int(options.lesson))
    rest = np.setdiff1d(np.arange(rows.height), taught)[: int(options.measured)]
    lesson, measured = rows[taught], rows[rest]
    use, static = load_encoder(USE), load_encoder(STATIC)
    teacher = _teacher(use.encode, taxonomy)
    with spend() as learning:
        texts = lesson["text"].to_list()
        near = use.quick().encode
        lesson_of_log = Lesson(lesson, typical, use.encode(texts), static.encode(texts), near)
        student = Student.taught(teacher, lesson_of_log, options.rereads)
    texts = measured["text"].to_list()
    cost = {}
    with spend() as cost["better encoder"]:
        theirs = use.encode(texts)
    with spend() as cost["teacher"]:
        said = teacher.annotate(measured, theirs)
    with spend() as cost["static encoder"]:
        vectors = static.encode(texts)
    student.annotate(measured[:1000], vectors[:1000])
    with spend() as cost["student"]:
        own = student.annotate(measured, vectors)
    found = agreement(said, own, measured["weight"])
    # Rows of the lesson, the most frequent among them, have the teacher's labels.
    if len(taught) + len(rest) == rows.height:
        same = int(lesson["weight"].sum()) + int(measured["weight"].filter(said["primary"] == own["primary"]).sum())
        found.append(s.share("student", "leaf agreement over the log, raw rows", same, int(rows["weight"].sum())))
    found += _against_truth("teacher", said, truth) + _against_truth("student", own, truth)
    table: list[list[Any]] = [[score.group, score.name, f"{score.value:.3f}", score.of] for score in found]
    table.append(["student", "CPU-s of the lesson, encoding included", f"{learning.cost.cpu:.0f}", lesson.height])
    for name, spent in cost.items():
        table.append([name, "rows a CPU-second", f"{len(rest) / spent.cost.cpu:,.0f}", len(rest)])
    both = cost["static encoder"].cost.cpu + cost["student"].cost.cpu
    table.append(["static encoder and student", "rows a CPU-second", f"{len(rest) / both:,.0f}", len(rest)])
    print_table(["what", "score", "value", "of"], table, as_json=options.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
