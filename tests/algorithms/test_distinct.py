from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.distinct import encode, group_rows, merge_groups, partition_of, separate
from curation.algorithms.timestamps import NO_FIRST, NO_LAST

SCHEMA = {
    "query_id": pl.UInt64, "norm": pl.String, "text": pl.String, "source": pl.String,
    "count": pl.Int64, "first": pl.Int64, "last": pl.Int64,
}  # fmt: skip


def groups(*rows: tuple) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def test_encode_gives_places_and_distinct_texts():
    places, distinct = encode(pl.Series(["b", None, "a", "b", ""]))
    assert places.tolist() == [0, -1, 1, 0, 2]
    assert distinct.to_list() == ["b", "a", ""]
    places, distinct = encode(pl.Series([], dtype=pl.String))
    assert len(places) == len(distinct) == 0


def test_group_rows_counts_and_spans_time():
    time = pl.Series([3, 1, None, None]).cast(pl.Datetime("us"))
    rows = pl.DataFrame({"slot": [0, 0, 0, 1], "source": ["a", "a", None, "a"], "time": time})
    assert group_rows(rows).rows() == [
        (0, None, 1, NO_FIRST, NO_LAST),
        (0, "a", 2, 1, 3),
        (1, "a", 1, NO_FIRST, NO_LAST),
    ]


def test_partitions_are_the_top_bits():
    assert partition_of(np.array([0, 2**58 - 1, 2**58, 2**64 - 1], np.uint64)).tolist() == [0, 0, 1, 63]


def test_the_most_frequent_surface_form_is_the_text_and_the_smallest_of_equals():
    merged, surfaces = merge_groups(
        groups(
            (1, "a", "A", "x", 2, 5, 5),
            (1, "a", "a", "x", 1, 1, 1),
            (1, "a", "a", "y", 1, 9, 9),
            (2, "b", "é", None, 3, NO_FIRST, NO_LAST),
            (2, "b", "z", None, 3, NO_FIRST, NO_LAST),
        )
    )
    rows = merged.select("query_id", "text", "norm", "count", "sources").rows()
    assert rows == [(1, "A", "a", 4, ["x", "y"]), (2, "z", "b", 6, [])]
    assert merged["first_seen"].cast(pl.Int64).to_list() == [1, None]
    assert merged["last_seen"].cast(pl.Int64).to_list() == [9, None]
    assert sorted(surfaces.rows()) == [("A", 2), ("a", 2), ("z", 3), ("é", 3)]


def test_no_groups():
    merged, _ = merge_groups(groups())
    assert merged.is_empty() and merged.schema["sources"] == pl.List(pl.String)
    assert separate(groups())[1] == []


def test_normal_forms_with_one_hash_are_told_apart():
    rows = [(7, "b", "B", None, 1, 0, 0), (7, "a", "a", None, 1, 0, 0), (7, "b", "b", None, 5, 0, 0)]
    apart, collisions = separate(groups(*rows, (8, "c", "c", None, 1, 0, 0)))
    assert [(c.query_id, c.norm) for c in collisions] == [(7, "b")]
    ids = dict(zip(apart["norm"], apart["query_id"], strict=True))
    assert ids["a"] == 7 and ids["c"] == 8
    assert ids["b"] == collisions[0].new_id and apart["query_id"].n_unique() == 3
    assert partition_of(np.array([ids["b"]], np.uint64)).tolist() == [0]
    again, same = separate(groups(*reversed(rows), (8, "c", "c", None, 1, 0, 0)))
    assert same == collisions
    assert merge_groups(again)[0].equals(merge_groups(apart)[0])


rows_of_a_log = st.lists(
    st.tuples(st.sampled_from("aAbBcC"), st.sampled_from([None, "x", "y"]), st.integers(0, 9)), max_size=30
)


@settings(deadline=None)
@given(rows_of_a_log, st.integers(1, 4), st.randoms())
def test_t10_merging_equals_counting_rows_one_by_one(rows, batches, rng: random.Random):
    """However the rows are ordered and cut into batches."""
    rng.shuffle(rows)
    parts = []
    for batch in (rows[at::batches] for at in range(batches)):
        slots, texts = encode(pl.Series([text for text, _, _ in batch], dtype=pl.String))
        frame = pl.DataFrame(
            {"slot": slots, "source": [row[1] for row in batch], "time": [row[2] for row in batch]},
            schema={"slot": pl.Int64, "source": pl.String, "time": pl.Int64},
        ).cast({"time": pl.Datetime("us")})
        grouped = group_rows(frame)
        texts = texts.gather(grouped["slot"])
        norms = texts.str.to_lowercase()
        ids = norms.replace_strict({"a": 1, "b": 2, "c": 3}, return_dtype=pl.UInt64)
        parts.append(grouped.with_columns(query_id=ids, norm=norms, text=texts).select(list(SCHEMA)))
    merged, _ = merge_groups(pl.concat(parts))
    by_norm = defaultdict(list)
    for row in rows:
        by_norm[row[0].lower()].append(row)
    expected = []
    for place, norm in enumerate("abc", 1):
        if found := by_norm.get(norm):
            text = min(Counter(row[0] for row in found).items(), key=lambda item: (-item[1], item[0]))[0]
            times = [row[2] for row in found]
            sources = sorted({row[1] for row in found} - {None})
            expected.append((place, text, norm, len(found), min(times), max(times), sources))
    assert merged.cast({"first_seen": pl.Int64, "last_seen": pl.Int64}).rows() == expected


@pytest.mark.parametrize("count", [2, 50])
def test_many_normal_forms_with_one_hash(count):
    rows = [(2**63 + 5, f"n{at}", f"n{at}", None, 1, 0, 0) for at in range(count)]
    apart, collisions = separate(groups(*rows))
    assert apart["query_id"].n_unique() == count and len(collisions) == count - 1
    assert set(partition_of(apart["query_id"].to_numpy()).tolist()) == {32}
