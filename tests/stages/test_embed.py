"""Embed: one vector a representative, accounted, whatever the parts and the workers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from curation.stages import embed
from curation.teachers import encoders
from tests.helpers import FakeContext


class Letters(encoders.Encoder):
    """Counts letters; "zero" and "nan" get the vectors that no direction can be read from."""

    dim = 26

    def _encode_chunk(self, texts):
        rows = np.array([[t.count(chr(97 + i)) for i in range(26)] for t in texts], np.float32)
        rows[[t == "zero" for t in texts]] = 0
        rows[[t == "nan" for t in texts]] = np.nan
        return rows

    def _files(self):
        return []

    def _libraries(self):
        return ()


@pytest.fixture
def asked(monkeypatch):
    """Names of the encoders that were loaded."""
    names = []

    def load(name, workers):
        names.append(name)
        return Letters(name, workers)

    monkeypatch.setattr(encoders, "load_encoder", load)
    return names


def tables(texts, merged=0):
    """Queries with weights 1, 2, 3 ...; the last `merged` of them stand in the group of the first."""
    n = len(texts)
    ids = np.arange(10, 10 + n, dtype=np.uint64)
    representative = ids.copy()
    if merged:
        representative[-merged:] = ids[0]
    weight = np.arange(1, n + 1)
    if n:
        weight[representative == ids[0]] = weight[representative == ids[0]].sum()
    queries = pl.DataFrame({"query_id": ids, "text": texts}, schema_overrides={"text": pl.String})
    groups = pl.DataFrame({"query_id": ids, "representative_id": representative, "group_count": weight})
    groups = groups.with_columns(kept=pl.col("query_id") == pl.col("representative_id"))
    return {"queries": queries, "lexical_groups": groups}


def run(inputs, **options):
    return FakeContext(embed.STAGE, inputs, **options).run()


def test_representatives_alone_get_unit_vectors(asked):
    ctx = run(tables(["ab", "b", "ab c", "abab"], merged=1))
    out = ctx.out("embeddings")
    assert out["query_id"].to_list() == [10, 11, 12]
    vectors = out["vector"].to_numpy()
    assert out["vector"].dtype == pl.Array(pl.Float32, 26)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    (account,) = ctx.accounts
    assert (account.rows_in, account.kept, account.weight_in, account.weight_out) == (3, 3, 10, 10)


def test_s3_vectors_without_a_direction_are_rejected_with_their_weight(asked):
    ctx = run(tables(["a", "zero", "nan", "aaa"]))
    rejects = pl.concat(ctx.rejects)
    assert rejects.sort("query_id").select("query_id", "reason", "weight", "text").rows() == [
        (11, "zero_vector", 2, "zero"),
        (12, "nan_vector", 3, "nan"),
    ]
    vectors = ctx.out("embeddings")["vector"].to_numpy()
    np.testing.assert_array_equal(vectors[0], vectors[1])
    (account,) = ctx.accounts
    assert (account.rows_in, account.kept, account.weight_in, account.weight_out) == (4, 2, 10, 5)


def test_t10_parts_and_workers_change_nothing(asked, monkeypatch):
    inputs = tables(["abc"[: 1 + i % 3] * (1 + i % 5) for i in range(50)])
    whole = run(inputs, workers=1).out("embeddings")
    monkeypatch.setattr(embed, "_PART", 7)
    ctx = run(inputs, workers=3)
    assert len(ctx.tables["embeddings"]) == 8
    assert ctx.out("embeddings").equals(whole)
    assert sum(account.rows_in for account in ctx.accounts) == 50


def test_auto_goes_by_the_number_of_representatives(asked):
    for limit, name in ((3, encoders.USE), (2, encoders.STATIC)):
        run(tables(["a", "b", "c", "d"], merged=1), params={"auto_limit": limit})
        assert asked[-1] == name


def test_no_rows_make_an_empty_table_of_the_right_width(asked):
    out = run(tables([])).out("embeddings")
    assert out.height == 0
    assert out["vector"].dtype == pl.Array(pl.Float32, 26)


def test_t7_every_script_gets_a_vector():
    texts = ["من أين", "ร้านอาหาร", "पास का होटल", "🙂", "？？", "关灯", "quiet café"]
    out = run(tables(texts), workers=1).out("embeddings")
    assert out.height == len(texts)
    assert len(np.unique(out["vector"].to_numpy(), axis=0)) == len(texts)


def test_vectors_of_unchanged_texts_are_taken_from_the_last_run(monkeypatch):
    encoded = []

    class Noting(Letters):
        def _encode_chunk(self, texts):
            encoded.extend(texts)
            return super()._encode_chunk(texts)

    monkeypatch.setattr(encoders, "load_encoder", Noting)
    before = tables(["ab", "b", "abc"])
    last = before | {"embeddings": run(before).out("embeddings")}
    now = tables(["ab", "changed", "abc", "new"])
    encoded.clear()
    again = run(now, previous=last).out("embeddings")
    assert encoded == ["changed", "new"]
    assert again.equals(run(now).out("embeddings"))


@pytest.mark.parametrize("params", [{"reuse": "never"}, {"auto_limit": 3}])
def test_vectors_are_encoded_anew_where_asked_or_where_another_encoder_made_them(asked, monkeypatch, params):
    encoded = []
    monkeypatch.setattr(Letters, "encode", lambda self, texts: encoded.extend(texts) or np.eye(26)[: len(texts)])
    before = tables(["ab", "b", "abc"])
    last = before | {"embeddings": run(before).out("embeddings")}
    encoded.clear()
    run(tables(["ab", "b", "abc", "new"]), previous=last, params=params)
    assert encoded == ["ab", "b", "abc", "new"]


def test_models_whose_last_bits_depend_on_the_batch_are_reused_on_demand_alone(monkeypatch):
    encoded = []

    class Batchy(Letters):
        alone = False

        def _encode_chunk(self, texts):
            encoded.extend(texts)
            return super()._encode_chunk(texts)

    monkeypatch.setattr(encoders, "load_encoder", Batchy)
    given = tables(["ab", "b"])
    last = given | {"embeddings": run(given).out("embeddings")}
    for reuse, count in (("exact", 2), ("always", 0)):
        encoded.clear()
        run(given, previous=last, params={"reuse": reuse})
        assert len(encoded) == count
