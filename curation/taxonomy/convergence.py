"""How far two versions of the taxonomy are from each other."""

from __future__ import annotations

import polars as pl

from curation.taxonomy.compare import compare, tracked
from curation.taxonomy.lineage import Lineage
from curation.taxonomy.seeds import carried
from curation.taxonomy.tables import migrations_frame, nodes_frame
from curation.taxonomy.versions import History

__all__ = ["convergence"]


def convergence(history: History, before: str, after: str, seeds: pl.DataFrame) -> dict[str, float]:
    """Numbers that are all 0 for two equal versions.

    Args:
        history: The versions.
        before, after: Two of them.
        seeds: The table `seeds`.

    Returns:
        ``seeds_changed``, the share of the seeds with a leaf in ``before`` whose leaf is another node, or none, in
        ``after``; ``tree_distance``, the edits (nodes added, removed, renamed, moved; the correspondence of nodes is
        known, so it need not be searched for) over the nodes of both trees; ``total``, their sum.
    """
    lineage = Lineage(nodes_frame(history, after), migrations_frame(history))
    same = tracked(history, before, after)
    old = carried(seeds, lineage, before)["primary"].to_list()
    new = carried(seeds, lineage, after)["primary"].to_list()
    labelled = [(a, b) for a, b in zip(old, new, strict=True) if a is not None]
    changed = sum(same.get(a) != b for a, b in labelled) / max(1, len(labelled))
    edits = sum(one.change in ("added", "removed", "renamed", "moved") for one in compare(history, before, after))
    nodes = len(history.get(before).taxonomy.nodes) + len(history.get(after).taxonomy.nodes)
    distance = edits / nodes
    return {
        "seeds_changed": round(changed, 4),
        "tree_distance": round(distance, 4),
        "total": round(changed + distance, 4),
    }
