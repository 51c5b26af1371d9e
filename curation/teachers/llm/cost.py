"""Tokens and money before they are spent: bounds for the budget, an estimate for the plan."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from curation.errors import CurationError
from curation.teachers.llm.cache import Cache
from curation.teachers.llm.dialogue import Call, answer_schema, call_key
from curation.teachers.llm.outcome import Request
from curation.teachers.llm.settings import LlmSettings

__all__ = ["Estimate", "cost_bound", "estimate", "expected_prompt", "prompt_bound"]

_TEMPLATE, _MESSAGE = 256, 32
"""Tokens that chat templates and the telling of the schema add: to a request, to each message."""
_SECONDS, _TOKENS_A_SECOND = 1.0, 50.0
"""Until calls have been seen: seconds before an answer begins, and how fast it comes."""


def prompt_bound(call: Call) -> int:
    """Tokens that a call cannot exceed: byte-level vocabularies have no token below one byte of UTF-8."""
    sent = sum(len(message["content"].encode()) + _MESSAGE for message in call.messages)
    return sent + len(answer_schema(call.answer).encode()) + _TEMPLATE


def cost_bound(call: Call, settings: LlmSettings) -> float:
    """Money that a call cannot exceed, at an endpoint that honours its limit of tokens."""
    return settings.cost(prompt_bound(call), call.max_tokens)


def expected_prompt(call: Call) -> int:
    """Tokens that a call will probably send: one for four letters of ASCII, one for any other character."""
    texts = [message["content"] for message in call.messages] + [answer_schema(call.answer)]
    plain = sum(len(text.encode("ascii", "ignore")) for text in texts)
    return plain // 4 + sum(map(len, texts)) - plain + 8 * len(call.messages)


@dataclass(frozen=True)
class Estimate:
    """What a stage will ask of an LLM.

    Attributes:
        rows: Requests.
        calls: Calls they need, less those that the cache answers; repairs and repetitions not counted.
        prompt_tokens, completion_tokens: Tokens sent and received.
        money: In the settings' currency; None where no price is set.
        seconds: Wall time; batches take as long as the endpoint likes.
    """

    rows: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    money: float | None
    seconds: float


def estimate(
    settings: LlmSettings, requests_rows: int, sample: Sequence[Request], cache: Path | None = None
) -> Estimate:
    """Estimate tokens, money and time from a sample of rendered requests.

    With a cache that has answers of this model, their mean length and time are taken, and the share of the sample
    that it already answers. Without, an answer is taken to be as long as ``max_tokens`` allows, so that the money is
    rather too much than too little.

    Args:
        settings: Model, prices, limits.
        requests_rows: How many requests there will be.
        sample: Some of them; they stand for all.
        cache: Directory of the workspace's request cache, if there is one.
    """
    calls = [Call(request.messages, request.answer, settings.max_tokens) for request in sample]
    received, latency = float(settings.max_tokens), _SECONDS + settings.max_tokens / _TOKENS_A_SECOND
    answered = 0.0
    if cache is not None and Cache.exists(cache) and settings.model:
        # A cache that cannot be opened tells nothing; the run will say what is wrong with it.
        with contextlib.suppress(CurationError), Cache(cache) as opened:
            if (seen := opened.usual(settings.model)) is not None:
                received, latency = seen
            if calls:
                answered = sum(opened.get(call_key(call, settings)) is not None for call in calls) / len(calls)
    number = round(requests_rows * (1 - answered)) if calls else 0
    sent = round(number * sum(map(expected_prompt, calls)) / len(calls)) if calls else 0
    tokens = round(number * received)
    seconds = max(
        number * latency / settings.concurrency,
        latency if number else 0.0,
        60 * number / settings.requests_per_minute if settings.requests_per_minute else 0.0,
        60 * (sent + tokens) / settings.tokens_per_minute if settings.tokens_per_minute else 0.0,
    )
    money = settings.cost(sent, tokens) if settings.priced else None
    return Estimate(requests_rows, number, sent, tokens, money, seconds)
