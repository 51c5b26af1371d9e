"""Proposals by an LLM: only what the taxonomy would take, with evidence, once; nothing changes by itself (L7)."""

from __future__ import annotations

import polars as pl
import pytest

from curation.domain import load_domain
from curation.domain.model import Node, Taxonomy
from curation.taxonomy.proposal import Evidence, Part, Proposal
from curation.teachers.llm.reviser import Cluster, Doubt, doubts_of, judge_expansion, propose_for_other, refine
from tests.teachers.llm.fake import FakeClient

DOMAIN = load_domain("map_travel")


def tree():
    def node(node_id, leaf=True):
        parent, _, name = node_id.rpartition(".")
        return Node(node_id, parent or None, node_id.count(".") + 1, name, f"About {name}.", name == "other", leaf)

    names = [("a", False), ("a.x",), ("a.y",), ("a.other",), ("b",), ("c",), ("other",)]
    return Taxonomy("3", tuple(node(*name) for name in names))


TREE = tree()
ROWS = tuple(Evidence(number, f"text {number}", 10 + number) for number in range(4))
DOUBTS = (
    Doubt("ambiguous", ("a.x", "a.y"), ROWS[:2]),
    Doubt("uncovered", (), ROWS[2:]),
    Doubt("confused", ("b", "c"), ROWS[1:3]),
)


def entry(kind, node_id, **changes):
    return {
        "kind": kind, "node_id": node_id, "target": None, "name": None, "description": None, "parts": [],
        "evidence": ["s0", "s2"], "reason": "Because.", "confidence": 0.5,
    } | changes  # fmt: skip


def ask(*entries, **options):
    client = FakeClient(lambda data: {"proposals": list(entries)})
    return client, refine(client, TREE, DOUBTS, DOMAIN, language="en", **options)


def part(name, *evidence):
    return {"name": name, "description": f"Part {name}.", "evidence": list(evidence)}


GOOD = [
    entry("add", "a", name="z", description="About z."),
    entry("add", None, name="z", description="About z."),
    entry("merge", "a.x", target="a.y"),
    entry("split", "b", parts=[part("one", "s0"), part("two", "s1")]),
    entry("rename", "b", name="beta"),
    entry("move", "c", target="a"),
    entry("drop", "c"),
    entry("describe", "b", description="Sharper."),
]


@pytest.mark.parametrize("good", GOOD, ids=lambda one: one["kind"])
def test_a_usable_proposal_is_passed_on(good):
    client, made = ask(good)
    (proposal,) = made.proposals
    assert made.problems == () and len(client.requests) == 1
    assert (proposal.source, proposal.kind, proposal.node_id, proposal.base_version) == (
        "refine", good["kind"], good["node_id"], "3",
    )  # fmt: skip
    assert (proposal.name, proposal.target, proposal.description) == (
        good["name"],
        good["target"],
        good["description"],
    )
    assert proposal.evidence == (ROWS[0], ROWS[2]) and (proposal.rows, proposal.weight) == (2, 22)
    assert (proposal.reason, proposal.confidence) == ("Because.", 0.5)
    if good["kind"] == "split":
        assert proposal.parts == (Part("one", "Part one.", ("text 0",)), Part("two", "Part two.", ("text 1",)))


BAD = {
    "unknown parent": (entry("add", "nowhere", name="z", description="d"), "nowhere"),
    "unknown target": (entry("merge", "a.x", target="nowhere"), "nowhere"),
    "no target": (entry("merge", "a.x"), "into"),
    "into itself": (entry("merge", "a.x", target="a.x"), "a.x"),
    "name taken": (entry("add", "a", name="x", description="d"), "x"),
    "no name": (entry("rename", "b"), "is not a name"),
    "other touched": (entry("drop", "a.other"), "a.other"),
    "no description": (entry("add", "a", name="z", description=" "), ""),
    "circle": (entry("move", "a", target="a.x"), "a"),
    "one part": (entry("split", "b", parts=[part("one")]), ""),
    "no evidence": (entry("drop", "b", evidence=[]), "names no seed as evidence"),
    "unknown evidence": (entry("drop", "b", evidence=["s99"]), "'s99' as evidence"),
    "unknown evidence of a part": (entry("split", "b", parts=[part("one", "s99"), part("two")]), "'s99'"),
    "nothing new": (entry("describe", "b", description="About b."), "changes nothing"),
}


@pytest.mark.parametrize(("bad", "fault"), BAD.values(), ids=BAD.keys())
def test_l7_nonsense_is_told_once_then_left_out_and_reported(bad, fault):
    client, made = ask(bad, GOOD[0])
    assert [proposal.kind for proposal in made.proposals] == ["add"]  # the good one is not lost with it
    (problem,) = made.problems
    assert problem.startswith(bad["kind"]) and fault in problem
    assert len(client.requests) == 2 and client.data[1]["fault"] == problem
    assert tree() == TREE


def test_a_model_that_mends_its_answer_leaves_no_problem():
    client = FakeClient(lambda data: {"proposals": [GOOD[0] if "fault" in data else BAD["no name"][0]]})
    made = refine(client, TREE, DOUBTS, DOMAIN, language="zh")
    assert len(made.proposals) == 1 and made.problems == ()


def test_l7_a_proposal_that_was_decided_does_not_come_again():
    _, made = ask(GOOD[2])
    client, again = ask(GOOD[2], decided=[proposal.gist for proposal in made.proposals])
    assert again.proposals == () and "decided before" in again.problems[0]
    assert client.data[0]["decided"] == [{"kind": "merge", "node": "a.x", "target": "a.y"}]


def test_an_empty_answer_proposes_nothing_and_is_no_problem():
    client, made = ask()
    assert (made.proposals, made.problems, len(client.requests)) == ((), (), 1)


def test_l7_prose_is_a_sentence():
    made = refine(FakeClient(lambda data: "Merge them."), TREE, DOUBTS, DOMAIN, language="en")
    assert made.proposals == () and "no proposals were made" in made.problems[0] and "Merge them." in made.problems[0]


def test_doubts_are_shown_with_their_seeds_each_with_one_id():
    client, _ = ask(GOOD[0])
    seed = [{"id": f"s{number}", "text": f"text {number}"} for number in range(4)]
    assert client.data[0] == {
        "decided": [],
        "ambiguous": [{"leaves": ["a.x", "a.y"], "seeds": seed[:2]}],
        "uncovered": [{"leaves": [], "seeds": seed[2:]}],
        "confused": [{"leaves": ["b", "c"], "seeds": seed[1:3]}],
    }


def test_the_same_proposal_twice_stands_once_and_no_more_than_asked_for():
    assert len(ask(GOOD[2], GOOD[2])[1].proposals) == 1
    assert len(ask(*GOOD[4:], most=2)[1].proposals) == 2


def test_without_doubts_nothing_is_asked():
    client = FakeClient(lambda data: {"proposals": [GOOD[0]]})
    assert refine(client, TREE, (), DOMAIN, language="en").proposals == ()
    assert client.requests == []


CLUSTERS = [
    Cluster((Evidence(at, f"cluster {at}", 5),), rows=20 + at, weight=100 + at, purity=0.75, trend=0.25)
    for at in range(3)
]


def say(row, action, **changes):
    blank = {"name": None, "description": None, "leaf": None, "reason": "Because.", "confidence": 0.5}
    return {"id": row["id"], "action": action} | blank | changes


def expand(by_text, parent="a", **options):
    def answer(data):
        return {"clusters": [by_text[row["queries"][0]](row) for row in data["clusters"]]}

    client = FakeClient(answer)
    return client, propose_for_other(client, TREE, parent, CLUSTERS, DOMAIN, language="en", **options)


def new(name):
    return lambda row: say(row, "new", name=name, description=f"About {name}.")


def existing(leaf):
    return lambda row: say(row, "existing", leaf=leaf)


def leave(row):
    return say(row, "leave")


def test_clusters_become_leaves_or_go_to_one_or_stay():
    _, made = expand({"cluster 0": new("z"), "cluster 1": existing("b"), "cluster 2": leave})
    first, second = made.proposals
    assert (first.kind, first.node_id, first.name, first.description) == ("add", "a", "z", "About z.")
    assert (first.source, first.rows, first.weight, first.purity, first.trend) == ("expand", 20, 100, 0.75, 0.25)
    assert first.evidence == CLUSTERS[0].evidence
    assert (second.kind, second.node_id, second.target) == ("merge", "a.other", "b")
    assert made.problems == ()


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (new("x"), "the name 'x' is taken"),
        (new("Bad Name"), "is not a name"),
        (existing("a.other"), "no leaf that queries can belong to"),
        (existing(None), "no leaf that queries can belong to"),
        (lambda row: say(row, "new", name="z"), ""),
    ],
)
def test_l7_what_cannot_be_is_told_once_then_a_problem(said, fault):
    client, made = expand({"cluster 0": said, "cluster 1": leave, "cluster 2": leave})
    (problem,) = made.problems
    assert (
        made.proposals == () and problem.startswith("no proposal for the cluster of 'cluster 0'") and fault in problem
    )
    assert fault in client.data[-1]["clusters"][0]["fault"]


def test_two_clusters_do_not_get_one_name_unseen():
    _, made = expand({"cluster 0": new("z"), "cluster 1": new("z"), "cluster 2": leave}, parent=None)
    assert len(made.proposals) == 1 and "same proposal as another" in made.problems[0]


def test_what_was_decided_for_a_cluster_does_not_come_again():
    said = {"cluster 0": new("z"), "cluster 1": leave, "cluster 2": leave}
    _, made = expand(said)
    assert expand(said, decided=[proposal.gist for proposal in made.proposals])[1].proposals == ()


def test_an_llm_judges_clusters_that_were_found_by_others():
    found = [
        Proposal(
            "expand", "add", "a", "3", "Found.", name="ugly_name", evidence=(ROWS[0],), rows=7, weight=70, purity=0.5
        ),
        Proposal("expand", "merge", "other", "3", "Found.", target="b", evidence=(ROWS[1],), rows=8, weight=80),
    ]
    said = {"text 0": new("z"), "text 1": existing("c")}
    client = FakeClient(lambda data: {"clusters": [said[row["queries"][0]](row) for row in data["clusters"]]})
    made = judge_expansion(client, TREE, found, DOMAIN, language="zh")
    root, below = made.proposals
    assert (root.kind, root.node_id, root.target, root.rows, root.weight) == ("merge", "other", "c", 8, 80)
    assert (below.kind, below.node_id, below.name, below.rows, below.purity) == ("add", "a", "z", 7, 0.5)
    assert made.problems == ()


def test_doubts_follow_from_how_seeds_label_each_other():
    rows = [(1, "one", "a.x"), (2, "two", "a.x"), (3, "three", "a.y"), (4, "four", "other"), (5, "five", None)]
    table = pl.DataFrame(rows, schema={"query_id": pl.UInt64, "text": pl.String, "primary": pl.String}, orient="row")
    close = [(1, "a.x", "a.x", "a.y"), (2, "a.x", "b", "a.x"), (3, "a.y", "a.y", "a.x")]
    names = {"query_id": pl.UInt64, "primary": pl.String, "first": pl.String, "second": pl.String}
    found = doubts_of(table, pl.DataFrame(close, schema=names, orient="row"), TREE)
    assert found == [
        Doubt("ambiguous", ("a.x", "a.y"), (Evidence(1, "one"), Evidence(3, "three"))),
        Doubt("confused", ("a.x", "b"), (Evidence(2, "two"),)),
        Doubt("uncovered", (), (Evidence(4, "four"), Evidence(5, "five"))),
    ]
