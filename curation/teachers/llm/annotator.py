"""An LLM as annotator: leaves, constraints and solvability of queries, a few queries in a request."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.teachers.base import ANNOTATIONS
from curation.teachers.llm.answers import LabelAnswer, labels_answer
from curation.teachers.llm.outcome import Request
from curation.teachers.llm.prompts import load_prompt, prompt_language
from curation.teachers.llm.rows import Asker, FaultyAnswerError, Form, Item, Judged, judge, requests_of
from curation.teachers.llm.spans import find_span

if TYPE_CHECKING:
    from curation.domain import Domain
    from curation.domain.model import Taxonomy
    from curation.teachers.llm.few_shot import FewShot
    from curation.teachers.prompts import Language

__all__ = ["LlmAnnotator", "shown_dimensions"]

_VALUES = 24
"""Usual values of a dimension that are shown at most."""


class LlmAnnotator:
    """An :class:`curation.teachers.base.Annotator` behind an endpoint.

    Args:
        client: Who asks.
        model: The model's name, which stands in ``annotations.teacher``.
        taxonomy: Its leaves are the labels.
        domain: Dimensions, tools and title.
        few_shot: Labelled seeds to show.
        per_leaf: Seeds of every leaf in each prompt.
        nearest: Seeds shown with each query, those nearest to it.
        rows: Queries in a request at most.
        most_secondary: Most further intents of a query.
        on_progress: Told the queries done and their number.
    """

    def __init__(
        self,
        client: Asker,
        model: str,
        taxonomy: Taxonomy,
        domain: Domain,
        few_shot: FewShot,
        *,
        per_leaf: int = 1,
        nearest: int = 4,
        rows: int = 8,
        most_secondary: int = 2,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.name = model
        self._client, self._taxonomy, self._domain, self._few_shot = client, taxonomy, domain, few_shot
        self._per_leaf, self._nearest, self._rows, self._most_secondary = per_leaf, nearest, rows, most_secondary
        self._on_progress = on_progress
        self._told = cache(self._instructions)

    def annotate(self, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        """See :meth:`curation.teachers.base.Annotator.annotate`."""
        items = self._items(queries, vectors)
        judged = judge(self._client, items, self._form, self._checked, self._on_progress)
        rows = [
            {"query_id": query_id, **self._row(one)}
            for query_id, one in zip(queries["query_id"], judged, strict=True)
        ]
        return pl.DataFrame(rows, schema=ANNOTATIONS)

    def requests(self, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> list[Request]:
        """The requests that :meth:`annotate` begins with, for estimates."""
        return requests_of(self._items(queries, vectors), self._form)

    @cached_property
    def _form(self) -> Form:
        answer = labels_answer(self._taxonomy.leaves, tuple(self._domain.dimensions), self._most_secondary)
        return Form(answer, "labels", "queries", self._rows)

    def _items(self, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> list[Item]:
        items = []
        similar = self._few_shot.nearest(vectors, self._nearest)
        rows = queries.select("query_id", "text", "lang").iter_rows()
        for (query_id, text, lang), near in zip(rows, similar, strict=True):
            data: dict[str, Any] = {"text": text}
            if near:
                data["similar"] = near
            language = prompt_language(lang)
            items.append(Item(data, self._told(language), load_prompt("annotate", language).tag, query_id))
        return items

    def _instructions(self, language: Language) -> str:
        return load_prompt("annotate", language).instructions(
            title=self._domain.title,
            nodes=self._taxonomy.nodes,
            dimensions=shown_dimensions(self._domain),
            tools=list(self._domain.tools.values()),
            seeds=self._few_shot.balanced(language, self._per_leaf),
            most_secondary=self._most_secondary,
        )

    def _checked(self, item: Item, label: LabelAnswer) -> dict[str, Any]:
        """The columns that an entry of an answer fills."""
        leaves = self._taxonomy.leaf_set
        for leaf in (label.primary, *label.secondary):
            if leaf not in leaves:
                raise FaultyAnswerError(f"{leaf!r} is no leaf of the taxonomy")
        return {
            "primary": label.primary,
            "secondary": sorted({*label.secondary} - {label.primary}),
            "constraints": self._constraints(item.data["text"], label),
            "confidence": label.confidence,
            "unsolvable": label.unsolvable,
            "unsolvable_confidence": label.unsolvable_confidence,
            "error": None,
        }

    def _constraints(self, text: str, label: LabelAnswer) -> list[dict[str, Any]]:
        """Constraints with their places, in the order of the text; what is said twice stands once."""
        found: dict[tuple[int, int, str, str], dict[str, Any]] = {}
        taken: list[tuple[int, int]] = []
        for constraint in label.constraints:
            dimension, value = constraint.dimension, constraint.value.strip()
            if dimension not in self._domain.dimensions:
                raise FaultyAnswerError(f"{dimension!r} is no constraint dimension")
            if not value:
                raise FaultyAnswerError(f"the constraint {constraint.text!r} has no value")
            place = find_span(text, constraint.text, taken)
            if place is None:
                raise FaultyAnswerError(f"the constraint text {constraint.text!r} does not occur in the query")
            taken.append(place)
            start, end = place
            found[start, end, dimension, value] = {
                "dimension": dimension, "value": value, "text": text[start:end], "start": start, "end": end,
            }  # fmt: skip
        return [found[key] for key in sorted(found)]

    def _row(self, judged: Judged[dict[str, Any]]) -> dict[str, Any]:
        blank: dict[str, Any] = {
            "primary": None,
            "secondary": [],
            "constraints": [],
            "confidence": 0.0,
            "unsolvable": None,
            "unsolvable_confidence": 0.0,
            "error": judged.error,
        }
        who = {"teacher": self.name, "taxonomy_version": self._taxonomy.version}
        return (judged.value or blank) | who


def shown_dimensions(domain: Domain) -> list[dict[str, object]]:
    """The constraint dimensions of a domain with their usual values, for templates."""
    shown: list[dict[str, object]] = []
    for dimension in domain.dimensions.values():
        values = list(dict.fromkeys(entry.value for entry in dimension.lexicon))
        values = values[:_VALUES] + ["…"] * (len(values) > _VALUES)
        shown.append({"name": dimension.name, "description": dimension.description, "values": values})
    return shown
