"""One call to an OpenAI-compatible endpoint: the request's body in its dialect, the reply, or a sorted fault."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from curation.teachers.llm.cost import prompt_bound
from curation.teachers.llm.dialogue import Call, answer_schema
from curation.teachers.llm.faults import EndpointFault, PassingFault, RelearntFault, classify, error_of
from curation.teachers.llm.outcome import Message, Reply
from curation.teachers.llm.settings import LlmSettings

if TYPE_CHECKING:
    import openai
    from pydantic import BaseModel

__all__ = ["Dialect", "Endpoint", "reply_of"]

Form = Literal["json_schema", "json_object", "text"]
_FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")
_FORM = re.compile(
    r"response[ _]?format|json[ _]?(schema|object|mode)|schema|structured|grammar|guided", re.IGNORECASE
)
_LIMIT = re.compile(
    r"unsupported.{0,40}max_tokens|max_tokens.{0,60}not supported|use\W{0,3}max_completion_tokens", re.IGNORECASE
)
_CERTAINLY_FORM = re.compile(r"response[ _]?format|json[ _]?schema|grammar", re.IGNORECASE)
_ROUTE = re.compile(r"requested parameters|response[ _]?format", re.IGNORECASE)
_ABOUT_FORM = {400: _FORM, 415: _FORM, 422: _FORM, 404: _ROUTE, 500: _CERTAINLY_FORM, 501: _CERTAINLY_FORM}
"""Statuses that servers give to a form of answer they do not have, and how they speak of it."""


class Dialect:
    """What an endpoint turned out to understand; learnt from what it rejects, for the length of a run.

    Attributes:
        form: How the form of the answer is asked for.
        told: Whether the schema is also told in words: some endpoints take a ``response_format`` and do not heed it.
        limit_field: Its name for the limit of tokens.
    """

    def __init__(self, settings: LlmSettings) -> None:
        self._may_change = settings.structured == "auto"
        self.form: Form = "json_schema" if settings.structured == "auto" else settings.structured
        self.told = self.form != "json_schema"
        self.limit_field = "max_tokens"

    def learn(self, status: int, message: str, asked: tuple[str, str]) -> bool:
        """Whether a call is worth making again in another way, by what the endpoint said of it.

        Args:
            status: HTTP status.
            message: What it said.
            asked: :meth:`state` when the call was made: another call may have learnt the same since.
        """
        form, limit_field = asked
        if status in (400, 422) and limit_field == "max_tokens" and _LIMIT.search(message):
            self.limit_field = "max_completion_tokens"
            return True
        about = _ABOUT_FORM.get(status)
        if not self._may_change or form == "text" or about is None or not about.search(message):
            return False
        if form == self.form:
            self.form = _FORMS[_FORMS.index(self.form) + 1]
            self.told = True
        return True

    def state(self) -> tuple[str, str]:
        """What it has learnt, to see whether it has learnt more since."""
        return self.form, self.limit_field


@lru_cache(maxsize=256)
def _strict_schema(answer: type[BaseModel]) -> dict[str, Any]:
    import openai

    function: Any = openai.pydantic_function_tool(answer)["function"]
    return dict(function["parameters"])


def _instructed(messages: tuple[Message, ...], answer: type[BaseModel]) -> list[Message]:
    """The messages with the schema told in the first one: a message more would not suit every chat template."""
    told = f"Answer with one JSON object that follows this JSON schema, and no other text:\n{answer_schema(answer)}"
    first = Message(role=messages[0]["role"], content=f"{messages[0]['content']}\n\n{told}")
    return [first, *messages[1:]]


def reply_of(body: Any, call: Call | None, settings: LlmSettings, latency: float) -> Reply:
    """The reply that a completion's body holds.

    Args:
        body: The body, decoded.
        call: What was asked; None if it is not known any more.
        settings: Prices.
        latency: Seconds it took.

    Raises:
        PassingFault: It is no completion, which is what broken gateways send.
    """
    try:
        choice = body["choices"][0]
        message = choice["message"]
        text, refusal = message.get("content"), message.get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError):
        said = error_of(body)[0][:200]
        raise PassingFault(
            "the endpoint sent no completion" + (f" but: {said}" if said else ""), billed=True
        ) from None
    finish = str(choice.get("finish_reason") or "stop")
    if finish == "error":
        raise PassingFault(f"the endpoint broke off: {error_of(choice)[0][:200]}", billed=True)
    if refusal:
        text, finish = str(refusal), "refusal"
    if isinstance(text, list):
        text = "".join(str(part.get("text") or "") for part in text if isinstance(part, dict))
    text = None if text is None else str(text)
    usage = body.get("usage") or {}
    sent, received = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not (isinstance(sent, int) and isinstance(received, int) and min(sent, received) >= 0):
        if call is None:
            raise PassingFault("the endpoint does not say how many tokens it used", billed=True)
        # It does not say what it used: count what it cannot have exceeded.
        sent, received = prompt_bound(call), min(call.max_tokens, len((text or "").encode()) + 1)
    return Reply(text, finish, sent, received, settings.cost(sent, received), latency)


class Endpoint:
    """The endpoint of the settings, by the ``openai`` SDK; lives in one event loop.

    Args:
        settings: Where it is, how long an answer may take.
        key: The API key; None for an endpoint that needs none.
    """

    def __init__(self, settings: LlmSettings, key: str | None) -> None:
        import openai

        self._settings = settings
        self._key = key
        self.dialect = Dialect(settings)
        self.sdk: openai.AsyncOpenAI = openai.AsyncOpenAI(
            base_url=settings.base_url,
            api_key=key or "none",
            max_retries=0,
            timeout=settings.timeout,
        )

    async def close(self) -> None:
        """Close its connections."""
        await self.sdk.close()

    def body(self, call: Call) -> dict[str, Any]:
        """The body of a call in the endpoint's dialect."""
        settings, form = self._settings, self.dialect.form
        body: dict[str, Any] = {
            "model": settings.model,
            "messages": _instructed(call.messages, call.answer) if self.dialect.told else list(call.messages),
            "temperature": settings.temperature,
            self.dialect.limit_field: call.max_tokens,
        }
        if form == "json_schema":
            name = re.sub(r"\W", "_", call.answer.__name__, flags=re.ASCII)[:64]
            described = {"name": name, "strict": True, "schema": _strict_schema(call.answer)}
            body["response_format"] = {"type": "json_schema", "json_schema": described}
        elif form == "json_object":
            body["response_format"] = {"type": "json_object"}
        return body | settings.extra

    async def complete(self, call: Call) -> tuple[Reply, Mapping[str, str]]:
        """Make one call: the reply and the headers it came with.

        Raises:
            EndpointFault: Sorted by what to do about it.
        """
        started = time.perf_counter()
        body, state = self.body(call), self.dialect.state()
        # All of the body goes as extra fields: the SDK's walk through typed ones takes a third of the time of a call.
        create = self.sdk.chat.completions.with_raw_response.create
        raw: Any = await self.guarded(create(model=body["model"], messages=[], extra_body=body), state)
        latency = time.perf_counter() - started
        try:
            completion = json.loads(raw.content)
        except ValueError:
            completion = raw.text
        return reply_of(completion, call, self._settings, round(latency, 4)), raw.headers

    async def guarded(self, answer: Any, state: tuple[str, str] | None = None, timeout: float | None = None) -> Any:
        """Await what the SDK does, with a limit on the whole of it, and sort what it raises.

        Args:
            answer: What to await.
            state: The dialect that a completion is asked for in; None for any other call.
            timeout: Seconds; the settings' by default.
        """
        import openai

        timeout = timeout or self._settings.timeout
        late = PassingFault(f"no answer within {timeout:g} seconds", overload=True, billed=True, late=True)
        try:
            # The SDK's own limit is between two chunks: a server that sends drop by drop would never meet it.
            async with asyncio.timeout(timeout):
                return await answer
        except (TimeoutError, openai.APITimeoutError):
            raise late from None
        except openai.APIStatusError as error:
            raise self._sorted(error, state) from None
        except openai.APIConnectionError as error:
            # By name: which HTTP library the SDK stands on is its own business, and has changed once.
            reached = not type(error.__cause__).__name__.startswith(("Connect", "Pool", "UnsupportedProtocol"))
            raise PassingFault(
                self._clean(f"no connection: {error.__cause__}"), billed=reached, reached=reached
            ) from None
        except openai.APIError as error:
            raise PassingFault(self._clean(f"no completion: {error.message}"), billed=True) from None

    def _sorted(self, error: openai.APIStatusError, state: tuple[str, str] | None) -> EndpointFault:
        body = error.body if isinstance(error.body, dict) else error.response.text
        message = " ".join(error_of(body))
        if state and self.dialect.learn(error.status_code, message, state):
            return RelearntFault(f"the endpoint wants to be asked in another way: {self._clean(message)}")
        fault = classify(error.status_code, body, error.response.headers)
        fault.reason = self._clean(fault.reason)
        return fault

    def _clean(self, text: str) -> str:
        """A text without the key, which some endpoints repeat when they refuse it."""
        return text.replace(self._key, "***") if self._key else text
