"""Annotate: every vector gets its labels or its error, in parts, accounted."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from curation.domain import load_domain
from curation.errors import CurationError
from curation.stages import annotate, seeds
from curation.taxonomy import operations as ops
from curation.taxonomy.tables import migrations_frame, nodes_frame
from curation.taxonomy.versions import History, Record
from curation.teachers import encoders
from curation.teachers.embedded.teacher import EmbeddedTeacher
from tests.helpers import FakeContext
from tests.teachers.test_teacher import LABELS, SEEDS, TREE, encode, frame, seed_table

SHARED = {
    "embed": SimpleNamespace(encoder="auto", encoder_directory=None, auto_limit=10),
    "taxonomy": SimpleNamespace(base=None, induce=False),
}
TEXTS = [
    f"{verb} {noun}" for verb in ("play", "rain", "radio", "order") for noun in ("jazz", "today", "station", "x")
]


@pytest.fixture
def asked(monkeypatch):
    """Names of the encoders that were loaded; they all make the vectors of `encode`."""
    names = []

    def load(name, workers):
        names.append(name)
        return SimpleNamespace(encode=encode, quick=lambda: SimpleNamespace(encode=encode))

    monkeypatch.setattr(encoders, "load_encoder", load)
    return names


@pytest.fixture
def domain(tmp_path):
    (tmp_path / "taxonomy.yaml").write_text(TREE)
    return load_domain(tmp_path)


def tables(domain, texts, vectors=None):
    """What the stage reads, for representatives that stand for 1, 2, 3 ... raw rows."""
    queries = frame(texts)
    vectors = encode(texts) if vectors is None else vectors
    return {
        "queries": queries,
        "embeddings": queries.select("query_id").with_columns(
            vector=pl.Series(vectors, dtype=pl.Array(pl.Float32, vectors.shape[1]))
        ),
        "lexical_groups": queries.select(
            "query_id",
            representative_id="query_id",
            kept=pl.lit(True),
            group_count=pl.col("query_id").cast(pl.Int64),
        ),
        "seeds": seed_table(LABELS),
        **versions(domain, History(domain.taxonomy)),
    }


def versions(domain, history):
    return {
        "taxonomy": nodes_frame(history, history.newest.name),
        "taxonomy_migrations": migrations_frame(history),
    }


def run(domain, inputs, **options):
    options["params"] = {"student": "never"} | options.get("params", {})
    ctx = FakeContext(annotate.STAGE, inputs, domain=domain, shared=SHARED, **options)
    with TemporaryDirectory() as keep:
        ctx.keep = Path(keep)
        return ctx.run()


def test_every_vector_gets_labels(domain, asked):
    ctx = run(domain, tables(domain, TEXTS))
    out = ctx.out("annotations")
    assert out["query_id"].to_list() == list(range(1, 17))
    assert set(out["primary"]) <= {*SEEDS, "other", "media.other"}
    (account,) = ctx.accounts
    assert (account.rows_in, account.kept, account.weight_in, account.weight_out) == (16, 16, 136, 136)
    assert ctx.metrics["examples"] == 17
    assert 0 <= ctx.metrics["left_out_leaf_accuracy"] <= 1


def test_s3_rows_that_cannot_be_labelled_are_failed_not_guessed(domain, asked):
    vectors = encode(TEXTS)
    vectors[2] = np.nan
    ctx = run(domain, tables(domain, TEXTS, vectors))
    row = ctx.out("annotations").row(2, named=True)
    assert row["primary"] is None and "vector" in row["error"]
    (account,) = ctx.accounts
    assert (account.kept, account.failed) == (15, 1)
    assert (account.weight_out, account.weight_failed) == (133, 3)


def test_t10_parts_and_workers_change_nothing(domain, asked, monkeypatch):
    inputs = tables(domain, TEXTS)
    whole = run(domain, inputs, workers=1).out("annotations")
    monkeypatch.setattr(annotate, "_PART", 5)
    ctx = run(domain, inputs, workers=3)
    assert len(ctx.tables["annotations"]) == 4
    assert ctx.out("annotations").equals(whole)
    assert sum(account.weight_in for account in ctx.accounts) == 136


def test_the_seeds_are_encoded_as_the_rows_were(domain, asked):
    run(domain, tables(domain, TEXTS[:10]))
    run(domain, tables(domain, TEXTS[:11]))
    assert asked == [encoders.USE, encoders.STATIC]


def test_no_rows_make_an_empty_table(domain, asked):
    ctx = run(domain, {name: t.clear() if name == "embeddings" else t for name, t in tables(domain, TEXTS).items()})
    assert ctx.out("annotations").height == 0
    assert ctx.accounts[0].rows_in == 0


def test_a_domain_without_labels_is_told(domain, asked):
    inputs = tables(domain, TEXTS)
    inputs["taxonomy"] = inputs["taxonomy"].with_columns(examples=pl.lit([], pl.List(pl.String)))
    inputs["seeds"] = inputs["seeds"].clear()
    with pytest.raises(CurationError, match="no labelled seeds"):
        run(domain, inputs)


def test_it_reads_what_the_seeds_stage_writes(domain, asked, tmp_path):
    (tmp_path / "seeds.yaml").write_text("seeds: {media.music: {en: [sing]}, weather: {en: [rain]}}")
    whole = load_domain(tmp_path)
    inputs = tables(whole, TEXTS)
    empty = {name: inputs[name].clear() for name in ("queries", "lexical_groups", "embeddings")}
    empty |= {name: inputs[name] for name in ("taxonomy", "taxonomy_migrations")}
    inputs["seeds"] = FakeContext(seeds.STAGE, empty, domain=whole, shared=SHARED).run().out("seeds")
    assert run(whole, inputs).metrics["examples"] == 3


def later(domain, inputs, *operations):
    """The inputs after a change of the taxonomy; the seeds are the same, in the words of version 2."""
    history = History(domain.taxonomy)
    history.add(Record(version="3", from_="2", operations=operations))
    return inputs | versions(domain, history)


def with_given(table):
    names = {"given_primary": "primary", "given_secondary": "secondary"}
    return table.with_columns(**{new: pl.col(old) for new, old in names.items()}, given_version=pl.lit("2"))


def test_a_change_annotates_again_only_what_it_touches(domain, asked, monkeypatch):
    monkeypatch.setattr(annotate, "_PART", 5)
    inputs = tables(domain, TEXTS)
    inputs["seeds"] = with_given(inputs["seeds"])
    before = run(domain, inputs).out("annotations")
    touched = before["primary"].str.starts_with("media.")
    change = ops.Add(parent="media", name="podcast", description="Talk.", examples=("play episode",))
    ctx = run(domain, later(domain, inputs, change))
    after = ctx.out("annotations")
    assert set(after["taxonomy_version"]) == {"3"}
    same = after.drop("taxonomy_version").filter(~touched)
    assert same.equals(before.drop("taxonomy_version").filter(~touched))
    further = before["secondary"].list.eval(pl.element().str.starts_with("media.")).list.any()
    assert ctx.metrics["annotated_again"] == (touched | further).sum() > 0


def test_what_the_published_run_labelled_is_taken_up_and_changes_nothing(domain, asked, monkeypatch):
    inputs = tables(domain, TEXTS)
    inputs["seeds"] = with_given(inputs["seeds"])
    before = run(domain, inputs)
    published = inputs | {"annotations": before.out("annotations")}
    leaf = before.out("annotations")["primary"].mode()[0]
    now = later(domain, inputs, ops.Rename(node=leaf, name="renamed"))
    whole = run(domain, now).out("annotations")
    labelled = []
    annotated = EmbeddedTeacher.annotate

    def spy(self, queries, vectors):
        labelled.append(queries.height)
        return annotated(self, queries, vectors)

    monkeypatch.setattr(EmbeddedTeacher, "annotate", spy)
    again = run(domain, now, previous=published)
    assert again.out("annotations").equals(whole)
    assert labelled == [0]
    changed = published | {"queries": inputs["queries"].with_columns(norm=pl.lit("x")).head(3)}
    labelled.clear()
    assert run(domain, now, previous=changed).out("annotations").equals(whole)
    assert labelled == [16]
    fewer_seeds = published | {"seeds": inputs["seeds"].head(3)}
    labelled.clear()
    assert run(domain, now, previous=fewer_seeds).out("annotations").equals(whole)
    assert labelled == [16]
