"""Judgement of many rows: a few in a request, joined by id; what got no usable answer is asked again alone, once.

Rows are told apart by codes made of their content. A model that numbers its answers itself, leaves one out or swaps
two can then not have one row's judgement land on another: an unknown code is passed over, a code that comes twice
with different judgements counts as unanswered.

Which rows share a request is decided by their content too (the cuts of content-defined chunking), so rows that come
or go leave most requests as they were, and the request cache still answers those.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from curation.teachers.llm.outcome import Outcome, Request
from curation.teachers.llm.prompts import conversation
from curation.teachers.llm.reading import read_entries

__all__ = ["Asker", "FaultyAnswerError", "Form", "Item", "Judged", "error_of", "judge", "requests_of"]

T = TypeVar("T")

_CODE = 6
_SHOWN = 400


class Asker(Protocol):
    """The part of :class:`curation.teachers.llm.client.Client` that teachers need."""

    def ask(
        self, requests: Sequence[Request], on_progress: Callable[[int, int], None] | None = None
    ) -> list[Outcome]:
        """An outcome for every request, in their order."""


class FaultyAnswerError(Exception):
    """A judgement that cannot be used; ``str()`` tells model and person why."""


@dataclass(frozen=True)
class Item:
    """A row to be judged.

    Attributes:
        data: What the model is shown of it, without an id.
        instructions: The system message that it is to be judged under.
        tag: Name and version of the prompt they come from, for request ids.
        number: A hash of what it is, such as a query id: decides where it stands among the others and so with which
            it shares a request, whatever else is shown with it. Made of the content when not given.
    """

    data: Mapping[str, Any]
    instructions: str
    tag: str
    number: int | None = None

    @cached_property
    def digest(self) -> bytes:
        """Hash of the content; equal items have equal ones."""
        content = json.dumps(dict(self.data), sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(f"{self.instructions}\0{content}".encode(), digest_size=20).digest()

    @property
    def place(self) -> tuple[int, bytes]:
        """What items are ordered by."""
        return (int.from_bytes(self.digest[-8:], "big") if self.number is None else self.number, self.digest)


@dataclass(frozen=True)
class Judged(Generic[T]):
    """What became of an item: ``value``, or ``error`` as a sentence with the raw answer."""

    value: T | None
    error: str | None = None


@dataclass(frozen=True)
class Form:
    """How items are asked and answered.

    Attributes:
        answer: Model with one list of entries, each with an ``id``.
        entries: Name of that list.
        rows: Name of the list of items in the message.
        size: Items in a request at most.
    """

    answer: type[BaseModel]
    entries: str
    rows: str
    size: int


@dataclass(frozen=True)
class _Asked:
    """A request and the items in it by code."""

    request: Request
    items: dict[str, Item]


def judge(
    client: Asker,
    items: Sequence[Item],
    form: Form,
    check: Callable[[Item, Any], T],
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Judged[T]]:
    """Judge every item; equal ones once.

    Args:
        client: Who asks.
        items: What is judged.
        form: How.
        check: Makes the value of an entry of the answer; raises :class:`FaultyAnswerError` where it cannot be used.
        on_progress: Told the items done and their number.

    Returns:
        One for each item, in their order.
    """
    done: dict[bytes, Judged[T]] = {}
    again: dict[bytes, tuple[Item, str]] = {}
    asked = _first(items, form)
    outcomes = _ask(client, asked, on_progress and _in_rows(on_progress, len(items)))
    for one in asked:
        _take(one, outcomes[one.request.request_id], form, check, done, again)
    singles = [_request(form, [item], f"again.{at}", fault) for at, (item, fault) in enumerate(again.values())]
    outcomes = _ask(client, singles, None)
    for one in singles:
        _take(one, outcomes[one.request.request_id], form, check, done, None)
    return [done[item.digest] for item in items]


def requests_of(items: Sequence[Item], form: Form) -> list[Request]:
    """The requests that :func:`judge` begins with, for estimates."""
    return [one.request for one in _first(items, form)]


def error_of(fault: str, raw: str | None) -> str:
    """The error of a row: what is wrong, and the answer as far as a table's cell should hold it."""
    if raw is None:
        return f"{fault}; there was no answer"
    return f"{fault}; the answer: {raw[:_SHOWN]}{'…' if len(raw) > _SHOWN else ''}"


def _in_rows(on_progress: Callable[[int, int], None], rows: int) -> Callable[[int, int], None]:
    return lambda done, total: on_progress(done * rows // max(total, 1), rows)


def _ask(client: Asker, asked: list[_Asked], on_progress: Callable[[int, int], None] | None) -> dict[str, Outcome]:
    outcomes = client.ask([one.request for one in asked], on_progress) if asked else []
    return {outcome.request_id: outcome for outcome in outcomes}


def _first(items: Sequence[Item], form: Form) -> list[_Asked]:
    by_instructions: dict[str, dict[bytes, Item]] = {}
    for item in sorted(items, key=lambda item: item.place):
        by_instructions.setdefault(item.instructions, {}).setdefault(item.digest, item)
    chunks = [chunk for group in by_instructions.values() for chunk in _chunks(group.values(), form.size)]
    return [_request(form, chunk, str(number)) for number, chunk in enumerate(chunks)]


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Runs of half to all of ``size`` items, cut after one whose number says so."""
    least = -(-size // 2)
    chunk: list[Item] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size or (len(chunk) >= least and item.place[0] % least == 0):
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _request(form: Form, items: list[Item], name: str, fault: str | None = None) -> _Asked:
    length = _CODE
    while len({_code(item, length) for item in items}) < len(items):
        length += 1
    coded = {_code(item, length): item for item in items}
    rows = [{"id": code, **item.data, **({"fault": fault} if fault else {})} for code, item in coded.items()]
    messages = conversation(items[0].instructions, {form.rows: rows})
    return _Asked(Request(f"{items[0].tag}/{name}", messages, form.answer, len(items)), coded)


def _code(item: Item, length: int) -> str:
    return base64.b32encode(item.digest).decode().lower()[:length]


def _take(
    asked: _Asked,
    outcome: Outcome,
    form: Form,
    check: Callable[[Item, Any], T],
    done: dict[bytes, Judged[T]],
    again: dict[bytes, tuple[Item, str]] | None,
) -> None:
    """Sort the items of a request into those that are done and (None: nowhere else) those to be asked again."""
    entries: dict[str, list[Any]] = {}
    if outcome.value is not None:
        for entry in getattr(outcome.value, form.entries):
            if entry not in entries.setdefault(entry.id.strip(), []):
                entries[entry.id.strip()].append(entry)
    for code, item in asked.items.items():
        found, raw = entries.get(code, []), outcome.raw
        try:
            if outcome.value is None:
                raise FaultyAnswerError(outcome.error or "there is no answer")
            if len(found) != 1:
                raise FaultyAnswerError(
                    "the answer has two entries for this id" if found else _missing(code, raw, form.answer)
                )
            raw = found[0].model_dump_json()
            done[item.digest] = Judged(check(item, found[0]))
        except FaultyAnswerError as error:
            # A failed request that held this item alone had its repairs already.
            hopeless = outcome.value is None and len(asked.items) == 1
            if again is None or hopeless:
                done[item.digest] = Judged(None, error_of(str(error), raw))
            else:
                again[item.digest] = (item, str(error))


def _missing(code: str, raw: str | None, answer: type[BaseModel]) -> str:
    """Why an answer has no entry for an item."""
    return read_entries(raw or "", answer)[1].get(code, "the answer left it out")
