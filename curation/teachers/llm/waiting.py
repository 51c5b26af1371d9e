"""Tells a person once what an endpoint is waited for, and that it answers again.

By the logger ``curation.llm``, so that who waits need not know who listens: the command line puts the lines among its
own, elsewhere :mod:`logging` sends them where the program says, and warnings to stderr if it says nothing.
"""

from __future__ import annotations

import asyncio
import logging

__all__ = ["LOGGER", "Waiting"]

LOGGER = logging.getLogger("curation.llm")

_SHORT = 5.0
"""Seconds without an answer that are not worth a line: single calls fail and are repeated all the time."""
_AGAIN = 600.0
"""Seconds before the next line: an endpoint that comes and goes must not flood the terminal."""


class Waiting:
    """Watches whether anything is answered, for one client; lives in its event loop.

    Args:
        address: The endpoint, as a person knows it.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._answered = self._told = float("-inf")
        self._since: float | None = None
        self._open = False
        self._what, self._until = "", 0.0
        self._timer: asyncio.TimerHandle | None = None

    def met(self, what: str, begun: float, wait: float) -> None:
        """A call has to wait; a person is told if nothing is answered for some seconds.

        Args:
            what: What for, as a phrase.
            begun: When the call was sent, by the clock of the loop.
            wait: Seconds until it is sent again.
        """
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._what, self._until = what, max(self._until, now + wait)
        if self._since is None:
            self._since = max(begun, self._answered)
        if self._timer is None and not self._open:
            due = max(now, self._since + _SHORT, self._told + _AGAIN)
            self._timer = loop.call_at(due, self._tell)

    def answered(self) -> None:
        """A call was answered."""
        self._answered = asyncio.get_running_loop().time()
        if self._open and self._since is not None:
            LOGGER.info("%s answers again, after %.0f seconds", self._address, self._answered - self._since)
        self.over()

    def over(self) -> None:
        """Nothing is waited for any more."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._since, self._open, self._until = None, None, False, 0.0

    def _tell(self) -> None:
        self._timer, self._open = None, True
        self._told = asyncio.get_running_loop().time()
        rest = max(0.0, self._until - self._told)
        LOGGER.warning("waiting for %s: %s; next try in %.0f seconds", self._address, self._what, rest)
