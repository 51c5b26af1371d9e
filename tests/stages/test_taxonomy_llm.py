"""Taxonomy: a first version that an LLM induces from tagged seeds, over HTTP."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest

from curation.domain import load_domain
from curation.errors import CurationError
from curation.stages import taxonomy
from curation.stages.taxonomy import TaxonomyParams
from tests.helpers import FakeContext
from tests.teachers.llm.answering import answering

KINDS = ("music", "weather", "travel")


def categoriesanswer(data):
    """The kind of a seed is its first word; one level."""
    kinds = sorted({seed["text"].split()[0] for seed in data["seeds"]})
    found = {kind: [seed["id"] for seed in data["seeds"] if seed["text"].startswith(kind)] for kind in kinds}
    if len(kinds) == 1:
        return {"categories": []}
    return {
        "categories": [
            {"name": kind, "description": f"About {kind}.", "contrast": "", "evidence": ids[:2]}
            for kind, ids in found.items()
        ]
    }


def labels(data):
    blank = {"secondary": [], "constraints": [], "confidence": 1, "unsolvable": None, "unsolvable_confidence": 0}
    return {"labels": [{"id": row["id"], "primary": row["text"].split()[0], **blank} for row in data["queries"]]}


def run(folder, server):
    (folder / "taxonomy.yaml").write_text("version: '1'\nlanguages: [en]\ntaxonomy: [anything]\n")
    rows = [{"text": f"{kind} number {at}", "tags": kind} for kind in KINDS for at in range(5)]
    pl.DataFrame(rows).write_csv(folder / "seeds.csv")
    return FakeContext(
        taxonomy.STAGE,
        domain=load_domain(folder),
        shared={"seeds": SimpleNamespace(file=str(folder / "seeds.csv")), "llm": server.settings()},
        params={"induce": True, "teacher": "llm", "evidence": 2},
        cache=folder,
    ).run()


def test_the_tree_is_the_model_s_and_its_calls_are_recorded(tmp_path, monkeypatch):
    with answering(monkeypatch, categoriesanswer=categoriesanswer, labels=labels) as server:
        ctx = run(tmp_path, server)
        again = run(tmp_path, server)
        asked = len(server.sent)
    out = ctx.out("taxonomy")
    assert set(out["node_id"]) == {*KINDS, "other"}
    assert out["version"][0].startswith("induced-")
    assert len(out.filter(node_id="music")["examples"][0]) == 5
    assert ctx.metrics["not_done"] == 0
    assert ctx.calls[0].height == asked and set(ctx.calls[0]["stage"]) == {"taxonomy"}
    assert again.out("taxonomy").equals(out)


def test_l7_a_model_that_answers_empty_leaves_no_tree(tmp_path, monkeypatch):
    with (
        answering(monkeypatch, categoriesanswer=lambda data: {"categories": []}) as server,
        pytest.raises(CurationError, match="local found no usable top-level categories"),
    ):
        run(tmp_path, server)


def test_the_section_llm_is_used_only_to_induce():
    assert taxonomy.STAGE.uses(TaxonomyParams(induce=True, teacher="llm"), {}) == ("llm",)
    assert taxonomy.STAGE.uses(TaxonomyParams(teacher="llm"), {}) == ()
    assert taxonomy.STAGE.uses(TaxonomyParams(induce=True), {}) == ()
