"""Questions with one answer each: asked, checked, and asked once more with the fault where the check fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from curation.teachers.llm.outcome import Outcome, Request
from curation.teachers.llm.prompts import conversation
from curation.teachers.llm.rows import Asker, FaultyAnswerError, Judged, error_of

__all__ = ["Question", "ask_checked"]

T = TypeVar("T")


@dataclass(frozen=True)
class Question(Generic[T]):
    """A question.

    Attributes:
        tag: Name and version of its prompt.
        instructions: The system message.
        data: What the user's message holds.
        answer: The form of the answer.
        check: Makes the value of an answer; raises :class:`FaultyAnswerError` where it cannot be used.
        salvage: Makes the value of the second answer instead, where a part of it can be used.
    """

    tag: str
    instructions: str
    data: Mapping[str, Any]
    answer: type[BaseModel]
    check: Callable[[Any], T]
    salvage: Callable[[Any], T] | None = None

    def request(self, name: str, fault: str | None = None) -> Request:
        """The question as a request; ``fault`` is what was wrong with the answer before."""
        data = dict(self.data) | ({"fault": fault} if fault else {})
        return Request(f"{self.tag}/{name}", conversation(self.instructions, data), self.answer)


def ask_checked(client: Asker, questions: Sequence[Question[T]]) -> list[Judged[T]]:
    """Ask all questions, those with an unusable answer once more; never an answer that failed its check.

    Returns:
        One for each question, in their order.
    """
    first = _ask(client, {at: question.request(str(at)) for at, question in enumerate(questions)})
    judged = {at: _judged(questions[at].check, outcome) for at, outcome in first.items()}
    # A request that failed had its repairs already; what the check refuses has not been told to the model yet.
    faults = {at: fault for at, (_, fault) in judged.items() if fault and first[at].value is not None}
    second = _ask(client, {at: questions[at].request(f"again.{at}", fault) for at, fault in faults.items()})
    for at, outcome in second.items():
        judged[at] = _judged(questions[at].salvage or questions[at].check, outcome)
    outcomes = first | second
    return [
        Judged(value, error_of(fault, outcomes[at].raw) if fault else None)
        for at, (value, fault) in sorted(judged.items())
    ]


def _ask(client: Asker, requests: dict[int, Request]) -> dict[int, Outcome]:
    outcomes = client.ask(list(requests.values())) if requests else []
    by_id = {outcome.request_id: outcome for outcome in outcomes}
    return {at: by_id[request.request_id] for at, request in requests.items()}


def _judged(check: Callable[[Any], Any], outcome: Outcome) -> tuple[Any, str | None]:
    """(the value, None) or (None, what is wrong)."""
    if outcome.value is None:
        return None, outcome.error or "there is no answer"
    try:
        return check(outcome.value), None
    except FaultyAnswerError as error:
        return None, str(error)
