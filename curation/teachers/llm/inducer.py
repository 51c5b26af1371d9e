"""An LLM that grows a taxonomy from tagged seeds, level by level (arXiv 2512.24957, category induction).

At every level the model is shown seeds of the node to divide and names its categories, each with seeds as evidence;
the seeds that no category named are then put into them by the annotator, with the evidence as examples. What an
answer gets wrong is told to the model once; after that the node stays a leaf, and the problem is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from curation.domain.model import OTHER, Node, Taxonomy
from curation.errors import CurationError
from curation.teachers.induction import Induced, Limits, TaggedSeed
from curation.teachers.llm.annotator import LlmAnnotator
from curation.teachers.llm.answers import CategoriesAnswer, Category
from curation.teachers.llm.few_shot import FewShot
from curation.teachers.llm.naming import check_name
from curation.teachers.llm.prompts import load_prompt, main_language
from curation.teachers.llm.questions import Question, ask_checked
from curation.teachers.llm.rows import Asker, FaultyAnswerError

if TYPE_CHECKING:
    from curation.domain import Domain

__all__ = ["induce"]

_TAGS = 200
"""Tags that are shown with their counts, the most frequent."""
_EVIDENCE_SHOWN = 4
"""Seeds of each new category that the annotator is shown."""
_LEAST = 2
"""Categories that a divided node has at least."""
_SHOWN = 160
"""Seeds that the model sees of a node at most."""
_DIVIDE = 2
"""A node is divided from so many times the seeds that its fewest categories must rest on."""


@dataclass
class _Branch:
    """A node while it grows."""

    node_id: str | None
    description: str
    seeds: list[TaggedSeed]
    evidence: list[TaggedSeed] = field(default_factory=list)
    children: list[_Branch] = field(default_factory=list)

    @property
    def path(self) -> list[str]:
        """Names from the root."""
        return [] if self.node_id is None else self.node_id.split(".")

    def child(self, name: str) -> str:
        """The id of a child."""
        return name if self.node_id is None else f"{self.node_id}.{name}"


def induce(
    client: Asker, seeds: Sequence[TaggedSeed], domain: Domain, limits: Limits, *, model: str, version: str = "1"
) -> Induced:
    """Induce a taxonomy.

    Args:
        client: Who asks.
        seeds: Tagged seeds; a query that several people tagged comes several times. Their order means nothing.
        domain: Title and languages; its own taxonomy is not looked at.
        limits: Breadth, depth and evidence.
        model: The model's name.
        version: Of the taxonomy that is made.

    Raises:
        CurationError: There are no seeds to divide, or the model has no usable top-level categories.
    """
    root = _Branch(None, "", _by_query(seeds))
    if len(root.seeds) < _LEAST * limits.evidence:
        raise CurationError(
            f"there are {len(root.seeds)} tagged seeds, too few for {_LEAST} categories with "
            f"{limits.evidence} seeds of evidence each",
            "Tag more seeds (`curate review`), or lower the limits.",
        )
    problems: list[str] = []
    growing = [root]
    while growing:
        problems += _divide(client, growing, domain, limits, model)
        if not root.children:
            raise CurationError(
                f"{model} found no usable top-level categories: {problems[0] if problems else 'it named none'}",
                "The taxonomy is untouched. Run again with another model, or with more seeds.",
            )
        growing = [
            child
            for branch in growing
            for child in branch.children
            if len(child.path) < limits.depth and len(child.seeds) >= _DIVIDE * _LEAST * limits.evidence
        ]
    nodes: list[Node] = []
    members: dict[str, tuple[int, ...]] = {}
    _flatten(root, nodes, members)
    return Induced(Taxonomy(version, tuple(nodes)), members, problems=tuple(problems))


def _by_query(seeds: Sequence[TaggedSeed]) -> list[TaggedSeed]:
    """Each query once, by id, with the tags of all who tagged it."""
    found: dict[int, TaggedSeed] = {}
    for seed in sorted(seeds, key=lambda seed: (seed.query_id, seed.tags)):
        before = found.get(seed.query_id, seed)
        found[seed.query_id] = replace(before, tags=tuple(dict.fromkeys((*before.tags, *seed.tags))))
    return list(found.values())


def _divide(client: Asker, branches: list[_Branch], domain: Domain, limits: Limits, model: str) -> list[str]:
    """Give every branch its children, where the model finds any; what went wrong, a sentence each."""
    questions = [_question(branch, domain, limits) for branch in branches]
    problems = []
    for branch, found in zip(branches, ask_checked(client, questions), strict=True):
        if found.value is None:
            problems.append(f"{branch.node_id or 'the root'} was not divided: {found.error}")
        elif found.value:
            branch.children = found.value
            problems += _place(client, branch, domain, model)
    return problems


def _question(branch: _Branch, domain: Domain, limits: Limits) -> Question[list[_Branch]]:
    shown = {f"s{at}": seed for at, seed in enumerate(_spread(branch.seeds, _SHOWN))}
    tags = Counter(tag for seed in branch.seeds for tag in seed.tags)
    prompt = load_prompt("induce", main_language(seed.lang for seed in branch.seeds))
    told = prompt.instructions(
        title=domain.title,
        path=branch.path,
        description=branch.description,
        least=_LEAST,
        most=limits.most,
        evidence=limits.evidence,
        taken=branch.path,
    )
    data = {
        "tags": dict(sorted(tags.items(), key=lambda item: (-item[1], item[0]))[:_TAGS]),
        "seeds": [{"id": code, "text": seed.text, "tags": list(seed.tags)} for code, seed in shown.items()],
    }

    def check(answer: CategoriesAnswer) -> list[_Branch]:
        return _children(branch, answer.categories, shown, limits)

    return Question(prompt.tag, told, data, CategoriesAnswer, check)


def _spread(seeds: list[TaggedSeed], most: int) -> list[TaggedSeed]:
    """Up to ``most`` seeds, those of different tags in turn, so that rare tags are among them."""
    from curation.algorithms.spread import round_robin

    places = {tags: place for place, tags in enumerate(sorted({seed.tags for seed in seeds}))}
    owner = [places[seed.tags] for seed in seeds]
    chosen = round_robin(owner, np.zeros(len(seeds), dtype=np.int64), most)
    return [seeds[at] for at in sorted(chosen.tolist())]


def _children(
    branch: _Branch, categories: list[Category], shown: dict[str, TaggedSeed], limits: Limits
) -> list[_Branch]:
    """The children that an answer names, with their evidence; the first thing that is wrong with it is raised."""
    if not categories and branch.node_id is not None:
        return []
    if not _LEAST <= len(categories) <= limits.most:
        raise FaultyAnswerError(f"there are {len(categories)} categories, not {_LEAST} to {limits.most}")
    owner: dict[str, str] = {}
    children: list[_Branch] = []
    for category in categories:
        name = check_name(category.name, [*branch.path, *(child.path[-1] for child in children)])
        description = f"{category.description.strip()} {category.contrast.strip()}".strip()
        if not category.description.strip():
            raise FaultyAnswerError(f"the category {name} has no description")
        codes = list(dict.fromkeys(code.strip() for code in category.evidence))
        if len(codes) < limits.evidence:
            raise FaultyAnswerError(f"the category {name} has {len(codes)} seeds as evidence, not {limits.evidence}")
        for code in codes:
            if code not in shown:
                raise FaultyAnswerError(f"the category {name} names {code!r} as evidence, which is no seed's id")
            if owner.setdefault(code, name) != name:
                raise FaultyAnswerError(f"the seed {code} is evidence of both {owner[code]} and {name}")
        evidence = [shown[code] for code in codes]
        children.append(_Branch(branch.child(name), description, list(evidence), evidence))
    return children


def _place(client: Asker, branch: _Branch, domain: Domain, model: str) -> list[str]:
    """Put the seeds of a branch that are no evidence into its children; what could not be placed, a sentence."""
    by_id = {str(child.node_id): child for child in branch.children}
    shown = [(seed, child.node_id) for child in branch.children for seed in child.evidence]
    known = {seed.query_id for seed, _ in shown}
    rest = _frame([(seed, None) for seed in branch.seeds if seed.query_id not in known])
    nodes = [Node(str(c.node_id), branch.node_id, 1, c.path[-1], c.description, False, True) for c in branch.children]
    nodes.append(_other(branch, 1))
    annotator = LlmAnnotator(
        client,
        model,
        Taxonomy("", tuple(nodes)),
        replace(domain, dimensions={}, tools={}),
        FewShot(_frame(shown), set(by_id)),
        per_leaf=_EVIDENCE_SHOWN,
        nearest=0,
        most_secondary=0,
    )
    labels = annotator.annotate(rest, np.zeros((rest.height, 1), dtype=np.float32))
    seeds = {seed.query_id: seed for seed in branch.seeds}
    for query_id, primary in labels.select("query_id", "primary").iter_rows():
        if primary in by_id:
            by_id[primary].seeds.append(seeds[query_id])
    failed = labels.filter(pl.col("error").is_not_null())
    if failed.height:
        where = branch.node_id or "the root"
        return [f"{failed.height} seeds below {where} could not be placed and stay in Other: {failed['error'][0]}"]
    return []


def _frame(seeds: list[tuple[TaggedSeed, str | None]]) -> pl.DataFrame:
    """Seeds with their leaf, with the columns of the table `seeds` that the annotator and its examples need."""
    return pl.DataFrame(
        {
            "query_id": [seed.query_id for seed, _ in seeds],
            "text": [seed.text for seed, _ in seeds],
            "norm": [seed.text for seed, _ in seeds],
            "lang": [seed.lang for seed, _ in seeds],
            "primary": [leaf for _, leaf in seeds],
            "secondary": [[] for _ in seeds],
            "reason": [None for _ in seeds],
        },
        schema={
            "query_id": pl.UInt64, "text": pl.String, "norm": pl.String, "lang": pl.String,
            "primary": pl.String, "secondary": pl.List(pl.String), "reason": pl.String,
        },
    )  # fmt: skip


def _other(branch: _Branch, level: int) -> Node:
    place = branch.node_id or "the taxonomy"
    description = f"What belongs to {place} but to none of its other categories."
    return Node(branch.child(OTHER), branch.node_id, level, OTHER, description, is_other=True, is_leaf=True)


def _flatten(branch: _Branch, nodes: list[Node], members: dict[str, tuple[int, ...]]) -> None:
    """Append the nodes below a branch and its Other, depth first, and the seeds of its leaves."""
    level = len(branch.path) + 1
    for child in branch.children:
        leaf = not child.children
        examples = tuple(seed.text for seed in child.evidence)
        nodes.append(
            Node(str(child.node_id), branch.node_id, level, child.path[-1], child.description, False, leaf, examples)
        )
        if leaf:
            members[str(child.node_id)] = tuple(sorted(seed.query_id for seed in child.seeds))
        else:
            _flatten(child, nodes, members)
    nodes.append(_other(branch, level))
    placed = {seed.query_id for child in branch.children for seed in child.seeds}
    members[branch.child(OTHER)] = tuple(seed.query_id for seed in branch.seeds if seed.query_id not in placed)
