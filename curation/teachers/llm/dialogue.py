"""How one request is carried through: which call comes next, given what came back. Pure; it talks to nobody."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from curation.teachers.llm.outcome import Kind, Message, Reply, Request
from curation.teachers.llm.reading import UnreadableAnswerError, read_answer, read_entries
from curation.teachers.llm.settings import LlmSettings

__all__ = ["Call", "Verdict", "answer_schema", "call_key", "dialogue"]


@dataclass(frozen=True)
class Call:
    """One thing to send: messages, the form of the answer, the limit of its tokens."""

    messages: tuple[Message, ...]
    answer: type[BaseModel]
    max_tokens: int


@dataclass(frozen=True)
class Verdict:
    """How a dialogue ended; the fields mean what they mean in :class:`~.outcome.Outcome`.

    ``answered`` is whether it ended by an answer, which is remembered: without one, the next run asks again.
    """

    kind: Kind
    value: BaseModel | None
    error: str | None
    raw: str | None
    answered: bool = True


@lru_cache(maxsize=256)
def answer_schema(answer: type[BaseModel]) -> str:
    """JSON schema of an answer's model, as canonical text."""
    return json.dumps(answer.model_json_schema(), sort_keys=True, ensure_ascii=False)


def call_key(call: Call, settings: LlmSettings) -> str:
    """Hash of all that shapes the answer to a call: the messages, the schema, the model, its parameters.

    Not the endpoint's address, nor what it takes to be understood there: moving a model costs nothing.
    """
    document: dict[str, Any] = {
        "messages": [[message["role"], message["content"]] for message in call.messages],
        "schema": answer_schema(call.answer),
        "model": settings.model,
        "temperature": settings.temperature,
        "max_tokens": call.max_tokens,
        "structured": settings.structured,
        "extra": settings.extra,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _repair(request: Request, raw: str, fault: str, number: int) -> tuple[Message, ...]:
    """The request again, with the answer it got and what is wrong with it."""
    # A model that says the same again must not be sent the same again: the answer would be the remembered one.
    before = f"{number} answers could not be used so far. " if number > 1 else ""
    told = (
        f"{before}This answer cannot be used: {fault}\n\n"
        "Answer the request again, as one JSON object that follows this JSON "
        f"schema, with no other text:\n{answer_schema(request.answer)}"
    )
    # Endpoints refuse empty messages, and many want the roles to alternate.
    answered = Message(role="assistant", content=raw.strip() or "(empty)")
    return (*request.messages, answered, Message(role="user", content=told))


def _declined(reply: Reply) -> str | None:
    match reply.finish:
        case "content_filter":
            return "the endpoint's content filter withheld the answer"
        case "refusal":
            return "the model refused to answer"
        case _:
            return None


def dialogue(request: Request, settings: LlmSettings) -> Generator[Call, Reply, Verdict]:
    """Carry a request through: yields calls, is sent their replies, returns the verdict.

    An answer that is at fault is shown to the model together with the fault, at most ``settings.repairs`` times. One
    that was cut is asked for once more with twice the tokens. What the endpoint declined is not asked again. Where
    only some entries of the last answer are at fault, it counts as one that left them out: a bad row must not cost
    its neighbours their answer. Being a function of the replies alone, the dialogue comes to the same verdict when
    they are remembered.
    """
    messages, limit, repairs = request.messages, settings.max_tokens, 0
    while True:
        reply = yield Call(messages, request.answer, limit)
        text, cut = reply.text or "", reply.finish == "length"
        if reason := _declined(reply):
            return Verdict("failed", None, reason + (f": {text[:300]}" if text else ""), reply.text)
        try:
            value = read_answer(text, request.answer, whole=cut)
        except UnreadableAnswerError as fault:
            if cut and limit > settings.max_tokens:
                reason = f"the answer was cut at {limit} tokens, twice llm.max_tokens"
                return Verdict("truncated", None, reason, reply.text)
            if cut:
                limit = 2 * settings.max_tokens
            elif repairs < settings.repairs:
                repairs += 1
                messages = _repair(request, text, str(fault), repairs)
            elif (entries := read_entries(text, request.answer)[0]) is not None:
                return Verdict("repaired" if repairs else "ok", entries, None, reply.text)
            else:
                return Verdict("failed", None, f"the answer cannot be used: {fault}", reply.text)
        else:
            return Verdict("repaired" if repairs else "ok", value, None, reply.text)
