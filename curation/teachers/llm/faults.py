"""What can go wrong in a call, sorted by what is to be done about it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from curation.errors import CurationError

__all__ = [
    "MAX_WAIT",
    "EndpointFault",
    "FatalFault",
    "PassingFault",
    "RejectedFault",
    "RelearntFault",
    "classify",
    "error_of",
    "retry_after",
    "seconds_of",
]

MAX_WAIT = 600.0
"""Seconds that a run waits for an endpoint that asks for patience; beyond, it ends with a sentence."""

_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|maximum (context|sequence|input)|too (long|many tokens)", re.IGNORECASE
)
_FILTERED = re.compile(
    r"content[ _-]?(filter|policy|management|safety)|safety system|moderation|flagged", re.IGNORECASE
)
_OUT_OF_MONEY = re.compile(r"insufficient[ _](quota|balance|credit|funds)|billing|exceeded your current quota", re.I)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_PAGE = re.compile(r"\s*<(!doctype|html|head|body|h1|center|p)\b", re.IGNORECASE)
_TAG = re.compile(r"<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.IGNORECASE | re.DOTALL)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class EndpointFault(Exception):  # noqa: N818  the word of the project for what goes wrong on the other side
    """Any fault of a call; ``reason`` is a phrase for a person, ``status`` the HTTP status, 0 where none came."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.status = reason, status


class PassingFault(EndpointFault):
    """Goes away by itself: send the call again, later.

    Attributes:
        wait: Seconds the endpoint asks to wait; None when it does not say.
        overload: Whether too much seems to be asked of it, so that less should be in flight.
        throttled: Whether it refused the call only because of others (429).
        billed: Whether the call may have cost money although no answer came.
        reached: Whether the endpoint was there at all.
        late: Whether it took too long.
    """

    def __init__(
        self,
        reason: str,
        status: int = 0,
        *,
        wait: float | None = None,
        overload: bool = False,
        throttled: bool = False,
        billed: bool = False,
        reached: bool = True,
        late: bool = False,
    ) -> None:
        super().__init__(reason, status)
        self.wait, self.overload, self.throttled = wait, overload, throttled
        self.billed, self.reached, self.late = billed, reached, late


class RejectedFault(EndpointFault):
    """The endpoint takes the request for malformed.

    Attributes:
        of_request: Whether this very request is at fault (too long, filtered), not the way of asking.
        filtered: Whether it was withheld by a content filter.
    """

    def __init__(self, reason: str, status: int) -> None:
        super().__init__(reason, status)
        self.filtered = bool(_FILTERED.search(reason))
        self.of_request = status == 413 or self.filtered or bool(_TOO_LONG.search(reason))


class RelearntFault(EndpointFault):
    """The endpoint does not know the way it was asked, but another: make the call again at once."""


class FatalFault(EndpointFault):
    """Every call will meet it: the key, the model, the account."""

    def __init__(self, reason: str, hint: str, status: int = 0) -> None:
        super().__init__(reason, status)
        self.hint = hint

    def told(self) -> CurationError:
        """The fault as an error for a person."""
        return CurationError(self.reason, self.hint)


def seconds_of(duration: str | None) -> float | None:
    """Seconds of a duration as rate-limit headers write it (``120ms``, ``6m0s``, ``1.5``); None if it is none."""
    if not duration:
        return None
    text = duration.strip()
    try:
        value = float(text)
    except ValueError:
        parts = _DURATION.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            return None
        value = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return value if math.isfinite(value) and value >= 0 else None


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds to wait by ``Retry-After`` (RFC 9110, 10.2.3: seconds or a date), or what some endpoints send instead.

    That is ``retry-after-ms``, or the ``x-ratelimit-reset-*`` of what there is none left of.

    Args:
        headers: Header names in lower case, or a mapping that does not mind case.
        now: Seconds since the epoch, for dates; the clock's by default.
    """
    milliseconds = seconds_of(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    if not text:
        spent = [unit for unit in ("requests", "tokens") if headers.get(f"x-ratelimit-remaining-{unit}") == "0"]
        resets = [seconds_of(headers.get(f"x-ratelimit-reset-{unit}")) for unit in spent]
        return max((reset for reset in resets if reset is not None), default=None)
    seconds = seconds_of(text)
    if seconds is not None:
        return seconds
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, date.timestamp() - (time.time() if now is None else now))


def error_of(body: Any) -> tuple[str, str]:
    """(message, code) of an error body in any of the forms that endpoints use; empty strings where there is none."""
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, str):
            return inner, str(body.get("code") or "")
        if isinstance(inner, dict):
            message = inner.get("message") or inner.get("detail") or ""
            return str(message), " ".join(str(inner[name]) for name in ("code", "type") if inner.get(name))
    return (_plain(body[:20_000])[:300], "") if isinstance(body, str) else ("", "")


def _plain(page: str) -> str:
    """The words of what a gateway sends: a text as it is, a page without its tags."""
    return " ".join(_TAG.sub(" ", page).split()) if _PAGE.match(page) else page.strip()


def classify(status: int, body: Any, headers: Mapping[str, str]) -> EndpointFault:
    """The fault that an HTTP status other than 2xx means, online or in a line of a batch's error file."""
    message, code = error_of(body)
    said = " ".join(message.split())[:500] or "no reason given"
    told = f"HTTP {status}: {said}"
    if status == 403 and _FILTERED.search(said):
        return RejectedFault(told, status)
    if status in (401, 403):
        return FatalFault(
            f"the endpoint refuses the API key or the access ({told})",
            "Check the key in the environment variable that llm.key_env names, and what it may use.",
            status,
        )
    if status == 402 or (status in (400, 429) and _OUT_OF_MONEY.search(f"{code} {message}")):
        return FatalFault(
            f"the account at the endpoint has no money or quota left ({told})", "Top it up, run again.", status
        )
    if status in (404, 405, 410):
        return FatalFault(
            f"the endpoint does not know the model or the address ({told})",
            "Check llm.model and llm.base_url; the address usually ends in /v1.",
            status,
        )
    if status in (408, 409, 425, 429) or status >= 500:
        wait = retry_after(headers)
        if wait is not None and wait > MAX_WAIT:
            return FatalFault(
                f"the endpoint asks to wait {wait / 60:,.0f} minutes ({told})", "Run again after that.", status
            )
        return PassingFault(told, status, wait=wait, overload=status in (429, 503, 529), throttled=status == 429)
    return RejectedFault(f"{told} {code}".strip(), status)
