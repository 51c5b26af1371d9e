"""Reads an answer out of what a model wrote."""

from __future__ import annotations

import json
import re
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

__all__ = ["UnreadableAnswerError", "read_answer", "read_entries"]

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


def read_entries(text: str, answer: type[T]) -> tuple[T | None, dict[str, str]]:
    """What can be used of an answer that :func:`read_answer` refuses for some of its entries.

    Args:
        text: What the model wrote.
        answer: The model it must satisfy. Only one whose field, the only one, lists entries with an ``id`` is taken
            apart.

    Returns:
        The answer with its good entries, None where they are not more than the others; and what is wrong with the
        others, by id. Of an id that has a good entry and another, none counts.
    """
    text = _THOUGHT.sub("", text, count=1).strip()
    objects, entry = _objects(text), _entry_of(answer)
    if entry is None or len(objects) != 1 or objects[0][1] != text.rfind("}") + 1:
        return None, {}
    (field,) = answer.model_fields
    listed = objects[0][0].get(field)
    if not isinstance(listed, list):
        return None, {}
    good, faults = [], {}
    for said in listed:
        name = str(said.get("id")).strip() if isinstance(said, dict) else ""
        try:
            good.append((name, entry.model_validate_json(json.dumps(said))))
        except ValidationError as error:
            faults[name] = _told(error)
    kept = [one for name, one in good if name not in faults]
    return (answer(**{field: kept}) if 2 * len(kept) > len(listed) else None), faults


def _entry_of(answer: type[BaseModel]) -> type[BaseModel] | None:
    """The model of the entries with an id that an answer lists; None where it is of another form."""
    if len(answer.model_fields) != 1:
        return None
    (field,) = answer.model_fields.values()
    for entry in get_args(field.annotation):
        if isinstance(entry, type) and issubclass(entry, BaseModel) and "id" in entry.model_fields:
            return entry
    return None
