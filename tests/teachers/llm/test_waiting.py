"""A person is told what an endpoint is waited for: once, when it lasts, and when it is over. Over real HTTP."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from curation.errors import CurationError
from curation.teachers.llm import waiting
from curation.teachers.llm.cache import Cache
from curation.teachers.llm.client import open_client
from curation.teachers.llm.dialogue import call_key, dialogue
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.asking import ask, fails
from tests.teachers.llm.server import KEY, Act, Script, Server, request


@pytest.fixture(autouse=True)
def heard(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """All that is said; every wait lasts long enough to be told."""
    caplog.set_level(logging.INFO, "curation")
    monkeypatch.setattr(waiting, "_SHORT", 0.0)
    return caplog


def at_first(times: int, act: Act) -> Script:
    return lambda sent: act if sent.time <= times else Act()


def test_a_wait_is_told_once_with_its_reason_and_its_end(
    server: Server, tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    server.script = at_first(3, Act(429, {"retry-after": "0.1"}))
    ask(server, tmp_path, [7], retries=3)
    told, over = heard.messages
    assert told == f"waiting for the endpoint {server.url}: HTTP 429: fault 429; next try in 0 seconds"
    assert over.startswith(f"the endpoint {server.url} answers again, after ")
    assert [record.levelname for record in heard.records] == ["WARNING", "INFO"]


def test_the_seconds_that_an_endpoint_asks_for_are_told(heard: pytest.LogCaptureFixture) -> None:
    async def wait() -> None:
        watched = waiting.Waiting("the endpoint x")
        watched.met("HTTP 429: busy", asyncio.get_running_loop().time(), 300)
        async with asyncio.timeout(60):
            while not heard.messages:
                await asyncio.sleep(0.001)
        watched.over()

    asyncio.run(wait())
    assert heard.messages == ["waiting for the endpoint x: HTTP 429: busy; next try in 300 seconds"]


def test_what_passes_quickly_is_not_told(
    server: Server, tmp_path: Path, heard: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "_SHORT", 600.0)
    server.script = at_first(1, Act(500))
    ask(server, tmp_path, range(20))
    assert not heard.messages


def test_an_endpoint_that_comes_and_goes_is_told_of_once(
    server: Server, tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    server.script = at_first(1, Act(503, {"retry-after": "0.05"}))
    ask(server, tmp_path, range(8), concurrency=1)
    assert len(heard.messages) == 2


def test_an_outage_is_told_before_it_ends_the_run(tmp_path: Path, heard: pytest.LogCaptureFixture) -> None:
    settings = LlmSettings(base_url="http://127.0.0.1:9/v1", model="m", key_env=None, retries=2)
    with open_client(settings, tmp_path, "annotate") as client, pytest.raises(CurationError, match="does not answer"):
        client.ask([request(number) for number in range(20)])
    assert len(heard.messages) == 1 and "127.0.0.1:9/v1: no connection" in heard.messages[0]


def test_a_limit_that_the_endpoint_counts_is_told(
    server: Server, tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    spent = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "200ms"}
    server.script = lambda sent: Act(headers=spent if len(server.sent) == 1 else {})
    ask(server, tmp_path, range(2), concurrency=1)
    assert "allows are used up" in heard.messages[0] and len(heard.messages) == 2


def test_the_key_is_not_told(server: Server, tmp_path: Path, heard: pytest.LogCaptureFixture) -> None:
    server.script = at_first(2, Act(503, content={"error": {"message": f"{KEY} is busy"}}))
    ask(server, tmp_path, [1], retries=3)
    assert "*** is busy" in heard.messages[0] and KEY not in heard.text


def test_a_call_that_another_run_makes_is_told(
    server: Server, tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    """The other lets go of the call as soon as its being waited for is told."""
    key = call_key(next(dialogue(request(1), server.settings())), server.settings())
    with Cache(tmp_path) as other:
        other.claim(key, 0.0, currency="USD", budget=None)

        class Listener(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                other.release(key, lost=False)

        listener = Listener(logging.WARNING)
        waiting.LOGGER.addHandler(listener)
        try:
            ask(server, tmp_path, [1])
        finally:
            waiting.LOGGER.removeHandler(listener)
    assert "another run is asking the same" in heard.messages[0]
    assert len(server.sent) == 1


def test_a_batch_is_told_with_its_size(server: Server, tmp_path: Path, heard: pytest.LogCaptureFixture) -> None:
    server.batches.polls = 3
    ask(server, tmp_path, range(5), batch=True)
    (told,) = heard.messages
    # One of five is asked at once, to see how the endpoint wants to be asked.
    assert told.startswith(f"waiting for batch batch-0 of 4 requests at {server.url} (in_progress)")


def test_nothing_is_told_of_what_ends_the_run(
    server: Server, tmp_path: Path, heard: pytest.LogCaptureFixture
) -> None:
    server.script = lambda sent: Act(401)
    fails(server, tmp_path, range(5))
    assert not heard.messages
