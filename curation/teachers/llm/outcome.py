"""What is asked of an LLM and what becomes of it: requests, the endpoint's replies, outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict

from pydantic import BaseModel

__all__ = ["Kind", "Message", "Outcome", "Reply", "Request"]

Kind = Literal["ok", "repaired", "truncated", "failed"]


class Message(TypedDict):
    """One message of a conversation, as chat endpoints take it."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Request:
    """One judgement asked for.

    Attributes:
        request_id: The caller's name for it; outcomes are joined by it, never by position.
        messages: The rendered conversation.
        answer: The model that an answer must satisfy; its JSON schema is sent along.
        rows: How many rows it asks about, which is what its failure counts.
    """

    request_id: str
    messages: tuple[Message, ...]
    answer: type[BaseModel]
    rows: int = 1


@dataclass(frozen=True)
class Reply:
    """What an endpoint said in one call; the cache keeps it.

    Attributes:
        text: The content; None when there was none.
        finish: Why it ended: ``stop``, ``length``, ``content_filter``, ``refusal``, or the endpoint's own word.
        prompt_tokens, completion_tokens: As billed, or an upper bound from an endpoint that does not say.
        cost: Money in the currency of the settings it was asked with.
        latency: Seconds.
    """

    text: str | None
    finish: str
    prompt_tokens: int
    completion_tokens: int
    cost: float
    latency: float


@dataclass(frozen=True)
class Outcome:
    """What became of one request.

    Attributes:
        request_id: The request's.
        value: The checked answer; None unless ``kind`` is ``ok`` or ``repaired``.
        error: Why there is none, as a sentence; None when there is one.
        kind: ``ok``; ``repaired`` when the model was shown a fault first; ``truncated`` when the answer was cut at
            the token limit, also at the raised one; ``failed``.
        raw: The last answer as it came; None when none came.
        key: Hash of the rendered request, schema, model and parameters.
        cached: Whether no call had to be made for it.
    """

    request_id: str
    value: BaseModel | None
    error: str | None
    kind: Kind
    raw: str | None
    key: str
    cached: bool
