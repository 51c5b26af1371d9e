"""Reads an answer out of what a model wrote."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

__all__ = ["UnreadableAnswerError", "read_answer"]

T = TypeVar("T", bound=BaseModel)

_THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
_OPENINGS = 64
"""Opening braces at which an object is looked for; prose has few, and each costs a scan of the text."""
_LONG = 300
"""Letters of a single fault that are too many to tell."""


class UnreadableAnswerError(Exception):
    """An answer that is not JSON, or not what was asked for; ``str()`` tells the fault to the model."""


def _told(error: ValidationError) -> str:
    faults = []
    for fault in error.errors(include_url=False, include_context=False)[:8]:
        place, told = ".".join(str(step) for step in fault["loc"]), fault["msg"]
        if fault["type"] == "literal_error" and len(told) > _LONG:
            # What is allowed may be hundreds of leaves, which the request has named.
            told = f"{str(fault['input'])[:80]!r} is none of the values allowed here"
        faults.append(f"{place}: {told}" if place else told)
    return "; ".join(faults)[:2000]


def _objects(text: str) -> list[tuple[Any, int]]:
    """The JSON objects that stand in a text one after the other, each with where it ends."""
    decoder, found, at = json.JSONDecoder(), [], 0
    for _ in range(_OPENINGS):
        at = text.find("{", at)
        if at < 0:
            break
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            found.append((value, at))
    return found


def read_answer(text: str, answer: type[T], *, whole: bool = False) -> T:
    """The answer in a text: the whole of it, or the one object that prose or a code fence goes round.

    The object must be the last thing with braces, so that a piece of a broken answer is never taken for an answer.

    Args:
        text: What the model wrote.
        answer: The model it must satisfy.
        whole: Take nothing but the whole text, as befits a text that was cut.

    Raises:
        UnreadableAnswerError: There is no such answer, or more than one; says what is wrong with it.
    """
    text = _THOUGHT.sub("", text, count=1).strip()
    try:
        return answer.model_validate_json(text)
    except ValidationError as error:
        if whole or error.errors(include_url=False)[0]["type"] != "json_invalid":
            raise UnreadableAnswerError(_told(error)) from None
        fault = "the answer is not JSON" if text else "the answer is empty"
    objects = _objects(text)
    valid: list[T] = []
    for value, _ in objects:
        try:
            valid.append(answer.model_validate_json(json.dumps(value)))
        except ValidationError as error:
            fault = _told(error)
    if valid and any(other != valid[0] for other in valid):
        raise UnreadableAnswerError("the text holds more than one answer")
    if valid and objects[-1][1] == text.rfind("}") + 1:
        return valid[-1]
    raise UnreadableAnswerError(fault)
