"""What a teacher is: whoever gives judgement, an embedded model or an LLM behind an endpoint.

Every kind of judgement is a protocol of its own, because a teacher need not give them all and a recipe may ask one
teacher for one and another for the next. Stages are written against the protocols: they hand over tables and get
tables back, joined by ``query_id``, and a row that a teacher could not do comes back with its error, never with a
default.

| protocol | question | embedded answer | answer of an LLM |
|---|---|---|---|
| :class:`Annotator` | which intents and constraints, can it be solved? | `embedded/teacher.py` | `llm/annotator.py` |
| :class:`Scorer` | which tools would be called, how hard is that? | `embedded/scorer.py` | `llm/scorer.py` |
| :class:`Writer` | how would somebody ask for this chain of tools? | `embedded/writer.py` | `llm/writer.py` |
| :class:`Verifier` | does a written query hold for a fresh reader? | | `llm/writer.py` |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    import numpy as np

    from curation.teachers.embedded.writer import Order, Written

__all__ = ["ANNOTATIONS", "CONSTRAINTS", "Annotator", "Scorer", "Verifier", "Writer", "failed"]

W_co = TypeVar("W_co", bound="Written", covariant=True)

CONSTRAINTS: pl.DataType = pl.List(
    pl.Struct({"dimension": pl.String, "value": pl.String, "text": pl.String, "start": pl.Int32, "end": pl.Int32})
)

_COLUMNS: dict[str, Any] = {
    "query_id": pl.UInt64,
    "primary": pl.String,
    "secondary": pl.List(pl.String),
    "constraints": CONSTRAINTS,
    "confidence": pl.Float32,
    "teacher": pl.String,
    "taxonomy_version": pl.String,
    "unsolvable": pl.String,
    "unsolvable_confidence": pl.Float32,
    "error": pl.String,
}
ANNOTATIONS = pl.Schema(_COLUMNS)
"""Columns and types that an :class:`Annotator` answers with: those of the contract of `annotations`."""


class Annotator(Protocol):
    """Labels queries."""

    name: str
    """Who labels, as it stands in the tables: ``embedded``, or the model's name."""

    def annotate(self, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        """Label every row.

        Args:
            queries: ``query_id``, ``text``, ``norm`` and ``lang``; ids are unique.
            vectors: float32[n, d], their sentence vectors, row by row; a teacher that reads text may leave them be.

        Returns:
            One row for each row of `queries`, in their order, with the columns of :data:`ANNOTATIONS`. A row that
            could not be labelled has ``error`` set and ``primary`` null; see :func:`failed`.
        """


class Scorer(Protocol):
    """Simulates the execution of annotated queries."""

    def score(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The `difficulty` table of annotated queries, in their order.

        A row that could not be scored has a null ``difficulty``, and says why in one column more, ``error``; a scorer
        that never fails need not have it.
        """


class Writer(Protocol[W_co]):
    """Writes queries that need a given chain of tools."""

    name: str

    def chains(self) -> list[tuple[str, ...]]:
        """The chains of tools it can write for."""

    def write(self, orders: Sequence[Order]) -> Sequence[Sequence[W_co]]:
        """For each order up to ``count`` different queries that need its chain."""


class Verifier(Protocol):
    """Reads written queries as somebody who was not told what they were meant to be."""

    def verify(self, written: Sequence[Written]) -> list[str | None]:
        """What is wrong with each query; None for one that holds."""


def failed(queries: pl.DataFrame, errors: pl.Series, teacher: str, taxonomy_version: str) -> pl.DataFrame:
    """Annotations of rows that a teacher could not label.

    Args:
        queries: Rows with ``query_id``.
        errors: Why, for each of them.
        teacher: The teacher's name.
        taxonomy_version: The version it would have labelled with.
    """
    return queries.select(
        "query_id",
        primary=pl.lit(None, pl.String),
        secondary=pl.lit([], pl.List(pl.String)),
        constraints=pl.lit([], CONSTRAINTS),
        confidence=pl.lit(0, pl.Float32),
        teacher=pl.lit(teacher),
        taxonomy_version=pl.lit(taxonomy_version),
        unsolvable=pl.lit(None, pl.String),
        unsolvable_confidence=pl.lit(0, pl.Float32),
        error=errors,
    )
