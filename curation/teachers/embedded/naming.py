"""Names and descriptions for groups of queries, from the words that tell them apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from curation.algorithms.tagging import Tagging
from curation.algorithms.terms import contrast, find_terms, name_of
from curation.domain.model import OTHER

__all__ = ["Name", "Namer", "told_apart"]

Floats = NDArray[np.float64]

_MARKS = 1.64
"""Standard deviations from which a tag or term marks a group (one in twenty by chance)."""
_VAGUE = 0.05
"""Part of the median coherence under which a tag names nothing: it stands on queries of any kind."""
_ALIKE = 0.75
_COVERS = 0.05
"""Share of a group's queries that a name must be said in."""
_SHOWN = 5
_CONTRASTED = 3


@dataclass(frozen=True)
class Name:
    """A name for a node, and what belongs to it."""

    name: str
    description: str


class Namer:
    """Names groups of rows against each other.

    Args:
        texts: Of all rows.
        tagging: Of the rows; tags are preferred to terms of the texts, since people chose them as names.
        tag_weights: float64[tags], coherence of the tags.
    """

    def __init__(
        self, texts: Sequence[str], tagging: Tagging | None = None, tag_weights: Floats | None = None
    ) -> None:
        names, found = find_terms(texts)
        self._terms = names
        self._rows = [np.array(places, np.int64) for places in found]
        often = np.maximum(1, self._term_count(range(len(texts))))
        # A word of every tenth query, such as "are", says less than one of every hundredth (inverse row frequency).
        self._rarity = np.log(len(texts) / often) / max(1.0, np.log(len(texts) or 1))
        self._tags, self._tag_rows = (
            ((), np.zeros((len(texts), 0))) if tagging is None else _telling(tagging, tag_weights)
        )

    def name(
        self,
        groups: Sequence[Sequence[int]],
        apart: Floats,
        taken: Iterable[str] = (),
        parts: Sequence[Sequence[Sequence[int]]] | None = None,
    ) -> list[Name]:
        """A name for each of some siblings.

        Args:
            groups: Rows of each.
            apart: float64[k, k], how far siblings are from each other; a description tells a node from the nearest.
            taken: Names that none may get.
            parts: Of each group, the rows of its children, if it has any: its name should be said in all of them.
        """
        ranked = self.marks(groups, parts)
        names = self.names_for(ranked, taken)
        return [Name(name, _description(at, names, ranked, apart)) for at, name in enumerate(names)]

    def marks(
        self, groups: Sequence[Sequence[int]], parts: Sequence[Sequence[Sequence[int]]] | None = None
    ) -> list[list[str]]:
        """Tags, then terms, that mark each group against the others, the surest first; `parts` as for `name`."""
        sizes = np.array([max(1, len(rows)) for rows in groups])
        ranked: list[list[str]] = [[] for _ in groups]
        for words, count, worth in (
            (self._tags, self._tag_count, np.ones(len(self._tags))),
            (self._terms, self._term_count, self._rarity),
        ):
            counts = np.array([count(rows) for rows in groups])
            for at, below in enumerate(parts or [()] * len(groups)):
                spread = np.mean([count(rows) > 0 for rows in below], axis=0) if below else np.ones(len(words))
                ranked[at] += _best(words, counts, sizes, at, spread * worth)
        return ranked

    @staticmethod
    def names_for(ranked: Sequence[Sequence[str]], taken: Iterable[str] = ()) -> list[str]:
        """Different names from ranked words, none of them `taken` or that of Other."""
        used = {OTHER, *taken}
        names = []
        for words in ranked:
            names.append(name_of(words, used))
            used.add(names[-1])
        return names

    def _tag_count(self, rows: Sequence[int]) -> Floats:
        return self._tag_rows[list(rows)].sum(axis=0)

    def _term_count(self, rows: Sequence[int]) -> Floats:
        counts = np.zeros(len(self._terms))
        for row in rows:
            counts[self._rows[row]] += 1
        return counts


def _telling(tagging: Tagging, weights: Floats | None) -> tuple[tuple[str, ...], Floats]:
    """The tags that say something, and the rows they are on."""
    there = (tagging.counts > 0).astype(np.float64)
    if weights is None or not len(weights):
        return tagging.names, there
    kept = np.flatnonzero(weights >= _VAGUE * np.median(weights))
    return tuple(tagging.names[i] for i in kept), there[:, kept]


def _best(words: Sequence[str], counts: Floats, sizes: NDArray, at: int, worth: Floats) -> list[str]:
    """Words that mark group ``at``: the surest, times their worth, first; of equal ones the longest."""
    if not len(words):
        return []
    scores = contrast(counts, sizes)[at] if len(counts) > 1 else counts[at] / np.sqrt(counts[at] + 1)
    fit = np.flatnonzero((scores >= _MARKS) & (counts[at] >= np.maximum(2, _COVERS * sizes[at])))
    scores = scores * worth
    order = sorted(fit.tolist(), key=lambda i: (-round(float(scores[i]), 6), -len(words[i]), words[i]))
    if order:
        # Of what marks it nearly as well as the best, the longest says most: "free spaces" before "free".
        alike = [i for i in order if scores[i] >= _ALIKE * scores[order[0]] and words[order[0]] in words[i]]
        longest = max(alike, key=lambda i: len(words[i]))
        order.remove(longest)
        order.insert(0, longest)
    return [words[i] for i in order]


def _description(at: int, names: list[str], ranked: list[list[str]], apart: Floats) -> str:
    """What a group is about, and which word means the group that is nearest, where one is nearer than the rest."""
    said = f"Queries about {_quoted(ranked[at][:_SHOWN])}." if ranked[at] else "Queries without a word in common."
    others = sorted((apart[at, other], other) for other in range(len(names)) if other != at)
    if not others or (len(others) > 1 and others[0][0] == others[1][0]):
        return said
    other = others[0][1]
    instead = [word for word in ranked[other] if word not in ranked[at]][:_CONTRASTED]
    return f"{said} {told_apart(instead, names[other])}" if instead else said


def told_apart(words: Sequence[str], node: str) -> str:
    """A sentence for a description: what belongs to another node."""
    return f"Queries about {_quoted(words)} belong to {node}."


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f"“{word}”" for word in words)
