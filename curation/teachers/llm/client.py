"""The client that every job of an LLM teacher asks through.

Requests go in, outcomes come out, one for each and in their order, whatever the endpoint does. The work is done by an
event loop in a thread of its own, so that callers need not know of it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from curation.teachers.llm.ask import PATIENCE, Asked, Gate, Talk, converse, replay
from curation.teachers.llm.batch import Batches
from curation.teachers.llm.cache import Cache
from curation.teachers.llm.calls import Caller
from curation.teachers.llm.dialogue import Call, call_key, dialogue
from curation.teachers.llm.endpoint import Endpoint
from curation.teachers.llm.limits import Limits
from curation.teachers.llm.outcome import Outcome, Request
from curation.teachers.llm.settings import LlmSettings, api_key, require_endpoint
from curation.teachers.llm.waiting import Waiting

__all__ = ["Client", "Outcome", "Request", "open_client"]

_CALLS: dict[str, Any] = {
    "request_key": pl.String,
    "stage": pl.String,
    "model": pl.String,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "cost": pl.Float64,
    "latency": pl.Float64,
    "outcome": pl.String,
    "answer": pl.String,
}
T = TypeVar("T")


def open_client(settings: LlmSettings, cache: Path, stage: str) -> Client:
    """A client for a stage.

    Args:
        settings: The recipe's section ``llm``.
        cache: Directory of the request cache; all stages share it.
        stage: Name of the stage that asks.

    Raises:
        CurationError: The address, the model or the key is missing, or the cache cannot be used.
    """
    require_endpoint(settings)
    return Client(settings, cache, stage=stage)


class Client:
    """Asks an LLM; see :func:`open_client`. A context manager that closes itself; for one thread at a time."""

    def __init__(self, settings: LlmSettings, cache: Path, *, stage: str) -> None:
        key = api_key(settings)
        self._settings, self._stage = settings, stage
        self._gate = Gate(settings.max_failed_share)
        self._used: dict[str, dict[str, Any]] = {}
        self._cache = Cache(cache)
        self._cache.settle()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="llm client", daemon=True)
        self._thread.start()
        self._wait(self._open(key))

    async def _open(self, key: str | None) -> None:
        self._endpoint = Endpoint(self._settings, key)
        limits, waiting = Limits(self._settings, self._loop.time), Waiting(f"the endpoint {self._settings.base_url}")
        self._caller = Caller(self._settings, self._stage, self._cache, self._endpoint, limits, waiting)

    async def _end(self) -> None:
        await self._caller.leave()
        await self._endpoint.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the thread, the connections and the use of the cache."""
        if self._thread.is_alive():
            self._wait(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._cache.close()

    def ask(
        self, requests: Iterable[Request], on_progress: Callable[[int, int], None] | None = None
    ) -> list[Outcome]:
        """Ask, and wait for all answers.

        Equal requests are asked once. Whatever was answered is kept in the cache, also if this raises or the process
        is killed; asking again then asks for the rest.

        Args:
            requests: What to ask; their ids are unique.
            on_progress: Called in this thread now and then with (requests that have an outcome, all requests).

        Returns:
            An outcome for every request, in their order.

        Raises:
            CurationError: No call will be answered, the budget is reached, or too many requests failed.
            ValueError: Two requests have one id.
        """
        asked = list(requests)
        if len({request.request_id for request in asked}) != len(asked):
            raise ValueError("two requests have the same request_id")
        talks = self._talks(asked)
        progress = Asked(talks)
        self._gate.expect(asked)
        shown = [-1]

        def show() -> None:
            if on_progress and progress.done != shown[0]:
                shown[0] = progress.done
                on_progress(progress.done, progress.total)

        self._wait(self._carry(progress), show)
        outcomes: list[Outcome | None] = [None] * len(asked)
        for talk in talks:
            self._record(talk)
            for place in talk.places:
                outcomes[place] = _outcome(asked[place].request_id, talk)
        return [outcome for outcome in outcomes if outcome is not None]

    def calls(self) -> pl.DataFrame:
        """What :meth:`ask` used since this client was opened, as rows of `teacher_calls` in the order of their keys.

        A row is a distinct request with all its calls: tokens, cost and seconds are their sums, of the time when
        they were made, so that a run on a warm cache has the same table.
        """
        rows = [self._used[key] for key in sorted(self._used)]
        return pl.DataFrame(rows, schema=_CALLS, orient="row")

    # -- inside

    def _talks(self, requests: list[Request]) -> list[Talk]:
        found: dict[tuple[str, type], Talk] = {}
        for place, request in enumerate(requests):
            # Two models may have one schema and still check in different ways.
            name = (self._caller.key(next(dialogue(request, self._settings))), request.answer)
            found.setdefault(name, Talk(name[0], request)).places.append(place)
        return list(found.values())

    async def _carry(self, asked: Asked) -> None:
        for number, talk in enumerate(asked.talks):
            if replay(talk, self._caller, self._settings) is None:
                talk.cached = True
                asked.end(talk, self._gate)
            if number % 256 == 0:
                await asyncio.sleep(0)
        if error := self._gate.error():
            raise error
        batches = Batches(self._settings, self._stage, self._cache, self._endpoint)
        if self._cache.batches():
            await batches.fetch({call_key(call, self._settings): call for call in self._next(asked)})
        if self._settings.batch and asked.open():
            # One goes alone and at once: it shows how the endpoint wants to be asked what a batch will ask.
            while not self._caller.answers and asked.open():
                await self._converse(asked, asked.open()[:1])
            await batches.carry(asked, self._caller, self._gate)
        else:
            await self._converse(asked, asked.open())

    def _next(self, asked: Asked) -> Iterator[Call]:
        for talk in asked.open():
            if (call := replay(talk, self._caller, self._settings)) is not None:
                yield call

    async def _converse(self, asked: Asked, talks: list[Talk]) -> None:
        await converse(asked, talks, self._caller, self._gate, self._cache, self._settings)

    def _record(self, talk: Talk) -> None:
        assert talk.verdict is not None
        self._used[talk.key] = {
            "request_key": talk.key,
            "stage": self._stage,
            "model": self._settings.model,
            "prompt_tokens": sum(reply.prompt_tokens for reply in talk.replies),
            "completion_tokens": sum(reply.completion_tokens for reply in talk.replies),
            "cost": sum(reply.cost for reply in talk.replies),
            "latency": sum(reply.latency for reply in talk.replies),
            "outcome": talk.verdict.kind,
            "answer": talk.verdict.raw,
        }

    def _wait(self, work: Coroutine[Any, Any, T], show: Callable[[], None] = lambda: None) -> T:
        """Have the loop do something; an interrupt here cancels it there, and waits until it has let go.

        A second interrupt does not wait any more.
        """
        ended = threading.Event()

        async def run() -> T:
            try:
                return await work
            finally:
                ended.set()

        future: Future[T] = asyncio.run_coroutine_threadsafe(run(), self._loop)
        try:
            while not wait([future], timeout=0.1).done:
                show()
            show()
            return future.result()
        except BaseException:
            if future.cancel():
                ended.wait(PATIENCE + 5)
            raise


def _outcome(request_id: str, talk: Talk) -> Outcome:
    verdict = talk.verdict
    assert verdict is not None
    return Outcome(request_id, verdict.value, verdict.error, verdict.kind, verdict.raw, talk.key, talk.cached)
