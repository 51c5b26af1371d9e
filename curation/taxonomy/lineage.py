"""The versions that labels go through, as stages read them from the tables of a taxonomy."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from curation.domain.model import OTHER, Node, Taxonomy
from curation.errors import CurationError

__all__ = ["Fate", "Lineage"]


class Fate(NamedTuple):
    """What becomes of the labels of a leaf: the leaf they go to, and whether their rows are annotated again."""

    becomes: str | None
    again: bool


class Lineage:
    """The versions that labels go through, read from the tables.

    Args:
        taxonomy: The table `taxonomy`, all versions.
        migrations: The table `taxonomy_migrations`.

    Attributes:
        current: The version that rows are labelled with.
        versions: From the first version to the current one, those that its labels went through.
    """

    def __init__(self, taxonomy: pl.DataFrame, migrations: pl.DataFrame) -> None:
        now = taxonomy.filter("is_current")["version"].unique().to_list()
        if len(now) != 1:
            raise CurationError("the taxonomy has no nodes", "Run the taxonomy stage again.")
        self._taxonomy = taxonomy
        self._before: dict[str, str] = dict(migrations.select("version", "from_version").unique().iter_rows())
        self._fates: dict[str, dict[str, Fate]] = {}
        for version, leaf, becomes, again in migrations.select("version", "leaf", "becomes", "again").iter_rows():
            self._fates.setdefault(version, {})[leaf] = Fate(becomes, again)
        self._leaves = {
            version: frozenset(leaves)
            for version, leaves in taxonomy.filter("is_leaf").group_by("version").agg("node_id").iter_rows()
        }
        self.current: str = now[0]
        self.versions = self.line(self.current)

    def line(self, version: str) -> list[str]:
        """The versions that the labels of ``version`` went through, itself the last."""
        found = [version]
        while found[-1] in self._before:
            found.append(self._before[found[-1]])
        return found[::-1]

    def nodes(self, version: str) -> pl.DataFrame:
        """Rows of `taxonomy` of one version."""
        return self._taxonomy.filter(pl.col("version") == version)

    def taxonomy(self, version: str) -> Taxonomy:
        """The tree of one version, nodes by id, every Other after its siblings."""
        rows = self.nodes(version).drop("version", "is_current").rows(named=True)
        below: dict[str | None, list[Node]] = {}
        for row in rows:
            below.setdefault(row["parent_id"], []).append(Node(**row | {"examples": tuple(row["examples"])}))

        def walk(parent: str | None) -> list[Node]:
            children = sorted(below.get(parent, []), key=lambda node: (node.is_other, node.name))
            return [node for child in children for node in (child, *walk(child.node_id))]

        return Taxonomy(version, tuple(walk(None)))

    def fates(self, version: str) -> dict[str, Fate]:
        """What becomes of the labels of the version before ``version``, by leaf."""
        return self._fates.get(version, {})

    @property
    def preferred(self) -> list[str]:
        """All versions, those first that a label written by hand more likely speaks of: the current one, those its
        labels went through, the others; those with many before them first."""
        others = sorted(self._leaves.keys() - set(self.versions), key=lambda other: (-len(self.line(other)), other))
        return [*reversed(self.versions), *others]

    def carry(self, leaf: str, version: str, to: str) -> str | None:
        """The leaf of version ``to`` that a label of ``version`` means there; None when nobody can say.

        Towards older versions a leaf goes to the one it came from, if it is one; a leaf that was added goes to the
        nearest Other.
        """
        there, here = self.line(to), self.line(version)
        shared = 0
        while shared < min(len(there), len(here)) and there[shared] == here[shared]:
            shared += 1
        now: str | None = leaf
        for at in range(len(here) - 1, shared - 1, -1):
            now = now and self._back(now, here[at], here[at - 1])
        for step in there[shared:]:
            now = self._fates[step][now].becomes if now else None
        return now

    def _back(self, leaf: str, version: str, before: str) -> str | None:
        sources = [old for old, fate in self._fates[version].items() if fate.becomes == leaf]
        if sources:
            return sources[0] if len(sources) == 1 else None
        while leaf:
            leaf = leaf.rpartition(".")[0]
            other = f"{leaf}.{OTHER}" if leaf else OTHER
            if other in self._leaves[before]:
                return other
        return None
