"""Labels of several people."""

from __future__ import annotations

import polars as pl

from curation.taxonomy.labellers import differences, label_sets, settled


def rows(*given):
    """Rows of (query, labeller, primary, secondary, tags)."""
    return pl.DataFrame(
        [
            {
                "query_id": query,
                "text": str(query),
                "lang": None,
                "tags": tags,
                "primary": primary,
                "secondary": secondary,
                "reason": None,
                "labelled_by": who,
                "version": "1",
            }
            for query, who, primary, secondary, tags in given
        ],
        schema_overrides={"query_id": pl.UInt64, "tags": pl.List(pl.String), "secondary": pl.List(pl.String)}
        | dict.fromkeys(["lang", "primary", "reason", "labelled_by"], pl.String),
    )


def test_most_labellers_decide_and_a_draw_decides_nothing():
    out = settled(
        rows(
            (1, "ana", "a", ["x", "y"], ["t"]),
            (1, "ben", "b", ["z"], ["u", "t"]),
            (1, "eve", "a", ["x"], []),
            (2, "ana", "a", [], ["t"]),
            (2, "ben", "b", [], []),
            (3, None, "c", ["x"], []),
            (4, "ana", None, [], ["only a tag"]),
        )
    )
    found = {row["query_id"]: row for row in out.rows(named=True)}
    assert list(found) == [1, 2, 3, 4]
    assert (found[1]["primary"], found[1]["secondary"], found[1]["tags"]) == ("a", ["x"], ["t", "u"])
    assert found[1]["labelled_by"] == "ana, ben, eve"
    assert (found[2]["primary"], found[2]["disputed"], found[2]["tags"]) == (None, True, ["t"])
    assert (found[3]["primary"], found[3]["secondary"], found[3]["disputed"]) == ("c", ["x"], False)
    assert (found[4]["primary"], found[4]["disputed"]) == (None, False)


def test_what_each_said_is_a_set_of_leaves_or_of_tags():
    said = label_sets(rows((1, "ana", "a", ["x"], ["t"]), (1, None, None, [], ["t"]), (2, "ana", None, [], [])))
    assert said == {"ana": {1: frozenset("ax")}, "?": {1: frozenset("t")}}


def test_differences_say_who_said_what_and_where():
    given = (
        rows(
            (1, "ana", "a", ["x"], []),
            (1, "ben", "a", ["x"], ["t"]),
            (2, "ana", "a", [], []),
            (2, "ben", "b", [], []),
            (2, "eve", "a", [], []),
            (3, "ana", "a", [], []),
            (3, None, None, [], ["t", "u"]),
            (3, "eve", None, [], []),
            (4, "ana", "a", [], []),
            (4, "ben", "b", [], []),
        )
        .with_row_index("place", offset=2)
        .with_columns(pl.format("line {}", "place").alias("place"))
    )
    assert differences(given) == [
        ("4", [("line 10", "ana", "a"), ("line 11", "ben", "b")], False),
        ("2", [("line 4", "ana", "a"), ("line 5", "ben", "b"), ("line 6", "eve", "a")], True),
        ("3", [("line 7", "ana", "a"), ("line 8", "?", "t; u")], True),
    ]
