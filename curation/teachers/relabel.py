"""Annotation along the versions of a taxonomy: only the rows that a change touches are annotated again.

Labels of the first version are those of its teacher. Labels of any other are those of the version before it, carried
over, but for the rows whose label the change put in doubt: those are labelled by the teacher of that version. So the
labels depend on the versions and on nothing that happened to run before; labels that an earlier run made may save the
work, they do not change the outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.domain.model import OTHER
from curation.taxonomy.lineage import Fate, Lineage
from curation.taxonomy.seeds import carried
from curation.teachers.base import Annotator

if TYPE_CHECKING:
    from curation.engine.stage import Context

    Known = Callable[[pl.DataFrame, NDArray[np.float32]], pl.DataFrame]

__all__ = ["KnownLabels", "Relabeller", "carried_labels", "known_labels"]


@dataclass(frozen=True)
class KnownLabels:
    """Labels that an earlier run made.

    Attributes:
        version: The version they are labels of, one of the lineage's.
        find: Queries and vectors to the rows of `annotations` that were made of the very same; others are missing.
    """

    version: str
    find: Known


def known_labels(ctx: Context, lineage: Lineage) -> KnownLabels | None:
    """Labels of the published run, if they are those that this run would make on its way through the versions.

    ``ctx`` is of the stage that makes `annotations`. None where there is no such run, or where its versions or its
    seeds are not the beginning of this run's. Rows that failed are not among the labels.
    """
    names = ("annotations", "embeddings", "queries", "seeds", "taxonomy", "taxonomy_migrations")
    before = {name: frame for name in names if (frame := ctx.previous(name)) is not None}
    if len(before) < len(names):
        return None
    then = Lineage(before["taxonomy"].collect(), before["taxonomy_migrations"].collect())
    seeds = [(then, before["seeds"].collect()), (lineage, ctx.read("seeds"))]
    if then.versions != lineage.versions[: len(then.versions)]:
        return None
    for version in then.versions:
        if then.fates(version) != lineage.fates(version) or then.taxonomy(version) != lineage.taxonomy(version):
            return None
        one, other = (_lessons(rows, versions, version) for versions, rows in seeds)
        if not one.equals(other):
            return None
    texts = before["queries"].select("query_id", "text", "norm", "lang")
    labels = before["annotations"].filter(pl.col("error").is_null())
    inputs = labels.select("query_id").join(texts, on="query_id").join(before["embeddings"], on="query_id")

    def find(queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        within = pl.col("query_id").is_between(queries["query_id"].min(), queries["query_id"].max())
        old = inputs.filter(within).collect()
        both = queries.with_row_index().join(old, on=["query_id", "text", "norm", "lang"], how="inner")
        if both.is_empty() or vectors.shape[1:] != both["vector"].to_numpy().shape[1:]:
            return labels.clear().collect()
        equal = (vectors[both["index"].to_numpy()] == both["vector"].to_numpy()).all(axis=1)
        kept = both.filter(equal).select("query_id")
        return labels.filter(within).join(kept.lazy(), on="query_id", how="semi").collect()

    return KnownLabels(then.current, find)


def _lessons(seeds: pl.DataFrame, lineage: Lineage, version: str) -> pl.DataFrame:
    """What a teacher of a version learns from."""
    rows = carried(seeds, lineage, version).filter(pl.col("primary").is_not_null())
    return rows.select("query_id", "text", "lang", "primary", "secondary", "reason").sort("query_id")


class Relabeller:
    """Annotates, as an :class:`curation.teachers.base.Annotator` does, with the current version of a lineage.

    Args:
        lineage: The versions that labels go through.
        teacher_of: The annotator of a version; asked only when a row needs it.
        known: Labels of an earlier run, if any are of use.

    Attributes:
        again: Rows that the last version's teacher labelled again so far.
        asked: Rows that any teacher labelled so far.
    """

    def __init__(
        self, lineage: Lineage, teacher_of: Callable[[str], Annotator], known: KnownLabels | None = None
    ) -> None:
        self._lineage, self._teacher_of, self._known = lineage, teacher_of, known
        self.again = self.asked = 0

    def annotate(self, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        """See :meth:`curation.teachers.base.Annotator.annotate`."""
        return self._at(len(self._lineage.versions) - 1, queries, vectors)

    def _at(self, place: int, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        """Labels in the version at ``place`` of the lineage."""
        version = self._lineage.versions[place]
        if self._known is not None and self._known.version == version and queries.height:
            found = self._known.find(queries, vectors)
            new = ~queries["query_id"].is_in(found["query_id"].implode())
            made = self._made(place, queries.filter(new), vectors[new.to_numpy()])
            return _joined(queries, found, made)
        return self._made(place, queries, vectors)

    def _made(self, place: int, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        version = self._lineage.versions[place]
        if place == 0:
            return self._ask(version, queries, vectors)
        before = self._at(place - 1, queries, vectors)
        labels, again = carried_labels(before, self._lineage.fates(version), version)
        if place == len(self._lineage.versions) - 1:
            self.again += int(again.sum())
        if not again.any():
            return labels
        fresh = self._ask(version, queries.filter(again), vectors[again.to_numpy()])
        return _joined(queries, labels.filter(~again), fresh)

    def _ask(self, version: str, queries: pl.DataFrame, vectors: NDArray[np.float32]) -> pl.DataFrame:
        self.asked += queries.height
        return self._teacher_of(version).annotate(queries, vectors)


def _joined(queries: pl.DataFrame, one: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    """Two sets of labels as one, in the order of `queries`."""
    both = pl.concat([one, other.select(one.columns)])
    return queries.select("query_id").join(both, on="query_id", how="left", maintain_order="left")


def carried_labels(labels: pl.DataFrame, fates: Mapping[str, Fate], version: str) -> tuple[pl.DataFrame, pl.Series]:
    """Labels in the words of the next version, and which rows must be annotated again.

    Args:
        labels: Rows of `annotations`; failed ones stay as they are.
        fates: What becomes of each leaf.
        version: The next version.

    Returns:
        The labels, row by row, and a mask; the labels of masked rows mean nothing. A label that falls to an Other
        because its leaf was dropped has confidence 0: no teacher gave it.
    """
    becomes = {leaf: fate.becomes for leaf, fate in fates.items()}
    again = [leaf for leaf, fate in fates.items() if fate.again or fate.becomes is None]
    primary = pl.col("primary").replace_strict(becomes, return_dtype=pl.String)
    further = pl.element().replace_strict(becomes, return_dtype=pl.String)
    mask = labels.select(
        again=pl.col("primary").is_in(again).fill_null(False)
        | pl.col("secondary").list.eval(pl.element().is_in(again)).list.any()
    )["again"]
    fallen = [old for old, new in becomes.items() if new and _is_other(new) and not _is_other(old)]
    nobody_said = pl.col("primary").is_in(fallen).fill_null(False)
    mapped = labels.with_columns(
        confidence=pl.when(nobody_said).then(pl.lit(0, pl.Float32)).otherwise("confidence"),
        primary=primary,
        secondary=pl.col("secondary").list.eval(further),
        taxonomy_version=pl.lit(version),
    )
    without_primary = pl.col("secondary").list.set_difference(pl.concat_list("primary"))
    return mapped.with_columns(secondary=without_primary.list.drop_nulls().list.sort()), mask


def _is_other(leaf: str) -> bool:
    return leaf.rpartition(".")[2] == OTHER
