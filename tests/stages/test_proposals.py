"""Proposals: what the teacher sees in seeds and rows, against what was decided before."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from curation.stages import proposals
from curation.taxonomy import operations as ops
from curation.taxonomy.compare import compare
from curation.taxonomy.convergence import convergence
from curation.taxonomy.decisions import Planner, operation_of
from curation.taxonomy.proposal import from_frame
from curation.taxonomy.tables import migrations_frame, nodes_frame
from curation.taxonomy.versions import History, Record, append, next_version
from curation.teachers import fitting
from tests.helpers import FakeContext
from tests.taxonomy import desk
from tests.taxonomy.trees import START

WORDS = {"play": 0, "stop": 1, "ball": 2, "ski": 3, "local": 4, "rain": 5, "book": 6, "cook": 7}
LEAVES = {
    "play": "music.play",
    "stop": "music.stop",
    "ball": "news.sport.ball",
    "ski": "news.sport.ski",
    "local": "news.local",
    "rain": "weather",
}


def encode(texts):
    """A direction for each first word, and a little of the others."""
    rows = np.zeros((len(texts), 12), np.float32)
    for row, text in zip(rows, texts, strict=True):
        row[WORDS[text.split()[0]]] = 1
        row += np.random.default_rng(list(text.encode())).normal(scale=0.05, size=12).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def encoder(monkeypatch):
    monkeypatch.setattr(fitting, "encoder_of_run", lambda ctx: encode)


def tables(history, hidden=("cook",)):
    """A log in which the hidden words have no leaf and lie in Other until one has them as examples; seeds of the
    others."""
    texts = [f"{word} number {n}" for word in (*LEAVES, *hidden) for n in range(40)]
    ids = np.arange(len(texts), dtype=np.uint64)
    shown = {text.split()[0]: node.node_id for node in history.newest.taxonomy.nodes for text in node.examples}
    primary = [(LEAVES | shown).get(text.split()[0], "other") for text in texts]
    seeds = desk.seeds(*((f"{word} seed {n}", leaf) for word, leaf in LEAVES.items() for n in range(6)))
    return {
        "annotations": desk.annotations(*primary).with_columns(
            confidence=pl.Series([0.2 if leaf == "other" else 0.9 for leaf in primary], dtype=pl.Float32)
        ),
        "embeddings": pl.DataFrame(
            {"query_id": ids, "vector": pl.Series(encode(texts), dtype=pl.Array(pl.Float32, 12))}
        ),
        "queries": pl.DataFrame({"query_id": ids, "text": texts}).with_columns(
            first_seen=pl.lit(None, pl.Datetime("us")), last_seen=pl.lit(None, pl.Datetime("us"))
        ),
        "lexical_groups": pl.DataFrame({"query_id": ids, "group_count": np.full(len(ids), 3)}),
        "seeds": seeds.with_columns(tags=pl.concat_list(pl.col("primary").str.split(".").list.last())),
        "taxonomy": nodes_frame(history, history.newest.name),
        "taxonomy_migrations": migrations_frame(history),
    }


def run(history=None, versions=None, hidden=("cook",), **params):
    history = history or History(START)
    shared = {
        "taxonomy": SimpleNamespace(base=None, induce=False, versions=versions and str(versions)),
        "embed": None,
    }
    domain = SimpleNamespace(taxonomy=START)
    return FakeContext(proposals.STAGE, tables(history, hidden), shared=shared, domain=domain, params=params).run()


def test_what_has_no_leaf_is_proposed_with_its_rows():
    ctx = run()
    found = [one for one in from_frame(ctx.out("proposals")).values() if one.source == "expand" and one.kind == "add"]
    assert found
    best = max(found, key=lambda one: one.rows)
    assert best.problem is None and best.base_version == "1"
    assert {row.text.split()[0] for row in best.evidence} == {"cook"}
    assert (best.rows, best.weight) == (40, 120)
    assert ctx.metrics["proposed"] == ctx.out("proposals").height
    assert ctx.metrics["impossible"] == 0


def test_what_was_declined_is_left_out(tmp_path):
    first = run()
    gists = tuple(one.gist for one in from_frame(first.out("proposals")).values())
    append(tmp_path / "versions.yaml", Record(declined=gists))
    again = run(versions=tmp_path / "versions.yaml")
    assert again.out("proposals").is_empty()
    assert again.metrics["declined"] == len(gists)


def test_proposals_speak_of_the_version_that_counts(tmp_path):
    history = History(START)
    record = Record(version="2", from_="1", operations=(ops.Rename(node="weather", name="sky"),))
    history.add(record)
    append(tmp_path / "versions.yaml", record)
    table = run(history, tmp_path / "versions.yaml").out("proposals")
    assert set(table["base_version"]) == {"2"}


def test_each_kind_of_look_can_be_left_out():
    assert "expand" not in run(expand=False).out("proposals")["source"]
    assert "refine" not in run(refine=False).out("proposals")["source"]
    assert run(refine=False, expand=False).out("proposals").is_empty()


def test_the_same_input_gives_the_same_proposals():
    assert run().out("proposals").equals(run().out("proposals"))


def test_rounds_with_a_scripted_reviewer_converge(tmp_path):
    """The reviewer takes leaves whose evidence is of one hidden word, and declines all else."""
    versions, history, rounds = tmp_path / "versions.yaml", History(START), 0
    while waiting := from_frame(run(history, versions, ("cook", "book")).out("proposals")):
        rounds += 1
        assert rounds <= 5
        planner, declined = Planner(history.newest.taxonomy), []
        for one in waiting.values():
            words = {row.text.split()[0] for row in one.evidence}
            if one.kind == "add" and len(words) == 1 and words <= {"cook", "book"} and one.problem is None:
                planner.take(operation_of(one))
            else:
                declined.append(one.gist)
        before = history.newest.name
        made = {"version": next_version(history.versions), "from_": before} if planner.operations else {}
        record = Record(**made, operations=tuple(planner.operations), declined=tuple(declined))
        history.add(record)
        append(versions, record)
    added = {one.node_id for one in compare(history, "1", history.newest.name)}
    assert len(added) == 2 and added == history.newest.taxonomy.by_id.keys() - START.by_id.keys()
    assert History.read(START, versions).versions == history.versions
    seeds = tables(history)["seeds"]
    assert convergence(history, "1", history.newest.name, seeds)["seeds_changed"] == 0
