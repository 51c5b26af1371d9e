"""What the page sends: checked, and told in a sentence where it is not what it should be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from curation.errors import CurationError

__all__ = ["one_of", "text", "texts", "whole"]


def one_of(value: Any, known: tuple[str, ...]) -> str:
    """``value`` if it is one of ``known``."""
    if value not in known:
        raise CurationError(f"{value!r} is none of {', '.join(known)}")
    return str(value)


def text(body: Mapping[str, Any], name: str) -> str | None:
    """A text without the white space around it; None for none and for an empty one."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise CurationError(f"{name} must be a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise CurationError(f"{name} holds half a character") from None
    return value.strip() or None


def texts(body: Mapping[str, Any], name: str) -> list[str]:
    """A list of texts, empty ones and repetitions left out."""
    value = body.get(name, [])
    if not isinstance(value, list):
        raise CurationError(f"{name} must be a list of texts")
    found = (text({name: item}, name) for item in value)
    return list(dict.fromkeys(item for item in found if item is not None))


def whole(given: str) -> int:
    """A number of rows, of at most nine digits."""
    if not (given.isascii() and given.isdigit() and len(given) < 10):
        raise CurationError(f"{given!r} is no number of rows")
    return int(given)
