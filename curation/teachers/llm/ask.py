"""Carries many requests through at once, and stops when going on would be of no use."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from curation.errors import CurationError
from curation.teachers.llm.cache import Cache
from curation.teachers.llm.calls import BudgetReachedError, Caller, NoAnswerError
from curation.teachers.llm.dialogue import Call, Verdict, dialogue
from curation.teachers.llm.outcome import Reply, Request
from curation.teachers.llm.settings import LlmSettings

__all__ = ["PATIENCE", "Asked", "Gate", "Talk", "budget_reached", "converse", "replay", "shorten"]

PATIENCE = 20.0
"""Seconds that calls under way have to end when a run stops, whatever the reason."""

_BAD_ANSWERS = (
    "All answers are kept, the bad ones too, so that a further run pays for none twice and says the same: "
    "raise llm.repairs (only bad answers are then asked for again), change model, max_tokens, structured or "
    "extra of llm (all are asked again), or raise llm.max_failed_share to go on without those rows."
)
_NO_ANSWERS = (
    "Answers so far are kept; a further run asks again for what got none. See that the endpoint is well and not "
    "asked too much (llm.concurrency, llm.requests_per_minute, llm.timeout), or raise llm.max_failed_share to go on "
    "without those rows."
)


@dataclass
class Talk:
    """A distinct request with those that are equal to it.

    Attributes:
        key: The key of its first call.
        request: One of them.
        places: Positions of all of them in what was asked.
        verdict: How it ended; None while it is open.
        replies: All that the endpoint said.
        cached: Whether all of that was known before.
    """

    key: str
    request: Request
    places: list[int] = field(default_factory=list)
    verdict: Verdict | None = None
    replies: list[Reply] = field(default_factory=list)
    cached: bool = False


class Gate:
    """Counts failed requests of a client, and tells when their share cannot stay under the limit any more.

    It is the share of the rows they ask about: of eight rows that are asked about together and then, a few of them,
    alone, a request for one counts for one.
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self._failed = self._done = 0
        self._rows = self._failed_rows = 0
        self._reasons: Counter[str] = Counter()
        self._example: dict[str, Verdict] = {}

    def expect(self, requests: Iterable[Request]) -> None:
        """These requests more will be asked."""
        self._rows += sum(request.rows for request in requests)

    def note(self, talk: Talk) -> None:
        """The requests of a talk ended."""
        verdict, requests = talk.verdict, len(talk.places)
        assert verdict is not None
        self._done += requests
        if verdict.error is not None:
            self._failed += requests
            self._failed_rows += requests * talk.request.rows
            # The part before the colon is the kind of fault, what follows is about one answer.
            kind = re.sub(r"\d+", "0", verdict.error.split(":")[0].split(" (")[0])
            self._reasons[kind] += requests
            self._example.setdefault(kind, verdict)

    def error(self) -> CurationError | None:
        """Why to stop; None while the gate is open."""
        if self._failed_rows <= self._most * self._rows:
            return None
        # Of equal numbers the first in the alphabet: the order of answers is chance.
        kind, number = min(self._reasons.items(), key=lambda item: (-item[1], item[0]))
        example = self._example[kind]
        return CurationError(
            f"{self._failed:,} of {self._done:,} requests to the LLM failed, with {self._failed_rows:,} of all "
            f"{self._rows:,} rows and questions, more than llm.max_failed_share ({self._most:g}) allows; the "
            f"commonest reason ({number:,}): {shorten(example.error or '')}",
            _BAD_ANSWERS if example.answered else _NO_ANSWERS,
        )


def shorten(text: str, most: int = 300) -> str:
    """A text as far as a message for a person should hold it."""
    return text if len(text) <= most else f"{text[:most]}…"


def replay(talk: Talk, caller: Caller, settings: LlmSettings) -> Call | None:
    """Carry a request as far as remembered replies go.

    Returns:
        The call it needs next; None if it went to the end, and has its verdict.
    """
    steps = dialogue(talk.request, settings)
    call = next(steps)
    talk.replies = []
    try:
        while (reply := caller.known(call)) is not None:
            talk.replies.append(reply)
            call = steps.send(reply)
    except StopIteration as end:
        talk.verdict = end.value
        return None
    return call


async def _carry(talk: Talk, caller: Caller, settings: LlmSettings) -> None:
    talk.replies = []
    steps = dialogue(talk.request, settings)
    call = next(steps)
    try:
        while True:
            reply = await caller.reply(call)
            talk.replies.append(reply)
            call = steps.send(reply)
            if len(call.messages) > len(talk.request.messages):
                caller.doubt()
    except StopIteration as end:
        talk.verdict = end.value
    except NoAnswerError as error:
        raw = talk.replies[-1].text if talk.replies else None
        talk.verdict = Verdict("failed", None, str(error), raw, answered=False)


class Asked:
    """The requests of one ``ask``, and how far they are; read by the thread that waits for them."""

    def __init__(self, talks: list[Talk]) -> None:
        self.talks = talks
        self.total = sum(len(talk.places) for talk in talks)
        self.done = 0

    def end(self, talk: Talk, gate: Gate) -> None:
        """Count a request that has its verdict."""
        self.done += len(talk.places)
        gate.note(talk)

    def open(self) -> list[Talk]:
        """Those without a verdict."""
        return [talk for talk in self.talks if talk.verdict is None]


def budget_reached(asked: Asked, cache: Cache, settings: LlmSettings) -> CurationError:
    """What to say when the money is gone."""
    money, left = cache.money(settings.currency), asked.total - asked.done
    known = [talk for talk in asked.talks if talk.verdict is not None]
    told = f"{money.spent:,.4f} {settings.currency} spent"
    if money.lost:
        told += f", up to {money.lost:,.4f} more for calls that gave no answer"
    need = ""
    if known:
        mean = sum(reply.cost for talk in known for reply in talk.replies) / len(known)
        need = f" (about {mean * len(asked.open()):,.4f} {settings.currency} for what is left)"
    return CurationError(
        f"the budget of {settings.budget:g} {settings.currency} is reached ({told}): {asked.done:,} of "
        f"{asked.total:,} requests are answered, {left:,} are left",
        f"Raise llm.budget{need} and run again: answers so far are kept and cost nothing more.",
    )


async def converse(
    asked: Asked, talks: Iterable[Talk], caller: Caller, gate: Gate, cache: Cache, settings: LlmSettings
) -> None:
    """Carry requests through, many at a time.

    Raises:
        CurationError: The budget is reached, too many failed, or no call will be answered.

    However it ends, calls under way are paid for: they have :data:`PATIENCE` to come to their end.
    """
    waiting: Iterator[Talk] = iter(talks)
    broke = False

    async def work() -> None:
        nonlocal broke
        for talk in waiting:
            try:
                await _carry(talk, caller, settings)
            except BudgetReachedError:
                broke = True
            else:
                asked.end(talk, gate)
            if error := gate.error():
                raise caller.end(error)
            if broke:
                return

    # Twice as many as may be in flight: those that wait before a repetition should not leave places empty.
    workers = min(2 * settings.concurrency, len(asked.talks))
    if not workers:
        return
    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        ends = await caller.stop(tasks, PATIENCE)
    for end in ends:
        if isinstance(end, Exception):
            raise end
    if broke:
        raise budget_reached(asked, cache, settings)
