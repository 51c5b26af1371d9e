"""The course of one request, without an endpoint: which call follows which reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from curation.teachers.llm.dialogue import Call, Verdict, call_key, dialogue
from curation.teachers.llm.outcome import Message, Reply
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.server import Label, good, label, request

PROSE = "The word is w7."


def reply(text: str | None, finish: str = "stop") -> Reply:
    return Reply(text, finish, 1, 1, 0.0, 0.0)


def carried(replies: Sequence[Reply], **given: Any) -> tuple[list[Call], Verdict | None]:
    """The calls made while there are replies, and the verdict if it came."""
    steps = dialogue(request(7), LlmSettings(model="m", max_tokens=100, **given))
    calls = [next(steps)]
    for said in replies:
        try:
            calls.append(steps.send(said))
        except StopIteration as end:
            return calls, end.value
    return calls, None


def test_a_good_answer_takes_one_call() -> None:
    calls, verdict = carried([reply(good(7))])
    assert len(calls) == 1
    assert verdict == Verdict("ok", label(7), None, good(7))


def test_the_model_is_shown_its_fault_once_and_may_mend_it() -> None:
    calls, verdict = carried([reply(PROSE), reply(good(7))])
    assert verdict is not None
    assert verdict.kind == "repaired"
    assert verdict.value == label(7)
    first, second = calls
    assert second.messages[:2] == first.messages
    assert second.messages[2] == {"role": "assistant", "content": PROSE}
    assert "not JSON" in second.messages[3]["content"]
    assert '"number"' in second.messages[3]["content"]


@pytest.mark.parametrize("repairs", [0, 1, 3])
def test_repairs_are_bounded_and_the_raw_answer_is_kept(repairs: int) -> None:
    calls, verdict = carried([reply(PROSE)] * (repairs + 1), repairs=repairs)
    assert len(calls) == repairs + 1
    assert verdict is not None
    assert (verdict.kind, verdict.value, verdict.raw) == ("failed", None, PROSE)
    assert "not JSON" in (verdict.error or "")


def test_a_cut_answer_is_asked_for_once_more_with_twice_the_tokens() -> None:
    calls, verdict = carried([reply('{"wor', "length"), reply(good(7))])
    assert [call.max_tokens for call in calls] == [100, 200]
    assert calls[0].messages == calls[1].messages
    assert verdict is not None
    assert verdict.kind == "ok"


def test_an_answer_cut_twice_is_truncated_and_not_asked_for_again() -> None:
    calls, verdict = carried([reply('{"wor', "length"), reply('{"word": "w', "length")], repairs=5)
    assert len(calls) == 2
    assert verdict is not None
    assert (verdict.kind, verdict.raw) == ("truncated", '{"word": "w')
    assert "200 tokens" in (verdict.error or "")


def test_an_answer_that_is_whole_at_the_limit_is_good() -> None:
    assert carried([reply(good(7), "length")])[1] == Verdict("ok", label(7), None, good(7))


def test_a_repair_may_be_cut_too() -> None:
    calls, verdict = carried([reply(PROSE), reply("{", "length"), reply("{", "length")])
    assert [call.max_tokens for call in calls] == [100, 100, 200]
    assert verdict is not None
    assert verdict.kind == "truncated"


@pytest.mark.parametrize(
    ("said", "named"),
    [(reply(None, "content_filter"), "content filter"), (reply("I would rather not.", "refusal"), "rather not")],
)
def test_what_was_declined_is_not_asked_again(said: Reply, named: str) -> None:
    calls, verdict = carried([said])
    assert len(calls) == 1
    assert verdict is not None
    assert verdict.kind == "failed"
    assert named in (verdict.error or "")


def test_an_empty_answer_is_repaired_without_an_empty_message() -> None:
    calls, _ = carried([reply(None)])
    assert all(message["content"] for message in calls[1].messages)


class Other(BaseModel):
    word: str


BASE = Call(request(7).messages, Label, 100)
SETTINGS = LlmSettings(model="m")


@pytest.mark.parametrize(
    ("call", "settings"),
    [
        (Call((*BASE.messages[:1], Message(role="user", content="8")), Label, 100), SETTINGS),
        (Call((Message(role="user", content=BASE.messages[0]["content"]), BASE.messages[1]), Label, 100), SETTINGS),
        (Call(BASE.messages, Other, 100), SETTINGS),
        (Call(BASE.messages, Label, 200), SETTINGS),
        (BASE, SETTINGS.model_copy(update={"model": "n"})),
        (BASE, SETTINGS.model_copy(update={"temperature": 0.5})),
        (BASE, SETTINGS.model_copy(update={"structured": "text"})),
        (BASE, SETTINGS.model_copy(update={"extra": {"seed": 1}})),
    ],
)
def test_what_shapes_an_answer_changes_the_key(call: Call, settings: LlmSettings) -> None:
    assert call_key(call, settings) != call_key(BASE, SETTINGS)


def test_what_does_not_shape_an_answer_leaves_the_key() -> None:
    other = LlmSettings(
        model="m", base_url="http://elsewhere/v1", concurrency=1, retries=0, repairs=3, budget=1.0, price_prompt=1.0,
        price_completion=1.0, batch=True,
    )  # fmt: skip
    assert call_key(BASE, other) == call_key(BASE, SETTINGS)
