"""An LLM as scorer: it simulates the execution of queries; the numbers that follow from its plan are computed.

Asked are the plan, the cognitive load, the constraint complexity and why a query cannot be solved. Chain depth comes
from the plan and difficulty from the three dimensions by the formulas and thresholds that the embedded teacher uses
too (``curation/algorithms/simulate.py``), so tables of both can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from curation.algorithms.simulate import Call, chain_depth, combine, longest_chain
from curation.teachers.embedded.scorer import PLAN, difficulty_of_reason
from curation.teachers.llm.answers import ScoreAnswer, StepAnswer, scores_answer
from curation.teachers.llm.outcome import Request
from curation.teachers.llm.prompts import load_prompt
from curation.teachers.llm.rows import Asker, FaultyAnswerError, Form, Item, judge, requests_of

if TYPE_CHECKING:
    from curation.domain import Domain
    from curation.teachers.embedded.scorer import Scale
    from curation.teachers.prompts import Language

__all__ = ["SCORES", "LlmScorer", "checked_plan"]

_COLUMNS: dict[str, Any] = {
    "query_id": pl.UInt64,
    "difficulty": pl.Int8,
    "cognitive_load": pl.Float32,
    "chain_depth": pl.Float32,
    "constraint_complexity": pl.Float32,
    "tool_plan": PLAN,
    "reason": pl.String,
    "teacher": pl.String,
    "error": pl.String,
}
_DIMENSIONS = ("cognitive_load", "chain_depth", "constraint_complexity")
SCORES = pl.Schema(_COLUMNS)
"""Columns of :meth:`LlmScorer.score`: those of the contract of `difficulty`, and ``error``."""


def _language(text: str) -> Language:
    """The language to give instructions in, by the text's script: tables of labels do not say the language."""
    return "zh" if any("\u4e00" <= char <= "\u9fff" for char in text) else "en"


class LlmScorer:
    """A :class:`curation.teachers.base.Scorer` behind an endpoint.

    Args:
        client: Who asks.
        model: The model's name, which stands in ``difficulty.teacher``.
        domain: Tools and title.
        scale: Weights and thresholds of the difficulty; its ``unsolvable_threshold`` is not used: the model says
            itself whether a query can be solved.
        rows: Queries in a request at most.
        on_progress: Told the queries done and their number.
    """

    def __init__(
        self,
        client: Asker,
        model: str,
        domain: Domain,
        scale: Scale,
        *,
        rows: int = 8,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.name = model
        self._client, self._domain, self._scale = client, domain, scale
        self._rows, self._on_progress = rows, on_progress
        self._told = cache(self._instructions)

    def score(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The `difficulty` table of annotated queries.

        Args:
            rows: Columns ``query_id``, ``text``, ``primary``, ``secondary``, ``constraints``.

        Returns:
            One row per row, in order, with the columns :data:`SCORES`. A row that could not be scored has ``error``
            set and ``difficulty`` null.
        """
        judged = judge(self._client, self._items(rows), self._form, self._checked, self._on_progress)
        found = [
            {"query_id": query_id, "teacher": self.name, "error": one.error, **(one.value or {})}
            for query_id, one in zip(rows["query_id"], judged, strict=True)
        ]
        return self._graded(pl.DataFrame(found, schema=SCORES))

    def requests(self, rows: pl.DataFrame) -> list[Request]:
        """The requests that :meth:`score` begins with, for estimates."""
        return requests_of(self._items(rows), self._form)

    @cached_property
    def _form(self) -> Form:
        return Form(scores_answer(tuple(self._domain.tools)), "scores", "queries", self._rows)

    def _items(self, rows: pl.DataFrame) -> list[Item]:
        items = []
        columns = ("query_id", "text", "primary", "secondary", "constraints")
        for query_id, text, primary, secondary, constraints in rows.select(columns).iter_rows():
            data = {
                "text": text,
                "primary": primary,
                "secondary": secondary,
                "constraints": [{"dimension": c["dimension"], "value": c["value"]} for c in constraints],
            }
            language = _language(text)
            items.append(Item(data, self._told(language), load_prompt("score", language).tag, query_id))
        return items

    def _instructions(self, language: Language) -> str:
        tools = list(self._domain.tools.values())
        return load_prompt("score", language).instructions(title=self._domain.title, tools=tools)

    def _checked(self, item: Item, score: ScoreAnswer) -> dict[str, Any]:
        """The columns that an entry of an answer fills."""
        plan = checked_plan(score.tool_plan, self._domain.tools)
        if score.reason is not None and plan:
            raise FaultyAnswerError("a query that cannot be solved or needs no tool has no tool_plan")
        if score.reason is None and not plan and self._domain.tools:
            raise FaultyAnswerError("there is neither a tool_plan nor a reason why there is none")
        kinds, longest = len({call.tool for call in plan}), longest_chain(plan)
        return {
            "cognitive_load": score.cognitive_load,
            "chain_depth": float(chain_depth([len(plan)], [kinds], [longest])[0]),
            "constraint_complexity": score.constraint_complexity,
            "tool_plan": [{"step": c.step, "tool": c.tool, "depends_on": list(c.depends_on)} for c in plan],
            "reason": score.reason,
        }

    def _graded(self, found: pl.DataFrame) -> pl.DataFrame:
        """Fill in the difficulty of the rows that were scored."""
        scale = self._scale
        level = combine(
            *(found[name].fill_null(0).to_numpy() for name in _DIMENSIONS),
            weights=scale.weights, emphasis=scale.emphasis, thresholds=scale.thresholds,
        )  # fmt: skip
        graded = (
            pl.when(pl.col("reason").is_null())
            .then(pl.Series(level))
            .otherwise(difficulty_of_reason(pl.col("reason")))
        )
        return found.with_columns(difficulty=pl.when(pl.col("error").is_null()).then(graded.cast(pl.Int8)))


def checked_plan(steps: list[StepAnswer], tools: Any) -> tuple[Call, ...]:
    """The calls of a plan, in the order of their numbers.

    Raises:
        FaultyAnswerError: Steps are not numbered 1, 2, 3 ..., a tool does not exist, or a call waits for one that is
            not before it, as in every cycle.
    """
    plan = sorted(steps, key=lambda step: step.step)
    if [step.step for step in plan] != list(range(1, len(plan) + 1)):
        raise FaultyAnswerError("the steps of tool_plan are not numbered 1, 2, 3 and so on")
    for step in plan:
        if step.tool not in tools:
            raise FaultyAnswerError(f"there is no tool {step.tool!r}")
        late = [other for other in step.depends_on if not 1 <= other < step.step]
        if late:
            raise FaultyAnswerError(
                f"step {step.step} of tool_plan depends on step {late[0]}, which is not before it"
            )
    return tuple(Call(step.step, step.tool, tuple(sorted(set(step.depends_on)))) for step in plan)
