"""The domain's rules in the words of a later version of the taxonomy.

``plans.yaml`` and ``grammar.yaml`` speak of the domain's own tree. A leaf that was renamed, moved or merged keeps the
plan and the rules of the leaf it came from, and a new leaf those of its place; what a split leaf could be asked with
is left to its parts' examples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from curation.domain.grammar import Grammar
from curation.domain.plan_rules import Condition, Plans
from curation.taxonomy.lineage import Lineage

if TYPE_CHECKING:
    from curation.domain import Domain

__all__ = ["domain_of_run", "reworded"]


def domain_of_run(ctx: Any) -> Domain:
    """The domain, its rules in the words of the version that rows are labelled with.

    ``ctx`` uses the domain and reads `taxonomy` and `taxonomy_migrations`.
    """
    return reworded(ctx.domain, Lineage(ctx.read("taxonomy"), ctx.read("taxonomy_migrations")))


def reworded(domain: Domain, lineage: Lineage) -> Domain:
    """`domain` with its plans and its grammar in the words of the current version; itself where nothing changed."""
    base, now = lineage.versions[0], lineage.current
    if lineage.taxonomy(base).by_id.keys() != domain.taxonomy.by_id.keys():
        return domain  # a tree of its own: the domain's rules know nothing of it
    origins = {leaf: _origin(lineage, leaf) for leaf in lineage.taxonomy(now).leaves}
    if all(leaf == origin for leaf, origin in origins.items()):
        return domain
    fates = {leaf: lineage.carry(leaf, base, now) for leaf in domain.taxonomy.leaves}
    return replace(domain, plans=_plans(domain.plans, origins), grammar=_grammar(domain.grammar, fates))


def _origin(lineage: Lineage, leaf: str) -> str:
    """The leaf of the first version that a current one came from; of several the one of its name, else the first."""
    for at in range(len(lineage.versions) - 1, 0, -1):
        version, before = lineage.versions[at], lineage.versions[at - 1]
        sources = [old for old, fate in lineage.fates(version).items() if fate.becomes == leaf]
        leaf = leaf if leaf in sources else sources[0] if sources else lineage.carry(leaf, version, before) or leaf
    return leaf


def _below(origins: Mapping[str, str], node: str) -> tuple[str, ...]:
    """Current leaves that came from leaves at or below a node."""
    return tuple(leaf for leaf, origin in origins.items() if origin == node or origin.startswith(f"{node}."))


def _plans(plans: Plans, origins: Mapping[str, str]) -> Plans:
    if not plans:
        return plans
    found = {leaf: plan for leaf, origin in origins.items() if (plan := plans.of(origin)) is not None}
    nodes = {**plans.nodes, **{leaf: replace(plan, node_id=leaf) for leaf, plan in found.items()}}
    rules = []
    for rule in plans.rules:
        where = tuple(leaf for node in rule.nodes for leaf in _below(origins, node))
        if where or not rule.nodes:
            rules.append(replace(rule, nodes=where))
    told: Plans = _mapped(replace(plans, rules=tuple(rules)), origins)
    return replace(told, nodes=nodes)


def _mapped(value: Any, origins: Mapping[str, str]) -> Any:
    """`value` with every condition in it, however deep, in the words of the current version."""
    if isinstance(value, Condition) and value.kind == "secondary":
        tests = tuple(Condition("secondary", leaf) for leaf in _below(origins, value.name))
        return tests[0] if len(tests) == 1 else Condition("any", parts=tests)
    if is_dataclass(value) and not isinstance(value, type):
        old = {one.name: getattr(value, one.name) for one in fields(value)}
        new = {name: _mapped(content, origins) for name, content in old.items()}
        return value if all(new[name] is old[name] for name in old) else replace(value, **new)
    if isinstance(value, tuple):
        told = tuple(_mapped(item, origins) for item in value)
        return value if all(a is b for a, b in zip(told, value, strict=True)) else told
    if isinstance(value, Mapping):
        return {name: _mapped(item, origins) for name, item in value.items()}
    return value


def _grammar(grammar: Grammar, fates: Mapping[str, str | None]) -> Grammar:
    """The needs whose leaf still means one."""
    needs = {name: replace(need, leaf=leaf) for name, need in grammar.needs.items() if (leaf := fates[need.leaf])}
    kept = {
        name: replace(need, then=tuple(follower for follower in need.then if follower in needs))
        for name, need in needs.items()
    }
    return replace(grammar, needs=kept)
