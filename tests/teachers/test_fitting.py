"""The teacher of a run: one for all stages, a new one when anything it learns from changes."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from curation.domain import load_domain
from curation.stages import annotate, taxonomy
from curation.teachers import encoders
from curation.teachers.fitting import encoder_of_run, fitted_teacher
from tests.helpers import FakeContext
from tests.teachers.test_teacher import LABELS, TREE, encode, frame, seed_table


class Known(encoders.Encoder):
    dim = 64

    def _encode_chunk(self, texts):
        return encode(texts)

    def _files(self):
        return []

    def _libraries(self):
        return ()


@pytest.fixture
def context(tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "load_encoder", Known)
    (tmp_path / "taxonomy.yaml").write_text(TREE)
    domain = load_domain(tmp_path)
    nodes = FakeContext(taxonomy.STAGE, domain=domain).run().out("taxonomy")
    ids = frame(["a", "b", "c"]).select("query_id")
    groups = ids.with_columns(kept=pl.lit(True))

    def make(labels=LABELS, shared=None, **params):
        inputs = {"seeds": seed_table(labels), "taxonomy": nodes, "lexical_groups": groups}
        embed = SimpleNamespace(encoder="auto", encoder_directory=None, auto_limit=2)
        return FakeContext(
            annotate.STAGE, inputs, domain=domain, shared={"embed": embed} | (shared or {}), params=params
        )

    return make


def test_the_encoder_is_that_of_the_embeddings(context):
    assert encoder_of_run(context()).__self__.name == encoders.STATIC


def test_the_same_seeds_give_the_same_teacher_and_others_another(context):
    one = fitted_teacher(context())
    assert fitted_teacher(context()) is one
    # Rows without a label are nothing to learn from.
    assert fitted_teacher(context([*LABELS, ("a new proposal", None, [], None)])) is one
    other = fitted_teacher(context(LABELS[:-2]))
    assert other is not one
    assert fitted_teacher(context(LABELS[:-2], most_secondary=1)) is not other


def test_another_stage_shares_the_section_of_annotate(context):
    section = annotate.AnnotateParams(most_secondary=0)
    assert fitted_teacher(context(shared={"annotate": section})).choice.most_secondary == 0
