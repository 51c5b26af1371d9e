"""How far several people agree who label the same things with sets of labels.

Sources: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"; Passonneau 2006, "Measuring Agreement on
Set-valued Items (MASI) for Semantic and Pragmatic Annotation".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

__all__ = ["krippendorff_alpha", "masi_distance"]

Label = TypeVar("Label", bound=Hashable)


def masi_distance(first: frozenset[str], second: frozenset[str]) -> float:
    """1 - Jaccard index * monotonicity: 0 for equal sets, 1 for sets that share nothing.

    Monotonicity is 1 for equal sets, 2/3 where one holds the other, 1/3 where both have something of their own,
    0 where nothing is shared.
    """
    if first == second:
        return 0.0
    shared = len(first & second)
    if not shared:
        return 1.0
    monotonicity = 2 / 3 if first < second or second < first else 1 / 3
    return 1 - shared / len(first | second) * monotonicity


def krippendorff_alpha(units: Iterable[Sequence[Label]], distance: Callable[[Label, Label], float]) -> float:
    """1 for complete agreement, 0 for that of chance, less for systematic disagreement.

    Args:
        units: For each thing labelled, the labels given to it, by however many; things with fewer than two do not
            count.
        distance: Of two labels, 0 for equal ones (the square of a metric for interval data, as in the source).

    Returns:
        1 - observed / expected disagreement; 1 where all labels of all units are the same, not a number where no
        unit has two labels.
    """
    pairable = [list(unit) for unit in units if len(unit) > 1]
    given = Counter(label for unit in pairable for label in unit)
    n = sum(given.values())
    if not n:
        return float("nan")
    known: dict[tuple[Label, Label], float] = {}

    def apart(counts: Counter[Label]) -> float:
        """Sum over all ordered pairs of labels given."""
        items = list(counts.items())
        total = 0.0
        for at, (label, times) in enumerate(items):
            for other, often in items[at + 1 :]:
                if (label, other) not in known:
                    known[label, other] = known[other, label] = distance(label, other)
                total += 2 * times * often * known[label, other]
        return total

    observed = sum(apart(Counter(unit)) / (len(unit) - 1) for unit in pairable) / n
    expected = apart(given) / (n * (n - 1))
    return 1 - observed / expected if expected else 1.0
