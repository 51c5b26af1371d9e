"""A local OpenAI-compatible server that plays faults: real HTTP, everything it was sent kept for the test to see.

What it does is a function from what it was sent to an :class:`Act`; without one it answers well.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from curation.teachers.llm.outcome import Message, Request
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.server_batches import BatchDesk

KEY = "sk-local-0123456789-secret"


class Label(BaseModel):
    """The answer that the server's good answers satisfy."""

    word: str
    number: int


def good(number: int | str) -> str:
    """The good answer to the question with a number."""
    return json.dumps({"word": f"w{number}", "number": int(number)})


def request(number: int, request_id: str | None = None) -> Request:
    """A question with a number."""
    return Request(
        request_id or f"r{number}",
        (
            Message(role="system", content="Say the word of a number, as JSON."),
            Message(role="user", content=str(number)),
        ),
        Label,
    )


def label(number: int) -> Label:
    """The right answer to :func:`request`."""
    return Label(word=f"w{number}", number=number)


@dataclass(frozen=True)
class Sent:
    """A completion that was asked for.

    Attributes:
        body: What was sent.
        asked: The number in the first user message; -1 where it has none.
        time: How many times it has been sent, this one included: the same limit of tokens and messages, but for the
            first message, in which the form of the answer may be told.
        authorization: The header.
    """

    body: dict[str, Any]
    asked: int
    time: int
    authorization: str | None

    @property
    def repair(self) -> bool:
        """Whether the model is shown the fault of an answer."""
        return any(message["role"] == "assistant" for message in self.body["messages"])


@dataclass(frozen=True)
class Act:
    """What the server does: by default it gives a good answer.

    Attributes:
        status, headers: Of the response.
        text, finish, refusal: Of the completion; the text is :func:`good` where None.
        content: Sent instead of a completion (an error's message where the status says so).
        delay: Seconds before anything is sent.
        end: ``drop`` closes without a response, ``half`` in the midst of it, ``drip`` sends a byte now and then.
        usage: Whether tokens are told.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    text: str | None = None
    finish: str = "stop"
    refusal: str | None = None
    content: Any = None
    delay: float = 0.0
    end: str = "whole"
    usage: bool = True

    def response(self, sent: Sent) -> Any:
        """The response's body."""
        if self.content is not None:
            return self.content
        if self.status != 200:
            return {"error": {"message": f"fault {self.status}", "type": "fault", "code": None}}
        text = good(sent.asked) if self.text is None else self.text
        message = {"role": "assistant", "content": text, "refusal": self.refusal}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110} if self.usage else None
        return {
            "id": "completion",
            "object": "chat.completion",
            "created": 0,
            "model": sent.body["model"],
            "choices": [{"index": 0, "finish_reason": self.finish, "message": message}],
            "usage": usage,
        }


Script = Callable[[Sent], Act]


class Server:
    """The server, in a thread of its own; a context manager.

    Attributes:
        sent: All completions asked for, in the order they came.
        peak: Most that were in flight at once.
        batches: The batch interface.
    """

    def __init__(self, script: Script = lambda sent: Act(), port: int = 0) -> None:
        self.script = script
        self.sent: list[Sent] = []
        self.in_flight = self.peak = 0
        self.batches = BatchDesk(self)
        self._times: Counter[str] = Counter()
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        start = asyncio.start_server(self._serve, "127.0.0.1", self._port, backlog=1024)
        self._server = asyncio.run_coroutine_threadsafe(start, self._loop).result(10)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """Its address, as ``llm.base_url`` takes it."""
        return f"http://127.0.0.1:{self._port}/v1"

    def settings(self, **given: Any) -> LlmSettings:
        """Settings that ask this server; the test sets the key in the environment."""
        return LlmSettings(**({"base_url": self.url, "model": "local", "key_env": "LOCAL_KEY"} | given))

    def note(self, body: dict[str, Any], authorization: str | None) -> Sent:
        """Keep what was sent."""
        limit = body.get("max_tokens") or body.get("max_completion_tokens")
        digest = hashlib.sha256(json.dumps([body["messages"][1:], limit]).encode()).hexdigest()
        self._times[digest] += 1
        asked = next(message["content"] for message in body["messages"] if message["role"] == "user")
        number = asked.split()[0]
        sent = Sent(body, int(number) if number.isdigit() else -1, self._times[digest], authorization)
        self.sent.append(sent)
        return sent

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its response; whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, value in (line.split(":", 1) for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if path != "/v1/chat/completions":
            status, content = self.batches.answer(method, path, headers, body)
            writer.write(_response(status, {}, content))
            await writer.drain()
            return True
        sent = self.note(json.loads(body), headers.get("authorization"))
        act = self.script(sent)
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            there = await _pause(reader, act.delay)
        finally:
            self.in_flight -= 1
        if act.end == "drop" or not there:
            return False
        response = _response(act.status, act.headers, act.response(sent))
        for piece in _pieces(response, act.end):
            writer.write(piece)
            await writer.drain()
            if act.end == "drip":
                await asyncio.sleep(0.05)
        return act.end == "whole"


async def _pause(reader: asyncio.StreamReader, seconds: float) -> bool:
    """Wait; False as soon as the client has gone."""
    try:
        async with asyncio.timeout(seconds):
            return await reader.read(1) != b""
    except TimeoutError:
        return True


def _pieces(response: bytes, end: str) -> Iterator[bytes]:
    if end == "drip":
        yield from (response[at : at + 1] for at in range(len(response)))
    else:
        yield response[: len(response) * 2 // 3] if end == "half" else response


def _response(status: int, headers: dict[str, str], content: Any) -> bytes:
    kind = "application/json"
    if isinstance(content, str):
        content, kind = content.encode(), "text/html"
    elif not isinstance(content, bytes):
        content = json.dumps(content).encode()
    lines = [f"HTTP/1.1 {status} Played", f"content-type: {kind}", f"content-length: {len(content)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + content
