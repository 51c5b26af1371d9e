"""Proposals by an LLM over HTTP: it says what clusters are, what mends doubts; nonsense is left out and counted."""

from __future__ import annotations

from types import SimpleNamespace

from curation.stages import proposals
from curation.stages.proposals import ProposalsParams
from curation.taxonomy.proposal import from_frame
from curation.taxonomy.versions import History
from tests.helpers import FakeContext
from tests.stages.test_proposals import encoder, tables  # noqa: F401
from tests.taxonomy.trees import START
from tests.teachers.llm.answering import answering


def clusters(data):
    blank = {"leaf": None, "reason": "They all cook.", "confidence": 0.75}
    return {
        "clusters": [
            {"id": one["id"], "action": "new", "name": "cooking", "description": "About cooking."} | blank
            for one in data["clusters"]
        ]
    }


def proposalsanswer(data):
    seed = next(one["id"] for kind in ("ambiguous", "confused", "uncovered") for one in sum_of(data[kind]))
    blank = {"target": None, "name": None, "parts": [], "evidence": [seed], "reason": "So.", "confidence": 0.5}
    good = {"kind": "describe", "node_id": "weather", "description": "Rain, sun and snow."}
    bad = {"kind": "merge", "node_id": "weather", "description": None} | blank | {"target": "nowhere"}
    return {"proposals": [blank | good, bad]}


def sum_of(doubts):
    return [seed for doubt in doubts for seed in doubt["seeds"]]


def run(folder, server, given=None, **params):
    shared = {
        "taxonomy": SimpleNamespace(base=None, induce=False, versions=None),
        "embed": None,
        "llm": server.settings(),
    }
    domain = SimpleNamespace(taxonomy=START, title="Tiny")
    given = given or tables(History(START))
    ctx = FakeContext(
        proposals.STAGE, given, shared=shared, domain=domain, params={"teacher": "llm", **params}, cache=folder
    )
    return ctx.run()


def doubtful():
    """The tables with a seed of the wrong leaf among them."""
    found = tables(History(START))
    seeds = found["seeds"]
    return found | {"seeds": seeds.with_columns(primary=seeds["primary"].scatter(0, "weather"))}


def test_clusters_get_the_model_s_words_and_nonsense_is_counted(tmp_path, monkeypatch):
    with answering(monkeypatch, clusters=clusters, proposalsanswer=proposalsanswer) as server:
        ctx = run(tmp_path, server, doubtful())
        again = run(tmp_path, server, doubtful())
        asked = len(server.sent)
    found = from_frame(ctx.out("proposals")).values()
    (added,) = [one for one in found if one.kind == "add"]
    assert (added.name, added.description, added.source) == ("cooking", "About cooking.", "expand")
    assert {row.text.split()[0] for row in added.evidence} == {"cook"} and (added.rows, added.weight) == (40, 120)
    assert [one.node_id for one in found if one.kind == "describe"] == ["weather"]
    assert ctx.metrics["not_usable"] == 1  # the merge into a node there is not
    assert ctx.calls[0].height == asked == 3  # clusters, doubts, and the doubts once more
    assert again.out("proposals").equals(ctx.out("proposals"))


def test_either_look_can_be_left_out(tmp_path, monkeypatch):
    with answering(monkeypatch, clusters=clusters, proposalsanswer=proposalsanswer) as server:
        assert set(run(tmp_path, server, doubtful(), refine=False).out("proposals")["source"]) == {"expand"}
        assert set(run(tmp_path, server, doubtful(), expand=False).out("proposals")["source"]) == {"refine"}


def test_the_section_llm_is_used_only_for_the_llm():
    assert proposals.STAGE.uses(ProposalsParams(), {}) == ()
    assert proposals.STAGE.uses(ProposalsParams(teacher="llm"), {}) == ("llm",)
