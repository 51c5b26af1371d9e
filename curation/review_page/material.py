"""What the page shows of a workspace's tables: nodes with counts, their rows and neighbours, proposals, seeds.

Everything is plain data (lists and dictionaries of JSON's types). Ids of queries are 64-bit and travel as strings,
which JavaScript's numbers cannot hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import polars as pl

from curation.domain.model import Taxonomy
from curation.engine.workspace import Workspace
from curation.taxonomy.proposal import Proposal, from_frame

__all__ = ["Material", "fold_text"]

_CENTRE_ROWS = 64
_CLOSEST = 6
_SORTS = {
    "confidence": ["confidence", "weight"],
    "weight": ["weight", "confidence"],
    "rows": ["rows", "confidence"],
    "purity": ["purity", "weight"],
    "trend": ["trend", "weight"],
    "node": [],
}


def fold_text(text: str) -> str:
    """A text as search compares it: compatibility forms composed, in lower case."""
    import unicodedata

    return unicodedata.normalize("NFKC", text).lower()


def _shown(value: Any) -> Any:
    """A number with four decimals; null for what JSON has no number for."""
    if isinstance(value, float):
        return round(value, 4) if math.isfinite(value) else None
    return value


class Material:
    """A workspace's tables as they are now, read once where they are small, scanned where they are not.

    Args:
        workspace: The workspace; tables that are not built are empty here.
        taxonomy: The version that is shown.
    """

    def __init__(self, workspace: Workspace, taxonomy: Taxonomy) -> None:
        self.workspace = workspace
        self.taxonomy = taxonomy
        document = workspace.store.run()
        self.tables: frozenset[str] = frozenset(document["tables"] if document else ())
        self._files = {name: workspace.files(name) for name in self.tables}

    def scan(self, table: str) -> pl.LazyFrame:
        """A table of the run that was the latest when this object was made."""
        return pl.scan_parquet(self._files[table], hive_partitioning=False, glob=False)

    # -- annotated rows

    @cached_property
    def labelled(self) -> pl.DataFrame:
        """``query_id``, ``primary``, ``confidence``, ``weight`` (raw rows behind) of each annotated query."""
        if not {"annotations", "lexical_groups"} <= self.tables:
            types = {"query_id": pl.UInt64, "primary": pl.String, "confidence": pl.Float32, "weight": pl.Int64}
            return pl.DataFrame(schema=types)
        kept = pl.col("query_id") == pl.col("representative_id")
        weights = (
            self.scan("lexical_groups").filter(kept).select("query_id", weight=pl.col("group_count").cast(pl.Int64))
        )
        rows = self.scan("annotations").filter(pl.col("primary").is_not_null())
        return (
            rows.select("query_id", "primary", "confidence").join(weights, on="query_id").sort("query_id").collect()
        )

    @cached_property
    def annotated_with(self) -> str | None:
        """The version that the annotations name; None before there are any."""
        if "annotations" not in self.tables:
            return None
        versions = self.scan("annotations").select(pl.col("taxonomy_version").max()).collect()
        return versions.item() if versions.height else None

    @cached_property
    def is_behind(self) -> bool:
        """Whether the tables are of another version than the one that is shown, so that a run is due."""
        if "taxonomy" not in self.tables:
            return False
        built = self.scan("taxonomy").filter(pl.col("is_current")).select(pl.col("version").max()).collect().item()
        return built != self.taxonomy.version

    @cached_property
    def counts(self) -> dict[str, dict[str, int]]:
        """``rows``, ``raw_rows``, ``candidates`` at or below each node; without annotations an empty dictionary."""
        if self.labelled.is_empty():
            return {}
        totals = {node: {"rows": 0, "raw_rows": 0, "candidates": 0} for node in self.taxonomy.by_id}
        by_leaf = self.labelled.group_by("primary").agg(rows=pl.len(), raw_rows=pl.col("weight").sum())
        self._add(totals, by_leaf)
        if "candidate_pool" in self.tables:
            self._add(totals, self.scan("candidate_pool").group_by("primary").agg(candidates=pl.len()).collect())
        return totals

    def _add(self, totals: dict[str, dict[str, int]], by_leaf: pl.DataFrame) -> None:
        for row in by_leaf.iter_rows(named=True):
            node = self.taxonomy.by_id.get(row.pop("primary") or "")
            while node is not None:
                for name, value in row.items():
                    totals[node.node_id][name] += value
                node = self.taxonomy.by_id.get(node.parent_id or "")

    def counts_of(self, node_id: str) -> dict[str, int]:
        """:attr:`counts` of one node; of the root (an empty id) the sum over level 1."""
        if node_id or not self.counts:
            return self.counts.get(node_id, {})
        top = [self.counts[node.node_id] for node in self.taxonomy.children(None)]
        return {name: sum(counts[name] for counts in top) for name in ("rows", "raw_rows", "candidates")}

    def below(self, node_id: str) -> list[str]:
        """Ids of the leaves at or below a node (all for the root, an empty id), in document order."""
        stem = node_id and node_id + "."
        return [leaf for leaf in self.taxonomy.leaves if leaf == node_id or leaf.startswith(stem)]

    def examples(self, node_id: str, order: str, limit: int, offset: int = 0) -> list[dict[str, Any]]:
        """Rows at or below a node.

        Args:
            node_id: The node.
            order: ``frequent``, most raw rows first, or ``unsure``, lowest confidence first.
            limit: How many at most.
            offset: How many to pass over.
        """
        key = pl.col("confidence") if order == "unsure" else -pl.col("weight")
        rows = self.labelled.filter(pl.col("primary").is_in(self.below(node_id)))
        rows = rows.sort(key, "query_id").slice(offset, limit)
        texts = self.texts(rows["query_id"].to_list())
        return [
            {
                "query_id": str(row["query_id"]),
                "text": texts.get(row["query_id"], ""),
                "primary": row["primary"],
                "confidence": round(row["confidence"], 3),
                "weight": row["weight"],
            }
            for row in rows.iter_rows(named=True)
        ]

    def texts(self, query_ids: Sequence[int]) -> dict[int, str]:
        """Texts of queries by id."""
        if not query_ids:
            return {}
        wanted = pl.Series(query_ids, dtype=pl.UInt64).implode()
        rows = self.scan("queries").filter(pl.col("query_id").is_in(wanted)).select("query_id", "text").collect()
        return dict(rows.iter_rows())

    # -- neighbours

    def closest(self, node_id: str) -> list[dict[str, Any]]:
        """Leaves outside a node whose rows lie closest, by the cosine of mean vectors, the closest first."""
        leaves, centres = self._centres
        own = set(self.below(node_id))
        inside = [i for i, leaf in enumerate(leaves) if leaf in own]
        if not inside:
            return []
        mean = centres[inside].mean(axis=0)
        scores = centres @ (mean / max(float((mean**2).sum() ** 0.5), 1e-9))
        found = sorted((-float(scores[i]), leaf) for i, leaf in enumerate(leaves) if leaf not in own)
        return [{"node_id": leaf, "similarity": round(-score, 3)} for score, leaf in found[:_CLOSEST]]

    @cached_property
    def _centres(self) -> tuple[list[str], Any]:
        """Leaves with annotated rows, and the unit mean vector of the most frequent rows of each."""
        import numpy as np

        if "embeddings" not in self.tables:
            return [], np.zeros((0, 1), np.float32)
        known = self.labelled.filter(pl.col("primary").is_in(list(self.taxonomy.leaves)))
        rank = pl.struct(-pl.col("weight"), "query_id").rank("ordinal").over("primary")
        picked = known.filter(rank <= _CENTRE_ROWS).select("query_id", "primary")
        vectors = self.scan("embeddings").filter(pl.col("query_id").is_in(picked["query_id"].implode()))
        rows = vectors.collect().join(picked, on="query_id").sort("primary", "query_id")
        leaves = rows["primary"].unique(maintain_order=True).to_list()
        means = [rows.filter(pl.col("primary") == leaf)["vector"].to_numpy().mean(axis=0) for leaf in leaves]
        centres = np.array(means, np.float32).reshape(len(leaves), -1)
        return leaves, centres / np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-9)

    # -- proposals

    @cached_property
    def proposals(self) -> pl.DataFrame:
        """The proposals of this version with ``haystack``, the text that search looks through."""
        if "proposals" not in self.tables:
            return pl.DataFrame()
        rows = self.scan("proposals").filter(pl.col("base_version") == self.taxonomy.version).collect()
        asked = ["kind", "node_id", "target", "name", "description", "reason"]
        spoken = pl.col("evidence").list.eval(pl.element().struct.field("text")).list.join(" ")
        words = pl.concat_str([*asked, spoken], separator="\n", ignore_nulls=True)
        return rows.with_columns(haystack=words.str.normalize("NFKC").str.to_lowercase())

    @cached_property
    def proposal_ids(self) -> dict[str, int]:
        """Position of each proposal in :attr:`proposals`."""
        if self.proposals.is_empty():
            return {}
        return {key: position for position, key in enumerate(self.proposals["proposal_id"])}

    @cached_property
    def problems(self) -> dict[str, str]:
        """Why proposals cannot be carried out, of those that cannot."""
        if self.proposals.is_empty():
            return {}
        rows = self.proposals.filter(pl.col("problem").is_not_null()).select("proposal_id", "problem")
        return dict(rows.iter_rows())

    def find_proposals(
        self,
        *,
        kind: str = "",
        source: str = "",
        node: str = "",
        words: str = "",
        sort: str = "confidence",
        accepts: Callable[[str], bool] | None = None,
    ) -> list[str]:
        """Ids of the proposals that meet all conditions, sorted; the highest first, except for ``node``.

        ``node`` takes the proposals about a node and those below it; every one of the space-separated ``words`` must
        be found; ``accepts`` is asked of each id that is left.
        """
        rows = self.proposals
        if rows.is_empty():
            return []
        if kind:
            rows = rows.filter(pl.col("kind") == kind)
        if source:
            rows = rows.filter(pl.col("source") == source)
        if node:
            about = [pl.col(c).fill_null("") for c in ("node_id", "target")]
            rows = rows.filter(pl.any_horizontal([(c == node) | c.str.starts_with(node + ".") for c in about]))
        for word in fold_text(words).split():
            rows = rows.filter(pl.col("haystack").str.contains(word, literal=True) | (pl.col("proposal_id") == word))
        by = _SORTS[sort]
        keys = [*by, *(name for name in ("node_id", "kind", "proposal_id") if name not in by)]
        rows = rows.sort(keys, descending=[name in by for name in keys], nulls_last=[name in by for name in keys])
        return [key for key in rows["proposal_id"] if accepts is None or accepts(key)]

    def proposal(self, proposal_id: str) -> dict[str, Any]:
        """All of one proposal; ``KeyError`` when there is none."""
        row = self.proposals.drop("haystack").row(self.proposal_ids[proposal_id], named=True)
        row["evidence"] = [item | {"query_id": str(item["query_id"])} for item in row["evidence"]]
        return {name: _shown(value) for name, value in row.items()}

    def as_proposal(self, proposal_id: str) -> Proposal:
        """One proposal as an object; ``KeyError`` when there is none."""
        position = self.proposal_ids[proposal_id]
        return from_frame(self.proposals[position : position + 1].drop("haystack"))[proposal_id]

    def proposals_at(self, ids: Iterable[str]) -> list[dict[str, Any]]:
        """What a line of the list shows of proposals; unknown ids are passed over."""
        names = [
            "proposal_id",
            "source",
            "kind",
            "node_id",
            "target",
            "name",
            "rows",
            "weight",
            "confidence",
            "trend",
        ]
        known = [self.proposal_ids[key] for key in ids if key in self.proposal_ids]
        rows = self.proposals[known].select(names).to_dicts() if known else []
        return [{name: _shown(value) for name, value in row.items()} for row in rows]

    # -- seeds

    @cached_property
    def seeds(self) -> dict[str, dict[str, Any]]:
        """The queries proposed for labelling, by id, the most raw rows first."""
        if "seeds" not in self.tables:
            return {}
        rows = self.scan("seeds").filter(pl.col("origin") == "proposed").select("query_id", "text", "lang")
        if "queries" in self.tables:
            counts = self.scan("queries").select("query_id", weight=pl.col("count").cast(pl.Int64))
            rows = rows.join(counts, on="query_id", how="left")
        else:
            rows = rows.with_columns(weight=pl.lit(None, pl.Int64))
        found = rows.sort("weight", "query_id", descending=[True, False], nulls_last=True).collect()
        return {str(row["query_id"]): row | {"query_id": str(row["query_id"])} for row in found.iter_rows(named=True)}
