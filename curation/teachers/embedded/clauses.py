"""Cutting a query where a second wish may begin: at punctuation, and at words such as "and then" or 顺便."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST", "split_clauses"]

MOST = 4
"""Clauses of a query that are looked at."""

_CUT = re.compile(
    r"[，,;；。？！?!、،؟；\n]+|然后|顺便|还有|以及|并且|接着|另外|再(?!见|次|三)"
    r"|\s(?:and then|and also|and|then|also|plus)\s",
    re.IGNORECASE,
)
_LEAST, _LEAST_ASCII = 4, 8


def split_clauses(texts: list[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Clauses of the texts that have two or more.

    Parts under 4 characters (8 for plain Latin text) are no clauses; of many the first `MOST` are given.

    Returns:
        int64[m], the place in ``texts`` of each clause; m clauses, in order.
    """
    owners: list[int] = []
    clauses: list[str] = []
    for i, text in enumerate(texts):
        parts = [part.strip() for part in _CUT.split(text)]
        parts = [part for part in parts if len(part) >= (_LEAST_ASCII if part.isascii() else _LEAST)][:MOST]
        if len(parts) > 1:
            owners.extend([i] * len(parts))
            clauses.extend(parts)
    return np.array(owners, np.int64), clauses
