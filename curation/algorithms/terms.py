"""Words that tell groups of queries apart, in languages with and without spaces.

Terms are words, pairs of words, and runs of two to six characters of a script written without spaces; a run that
hardly ever stands outside a longer one is a fragment of it and is left out (as in the C-value of Frantzi, Ananiadou
and Mima 2000). Groups are told apart by log-odds with a prior, in standard deviations (Monroe, Colaresi and Quinn
2008): frequent words that stand everywhere score near 0, and so do words seen once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["contrast", "find_terms", "name_of"]

Floats = NDArray[np.float64]

_DENSE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_CHUNK = re.compile(rf"[{_DENSE}]+|[^\W\d_{_DENSE}](?:[^\W\d_{_DENSE}]|['’](?=\w))*")
_DENSE_CHUNK = re.compile(rf"[{_DENSE}]")
_SHORTEST, _LONGEST = 2, 6
_FRAGMENT = 0.75
"""Share of a run's queries in which it is part of one longer run, from which it is a fragment."""
_PARTICLES = "的了吗呢吧啊呀里个在是和与"
"""Chinese characters that no term begins or ends with: grammar, not content."""
_PRIOR = 0.5
"""Rows with and without a term that every group is taken to have beside its own (Jeffreys)."""
_NOT_A_NAME = re.compile(r"[^\w-]+")


def find_terms(texts: Sequence[str], least: int = 2) -> tuple[list[str], list[list[int]]]:
    """Terms of texts.

    Args:
        texts: In lower case where case means nothing.
        least: Texts that a term must stand in.

    Returns:
        The terms, sorted; for each text the places of its terms, ascending.
    """
    found = [_candidates(text) for text in texts]
    counts = Counter(term for terms in found for term in terms)
    kept = {term for term, count in counts.items() if count >= least}
    kept -= set(_fragments({term: counts[term] for term in kept}))
    names = sorted(kept)
    place = {term: i for i, term in enumerate(names)}
    return names, [sorted(place[term] for term in terms if term in place) for terms in found]


def contrast(counts: Floats, sizes: NDArray[np.int64]) -> Floats:
    """How much each group is marked by each term; float64[groups, terms] in standard deviations.

    Args:
        counts: float64[groups, terms], rows of the group with the term.
        sizes: int64[groups], rows of the group.
    """
    size = np.asarray(sizes, np.float64)[:, None]
    rest, rest_size = counts.sum(axis=0) - counts, size.sum() - size
    own, without, other, other_without = (n + _PRIOR for n in (counts, size - counts, rest, rest_size - rest))
    variance = 1 / own + 1 / without + 1 / other + 1 / other_without
    return (np.log(own / without) - np.log(other / other_without)) / np.sqrt(variance)


def name_of(terms: Iterable[str], taken: Iterable[str] = (), words: int = 5) -> str:
    """A name for a node from its best terms: the first that gives one, with the next ones where it is taken.

    Args:
        terms: The best first.
        taken: Names of siblings and of Other.
        words: Words of a name at most.

    Returns:
        Letters, digits, ``_`` and ``-``; ``group``, with a number where it is taken, if no term gives a name.
    """
    refused = set(taken)
    parts: list[str] = []
    for term in terms:
        part = "_".join(_NOT_A_NAME.sub(" ", term.lower()).split()[:words])
        if not part:
            continue
        parts.append(part)
        for name in (part, "_".join(parts[:3])):
            if name not in refused:
                return name
    base = "_".join(parts[:3]) or "group"
    return next(name for number in range(1, len(refused) + 3) if (name := f"{base}_{number}") not in refused)


def _candidates(text: str) -> set[str]:
    terms: set[str] = set()
    before: tuple[str, int] | None = None
    for match in _CHUNK.finditer(text.lower()):
        chunk = match.group()
        if _DENSE_CHUNK.match(chunk):
            before = None
            for size in range(_SHORTEST, min(_LONGEST, len(chunk)) + 1):
                runs = (chunk[at : at + size] for at in range(len(chunk) - size + 1))
                terms.update(run for run in runs if run[0] not in _PARTICLES and run[-1] not in _PARTICLES)
            continue
        if len(chunk) > 1:
            terms.add(chunk)
        if before is not None and text[before[1] : match.start()] == " ":
            terms.add(f"{before[0]} {chunk}")
        before = (chunk, match.end())
    return terms


def _fragments(counts: dict[str, int]) -> Iterable[str]:
    """Runs of characters and words that hardly ever stand outside one longer term."""
    for term, count in counts.items():
        if " " in term:
            yield from (part for part in term.split() if count >= _FRAGMENT * counts.get(part, 10**9))
        elif len(term) > _SHORTEST and _DENSE_CHUNK.match(term):
            yield from (part for part in (term[1:], term[:-1]) if count >= _FRAGMENT * counts.get(part, 10**9))
