"""Whether something has become more frequent in a span of time, from when it was first and last seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["late_share"]

Floats = NDArray[np.float64]


def late_share(first: Floats, last: Floats, weight: NDArray, span: tuple[float, float]) -> float | None:
    """Share of the weight in the last third of a span of time, minus a third: what is spread evenly has 0.

    Args:
        first, last: float64[n], when each thing was first and last seen; NaN where that is not known. A thing is
            taken to have come evenly in between.
        weight: [n], how often it came.
        span: Begin and end of the whole time.

    Returns:
        In [-1/3, 2/3]; None where no time is known or the span is empty.
    """
    known = ~(np.isnan(first) | np.isnan(last))
    begin, end = span
    if not known.any() or not end > begin:
        return None
    first, last, weight = first[known], last[known], np.asarray(weight)[known]
    late = begin + (end - begin) * 2 / 3
    length = last - first
    inside = np.clip(last - np.maximum(first, late), 0, None)
    share = np.divide(inside, length, out=(first >= late).astype(np.float64), where=length > 0)
    return float((share * weight).sum() / weight.sum()) - 1 / 3
