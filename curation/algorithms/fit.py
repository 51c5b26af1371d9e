"""Which of several texts fits another best, by the words and letter groups they share.

Used where a domain names tools but no plan rules: the tool whose description is nearest to a leaf's.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

__all__ = ["best_match"]

_WORD = re.compile(r"[^\W_]+")


def best_match(documents: Sequence[str], targets: Sequence[str]) -> list[int]:
    """Index of the target nearest to each document by cosine of TF-IDF vectors over words and 3-grams of letters.

    A document that shares nothing with any target gets the first one; ties go to the earlier target.

    Args:
        documents: Texts to place.
        targets: Texts to choose from, at least one.
    """
    grams = [_grams(text) for text in (*documents, *targets)]
    seen: Counter[str] = Counter(gram for counts in grams for gram in counts)
    weight = {gram: math.log(1 + len(grams) / count) for gram, count in seen.items()}
    vectors = [{gram: n * weight[gram] for gram, n in counts.items()} for counts in grams]
    norms = [math.sqrt(sum(value * value for value in vector.values())) or 1.0 for vector in vectors]
    found = []
    for at in range(len(documents)):
        scores = [
            round(_dot(vectors[at], vectors[to]) / norms[at] / norms[to], 9)
            for to in range(len(documents), len(vectors))
        ]
        found.append(scores.index(max(scores)))
    return found


def _grams(text: str) -> Counter[str]:
    grams: Counter[str] = Counter()
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        grams[word] += 1
        padded = f" {word} "
        grams.update(padded[i : i + 3] for i in range(len(padded) - 2))
    return grams


def _dot(one: dict[str, float], other: dict[str, float]) -> float:
    return sum(value * other[gram] for gram, value in one.items() if gram in other)
