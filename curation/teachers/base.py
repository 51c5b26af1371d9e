"""What a teacher is: whoever gives judgement, an embedded model or an LLM behind an endpoint.

Every kind of judgement is a protocol of its own, because a teacher need not give them all and a recipe may ask one
teacher for one and another for the next. Stages are written against the protocols: they hand over tables and get
tables back, joined by ``query_id``, and a row that a teacher could not do comes back with its error, never with a
default.

| protocol | question | embedded answer |
|---|---|---|
| :class:`Annotator` | which intents and constraints does a query have, can it be solved? | `embedded/teacher.py` |
| :class:`Scorer` | which tools would be called, how hard is that? | `embedded/scorer.py` |
| :class:`Writer` | how would somebody ask for this chain of tools? | `embedded/writer.py` |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl
from numpy.typing import NDArray

if TYPE_CHECKING:
    import numpy as np

__all__ = ["ANNOTATIONS", "CONSTRAINTS", "Annotator", "Scorer", "Writer", "failed"]

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
        """The `difficulty` table of annotated queries, in their order."""


class Writer(Protocol):
    """Writes queries that need a given chain of tools."""

    name: str

    def chains(self) -> list[Any]:
        """The chains of tools it can write for."""

    def write(self, chain: Any, count: int, examples: Sequence[Any], first: int = 0) -> list[Any]:
        """`count` queries that need `chain`, modelled on `examples`, from the `first`-th it can think of."""


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
