"""Labelled seeds as examples in prompts: some of every leaf, and those nearest to a query."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.teachers.llm.prompts import prompt_language
from curation.teachers.prompts import Language

__all__ = ["FewShot"]

_BLOCK = 4096
_DECIMALS = 4
"""Cosines are compared to so many, so that the noise of an encoder does not change a prompt."""
_UNSOLVABLE = 2
"""Examples of each reason why a query cannot be solved."""


class FewShot:
    """The labelled seeds of a run.

    Args:
        seeds: The table `seeds`; rows without a leaf of ``leaves`` are left out.
        leaves: Leaves that labels may use.
        vectors: float32[n, d] of the rows of ``seeds``; None where nearest ones are not asked for.
    """

    def __init__(
        self, seeds: pl.DataFrame, leaves: Collection[str], vectors: NDArray[np.float32] | None = None
    ) -> None:
        usable = seeds["primary"].is_in(list(leaves)).fill_null(False).to_numpy()
        order = np.argsort(seeds["query_id"].to_numpy()[usable], kind="stable")
        self._rows: list[dict[str, Any]] = seeds.filter(usable)[order].to_dicts()
        self._shown = [
            {
                "text": row["text"],
                "primary": row["primary"],
                "secondary": [leaf for leaf in row["secondary"] if leaf in leaves],
                "unsolvable": row["reason"],
            }
            for row in self._rows
        ]
        self._vectors = None if vectors is None else vectors[usable][order].astype(np.float64)

    def balanced(self, language: Language, per_leaf: int) -> list[dict[str, Any]]:
        """Up to ``per_leaf`` solvable seeds of every leaf, and two for each reason of unsolvable ones.

        Those in the language come first; which they are hangs on their ids alone. Empty for ``per_leaf`` 0.
        """
        groups: dict[tuple[bool, str], list[tuple[bool, int]]] = {}
        for at, row in enumerate(self._rows):
            key = (row["reason"] is not None, row["reason"] or row["primary"])
            groups.setdefault(key, []).append((prompt_language(row["lang"]) != language, at))
        chosen = []
        for (unsolvable, _), members in sorted(groups.items()):
            most = min(per_leaf, _UNSOLVABLE) if unsolvable else per_leaf
            chosen += [self._shown[at] for _, at in sorted(members)[:most]]
        return chosen

    def nearest(self, vectors: NDArray[np.float32], count: int) -> list[list[dict[str, Any]]]:
        """For each of the unit ``vectors`` the ``count`` nearest seeds, nearest first; ties go to the smaller id."""
        if count == 0 or self._vectors is None or not len(self._vectors):
            return [[] for _ in vectors]
        count = min(count, len(self._vectors))
        found: list[list[dict[str, Any]]] = []
        for start in range(0, len(vectors), _BLOCK):
            block = np.nan_to_num(vectors[start : start + _BLOCK].astype(np.float64))
            cosines = np.round(block @ self._vectors.T, _DECIMALS)
            best = np.argsort(-cosines, axis=1, kind="stable")[:, :count]
            found += [[self._shown[at] for at in row] for row in best.tolist()]
        return found
