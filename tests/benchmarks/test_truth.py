"""The truth told back as the tables of a run scores 1 everywhere; a log of another make is refused."""

from __future__ import annotations

import polars as pl
import pytest

from curation import Recipe, Workspace
from curation.engine.session import Session
from curation.stages import ingest
from tests.benchmarks import scores as s
from tests.benchmarks.corpus import make_corpus
from tests.benchmarks.truth import gold_scores, truth_scores


class Told:
    """A workspace whose later tables are told by the test."""

    root = "told"

    def __init__(self, tables):
        self._tables = tables

    def tables(self):
        return list(self._tables)

    def table(self, name):
        return self._tables[name].lazy()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return make_corpus(4000, "A", directory=tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def tables(corpus, tmp_path_factory):
    root, stages = tmp_path_factory.mktemp("workspace"), {"ingest": ingest.STAGE}
    recipe = Recipe.from_dict({"log": {"path": str(corpus.log)}}, root=root, stages=stages)
    with Session(recipe, root, stages=stages) as session:
        session.run()
    workspace = Workspace(root)
    return {name: workspace.table(name).collect() for name in ("queries", "occurrences", "rejects")}


def perfect(tables, corpus):
    truth = s.query_truth(corpus.rows(), tables["occurrences"])
    first = pl.col("query_id").min()
    lexical = truth.select("query_id", first.over("duplicate_group").alias("representative_id"))
    kept = truth.filter(pl.col("query_id").is_in(lexical["representative_id"].unique().to_list()))
    annotations = kept.select("query_id", pl.col("leaf").alias("primary"), "secondary", "constraints").with_columns(
        error=pl.lit(None, pl.String)
    )
    semantic = kept.select("query_id", first.over("paraphrase_group").alias("representative_id"))
    survivors = kept.filter(pl.col("query_id").is_in(semantic["representative_id"].unique().to_list()))
    difficulty = survivors.select("query_id", pl.col("difficulty_max").alias("difficulty"), "reason")
    return tables | {
        "lexical_groups": lexical, "annotations": annotations, "semantic_groups": semantic, "difficulty": difficulty,
    }  # fmt: skip


def test_truth_told_back_scores_one(tables, corpus):
    found = truth_scores(Told(perfect(tables, corpus)), corpus)
    assert {score.group for score in found} == {
        "rejects", "masking", "language", "lexical", "lexical by noise", "labels", "constraints", "semantic",
        "irrelevance", "difficulty",
    }  # fmt: skip
    made_by_ingest = {"rejects", "masking", "language"}
    # A query's text may be another of its surface forms than the row its spans were told from.
    enough = {"constraints": 0.98}
    told = [x for x in found if x.group not in made_by_ingest and x.value is not None]
    assert [x for x in told if x.value < enough.get(x.group, 1)] == []


def test_scores_stop_where_the_tables_stop(tables, corpus):
    assert {score.group for score in truth_scores(Told(tables), corpus)} == {"rejects", "masking", "language"}


def test_workspace_of_another_log_is_refused(tables, corpus):
    other = tables | {"occurrences": tables["occurrences"].with_columns(file=pl.lit("else.parquet"))}
    with pytest.raises(SystemExit, match="was not made from the log"):
        truth_scores(Told(other), corpus)


def test_gold_rows_are_read_through_their_representatives():
    gold = pl.DataFrame(
        {
            "primary_intent": ["a.x", "a.x", "a.y", "b.z"],
            "missing_tool": [False, False, False, True],
            "missing_info": [False] * 4,
            "no_actionable": [False] * 4,
            "avg_tool_calls": [1.0, 2.0, 5.0, None],
        }
    )
    plan = pl.List(pl.Struct({"step": pl.Int32}))
    told = Told(
        {
            "occurrences": pl.DataFrame(
                {"row": [0, 1, 2, 3], "query_id": [1, 2, 3, 4]}, schema_overrides={"row": pl.UInt64}
            ),
            "lexical_groups": pl.DataFrame({"query_id": [1, 2, 3, 4], "representative_id": [1, 1, 3, 4]}),
            "semantic_groups": pl.DataFrame({"query_id": [1, 3, 4], "representative_id": [1, 3, 4]}),
            "annotations": pl.DataFrame({"query_id": [1, 3, 4], "primary": ["a.x", "a.x", "b.z"]}),
            "difficulty": pl.DataFrame(
                {"query_id": [1, 3, 4], "difficulty": [1, 4, -1], "reason": [None, None, "missing_tool"],
                 "tool_plan": [[{"step": 1}], [{"step": 1}, {"step": 2}], []]},
                schema_overrides={"tool_plan": plan},
            ),
        }
    )  # fmt: skip
    found = {score.name: score.value for score in gold_scores(told, gold)}
    assert found["level1 accuracy"] == 1
    assert found["leaf accuracy"] == 0.75
    assert found["irrelevance precision"] == found["irrelevance recall"] == 1
    assert found["reason right where both say unsolvable"] == 1
    # Ranks of 1, 1, 4 against those of 1, 2, 5: the tie costs what it costs.
    assert found["Spearman of difficulty with mean tool calls"] == pytest.approx(0.8660254)
