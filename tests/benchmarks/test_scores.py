"""Scores by hand on a log of a few rows."""

from __future__ import annotations

import polars as pl
import pytest

from tests.benchmarks import scores as s

SPAN = pl.Struct({"dimension": pl.String, "value": pl.String, "text": pl.String, "start": pl.Int16, "end": pl.Int16})


def values(found: list[s.Score]) -> dict[str, float | None]:
    return {score.name: score.value for score in found}


def truth_row(row, query, leaf="a.x", duplicate=0, paraphrase=0, noise="clean", level=(1, 2), **other):
    labels = {
        "file": "f", "row": row, "query": query, "leaf": leaf, "secondary": [], "duplicate_group": duplicate,
        "paraphrase_group": paraphrase, "noise": noise, "difficulty_min": level[0], "difficulty_max": level[1],
        "reason": None, "lang": "en", "personal_data": [], "broken": None, "constraints": [],
    }  # fmt: skip
    return labels | other


def frame(rows):
    schema = {
        "secondary": pl.List(pl.String), "personal_data": pl.List(pl.String), "constraints": pl.List(SPAN),
        "reason": pl.String, "broken": pl.String,
    }  # fmt: skip
    return pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)


def seen(*ids):
    return pl.DataFrame({"file": "f", "row": range(len(ids)), "query_id": ids}, schema_overrides={"row": pl.UInt64})


def groups(**representative):
    pairs = {int(k[1:]): v for k, v in representative.items()}
    return pl.DataFrame({"query_id": list(pairs), "representative_id": list(pairs.values())})


@pytest.fixture
def truth():
    rows = [
        truth_row(0, "cat cafe", duplicate=1, paraphrase=1),
        truth_row(1, "cat cafe", duplicate=1, paraphrase=1),
        truth_row(2, "um cat cafe", duplicate=1, paraphrase=1, noise="filler"),
        truth_row(3, "cafe with cats", duplicate=2, paraphrase=1, leaf="a.x"),
        truth_row(4, "hello", duplicate=3, paraphrase=3, leaf="b.y", level=(0, 0), reason="no_tool_needed"),
        truth_row(5, "call me", duplicate=4, paraphrase=4, leaf="b.z", level=(-1, -1), reason="missing_tool"),
    ]
    return s.query_truth(frame(rows), seen(10, 10, 11, 12, 13, 14))


def test_query_truth_counts_rows_and_takes_the_majority():
    rows = [
        truth_row(0, "go", duplicate=5, noise="typo"),
        truth_row(1, "go", duplicate=5),
        truth_row(2, "go", duplicate=6, leaf="c.other"),
    ]
    one = s.query_truth(frame(rows), seen(7, 7, 7)).row(0, named=True)
    assert (one["duplicate_group"], one["weight"], one["noise"], one["leaf"]) == (5, 3, "clean", "a.x")


def test_removals_are_right_within_their_group(truth):
    found = values(
        s.group_scores(groups(q10=10, q11=10, q12=10, q13=13, q14=13), truth, "duplicate_group", "lexical")
    )
    # Removed: 11 (right), 12 (other words), 14 (wrong); removable: 11 alone.
    assert found["removal precision, same duplicate"] == pytest.approx(1 / 3)
    assert found["removal recall, same duplicate"] == 1
    found = values(s.group_scores(groups(q10=10, q12=10, q13=13, q14=14), truth, "paraphrase_group", "semantic"))
    assert found == {
        "removal precision, same paraphrase": 1,
        "removal precision by raw rows, same paraphrase": 1,
        "removal recall, same paraphrase": 1,
    }


def test_nothing_removed_has_no_precision(truth):
    found = values(s.group_scores(groups(q10=10, q13=13), truth, "duplicate_group", "lexical"))
    assert found["removal precision, same duplicate"] is None
    assert found["removal recall, same duplicate"] is None


def test_noise_recall_counts_distorted_queries_with_siblings(truth):
    assert s.noise_recall(groups(q10=10, q11=10, q12=12), truth) == [
        s.Score("lexical by noise", "recall, filler", 1.0, 1)
    ]
    assert s.noise_recall(groups(q10=10, q11=11, q12=12), truth)[0].value == 0


def test_labels_by_queries_and_by_raw_rows(truth):
    annotations = pl.DataFrame(
        {
            "query_id": [10, 12, 13, 14],
            "primary": ["a.x", "a.w", "b.z", None],
            "secondary": [["b.z"], [], [], []],
            "error": [None, None, None, "no answer"],
        },
        schema_overrides={"secondary": pl.List(pl.String), "error": pl.String},
    )
    found = values(s.label_scores(annotations, truth, groups(q10=10, q11=10, q12=12, q13=13, q14=14)))
    assert found["leaf accuracy, queries"] == pytest.approx(1 / 4)
    assert found["leaf accuracy, raw rows"] == pytest.approx(3 / 6)
    assert found["level1 accuracy, queries"] == pytest.approx(3 / 4)
    assert found["level1 accuracy, raw rows"] == pytest.approx(5 / 6)
    assert found["secondary precision"] == 0
    assert found["secondary recall"] is None


def test_irrelevance_and_reasons(truth):
    difficulty = pl.DataFrame(
        {
            "query_id": [10, 12, 13, 14],
            "difficulty": [2, 0, 0, 0],
            "reason": [None, "no_tool_needed", "no_tool_needed", "no_actionable"],
        }
    )
    found = values(s.irrelevance_scores(difficulty, truth))
    assert found["precision"] == pytest.approx(2 / 3)
    assert found["recall"] == 1
    assert found["reason right where both say unsolvable"] == 0.5
    assert found["-1 or 0 right where both say unsolvable"] == 0.5


def test_difficulty_exact_and_within_one(truth):
    difficulty = pl.DataFrame({"query_id": [10, 12, 13, 14], "difficulty": [2, 3, 0, 5]})
    found = values(s.difficulty_scores(difficulty, truth))
    assert found["exact class, all"] == 0.5
    assert found["within one, all"] == 0.75
    assert found["exact class, solvable"] == 0.5
    assert found["within one, solvable"] == 1


def test_spans_exact_and_touching():
    def span(dimension, start, end):
        return {"dimension": dimension, "value": "v", "text": "t", "start": start, "end": end}

    rows = frame(
        [
            truth_row(0, "cafe near me under 9", constraints=[span("spatial_scope", 5, 12), span("budget", 13, 20)]),
            truth_row(1, "broken", constraints=[span("time", None, None)]),
        ]
    ).with_columns(query_id=pl.Series([1, 2]))
    annotations = pl.DataFrame(
        {
            "query_id": [1, 2],
            "constraints": [[span("spatial_scope", 5, 12), span("budget", 19, 20), span("time.when", 0, 4)], []],
        },
        schema_overrides={"constraints": pl.List(SPAN)},
    )
    queries = pl.DataFrame({"query_id": [1, 2], "text": ["cafe near me under 9", "broken"]})
    found = values(s.constraint_scores(annotations, queries, rows))
    assert found["exact span precision"] == pytest.approx(1 / 3)
    assert found["exact span recall"] == pytest.approx(1 / 2)
    assert found["overlap precision"] == pytest.approx(2 / 3)
    assert found["overlap recall"] == 1


def test_edges_seams_and_optional_words_are_no_mistakes():
    def span(dimension, start, end):
        return {"dimension": dimension, "value": "v", "text": "t", "start": start, "end": end}

    query = "pizza for two on Sunday at 8 pm"
    marked = [span("optional", 0, 5), span("party", 6, 13), span("time", 17, 23), span("time", 27, 31)]
    rows = frame([truth_row(0, query, constraints=marked)]).with_columns(query_id=pl.Series([1]))
    said = [span("preference.taste", 0, 5), span("party", 10, 13), span("time.when", 14, 31)]
    annotations = pl.DataFrame(
        {"query_id": [1], "constraints": [said]}, schema_overrides={"constraints": pl.List(SPAN)}
    )
    queries = pl.DataFrame({"query_id": [1], "text": [query]})
    found = values(s.constraint_scores(annotations, queries, rows))
    assert found["exact span precision"] == found["exact span recall"] == 1
    assert found["overlap precision"] == found["overlap recall"] == 1


def test_masking_by_kind(truth):
    personal = pl.when(pl.col("query_id") == 14).then(pl.lit(["phone"])).otherwise(pl.col("personal_data"))
    truth = truth.with_columns(personal.alias("personal_data"))
    queries = pl.DataFrame(
        {"query_id": [10, 14], "masked": [["plate"], ["phone"]]}, schema_overrides={"masked": pl.List(pl.String)}
    )
    assert values(s.masking_scores(queries, truth)) == {"precision": 0.5, "recall": 1, "recall, phone": 1}


def test_rejects_against_broken_rows():
    rows = frame([truth_row(0, None, broken="null_text"), truth_row(1, "x"), truth_row(2, "", broken="empty")])
    rejects = pl.DataFrame(
        {
            "stage": ["ingest", "ingest", "synthesis"],
            "file": ["f", "f", None],
            "row": [0, 1, None],
            "reason": ["empty", "binary", "empty"],
        }
    )
    found = values(s.reject_scores(rejects, rows))
    assert found == {"precision": 0.5, "recall": 0.5, "reason right": 0}
