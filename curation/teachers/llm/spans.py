"""Where the words that a model quotes stand in a query."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["find_span"]


def _folded(text: str) -> str:
    """``text`` with width and case of its characters made alike; as long as before, so that offsets stay."""
    folded = (unicodedata.normalize("NFKC", char).casefold() for char in text)
    return "".join(like if len(like) == 1 else char for char, like in zip(text, folded, strict=True))


def find_span(text: str, quoted: str, taken: Sequence[tuple[int, int]] = ()) -> tuple[int, int] | None:
    """The place of ``quoted`` in ``text`` as 0-based code points, end exclusive; None where it does not occur.

    Words that occur more than once are placed where no span of ``taken`` lies, else at their first occurrence. Case
    and width of characters may differ.
    """
    quoted = quoted.strip()
    for within, wanted in ((text, quoted), (_folded(text), _folded(quoted))):
        places = [
            (start, start + len(wanted))
            for start in range(len(within) - len(wanted) + 1)
            if wanted and within.startswith(wanted, start)
        ]
        if places:
            free = [(a, b) for a, b in places if all(b <= start or end <= a for start, end in taken)]
            return (free or places)[0]
    return None
