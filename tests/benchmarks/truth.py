"""The tables of a run against the hidden truth of the sample, and against the gold queries where they are at hand.

``python -m tests.benchmarks truth [WORKSPACE] [--json]``. Without a workspace one is made from the sample with the
default recipe and kept for the next call. ``--family B --rows N`` takes a log that nothing was tuned on.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from tests.benchmarks import scores as s
from tests.benchmarks.corpus import CACHE, Corpus, make_corpus, sample
from tests.benchmarks.measure import ROOT, print_table

__all__ = ["build", "gold_scores", "main", "truth_scores"]

GOLD = ROOT.parent / "shared/data/travelbench/dev.jsonl"
REASONS = ("missing_tool", "missing_info", "no_actionable")


def build(root: Path, log: dict[str, Any], select: tuple[str, ...] = ()) -> Any:
    """Run the default recipe on a log; the workspace, built as far as it was stale.

    Args:
        root: The workspace.
        log: The ``log`` section of the recipe.
        select: Selection expressions; everything when empty.
    """
    from curation import Recipe, Workspace
    from curation.engine.session import Session

    root.mkdir(parents=True, exist_ok=True)
    with Session(Recipe.from_dict({"log": log}, root=root), root, select=select) as session:
        session.run()
    return Workspace(root)


def truth_scores(workspace: Any, corpus: Corpus) -> list[s.Score]:
    """Every score that the tables of the workspace allow.

    Args:
        workspace: Built from the log of ``corpus``.
        corpus: The log and its truth.
    """
    there = set(workspace.tables())
    read = {name: workspace.table(name).collect() for name in sorted(there - {"embeddings", "candidate_pool"})}
    rows = corpus.rows()
    occurrences, queries = read["occurrences"], read["queries"]
    if not set(occurrences["file"].unique()) <= set(rows["file"].unique()):
        raise SystemExit(f"the workspace {workspace.root} was not made from the log {corpus.log}")
    truth = s.query_truth(rows, occurrences)
    found = [*s.reject_scores(read["rejects"], rows), *s.masking_scores(queries, truth)]
    found += s.language_scores(queries, truth)
    if "lexical_groups" in there:
        groups = read["lexical_groups"]
        found += s.group_scores(groups, truth, "duplicate_group", "lexical")
        found += s.group_scores(groups, truth, "paraphrase_group", "lexical")[:1]
        found += s.noise_recall(groups, truth)
    if truth["leaf"].null_count() == truth.height:
        return found
    if "annotations" in there:
        annotations = read["annotations"]
        found += s.label_scores(annotations, truth, read["lexical_groups"])
        raw = rows.with_columns(pl.col("row").cast(pl.UInt64)).join(occurrences, on=["file", "row"])
        found += s.constraint_scores(annotations, queries, raw)
    if "semantic_groups" in there:
        found += s.group_scores(read["semantic_groups"], truth, "paraphrase_group", "semantic")
    if "difficulty" in there:
        found += s.irrelevance_scores(read["difficulty"], truth)
        found += s.difficulty_scores(read["difficulty"], truth)
    return found


def gold_scores(workspace: Any, gold: pl.DataFrame) -> list[s.Score]:
    """Scores on the gold queries, each read through the representatives that stand for it.

    Args:
        workspace: Built with the gold file as its log.
        gold: The rows of the gold file, in its order.
    """
    occurrences = workspace.table("occurrences").select(pl.col("row"), pl.col("query_id")).collect()
    lexical = _representatives(workspace, "lexical_groups", "query_id", "labelled_id")
    semantic = _representatives(workspace, "semantic_groups", "labelled_id", "scored_id")
    labels = workspace.table("annotations").select(pl.col("query_id").alias("labelled_id"), "primary").collect()
    columns = [pl.col("query_id").alias("scored_id"), "difficulty", pl.col("reason").alias("said"), "tool_plan"]
    difficulty = workspace.table("difficulty").select(columns).collect()
    rows = (
        gold.with_row_index("row")
        .with_columns(pl.col("row").cast(pl.UInt64))
        .join(occurrences, on="row")
        .join(lexical, on="query_id")
        .join(labels, on="labelled_id", how="left")
        .join(semantic, on="labelled_id", how="left")
        .join(difficulty, on="scored_id", how="left")
        .with_columns(pl.any_horizontal(*REASONS).alias("unsolvable"))
    )
    said = pl.col("difficulty").fill_null(1) <= 0
    both = rows.filter(said, "unsolvable")
    reason_right = both.filter(pl.any_horizontal(pl.col(name) & (pl.col("said") == name) for name in REASONS))
    calls = rows.filter(pl.col("avg_tool_calls").is_not_null(), pl.col("difficulty") > 0)
    steps = pl.col("tool_plan").list.len()
    found = [s.share("gold", f"{what} accuracy", *_hits(rows, what)) for what in ("level1", "leaf")]
    found += s.f1("gold", both.height, rows.filter(said).height, rows.filter("unsolvable").height, "irrelevance ")
    found.append(s.share("gold", "reason right where both say unsolvable", reason_right.height, both.height))
    for name, by in (("difficulty", pl.col("difficulty")), ("planned calls", steps)):
        rank = calls.select(pl.corr(by.cast(pl.Float64), "avg_tool_calls", method="spearman")).item()
        found.append(s.Score("gold", f"Spearman of {name} with mean tool calls", rank, calls.height))
    return found


def _representatives(workspace: Any, table: str, name: str, representative: str) -> pl.DataFrame:
    groups = workspace.table(table).select("query_id", "representative_id").collect()
    return groups.rename({"query_id": name, "representative_id": representative})


def _hits(rows: pl.DataFrame, what: str) -> tuple[int, int]:
    said, true = pl.col("primary"), pl.col("primary_intent")
    if what == "level1":
        said, true = (column.str.split(".").list.first() for column in (said, true))
    return rows.filter(said == true).height, rows.height


def main(arguments: list[str] | None = None) -> int:
    """Build what is missing, score, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks truth", description=__doc__.split("\n")[0])
    parser.add_argument("workspace", nargs="?", type=Path, help="a workspace built from the log; made if not given")
    parser.add_argument("--family", choices=["A", "B"], help="a log of this family instead of the sample")
    parser.add_argument("--rows", type=float, default=200_000, help="raw rows of that log")
    parser.add_argument("--until", default="", help="table to stop at, such as lexical_groups")
    parser.add_argument("--no-gold", action="store_true", help="leave the gold queries out")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of a table")
    options = parser.parse_args(arguments)
    from curation.errors import CurationError

    corpus = make_corpus(int(options.rows), options.family) if options.family else sample()
    until = options.until or ("lexical_groups" if options.family == "B" else "")
    try:
        found = truth_scores(_workspace(options, corpus, until), corpus)
        if GOLD.exists() and not options.no_gold and not options.family and not until:
            found += _score_gold()
    except CurationError as error:
        raise SystemExit(str(error)) from error
    table = [[score.group, score.name, _figure(score, options.json), score.of] for score in found]
    print_table(["what", "score", "value", "of"], table, as_json=options.json)
    return 0


def _workspace(options: argparse.Namespace, corpus: Corpus, until: str) -> Any:
    if options.workspace:
        from curation import Workspace

        return Workspace(options.workspace)
    root = CACHE / (f"truth-{options.family}-{int(options.rows)}" if options.family else "truth")
    log = {"path": str(corpus.log), "text": "query", "time": "ts", "source": "source"}
    return build(root, log, (f"+{until}",) if until else ())


def _score_gold() -> list[s.Score]:
    gold = pl.read_ndjson(GOLD)
    with tempfile.TemporaryDirectory(prefix="gold-") as root:
        # The file is read where it lies; the workspace with its texts goes when the scores are there.
        workspace = build(Path(root), {"path": str(GOLD), "text": "query", "format": "jsonl"}, ("+difficulty",))
        return gold_scores(workspace, gold)


def _figure(score: s.Score, as_json: bool) -> Any:
    if as_json:
        return None if score.value is None else round(score.value, 6)
    return "-" if score.value is None else f"{score.value:.3f}"


if __name__ == "__main__":
    raise SystemExit(main())
