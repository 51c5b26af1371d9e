"""What a version does to rows that are annotated already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from curation.domain.model import OTHER, Taxonomy
from curation.taxonomy.editor import edited
from curation.taxonomy.evidence import Named, below
from curation.taxonomy.operations import Operation
from curation.taxonomy.versions import Version

__all__ = ["Again", "Dropped", "again_of", "dropped", "opened", "rows_again"]


@dataclass(frozen=True)
class Dropped:
    """What goes with a node that is dropped.

    Attributes:
        node_id: The node, as the current version calls it.
        leaves: The leaves that go with it, itself for a leaf.
        rows: Annotated rows whose label falls to another leaf without being annotated again.
        to: What they fall to; empty where all are annotated again, for another change.
    """

    node_id: str
    leaves: tuple[str, ...]
    rows: int
    to: str

    def __str__(self) -> str:
        """A sentence for a person."""
        many = "1 leaf" if len(self.leaves) == 1 else f"{len(self.leaves)} leaves"
        below = "" if self.leaves == (self.node_id,) else f" with all below it, {many}"
        falls = "1 row falls" if self.rows == 1 else f"{self.rows:,} rows fall"
        if not self.to:
            return f"{self.node_id} is dropped{below}: its rows will be annotated again."
        return f"{self.node_id} is dropped{below}: {falls} to {self.to} and will not be annotated again."


@dataclass(frozen=True)
class Again:
    """What a node named under ``again`` does.

    Attributes:
        named: The node, and the entry it stands in.
        rows: Annotated rows that are annotated again because it, or a node above or below it, is named.
        of: Annotated rows with a label, primary or secondary, at or below it.
    """

    named: Named
    rows: int
    of: int

    def __str__(self) -> str:
        """A sentence for a person."""
        node, evidence = self.named.node_id, self.named.evidence
        entry = f"{self.named.about}: again: {node}"
        if self.named.is_gone:
            return f"{entry} does nothing: another decision takes {node} away."
        if not self.of:
            return f"{entry} does nothing: no annotated row has a label there."
        if not self.rows:
            return f"{entry} does nothing: all rows there are annotated again in any case."
        many = "1 row more is" if self.rows == 1 else f"{self.rows:,} rows more are"
        if evidence == 0:
            return f"{entry}: {many} annotated again, but none of the evidence shown is there."
        shown = f"; {evidence:,} of the evidence shown" if evidence else ""
        return f"{entry}: {many} annotated again{shown}."


def again_of(
    named: Sequence[Named], before: Taxonomy, unnamed: Sequence[Operation], annotations: pl.LazyFrame | None
) -> list[Again]:
    """What each node named under ``again`` does.

    Args:
        named: The nodes.
        before: The tree whose nodes they are.
        unnamed: The operations as they were if none were named.
        annotations: As for :func:`rows_again`.
    """
    if not named:
        return []
    anyway = [leaf for leaf, fate in edited(before, unnamed).carried().items() if fate.again]
    at = [[leaf for leaf in before.leaves if below(leaf, one.node_id)] for one in named]
    if annotations is None:
        return [Again(one, 0, 0) for one in named]
    found = [_touched(leaves) for leaves in at]
    counts = [(one & ~_touched(anyway)).sum().alias(f"rows {n}") for n, one in enumerate(found)]
    counts += [one.sum().alias(f"of {n}") for n, one in enumerate(found)]
    row = annotations.select(counts).collect().row(0, named=True)
    return [Again(one, int(row[f"rows {n}"] or 0), int(row[f"of {n}"] or 0)) for n, one in enumerate(named)]


def rows_again(version: Version, annotations: pl.LazyFrame | None) -> int:
    """Rows that are annotated again.

    Args:
        version: A version.
        annotations: Rows of `annotations` with labels of the version before; None for none.
    """
    if annotations is None:
        return 0
    leaves = [leaf for leaf, fate in version.carried.items() if fate.again]
    return int(annotations.filter(_touched(leaves)).select(pl.len()).collect().item())


def _touched(leaves: list[str]) -> pl.Expr:
    """Whether a row has one of these leaves as a label, primary or secondary."""
    primary = pl.col("primary").is_in(leaves)
    secondary = pl.col("secondary").list.set_intersection(leaves).list.len().gt(0)
    return primary.fill_null(False) | secondary.fill_null(False)


def dropped(version: Version, before: Taxonomy, annotations: pl.LazyFrame | None) -> list[Dropped]:
    """What goes with each node that is dropped.

    Args:
        version: A version.
        before: The tree that it follows on.
        annotations: As for :func:`rows_again`.
    """
    counts: dict[str, int] = {}
    if version.dropped and annotations is not None:
        rows = annotations.group_by("primary").agg(pl.len()).collect()
        counts = dict(rows.drop_nulls().iter_rows())
    found = []
    for node_id, went in version.dropped.items():
        stay = [leaf for leaf in went if not version.carried[leaf].again]
        to = sorted({str(version.carried[leaf].becomes) for leaf in stay})
        leaves = tuple(leaf for leaf in went if not before.node(leaf).is_other)
        falls = sum(counts.get(leaf, 0) for leaf in stay)
        if went:
            found.append(Dropped(node_id, leaves, falls, " and ".join(to)))
    return found


def opened(version: Version, before: Taxonomy) -> list[str]:
    """A sentence for each leaf that gets children.

    Args:
        version: A version.
        before: The tree that it follows on.
    """
    found = [
        (leaf, fate.becomes)
        for leaf, fate in version.carried.items()
        if fate.becomes and fate.becomes.rpartition(".")[2] == OTHER and not before.node(leaf).is_other
    ]
    nodes = version.taxonomy.by_id
    return [
        f"{leaf} is no leaf any more: its rows are in {to} until they are annotated again."
        for leaf, to in found
        if leaf == to.rpartition(".")[0] and leaf in nodes
    ]
