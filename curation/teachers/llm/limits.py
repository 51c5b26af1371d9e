"""When a call may start: calls in flight that adapt to the endpoint, and rates a minute."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping

from curation.teachers.llm.faults import MAX_WAIT, seconds_of
from curation.teachers.llm.settings import LlmSettings

__all__ = ["Congestion", "Limits", "Pace", "backoff"]

BACKOFF_FIRST, BACKOFF_MOST = 0.5, 30.0
"""Seconds before the first and at most before any repetition of a call."""

_OVERLOADED = 0.2
"""Share of setbacks among recent calls that means overload; less is noise, and slowing down would not help."""
_CUT, _GROWTH = 0.7, 0.1


def backoff(key: str, attempt: int) -> float:
    """Seconds to wait before a call is repeated for the ``attempt``-th time (from 1).

    Doubles each time, with half of it random so that calls that failed together do not come back together. The
    generator is seeded with the call, so that a run can be repeated.
    """
    most = min(BACKOFF_MOST, BACKOFF_FIRST * 2.0 ** min(attempt - 1, 60))
    return most * random.Random(f"{key}:{attempt}").uniform(0.5, 1.0)


class Congestion:
    """How many calls may be in flight: additive increase, multiplicative decrease, with a slow start.

    As in TCP (Jacobson, "Congestion avoidance and control", 1988): one call at first, one more for every success, so
    that an endpoint that refuses everything is asked once; after the first overload one more per round, or a tenth
    more where that is more (Kelly, "Scalable TCP", 2003: rounds take seconds here, and hundreds of places may have to
    be won back). Other than there, a setback alone says nothing, since single calls fail on an idle endpoint too: two
    that are a fifth of the recent calls do.
    """

    def __init__(self, most: int) -> None:
        self.limit = 1.0
        self.epoch = 0
        self._most = most
        self._starting = True
        self._recent: deque[bool] = deque()

    def success(self) -> None:
        """A call was answered."""
        self._note(False)
        self.limit = min(float(self._most), self.limit + (1.0 if self._starting else max(1.0 / self.limit, _GROWTH)))

    def setback(self, epoch: int) -> bool:
        """A call met overload.

        Args:
            epoch: :attr:`epoch` when the call was sent: what was sent before the last decrease does not count again.

        Returns:
            Whether the endpoint is overloaded.
        """
        if epoch != self.epoch:
            return False
        self._note(True)
        enough = len(self._recent) >= min(self.limit / 2, 32)
        if not enough or sum(self._recent) < max(2, _OVERLOADED * len(self._recent)):
            return False
        self.limit = max(1.0, self.limit * _CUT)
        self.epoch += 1
        self._starting = False
        self._recent.clear()
        return True

    def _note(self, setback: bool) -> None:
        self._recent.append(setback)
        while len(self._recent) > max(16.0, self.limit):
            self._recent.popleft()


class Pace:
    """Spreads calls evenly so that any minute has at most ``per_minute`` units (and the last call)."""

    def __init__(self, per_minute: int | None) -> None:
        self._seconds = 60.0 / per_minute if per_minute else 0.0
        self._free = 0.0

    def wait(self, now: float) -> float:
        """Seconds until the next call may start."""
        return max(0.0, self._free - now)

    def take(self, now: float, units: float) -> None:
        """A call of ``units`` starts."""
        self._free = max(self._free, now) + units * self._seconds

    def correct(self, units: float) -> None:
        """A call turned out to have so many units more (or, negative, fewer) than it was taken for."""
        self._free += units * self._seconds


class Limits:
    """Lets calls start one by one, in the order they came.

    Args:
        settings: Limits of concurrency and rates.
        clock: Seconds that never go back.
    """

    def __init__(self, settings: LlmSettings, clock: Callable[[], float]) -> None:
        self.congestion = Congestion(settings.concurrency)
        self.in_flight = 0
        self._clock = clock
        self._requests = Pace(settings.requests_per_minute)
        self._tokens = Pace(settings.tokens_per_minute)
        self._paused_until = 0.0
        self._turn = asyncio.Lock()
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def slot(self, tokens: int) -> AsyncIterator[int]:
        """Hold one of the places in flight; yields the epoch for :meth:`setback`.

        Args:
            tokens: What the call is expected to use; :meth:`used` corrects it.
        """
        async with self._turn:
            while (wait := self._wait()) != 0:
                self._changed.clear()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), wait)
            now = self._clock()
            self._requests.take(now, 1)
            self._tokens.take(now, tokens)
            self.in_flight += 1
        try:
            yield self.congestion.epoch
        finally:
            self.in_flight -= 1
            self._changed.set()

    def _wait(self) -> float | None:
        """Seconds until a call may start, None until another ends."""
        if self.in_flight >= int(self.congestion.limit):
            return None
        now = self._clock()
        return max(0.0, self._paused_until - now, self._requests.wait(now), self._tokens.wait(now))

    def success(self) -> None:
        """A call was answered."""
        self.congestion.success()
        self._changed.set()

    def used(self, expected: int, tokens: int) -> None:
        """A call that was expected to use so many tokens used ``tokens``."""
        self._tokens.correct(tokens - expected)
        self._changed.set()

    def setback(self, epoch: int, wait: float | None) -> None:
        """A call met overload, and the endpoint asked to wait for ``wait`` seconds."""
        if self.congestion.setback(epoch) and wait:
            self.pause(wait)

    def pause(self, seconds: float) -> None:
        """Start no call for so long."""
        self._paused_until = max(self._paused_until, self._clock() + min(seconds, MAX_WAIT))

    def observe(self, headers: Mapping[str, str], tokens: int) -> float:
        """Heed ``x-ratelimit-*`` headers: pause when fewer requests or tokens are left than one more call takes.

        Returns:
            Seconds of the pause; 0 where there is none.
        """
        rest = 0.0
        for unit, need in (("requests", 1), ("tokens", tokens)):
            left = headers.get(f"x-ratelimit-remaining-{unit}")
            reset = seconds_of(headers.get(f"x-ratelimit-reset-{unit}"))
            if left is not None and reset is not None and left.strip().isdigit() and int(left) < need:
                rest = max(rest, min(reset, MAX_WAIT))
        if rest:
            self.pause(rest)
        return rest
