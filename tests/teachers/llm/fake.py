"""A client in memory: answers by a function, checks answers as the real one does, keeps what it was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from curation.teachers.llm.outcome import Outcome, Request
from curation.teachers.llm.prompts import data_of
from curation.teachers.llm.reading import read_entries


class UnansweredError(Exception):
    """Raised by an answering function for a request that fails; its text is the reason."""


class FakeClient:
    """`answer` gets the data of a request and gives what the model says: a text, or what JSON can hold."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self._answer = answer
        self.requests: list[Request] = []

    def ask(
        self, requests: Sequence[Request], on_progress: Callable[[int, int], None] | None = None
    ) -> list[Outcome]:
        assert len({request.request_id for request in requests}) == len(requests)
        self.requests += requests
        if on_progress:
            on_progress(len(requests), len(requests))
        return [self._outcome(request) for request in requests]

    @property
    def data(self) -> list[Any]:
        """The data of all requests."""
        return [data_of(request.messages) for request in self.requests]

    def _outcome(self, request: Request) -> Outcome:
        key = hashlib.sha256(json.dumps(request.messages).encode()).hexdigest()
        try:
            said = self._answer(data_of(request.messages))
        except UnansweredError as error:
            return Outcome(request.request_id, None, str(error), "failed", None, key, False)
        raw = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        try:
            return Outcome(request.request_id, request.answer.model_validate_json(raw), None, "ok", raw, key, False)
        except ValidationError:
            if (entries := read_entries(raw, request.answer)[0]) is not None:
                return Outcome(request.request_id, entries, None, "repaired", raw, key, False)
            return Outcome(request.request_id, None, "the answer cannot be used", "failed", raw, key, False)
