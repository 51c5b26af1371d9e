"""Tool chains: which are rare, how many queries to write for each, which observed ones are most like another.

A chain is the tuple of the different tools of a plan in the order of their first call; two chains are the same
combination when they hold the same tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.apportion import apportion

__all__ = ["Chain", "combination_counts", "nearest_combinations", "rare_chains", "shares"]

Chain = tuple[str, ...]


def combination_counts(observed: Mapping[Chain, int]) -> dict[frozenset[str], int]:
    """Queries by combination of tools, whatever the order."""
    counts: dict[frozenset[str], int] = {}
    for chain, count in observed.items():
        counts[frozenset(chain)] = counts.get(frozenset(chain), 0) + count
    return counts


def rare_chains(
    possible: Iterable[Chain], observed: Mapping[Chain, int], share: float, least_tools: int
) -> list[tuple[Chain, int]]:
    """Possible chains that are rare in what was observed.

    Args:
        possible: Chains that can be written for; of several in different order the smallest stands for all.
        observed: Queries by chain.
        share: A chain is rare when its combination has at most this share of all observed queries.
        least_tools: Chains of fewer tools are left out.

    Returns:
        ``(chain, queries observed with its combination)``, rarest first, then by chain.
    """
    counts = combination_counts(observed)
    limit = share * sum(counts.values())
    chosen: dict[frozenset[str], Chain] = {}
    for chain in sorted(set(possible)):
        if len(chain) >= least_tools:
            chosen.setdefault(frozenset(chain), chain)
    rare = [(chain, counts.get(tools, 0)) for tools, chain in chosen.items() if counts.get(tools, 0) <= limit]
    return sorted(rare, key=lambda item: (item[1], item[0]))


def shares(counts: Sequence[int], tried: Sequence[int], passed: Sequence[int], total: int) -> NDArray[np.int64]:
    """How many of ``total`` queries to write next for each chain.

    The rarer a chain, the more: weight 1 / sqrt(1 + observed). A chain whose queries fail gets fewer, by its rate of
    success so far, (passed + 1) / (tried + 2).

    Args:
        counts: Queries observed by chain.
        tried: Queries written so far by chain.
        passed: Those that passed every check.
        total: Queries to write.
    """
    rarity = 1 / np.sqrt(1 + np.asarray(counts, dtype=np.float64))
    success = (np.asarray(passed, dtype=np.float64) + 1) / (np.asarray(tried, dtype=np.float64) + 2)
    return apportion(np.round(rarity * success, 9), total)


def nearest_combinations(chain: Chain, observed: Iterable[frozenset[str]], most: int) -> list[frozenset[str]]:
    """Observed combinations most like ``chain`` by Jaccard similarity of their tools, those without any left out."""
    wanted = frozenset(chain)
    scored = [
        (-round(len(wanted & tools) / len(wanted | tools), 9), tuple(sorted(tools)), tools)
        for tools in observed
        if wanted & tools
    ]
    return [tools for _, _, tools in sorted(scored, key=lambda item: item[:2])[:most]]
