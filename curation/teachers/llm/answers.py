"""The form of every answer: pydantic models whose fields are columns of the contracts in ``schemas/``.

Leaves, dimensions and tools are closed lists taken from the domain, so that an endpoint with native schemas cannot
name one that does not exist. What a schema cannot say (that quoted words stand in the query, that plans have no
cycles) is checked by whoever asked, see :mod:`curation.teachers.llm.rows`.

What can be computed is not asked for: offsets of constraints come from searching the query, chain depth and
difficulty from the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model
from typing_extensions import TypeAliasType

from curation.domain.model import REASONS

__all__ = [
    "Answer",
    "CategoriesAnswer",
    "Category",
    "ClusterAnswer",
    "ConstraintAnswer",
    "LabelAnswer",
    "NameAnswer",
    "PartAnswer",
    "ProposalAnswer",
    "ProposalsAnswer",
    "QueryAnswer",
    "ScoreAnswer",
    "StepAnswer",
    "VerdictAnswer",
    "clusters_answer",
    "labels_answer",
    "queries_answer",
    "scores_answer",
    "verdicts_answer",
]

_MOST_VALUES = 500
"""Values that a closed list may have; strict schemas are refused beyond, so longer lists are checked afterwards."""

_Share = Field(ge=0, le=1)
_Level = Field(ge=0, le=5)


class Answer(BaseModel):
    """Base of all answers: a key that was not asked for is passed over, a missing one is a fault.

    Docstrings stay out of the schemas: they are for readers of the code, and would be part of every request's key.
    """

    model_config = ConfigDict(
        frozen=True, allow_inf_nan=False, json_schema_extra=lambda schema: schema.pop("description", None)
    )


class ConstraintAnswer(Answer):
    """A constraint with the words it was read from; see ``annotations.constraints``."""

    dimension: str
    value: str
    text: str


class LabelAnswer(Answer):
    """Labels of one query; see `annotations`."""

    id: str
    primary: str
    secondary: list[str]
    constraints: list[ConstraintAnswer]
    confidence: float = _Share
    unsolvable: Literal[REASONS] | None  # type: ignore[valid-type]
    unsolvable_confidence: float = _Share


class StepAnswer(Answer):
    """A call of a plan; see ``difficulty.tool_plan``."""

    step: int
    tool: str
    depends_on: list[int]


class ScoreAnswer(Answer):
    """The simulated execution of one query; see `difficulty`."""

    id: str
    tool_plan: list[StepAnswer]
    cognitive_load: float = _Level
    constraint_complexity: float = _Level
    reason: Literal[REASONS] | None  # type: ignore[valid-type]


class QueryAnswer(Answer):
    """A written query; see `synthetic`."""

    text: str
    primary: str


class VerdictAnswer(Answer):
    """What a reader without the writer's intentions makes of a written query."""

    id: str
    natural: bool
    solvable: bool
    tools: list[str]
    detail: str | None


class Category(Answer):
    """An induced node, with the seeds that show it; see `taxonomy`."""

    name: str
    description: str
    contrast: str
    evidence: list[str]


class CategoriesAnswer(Answer):
    """The children of a node; none where it is not to be divided."""

    categories: list[Category]


class NameAnswer(Answer):
    """A name for a group of queries; see `taxonomy`."""

    name: str
    description: str
    contrast: str


class PartAnswer(Answer):
    """A leaf that a split makes; see ``proposals.parts``."""

    name: str
    description: str
    evidence: list[str]


class ProposalAnswer(Answer):
    """A change of the taxonomy; see `proposals`."""

    kind: Literal["add", "merge", "split", "rename", "move", "drop", "describe"]
    node_id: str | None
    target: str | None
    name: str | None
    description: str | None
    parts: list[PartAnswer]
    evidence: list[str]
    reason: str
    confidence: float = _Share


class ProposalsAnswer(Answer):
    """Changes of the taxonomy, the most useful first."""

    proposals: list[ProposalAnswer]


class ClusterAnswer(Answer):
    """What is to be done about a cluster of Other."""

    id: str
    action: Literal["new", "existing", "leave"]
    name: str | None
    description: str | None
    leaf: str | None
    reason: str
    confidence: float = _Share


def _closed(name: str, values: Sequence[str]) -> Any:
    """A type that admits only ``values``; any text where there are none or too many for a schema.

    It has a name, so that a schema that uses it twice lists the values once.
    """
    if not 0 < len(values) <= _MOST_VALUES:
        return str
    return TypeAliasType(name, Literal[tuple(values)])  # type: ignore[valid-type]


def _many(item: Any) -> Any:
    """The type of lists of ``item``."""
    return list[item]


def _or_null(item: Any) -> Any:
    """The type of ``item`` or null."""
    return item | None


def _listed(name: str, field: str, item: type[Answer]) -> type[Answer]:
    """A model with a list of ``item`` as its only field."""
    return create_model(name, __base__=Answer, **{field: (_many(item), ...)})  # type: ignore[call-overload]


@lru_cache(maxsize=32)
def labels_answer(leaves: tuple[str, ...], dimensions: tuple[str, ...], most_secondary: int) -> type[Answer]:
    """``{"labels": [LabelAnswer, ...]}`` with closed lists of leaves and dimensions."""
    leaf = _closed("Leaf", leaves)
    constraint = create_model(
        "Constraint", __base__=ConstraintAnswer, dimension=(_closed("Dimension", dimensions), ...)
    )
    label = create_model(
        "Label",
        __base__=LabelAnswer,
        primary=(leaf, ...),
        secondary=(_many(leaf), Field(max_length=most_secondary)),
        constraints=(_many(constraint), Field() if dimensions else Field(max_length=0)),
    )
    return _listed("Labels", "labels", label)


@lru_cache(maxsize=32)
def scores_answer(tools: tuple[str, ...]) -> type[Answer]:
    """``{"scores": [ScoreAnswer, ...]}`` with a closed list of tools."""
    step = create_model("Step", __base__=StepAnswer, tool=(_closed("Tool", tools), ...))
    plan = (_many(step), Field() if tools else Field(max_length=0))
    return _listed("Scores", "scores", create_model("Score", __base__=ScoreAnswer, tool_plan=plan))


@lru_cache(maxsize=32)
def queries_answer(leaves: tuple[str, ...]) -> type[Answer]:
    """``{"queries": [QueryAnswer, ...]}`` with a closed list of leaves."""
    return _listed(
        "Queries", "queries", create_model("Query", __base__=QueryAnswer, primary=(_closed("Leaf", leaves), ...))
    )


@lru_cache(maxsize=32)
def verdicts_answer(tools: tuple[str, ...]) -> type[Answer]:
    """``{"verdicts": [VerdictAnswer, ...]}`` with a closed list of tools."""
    verdict = create_model("Verdict", __base__=VerdictAnswer, tools=(_many(_closed("Tool", tools)), ...))
    return _listed("Verdicts", "verdicts", verdict)


@lru_cache(maxsize=32)
def clusters_answer(leaves: tuple[str, ...]) -> type[Answer]:
    """``{"clusters": [ClusterAnswer, ...]}`` with a closed list of leaves."""
    cluster = create_model("Cluster", __base__=ClusterAnswer, leaf=(_or_null(_closed("Leaf", leaves)), ...))
    return _listed("Clusters", "clusters", cluster)
