"""Traces through all levels, on tables small enough to follow by hand."""

from __future__ import annotations

import polars as pl
import pytest

from curation.errors import CurationError
from curation.report.trace import trace_query, trace_row

IDS = pl.UInt64


class Tables:
    """Stands for a workspace: query 1 is the pick; 2 merged lexically into 1, 3 semantically, 4 geometrically."""

    def __init__(self) -> None:
        def groups(*rows):
            schema = {"query_id": IDS, "representative_id": IDS, "similarity": pl.Float32, "group_count": pl.Int64}
            return pl.DataFrame(rows, schema=schema, orient="row")

        self.frames = {
            "queries": pl.DataFrame(
                {"query_id": [1, 2, 3, 4, 5], "text": list("abcde")}, schema_overrides={"query_id": IDS}
            ),
            "lexical_groups": groups((1, 1, 1, 3), (2, 1, 0.8, 3), (3, 3, 1, 1), (4, 4, 1, 1), (5, 5, 1, 1)),
            "semantic_groups": groups((1, 1, 1, 4), (3, 1, 0.95, 4), (4, 4, 1, 1)),
            "geometric_groups": groups((1, 1, 1, 5), (4, 1, 0.6, 5)),
            "candidate_pool": pl.DataFrame(
                {"query_id": [1], "candidate_id": [77]}, schema=dict.fromkeys(("query_id", "candidate_id"), IDS)
            ),
            "occurrences": pl.DataFrame(
                {"file": ["f"] * 6, "row": range(6), "query_id": [1, 1, 2, 3, 4, 5]},
                schema={"file": pl.String, "row": IDS, "query_id": IDS},
            ),
            "rejects": pl.DataFrame(
                {
                    "file": ["f", None],
                    "row": [9, None],
                    "query_id": [None, 5],
                    "stage": ["ingest", "embed"],
                    "text": ["", "e"],
                },
                schema={"file": pl.String, "row": IDS, "query_id": IDS, "stage": pl.String, "text": pl.String},
            ),
        }

    def tables(self):
        return list(self.frames)

    def table(self, name):
        return self.frames[name].lazy()


def test_a_candidate_leads_back_to_every_raw_row_it_stands_for():
    found = trace_query(Tables(), 77)
    assert found.query["query_id"] == 1
    assert found.raw_total == 5
    assert [raw["row"] for raw in found.raw] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("query", "levels"), [(2, 3), (3, 3), (4, 3)])
def test_a_merged_query_leads_forward_to_its_candidate(query, levels):
    found = trace_query(Tables(), query)
    assert [candidate["candidate_id"] for candidate in found.candidates] == [77]
    assert len(found.path) == levels


def test_a_raw_row_leads_forward_even_when_it_was_rejected():
    assert trace_row(Tables(), "f", 2).candidates
    assert trace_row(Tables(), "f", 9).rejects[0]["stage"] == "ingest"
    assert trace_query(Tables(), 5).rejects[0]["stage"] == "embed"


def test_unknown_ids_and_rows_are_told():
    with pytest.raises(CurationError, match="has the id 99"):
        trace_query(Tables(), 99)
    with pytest.raises(CurationError, match="no row 50"):
        trace_row(Tables(), "f", 50)
