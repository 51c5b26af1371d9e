"""Reading plan rules: what they mean, and how a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.domain import load_domain
from curation.domain.document import Document
from curation.domain.model import Dimension, DomainParts, Node, Taxonomy, Tool
from curation.domain.plan_rules import Condition, Evidence, Plans
from curation.domain.plans import parse_plans
from curation.errors import CurationError

SHIPPED = load_domain("map_travel")


def parts() -> DomainParts:
    nodes = tuple(
        Node(name, None, 1, name, name, is_other=name == "other", is_leaf=True) for name in ("ask", "do", "other")
    )
    tools = {name: Tool(name, "all", name, {"type": "object"}, ()) for name in ("find", "go", "read")}
    return DomainParts(Taxonomy("1", nodes), tools, {"time.when": Dimension("time.when", "when")}, ("zh", "en"))


def parse(tmp_path: Path, text: str) -> Plans:
    path = tmp_path / "plans.yaml"
    path.write_text(text, encoding="utf-8")
    return parse_plans(Document(path), path, parts())


NODES = "nodes:\n  ask: {load: 2, steps: [find]}\n"


def test_a_whole_file(tmp_path: Path) -> None:
    plans = parse(
        tmp_path,
        """
feeds: {find: [go]}
substitutes: {find: [read]}
weights: [{dimension: time, value: ^now$, weight: 0.2}, {dimension: time.when, weight: 0.5}]
joint: [[time, time.when]]
objectives: best
cues:
  later: {zh: 明天, en: [tomorrow, 'next \\w+']}
measures:
  best: {kind: matches, en: best, default: 0, most: 3}
slots:
  what: {when: {measure: best, least: 1}, odds: 4}
nodes:
  ask:
    load: 2
    steps: [find, {tool: go, times: best}]
    needs: [what]
    optional: [find]
    unsolvable: {missing_tool: 2}
  other: {load: 3, steps: [read], solvable: 0.5}
rules:
  - name: later
    nodes: [ask]
    when: {any: [{cue: later}, {dimension: time, value: '^\\d'}, {not: {secondary: do}}]}
    load: 0.5
    use: {find: read}
    drop: [go]
    add: [{tool: go, name: again, after: [find]}]
    repeat: {again: 2}
    unsolvable: {missing_info: 3}
""",
    )
    assert plans.cues["later"] == (("zh", "明天"), ("en", "tomorrow"), ("en", "next \\w+"))
    assert plans.feeders == {"go": frozenset({"find"})}
    assert [step.times for step in plans.nodes["ask"].steps] == [1, "best"]
    assert plans.nodes["ask"].evidence == (Evidence("missing_tool", 2.0),)
    assert plans.nodes["other"].evidence == (Evidence(None, 0.5),)
    rule = plans.rules[0]
    assert rule.when == Condition(
        "any",
        parts=(
            Condition("cue", "later"),
            Condition("dimension", "time", r"^\d"),
            Condition("not", parts=(Condition("secondary", "do"),)),
        ),
    )
    assert (rule.use, rule.drop, rule.repeat, rule.load) == ((("find", "read"),), ("go",), (("again", 2),), 0.5)
    assert plans.weight("time.when", "now") == 0.2
    assert plans.weight("time.when", "later") == 0.5
    assert plans.weight("budget", "low") == 1.0
    assert plans.removal("find") == ("find", "read")
    assert plans.removal("go") == ("go",)
    assert plans.essential("ask", ("find", "go")) == ("go",)
    assert plans.reachable("ask") == {"find", "go", "read"}
    assert plans.reachable("do") == {"read"}


def test_a_node_without_a_plan_takes_that_of_its_nearest_ancestor(tmp_path: Path) -> None:
    plans = parse(tmp_path, NODES + "  other: {load: 3, steps: [read]}\n")
    assert plans.of("ask.this.or.that") is plans.nodes["ask"]
    assert plans.of("do") is plans.nodes["other"]
    assert Plans().of("do") is None
    assert not Plans()


def test_substitutes_follow_each_other(tmp_path: Path) -> None:
    plans = parse(tmp_path, NODES + "substitutes: {go: [read], read: [find], find: [go]}\n")
    assert plans.removal("go") == ("go", "find", "read")


MISTAKES = [
    ("node: {}", "unknown key 'node'", 1),
    ("nodes: {}\nrules: {}", "rules must be a list", 2),
    ("nodes:\n  asking: {load: 2, steps: [find]}", "no category 'asking'", 2),
    ("nodes:\n  ask: {load: 6, steps: [find]}", "load must be a number from 1 to 5", 2),
    ("nodes:\n  ask: {load: 2, steps: [search]}", "no tool 'search'", 2),
    ("nodes:\n  ask: {load: 2, steps: []}", "has no steps", 2),
    ("nodes:\n  ask: {load: 2, steps: [find, find]}", "two steps are called 'find'", 2),
    ("nodes:\n  ask: {load: 2, steps: [{tool: find, after: [nothing]}]}", "waits for 'nothing'", 2),
    ("nodes:\n  ask: {load: 2, steps: [{tool: find, times: many}]}", "no measure 'many'", 2),
    (NODES + "cues:\n  later: {fr: demain}", "unknown language 'fr'", 4),
    (NODES + "cues:\n  later: {en: '(?=x)y'}", "regex that cannot be used", 4),
    (NODES + "cues:\n  later: {}", "has no pattern", 4),
    (NODES + "measures:\n  secondaries: {kind: rest, en: a}", "always there", 4),
    (NODES + "measures:\n  best: {en: a}", "must have a kind", 4),
    (NODES + "feeds: {find: [go], go: [find]}", "feed each other", 3),
    (NODES + "joint: [[time]]", "must name two dimensions", 3),
    (NODES + "joint: [[time, budget]]", "no dimension 'budget'", 3),
    (NODES + "rules:\n  - {name: a}", "has no 'when'", 4),
    (NODES + "rules:\n  - {name: a, when: {cue: b}}", "no cue 'b'", 4),
    (NODES + "rules:\n  - {name: a, when: {}}", "condition is empty", 4),
    (NODES + "rules:\n  - {name: a, when: {all: []}}", "condition is empty", 4),
    (NODES + "rules:\n  - {name: a, when: {measure: constraints}}", "has no 'least'", 4),
    (NODES + "rules:\n  - {name: a, when: {secondary: b}}", "no category 'b'", 4),
    (NODES + "rules:\n  - {name: a, when: {secondary: do}, unsolvable: {bored: 2}}", "'bored' is not a reason", 4),
]


@pytest.mark.parametrize(("text", "message", "line"), MISTAKES, ids=[mistake[1] for mistake in MISTAKES])
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, message: str, line: int) -> None:
    with pytest.raises(CurationError, match=r"plans\.yaml") as caught:
        parse(tmp_path, text)
    assert message in caught.value.message
    assert f"line {line}" in caught.value.message


def test_every_leaf_of_the_shipped_domain_has_a_plan_of_its_own_part_of_the_taxonomy() -> None:
    plans = SHIPPED.plans
    for leaf in SHIPPED.taxonomy.leaves:
        plan = plans.of(leaf)
        assert plan is not None
        assert plan.steps
        assert leaf == "other" or plan.node_id != "other", leaf


def test_the_shipped_rules_use_every_tool() -> None:
    plans = SHIPPED.plans
    used = {step.tool for plan in plans.nodes.values() for step in plan.steps}
    used |= {step.tool for rule in plans.rules for step in rule.add}
    used |= {new for rule in plans.rules for _, new in rule.use}
    assert used == set(SHIPPED.tools)


def test_every_shipped_cue_has_both_languages_and_is_asked_for() -> None:
    plans = SHIPPED.plans
    conditions = [rule.when for rule in plans.rules] + [slot.when for slot in plans.slots.values()]
    asked = {atom.name for condition in conditions for atom in condition.atoms() if atom.kind == "cue"}
    for name, patterns in plans.cues.items():
        assert {lang for lang, _ in patterns} == {"zh", "en"}, name
        assert name in asked, name
