"""The endpoint's batch interface: requests go up as a file, answers come down hours later.

A batch outlives the process that submitted it. It is remembered before it is submitted, by a token that the endpoint
keeps with it; so a run that was killed at any moment finds its batch again and pays for nothing twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from curation.errors import CurationError
from curation.teachers.llm.ask import Asked, Gate, budget_reached, replay
from curation.teachers.llm.cache import Cache, Claim, Owed
from curation.teachers.llm.calls import Caller
from curation.teachers.llm.cost import cost_bound
from curation.teachers.llm.dialogue import Call, Verdict
from curation.teachers.llm.endpoint import Endpoint, reply_of
from curation.teachers.llm.faults import EndpointFault, FatalFault, PassingFault, classify
from curation.teachers.llm.limits import backoff
from curation.teachers.llm.settings import LlmSettings
from curation.teachers.llm.waiting import LOGGER

__all__ = ["BatchError", "Batches"]

POLL_FIRST, POLL_MOST = 2.0, 60.0
"""Seconds between two looks at a batch: at first and at most."""

_MOST_REQUESTS, _MOST_BYTES = 50_000, 100 << 20
"""Size of one batch; endpoints take 50,000 requests and 200 MB."""
_ROUNDS = 2
"""Batches that a request may go unanswered in before it counts as failed."""
_TRANSFER = 900.0
"""Seconds that a file may take, up or down."""
_TAG = "curation_batch"


class BatchError(CurationError):
    """The endpoint does not do what a batch needs; ``status`` is what it says instead, 0 if it says nothing."""

    def __init__(self, address: str, fault: EndpointFault) -> None:
        super().__init__(
            f"the endpoint {address} does not do what a batch needs ({fault.reason})",
            "Set llm.batch to false if it has no batch interface; else run again: batches under way are found again.",
        )
        self.status = fault.status


class Batches:
    """Asks by batches, for one client; lives in its event loop."""

    def __init__(self, settings: LlmSettings, stage: str, cache: Cache, endpoint: Endpoint) -> None:
        self._settings, self._stage, self._cache, self._endpoint = settings, stage, cache, endpoint
        self._address = settings.base_url or ""
        self._reasons: dict[str, str] = {}

    async def fetch(self, wanted: Mapping[str, Call]) -> None:
        """Wait for the batches of earlier runs that hold any of these calls, and keep their answers.

        Args:
            wanted: Calls by their keys.

        Raises:
            CurationError: One is at another endpoint, or ended in a way that needs a person.
        """
        for owed in self._cache.batches():
            if not wanted.keys() & self._cache.in_batch(owed.token):
                continue
            if owed.address != self._address:
                raise CurationError(
                    f"a batch at {owed.address} still owes answers to what is asked now",
                    "Set llm.base_url back and run again to fetch them.",
                )
            await self._collect(owed, wanted)

    async def carry(self, asked: Asked, caller: Caller, gate: Gate) -> None:
        """Carry the open requests through, one round of batches after the other: first calls, then repairs.

        Raises:
            CurationError: As :func:`~.ask.converse` does; or a batch ended in a way that needs a person.
        """
        unanswered: Counter[str] = Counter()
        while calls := self._advance(asked, caller, gate):
            submitted, broke = await self._submit_all(calls)
            if broke and not submitted:
                raise budget_reached(asked, self._cache, self._settings)
            await self.fetch(calls)
            if not submitted:
                # Another process is asking for all of it.
                await asyncio.sleep(POLL_FIRST)
                self._cache.settle()
            unanswered.update(key for key in submitted if self._cache.get(key) is None)
            for key, rounds in unanswered.items():
                if rounds >= _ROUNDS:
                    self._reasons.setdefault(key, f"the endpoint left it out of {rounds} batches")

    def _advance(self, asked: Asked, caller: Caller, gate: Gate) -> dict[str, Call]:
        """The calls that the open requests need now; ends the requests that need none, or whose call is hopeless."""
        calls: dict[str, Call] = {}
        for talk in asked.open():
            call = replay(talk, caller, self._settings)
            key = caller.key(call) if call else ""
            if call and key in self._reasons:
                raw = talk.replies[-1].text if talk.replies else None
                talk.verdict = Verdict("failed", None, self._reasons[key], raw, answered=False)
            if talk.verdict:
                asked.end(talk, gate)
            elif call:
                calls[key] = call
        if error := gate.error():
            raise error
        return calls

    # -- up

    async def _submit_all(self, calls: Mapping[str, Call]) -> tuple[list[str], bool]:
        """Submit calls in batches; the keys that were, and whether the budget kept any back."""
        submitted: list[str] = []
        broke = False
        for chunk in _chunks({key: self._line(key, call) for key, call in calls.items()}):
            token = uuid.uuid4().hex
            self._cache.open_batch(token, self._address)
            claims = self._cache.claim_all(
                [(key, cost_bound(calls[key], self._settings)) for key in chunk],
                Cache.batch_owner(token),
                currency=self._settings.currency,
                budget=self._settings.budget,
            )
            broke |= Claim.BROKE in claims or Claim.WAIT in claims
            granted = [key for key, claim in zip(chunk, claims, strict=True) if claim is Claim.GRANTED]
            if not granted:
                self._cache.close_batch(token)
                continue
            await self._submit(token, b"".join(chunk[key] for key in granted))
            submitted += granted
        return submitted, broke

    def _line(self, key: str, call: Call) -> bytes:
        line = {"custom_id": key, "method": "POST", "url": "/v1/chat/completions", "body": self._endpoint.body(call)}
        return json.dumps(line, ensure_ascii=False).encode() + b"\n"

    async def _submit(self, token: str, content: bytes) -> None:
        sdk = self._endpoint.sdk
        upload = partial(sdk.files.create, file=("requests.jsonl", content), purpose="batch")
        try:
            file = await self._sure(token, upload, _TRANSFER)
        except BaseException:
            self._cache.close_batch(token)
            raise
        tried = False

        async def create() -> str:
            nonlocal tried
            # The last try may have made it although no answer came.
            if tried and (made := await self._look(token)):
                return made
            tried = True
            batch = await sdk.batches.create(
                input_file_id=file.id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={_TAG: token},
            )
            return batch.id

        try:
            batch_id = await self._sure(token, create)
        except BatchError:
            # Made all the same? If the endpoint cannot say, the next run asks again.
            with contextlib.suppress(BatchError):
                if await self._find(token) is None:
                    self._cache.close_batch(token)
            raise
        self._cache.name_batch(token, batch_id)

    async def _look(self, token: str) -> str | None:
        async for batch in self._endpoint.sdk.batches.list(limit=100):
            if (batch.metadata or {}).get(_TAG) == token:
                return batch.id
        return None

    async def _find(self, token: str) -> str | None:
        """The endpoint's id of a batch by our token; None if it has none."""
        try:
            found: str | None = await self._sure(token, partial(self._look, token))
        except BatchError as error:
            if error.status in (404, 405, 501):
                return None
            raise
        return found

    # -- down

    async def _collect(self, owed: Owed, calls: Mapping[str, Call]) -> None:
        """Wait for a batch to end and keep its answers.

        Raises:
            CurationError: It failed as a whole, or was cancelled there.
        """
        batch_id = owed.batch_id or await self._find(owed.token)
        if batch_id is None:
            # Killed before it was submitted.
            self._cache.close_batch(owed.token)
            return
        self._cache.name_batch(owed.token, batch_id)
        batch = await self._ended(owed.token, batch_id)
        ended = batch.completed_at or batch.expired_at or batch.cancelled_at or batch.failed_at or batch.created_at
        fatal = None
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            content = await self._sure(owed.token, partial(self._endpoint.sdk.files.content, file_id), _TRANSFER)
            fatal = self._read(owed.token, content.content, calls, float(max(0, ended - batch.created_at))) or fatal
        self._cache.close_batch(owed.token)
        if fatal is not None:
            raise fatal.told()
        if batch.status in ("failed", "cancelled"):
            errors = (
                [error.message or error.code or "" for error in (batch.errors.data or [])] if batch.errors else []
            )
            raise CurationError(
                f"the batch {batch_id} {'failed' if batch.status == 'failed' else 'was cancelled'} at the endpoint"
                + (f": {'; '.join(errors[:3])}" if errors else ""),
                "Answers that it gave are kept; run again to ask for the rest, or set llm.batch to false.",
            )

    def _read(self, token: str, content: bytes, calls: Mapping[str, Call], latency: float) -> FatalFault | None:
        """Keep the answers in an output or error file; what is not in it is asked again."""
        fatal = None
        mine = self._cache.in_batch(token)
        for key, line in _lines(content):
            # Joined by id: what is not ours, or came already, is let go.
            if key not in mine:
                continue
            try:
                self._keep(token, key, line, calls.get(key), latency)
                mine.discard(key)
            except FatalFault as fault:
                fatal = fault
            except PassingFault:
                continue
            except EndpointFault as fault:
                self._reasons[key] = f"the endpoint rejected the request ({fault.reason})"
        return fatal

    def _keep(self, token: str, key: str, line: Mapping[str, Any], call: Call | None, latency: float) -> None:
        response = line.get("response") or {}
        status = response.get("status_code")
        if line.get("error") or not isinstance(status, int):
            raise PassingFault(str(line.get("error")))
        if status != 200:
            raise classify(status, response.get("body"), {})
        reply = reply_of(response.get("body"), call, self._settings, latency)
        self._cache.put(
            key,
            reply,
            stage=self._stage,
            model=self._settings.model or "",
            currency=self._settings.currency,
            owner=Cache.batch_owner(token),
        )

    async def _ended(self, token: str, batch_id: str) -> Any:
        pause, told = POLL_FIRST, False
        while True:
            batch = await self._sure(token, lambda: self._endpoint.sdk.batches.retrieve(batch_id))
            if batch.status in ("completed", "failed", "expired", "cancelled"):
                return batch
            if not told:
                told = True
                LOGGER.info(
                    "waiting for batch %s of %s requests at %s (%s); that may take hours, and a run that is stopped "
                    "finds it again",
                    batch_id,
                    f"{len(self._cache.in_batch(token)):,}",
                    self._address,
                    batch.status,
                )
            await asyncio.sleep(pause)
            pause = min(POLL_MOST, 1.5 * pause)

    async def _sure(self, token: str, call: Callable[[], Awaitable[Any]], timeout: float | None = None) -> Any:
        """Do something at the endpoint, again after passing faults."""
        for attempt in range(1, self._settings.retries + 2):
            try:
                return await self._endpoint.guarded(call(), timeout=timeout)
            except PassingFault as fault:
                last: EndpointFault = fault
                await asyncio.sleep(fault.wait or backoff(token, attempt))
            except EndpointFault as fault:
                last = fault
                break
        raise BatchError(self._address, last)


def _chunks(lines: Mapping[str, bytes]) -> Iterator[dict[str, bytes]]:
    """Cut lines into files that an endpoint takes."""
    chunk: dict[str, bytes] = {}
    size = 0
    for key, line in lines.items():
        if chunk and (len(chunk) >= _MOST_REQUESTS or size + len(line) > _MOST_BYTES):
            yield chunk
            chunk, size = {}, 0
        chunk[key] = line
        size += len(line)
    if chunk:
        yield chunk


def _lines(content: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """(custom id, line) of the lines of an output file that can be read; the others count as not answered."""
    for text in content.splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("custom_id"), str):
            yield line["custom_id"], line
