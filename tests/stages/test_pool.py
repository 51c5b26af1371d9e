"""The pool stage on tables small enough to check by hand."""

from __future__ import annotations

import polars as pl
import pytest
from pydantic import ValidationError

from curation.stages.pool import STAGE, PoolParams
from tests.helpers import FakeContext

IDS = pl.UInt64
PLAN = pl.List(pl.Struct({"step": pl.Int32, "tool": pl.String, "depends_on": pl.List(pl.Int32)}))
SPANS = pl.List(
    pl.Struct({"dimension": pl.String, "value": pl.String, "text": pl.String, "start": pl.Int32, "end": pl.Int32})
)
STEP = [{"step": 1, "tool": "search", "depends_on": []}]


def frame(columns, *rows, **types):
    schema = {name: types.get(name, pl.String) for name in columns.split()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def inputs():
    """Queries 1 (pick), 2 (covered by 1), 3 (pick, to refuse); 1 also with its tool taken away; 9 is synthetic."""
    groups = "query_id representative_id similarity group_count"
    kinds = {"query_id": IDS, "representative_id": IDS, "similarity": pl.Float32, "group_count": pl.Int64}
    scores = dict.fromkeys(("cognitive_load", "chain_depth", "constraint_complexity"), pl.Float32)
    marks = "difficulty cognitive_load chain_depth constraint_complexity tool_plan"
    return {
        "queries": frame(
            "query_id text lang count",
            (1, "a", "en", 5),
            (2, "b", "en", 2),
            (3, "c", "zh", 1),
            query_id=IDS,
            count=pl.Int64,
        ),
        "selection": frame("query_id bucket rank", (1, "x.y|", 1), (3, "o|", 2), query_id=IDS, rank=pl.Int64),
        "geometric_groups": frame(groups, (1, 1, 1, 7), (2, 1, 0.5, 7), (3, 3, 1, 1), **kinds),
        "semantic_groups": frame(
            groups + " bucket", (1, 1, 1, 5, "x.y|"), (2, 2, 1, 2, "x.y|"), (3, 3, 1, 1, "o|"), **kinds
        ),
        "difficulty": frame(
            f"query_id {marks} reason",
            (1, 2, 1, 1, 1, STEP, None),
            (2, 1, 1, 1, 1, STEP, None),
            (3, -1, 1, 0, 0, [], "missing_tool"),
            query_id=IDS,
            difficulty=pl.Int8,
            tool_plan=PLAN,
            **scores,
        ),
        "annotations": frame(
            "query_id primary secondary constraints confidence",
            *((i, leaf, [], [], 0.9) for i, leaf in ((1, "x.y"), (2, "x.y"), (3, "o"))),
            query_id=IDS,
            secondary=pl.List(pl.String),
            constraints=SPANS,
            confidence=pl.Float32,
        ),
        "taxonomy": frame("node_id parent_id level", ("x", None, 1), ("x.y", "x", 2), ("o", None, 1), level=pl.Int32),
        "irrelevance": frame(
            "query_id difficulty reason origin removed_tools",
            (3, -1, "missing_tool", "observed", []),
            (1, -1, "missing_tool", "tool_removed", ["search"]),
            query_id=IDS,
            difficulty=pl.Int8,
            removed_tools=pl.List(pl.String),
        ),
        "synthetic": frame(
            f"query_id text lang primary secondary constraints confidence {marks} parents verdict",
            (9, "made", "en", "x.y", [], [], 0.8, 5, 1, 3, 1, STEP, [1], "verified"),
            (8, "bad", "en", "x.y", [], [], 0.8, 5, 1, 3, 1, STEP, [1], "rejected"),
            query_id=IDS,
            secondary=pl.List(pl.String),
            constraints=SPANS,
            confidence=pl.Float32,
            difficulty=pl.Int8,
            tool_plan=PLAN,
            parents=pl.List(IDS),
            **scores,
        ),
    }


def pool(**params):
    done = FakeContext(STAGE, inputs(), params={"size": 4, **params}).run()
    return done, done.out("candidate_pool")


def test_every_origin_is_there_with_its_labels():
    _, table = pool()
    rows = {(row["query_id"], row["origin"]): row for row in table.to_dicts()}
    assert set(rows) == {(1, "observed"), (3, "observed"), (1, "tool_removed"), (9, "synthetic")}
    assert rows[1, "observed"]["represents"] == 7
    assert rows[1, "observed"]["count"] == 5
    assert rows[1, "observed"]["level1"] == "x"
    removed = rows[1, "tool_removed"]
    assert (removed["difficulty"], removed["reason"], removed["tool_plan"]) == (-1, "missing_tool", [])
    assert removed["removed_tools"] == ["search"]
    assert removed["represents"] == 0
    assert rows[9, "synthetic"]["parents"] == [1]


def test_the_account_takes_in_the_picks_and_adds_what_was_made():
    done, _ = pool()
    (account,) = done.accounts
    assert (account.rows_in, account.kept, account.added) == (2, 2, 2)
    assert account.weight_in == account.weight_out == 8
    assert done.metrics["shortfall"] == 0


def test_tiny_is_an_exact_share_that_the_seed_decides():
    _, half = pool(tiny_share=0.5)
    assert half["split"].value_counts().sort("split")["count"].to_list() == [2, 2]
    _, none = pool(tiny_share=0.0)
    assert none["split"].unique().to_list() == ["main"]


def test_shares_stand_next_to_their_targets():
    done, _ = pool(difficulty={2: 0.5, 4: 0.5}, size=6)
    shares = {(row["share_of"], row["name"]): row for row in done.out("pool_shares").to_dicts()}
    assert shares["difficulty", "2"]["share"] == 0.25
    assert shares["difficulty", "2"]["target"] == 0.5
    assert shares["difficulty", "4"] | {"available": None} == {
        "share_of": "difficulty",
        "name": "4",
        "rows": 0,
        "share": 0.0,
        "target": 0.5,
        "available": None,
    }
    assert shares["difficulty", "-1"]["rows"] == 2
    assert shares["bucket", "x.y|"]["available"] == 2
    assert done.metrics["shortfall"] == 2


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({1: 0.9, 2: 0.9}, "sum to 1.8"),
        (dict.fromkeys(range(-1, 6), 0.1), "sum to 0.7"),
        ({1: 0.0}, "sum to 0"),
        ({7: 0.5}, "one of -1 to 5, not 7"),
        ({1: -0.5}, "not negative"),
        ({1: float("nan")}, "finite"),
    ],
)
def test_shares_that_cannot_be_are_refused_with_the_recipe(shares, said):
    with pytest.raises(ValidationError, match=said):
        PoolParams(difficulty=shares)


def test_made_candidates_leave_room_for_observed_ones():
    with pytest.raises(ValidationError, match="less than a tenth"):
        PoolParams(tool_removed_share=0.5, synthetic_share=0.5)
