"""Induction by an LLM: level by level, with evidence; a wrong answer never becomes a tree."""

from __future__ import annotations

import re

import pytest

from curation.domain import load_domain
from curation.errors import CurationError
from curation.teachers.induction import Limits, TaggedSeed
from curation.teachers.llm import inducer
from curation.teachers.llm.inducer import induce
from tests.teachers.llm.fake import FakeClient, UnansweredError

DOMAIN = load_domain("map_travel")
KINDS = ("media.music", "media.radio", "home.light", "home.heat", "talk")
SEEDS = [
    TaggedSeed(100 * kind + number, f"{name} {number}", "en", (name.split(".")[-1],))
    for kind, name in enumerate(KINDS)
    for number in range(8)
]
LIMITS = Limits(depth=2, most=4, evidence=2)


def kind_of(text, level):
    parts = text.split()[0].split(".")
    return parts[level] if level < len(parts) else None


def categories(data, level, **changes):
    """The true kinds at a level, each with its first two seeds as evidence."""
    found = {}
    for seed in data["seeds"]:
        kind = kind_of(seed["text"], level)
        if kind:
            found.setdefault(kind, []).append(seed["id"])
    return [
        {"name": kind, "description": f"About {kind}.", "contrast": "Nothing else.", "evidence": ids[:2]} | changes
        for kind, ids in sorted(found.items())
    ]


def knowing(data, spoilt=lambda data, level: None):
    """A model that knows the truth; `spoilt` may answer in its place."""
    if "queries" in data:
        return {"labels": [place(row) for row in data["queries"]]}
    level = 0 if len({kind_of(seed["text"], 0) for seed in data["seeds"]}) > 1 else 1
    return spoilt(data, level) or {"categories": categories(data, level)}


def place(row):
    """Put a query where the truth says: at the level of the categories in the request, which its text tells."""
    name = row["text"].split()[0]
    blank = {"secondary": [], "constraints": [], "confidence": 1, "unsolvable": None, "unsolvable_confidence": 0}
    return {"id": row["id"], "primary": name, **blank}


class Model:
    """`place` needs to know which leaves there are; they stand in the schema of the request."""

    def __init__(self, spoilt=lambda data, level: None):
        self.client = FakeClient(lambda data: self._answer(data))
        self.spoilt = spoilt

    def _answer(self, data):
        if "queries" not in data:
            return knowing(data, self.spoilt)
        leaves = self.client.requests[-1].answer.model_json_schema()["$defs"]["Leaf"]["enum"]
        labels = []
        for row in data["queries"]:
            name = row["text"].split()[0]
            leaf = next((leaf for leaf in leaves if name == leaf or name.startswith(f"{leaf}.")), leaves[-1])
            labels.append(place(row) | {"primary": leaf})
        return {"labels": labels}


def run(model, seeds=SEEDS, limits=LIMITS):
    return induce(model.client, seeds, DOMAIN, limits, model="some-model", version="7")


def test_the_tree_of_the_tags_grows_level_by_level():
    made = run(Model())
    assert made.problems == ()
    assert [node.node_id for node in made.taxonomy.nodes] == [
        "home", "home.heat", "home.light", "home.other", "media", "media.music", "media.radio", "media.other",
        "talk", "other",
    ]  # fmt: skip
    assert made.taxonomy.version == "7"
    node = made.taxonomy.node("media.music")
    assert (node.parent_id, node.level, node.is_leaf, node.is_other) == ("media", 2, True, False)
    assert node.description == "About music. Nothing else."
    assert node.examples == ("media.music 0", "media.music 1")
    assert not made.taxonomy.node("media").is_leaf
    assert made.taxonomy.node("talk").is_leaf  # too few seeds to be divided: depth is ragged
    assert set(made.members) == set(made.taxonomy.leaves)
    for leaf, members in made.members.items():
        assert members == (() if leaf.endswith("other") else tuple(100 * KINDS.index(leaf) + at for at in range(8)))


def test_limits_bound_depth_and_what_is_shown(monkeypatch):
    flat = Limits(depth=1, most=4, evidence=2)
    assert {node.level for node in run(Model(), limits=flat).taxonomy.nodes} == {1}
    monkeypatch.setattr(inducer, "_SHOWN", 10)
    model = Model()
    run(model, limits=flat)
    first = model.client.data[0]
    assert len(first["seeds"]) == 10
    assert {kind_of(seed["text"], 0) for seed in first["seeds"]} == {"media", "home", "talk"}
    assert first["tags"] == {"heat": 8, "light": 8, "music": 8, "radio": 8, "talk": 8}


def test_a_query_that_two_people_tagged_is_one_seed_with_the_tags_of_both():
    other = [TaggedSeed(seed.query_id, seed.text, seed.lang, ("mine",)) for seed in SEEDS[:3]]
    model = Model()
    made = run(model, [*SEEDS, *other])
    assert made.members == run(Model()).members
    assert model.client.data[0]["tags"]["mine"] == 3
    assert model.client.data[0]["seeds"][0]["tags"] == ["mine", "music"]


def test_the_order_of_seeds_changes_nothing():
    assert run(Model()) == run(Model(), SEEDS[::-1])


WRONG = {
    "empty": (lambda data, level: {"categories": []}, "there are 0 categories, not 2 to 4"),
    "one": (lambda data, level: {"categories": categories(data, level)[:1]}, "there are 1 categories"),
    "no evidence": (lambda data, level: {"categories": categories(data, level, evidence=[])}, "0 seeds as evidence"),
    "unknown evidence": (
        lambda data, level: {"categories": categories(data, level, evidence=["s0", "s999"])},
        "'s999' as evidence, which is no seed's id",
    ),
    "shared evidence": (
        lambda data, level: {"categories": categories(data, level, evidence=["s0", "s1"])},
        "is evidence of both home and media",
    ),
    "no description": (
        lambda data, level: {"categories": categories(data, level, description=" ")},
        "no description",
    ),
    "same name": (
        lambda data, level: {"categories": categories(data, level, name="media")},
        "the name 'media' is taken",
    ),
    "other": (lambda data, level: {"categories": categories(data, level, name="other")}, "'other' is kept"),
    "no name": (lambda data, level: {"categories": categories(data, level, name="My Kind!")}, "is not a name"),
    "prose": (lambda data, level: "I would say media and home.", "the answer cannot be used"),
}


@pytest.mark.parametrize(("spoilt", "fault"), WRONG.values(), ids=WRONG.keys())
def test_l7_a_wrong_answer_at_the_root_is_told_once_then_a_sentence(spoilt, fault):
    model = Model(spoilt)
    with pytest.raises(CurationError, match=re.escape(fault)) as error:
        run(model)
    assert "no usable top-level categories" in error.value.message and "untouched" in error.value.hint
    assert len(model.client.requests) <= 2
    assert fault == "the answer cannot be used" or fault in model.client.data[1]["fault"]


def test_a_model_that_mends_its_answer_is_taken():
    model = Model(lambda data, level: None if level or "fault" in data else {"categories": []})
    assert run(model).taxonomy == run(Model()).taxonomy


def test_l7_a_model_that_names_the_parent_again_below_it_leaves_a_leaf():
    model = Model(lambda data, level: {"categories": categories(data, 0, name="media")} if level else None)
    made = run(model)
    assert [node.node_id for node in made.taxonomy.nodes] == ["home", "media", "talk", "other"]
    assert len(made.problems) == 3
    assert made.problems[1].startswith("media was not divided: ")


def test_a_node_may_stay_whole():
    made = run(Model(lambda data, level: {"categories": []} if level else None))
    assert [node.node_id for node in made.taxonomy.nodes] == ["home", "media", "talk", "other"]
    assert made.problems == ()


def test_seeds_that_cannot_be_placed_stay_in_other_and_are_told():
    model = Model()

    def answer(data):
        if any(row["text"].startswith("talk 5") for row in data.get("queries", ())):
            raise UnansweredError("no")
        return model._answer(data)

    client = FakeClient(answer)
    model.client = client
    made = induce(client, SEEDS, DOMAIN, LIMITS, model="m")
    assert made.members["other"] == (405,)
    assert "1 seeds below the root could not be placed and stay in Other: no" in made.problems[0]


def test_too_few_seeds_are_told_before_any_call():
    model = Model()
    with pytest.raises(CurationError, match="3 tagged seeds, too few"):
        run(model, SEEDS[:3])
    assert model.client.requests == []
