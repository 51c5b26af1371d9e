"""Makes calls: from the cache if it can, else claimed, within the limits, sent again after a passing fault."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel

from curation.errors import CurationError
from curation.teachers.llm.cache import Cache, Claim
from curation.teachers.llm.cost import cost_bound, expected_prompt
from curation.teachers.llm.dialogue import Call, call_key
from curation.teachers.llm.endpoint import Endpoint
from curation.teachers.llm.faults import EndpointFault, FatalFault, PassingFault, RejectedFault, RelearntFault
from curation.teachers.llm.limits import Limits, backoff
from curation.teachers.llm.outcome import Message, Reply
from curation.teachers.llm.settings import LlmSettings
from curation.teachers.llm.waiting import Waiting

__all__ = ["BudgetReachedError", "Caller", "NoAnswerError"]

_OUTAGE = 3
"""Calls given up with no answer between, after which the endpoint is asked whether it answers at all."""
_POLL_FIRST, _POLL_MOST = 0.05, 2.0
"""Seconds between two looks at a call that another process makes, or at money that others hold: first and most."""

_WAITS = {
    Claim.TAKEN: "another run is asking the same",
    Claim.WAIT: "calls under way may cost what is left of the budget",
}
"""What a call waits for that was not granted."""


class NoAnswerError(Exception):
    """A call that was given up; ``str()`` says why."""


class BudgetReachedError(Exception):
    """The budget has no room for a call."""


class _Word(BaseModel):
    word: str


class Caller:
    """Makes the calls of one client.

    Attributes:
        answers: How many calls were answered since it was made.

    Args:
        settings: Retries, budget, model.
        stage: Who asks, for the cache.
        cache: Where answers are kept; of the event loop's thread.
        endpoint: Who answers.
        limits: When a call may start.
        waiting: Who tells a person when nothing is answered.
    """

    def __init__(
        self,
        settings: LlmSettings,
        stage: str,
        cache: Cache,
        endpoint: Endpoint,
        limits: Limits,
        waiting: Waiting,
    ) -> None:
        self._settings, self._stage = settings, stage
        self._cache, self._endpoint, self._limits, self._waiting = cache, endpoint, limits, waiting
        self._received = float(settings.max_tokens)
        self.answers = 0
        self._given_up = 0
        self._silent_since: float | None = None
        self._refused: CurationError | None = None
        self._sending: set[asyncio.Task[Any]] = set()
        self._stopping = False
        self._proven = False
        self._ended = asyncio.Event()

    def doubt(self) -> None:
        """Note that an answer was not of the form asked for: from now on the form is also told in words."""
        self._endpoint.dialect.told = True

    def key(self, call: Call) -> str:
        """The cache's key of a call."""
        return call_key(call, self._settings)

    def known(self, call: Call) -> Reply | None:
        """The reply to a call that was made before."""
        reply = self._cache.get(self.key(call))
        # That it was answered once means that the way of asking is sound.
        self._proven |= reply is not None
        return reply

    async def reply(self, call: Call) -> Reply:
        """The reply to a call; one call at most is billed for it, however many ask.

        Raises:
            NoAnswerError: The endpoint rejected it or did not answer, however often it was asked.
            BudgetReachedError: There is no money for it.
            CurationError: No call will be answered: the key, the model, an outage.
        """
        key, tries, counted, pause = self.key(call), 0, 0, _POLL_FIRST
        expected = expected_prompt(call) + round(self._received)
        while (known := self.known(call)) is None:
            answers, ended, begun = self.answers, self._ended, self._now()
            try:
                async with self._limits.slot(expected) as epoch:
                    if self._refused:
                        raise self._refused
                    if self._stopping:
                        # Cancelled already; but nothing on the way here need have waited, and so noticed.
                        raise asyncio.CancelledError
                    begun, claim = self._now(), self._claim(key, call)
                    if claim is Claim.GRANTED:
                        return await self._send(key, call, expected, epoch)
                self._waiting.met(_WAITS[claim], begun, pause)
                # A call of ours that ends frees money, or is the one that is waited for; of others nobody tells.
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(ended.wait(), pause)
                pause = min(_POLL_MOST, 2 * pause)
                self._cache.settle()
            except RelearntFault:
                continue
            except FatalFault as fault:
                raise self._refused or fault.told() from None
            except RejectedFault as fault:
                raise self._rejected(fault) from None
            except PassingFault as fault:
                tries += 1
                # Throttled while others were answered: the endpoint is busy, not broken.
                counted += not (fault.throttled and self.answers > answers)
                if counted > self._settings.retries:
                    raise await self._gave_up(fault, tries) from None
                if self._silent(fault, begun):
                    raise self._outage(fault) from None
                rest = fault.wait or backoff(key, tries)
                self._waiting.met(fault.reason, begun, rest)
                await asyncio.sleep(rest)
        return known

    def _claim(self, key: str, call: Call) -> Claim:
        settings = self._settings
        claim = self._cache.claim(key, cost_bound(call, settings), currency=settings.currency, budget=settings.budget)
        if claim is Claim.BROKE:
            raise BudgetReachedError
        return claim

    def end(self, error: CurationError) -> CurationError:
        """Make no call from now on until :meth:`stop` has been called, for the reason given, which is returned."""
        self._refused = error
        return error

    async def stop(self, tasks: Collection[asyncio.Task[None]], seconds: float) -> list[BaseException | None]:
        """Stop tasks that ask: at once those that wait, those that make a call after it, so that its answer is kept.

        Args:
            tasks: To be stopped, or ended already.
            seconds: That calls under way have; those that take longer are given up.

        Returns:
            What ended each task; None where it came to its own end.
        """
        self._stopping = True
        try:
            for task in tasks:
                if task not in self._sending:
                    task.cancel()
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            return await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self._stopping = False
            self._refused = self._silent_since = None
            self._waiting.over()

    async def leave(self) -> None:
        """Give up the calls under way."""
        if late := set(self._sending):
            for task in late:
                task.cancel()
            await asyncio.wait(late)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def _silent(self, fault: PassingFault, begun: float) -> bool:
        """Whether nothing was answered for as long as one call may take with all its repetitions.

        Where one call at a time may be in flight, many that take turns at an endpoint that hangs would else take that
        long each.

        Args:
            fault: What a call met; one that was told to wait says nothing.
            begun: When it was sent.
        """
        if fault.throttled or fault.wait:
            self._silent_since = None
            return False
        self._silent_since = begun if self._silent_since is None else min(self._silent_since, begun)
        settings = self._settings
        return self._now() - self._silent_since >= (settings.retries + 1) * settings.timeout

    async def _send(self, key: str, call: Call, expected: int, epoch: int) -> Reply:
        """Make a claimed call, and end the claim whatever happens."""
        task = asyncio.current_task()
        assert task is not None
        self._sending.add(task)
        try:
            reply, headers = await self._endpoint.complete(call)
        except EndpointFault as fault:
            self._cache.release(key, lost=isinstance(fault, PassingFault) and fault.billed)
            if isinstance(fault, PassingFault) and fault.overload:
                self._limits.setback(epoch, fault.wait)
            elif isinstance(fault, RejectedFault):
                # No answer, but no sign of overload either.
                self._limits.success()
                self._silent_since = None
            elif isinstance(fault, FatalFault):
                self.end(fault.told())
            raise
        except BaseException:
            self._cache.release(key, lost=True)
            raise
        else:
            return self._keep(key, reply, headers, expected)
        finally:
            self._sending.discard(task)
            if self._stopping:
                task.cancel()
            self._ended.set()
            self._ended = asyncio.Event()

    def _keep(self, key: str, reply: Reply, headers: Mapping[str, str], expected: int) -> Reply:
        settings, limits = self._settings, self._limits
        kept = self._cache.put(key, reply, stage=self._stage, model=settings.model or "", currency=settings.currency)
        self.answers += 1
        self._given_up, self._silent_since = 0, None
        self._proven = True
        self._waiting.answered()
        self._received += (reply.completion_tokens - self._received) * 0.1
        limits.success()
        limits.used(expected, reply.prompt_tokens + reply.completion_tokens)
        if rest := limits.observe(headers, expected):
            self._waiting.met("the tokens or requests that it allows are used up", self._now(), rest)
        return kept

    def _rejected(self, fault: RejectedFault) -> Exception:
        """A rejected call is its own fault if the endpoint takes others; if it has taken none, it is ours."""
        if fault.filtered:
            return NoAnswerError(f"the endpoint's content filter withheld the answer ({fault.reason})")
        if fault.of_request or self._proven:
            return NoAnswerError(f"the endpoint rejected the request ({fault.reason})")
        return self.end(
            CurationError(
                f"the endpoint rejects what it is asked ({fault.reason})",
                "Look for the setting it names in the section llm: model, temperature, max_tokens, structured or "
                "extra.",
            )
        )

    async def _gave_up(self, fault: PassingFault, tries: int) -> Exception:
        """A call given up is its own fault if others are answered; if none is, the endpoint is out of order."""
        self._given_up += 1
        there = fault.reached or self.answers > 0
        if there and (self._given_up < _OUTAGE or await self._answers_at_all()):
            return NoAnswerError(f"the endpoint gave no answer in {tries} tries ({fault.reason})")
        return self._outage(fault)

    def _outage(self, fault: PassingFault) -> CurationError:
        slow = " If it is only slow, raise llm.timeout." if fault.late else ""
        return self.end(
            CurationError(
                f"the endpoint {self._settings.base_url} does not answer ({fault.reason})",
                f"See that it runs and that llm.base_url is right, then run again: answers so far are kept.{slow}",
            )
        )

    async def _answers_at_all(self) -> bool:
        """Whether it answers a question that no request can spoil: what is left may be just what it cannot do."""
        call = Call((Message(role="user", content=f"Say ok. ({uuid.uuid4().hex})"),), _Word, 64)
        key = self.key(call)
        async with self._limits.slot(expected_prompt(call)) as epoch:
            try:
                # Of calls that were given up together the first asks for all.
                if self._given_up >= _OUTAGE and self._claim(key, call) is Claim.GRANTED:
                    await self._send(key, call, 0, epoch)
            except EndpointFault:
                return False
            except BudgetReachedError:
                return True
        return True
