"""What all embedded labellers share: from judgements with probabilities to rows of `annotations`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.domain.model import REASONS
from curation.errors import CurationError
from curation.teachers.base import ANNOTATIONS, failed
from curation.teachers.embedded.constraints import Recogniser

__all__ = ["Choice", "Labeller", "Verdicts"]


@dataclass(frozen=True)
class Choice:
    """How probabilities become labels.

    Attributes:
        other_share: Share of the seeds that may be less familiar than a query must be to get a leaf.
        secondary_from: Least probability of a further intent.
        most_secondary: Most further intents of a query.
        unsolvable_from: Least probability of being unsolvable at which a reason is given.
    """

    other_share: float = 0.02
    secondary_from: float = 0.8
    most_secondary: int = 2
    unsolvable_from: float = 0.3


@dataclass(frozen=True)
class Verdicts:
    """What a labeller thinks of n queries.

    Attributes:
        primary: n node ids, leaves or Others.
        leaves: float32[n, leaves], probability of each leaf to be the primary one.
        confidence: float32[n], probability that the likeliest leaf is right.
        present: float32[n, leaves], probability of each leaf to be a further intent.
        unsolvable: float32[n], probability that the query cannot be solved.
        reason: int64[n], likeliest reason, as if it could not be solved.
    """

    primary: pl.Series
    leaves: NDArray[np.float32]
    confidence: NDArray[np.float32]
    present: NDArray[np.float32]
    unsolvable: NDArray[np.float32]
    reason: NDArray[np.int64]

    def rows(self, chosen: NDArray[np.int64]) -> Verdicts:
        """The verdicts on the given queries."""
        return Verdicts(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})


class Labeller(ABC):
    """An :class:`curation.teachers.base.Annotator` that judges by probabilities.

    Args:
        leaves: The leaves it knows.
        version: Version of the taxonomy.
        choice: How probabilities become labels.
        recogniser: Finds constraints.
        width: Numbers of a sentence vector.
    """

    name: str
    least_familiar: float
    """Mean cosine to the nearest seeds under which a query goes to Other."""
    measures: list[tuple[str, float, str]]
    """How it did on what it was fitted on: name, value, unit."""

    def __init__(self, leaves: list[str], version: str, choice: Choice, recogniser: Recogniser, width: int) -> None:
        self.leaves, self.version, self.choice = leaves, version, choice
        self._recogniser, self._width = recogniser, width

    @abstractmethod
    def judge(self, rows: pl.DataFrame, vectors: NDArray[np.float32]) -> Verdicts:
        """Verdicts on rows with ``text`` and ``norm``, given float32[n, d] unit vectors; each depends on it alone."""

    def annotate(self, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        """See :meth:`curation.teachers.base.Annotator.annotate`."""
        good = self.usable(vectors)
        rows = queries.filter(good)
        labels = self.labels(rows, self.judge(rows, vectors[good]))
        both = pl.concat([labels, self.lost(queries.filter(~good))])
        return queries.select("query_id").join(both, on="query_id", how="left", maintain_order="left")

    def lost(self, queries: pl.DataFrame) -> pl.DataFrame:
        """Rows of `annotations` for queries whose vectors are not usable."""
        errors = pl.Series(["the query has no usable vector"] * queries.height, dtype=pl.String)
        return failed(queries, errors, self.name, self.version).select(ANNOTATIONS.names()).cast(ANNOTATIONS)

    def usable(self, vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which of float32[n, d] vectors have a direction; :class:`CurationError` where d is not the seeds'."""
        if len(vectors) and vectors.shape[1] != self._width:
            raise CurationError(
                f"the vectors of the queries have {vectors.shape[1]} numbers, those of the seeds {self._width}",
                hint="Build the embeddings again with the encoder that the recipe names.",
            )
        length = np.einsum("ij,ij->i", vectors, vectors)
        return np.asarray(np.isfinite(length) & (length > 0.25))

    def labels(self, rows: pl.DataFrame, verdicts: Verdicts) -> pl.DataFrame:
        """Rows of `annotations` for queries (``query_id``, ``text``, ``lang``) and the verdicts on them."""
        reasons = pl.Series(REASONS, dtype=pl.String).gather(verdicts.reason)
        return (
            rows.select("query_id")
            .with_columns(
                primary=verdicts.primary,
                secondary=self._further(verdicts),
                confidence=pl.Series(verdicts.confidence),
                unsolvable=reasons.set(pl.Series(verdicts.unsolvable < self.choice.unsolvable_from), None),
                unsolvable_confidence=pl.Series(verdicts.unsolvable),
                constraints=self._recogniser.recognise(rows["text"], rows["lang"]),
                teacher=pl.lit(self.name),
                taxonomy_version=pl.lit(self.version),
                error=pl.lit(None, pl.String),
            )
            .select(ANNOTATIONS.names())
            .cast(ANNOTATIONS)
        )

    def _further(self, verdicts: Verdicts) -> pl.Series:
        """Lists of further leaves, sorted."""
        present, most = verdicts.present, self.choice.most_secondary
        best = np.argsort(-present, axis=1, kind="stable")[:, :most]
        row, rank = np.nonzero(np.take_along_axis(present, best, axis=1) >= self.choice.secondary_from)
        leaf = pl.Series(self.leaves, dtype=pl.String).gather(best[row, rank])
        lists = (
            pl.DataFrame({"row": row, "leaf": leaf}).group_by("row", maintain_order=True).agg(pl.col("leaf").sort())
        )
        out = pl.DataFrame({"row": np.arange(len(present))}).join(lists, on="row", how="left", maintain_order="left")
        return out["leaf"].fill_null(pl.Series([[]], dtype=pl.List(pl.String)))
