"""Reading an answer out of text: what is taken, what is at fault, and what the model is told."""

from __future__ import annotations

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model

from curation.teachers.llm.answers import ProposalsAnswer, verdicts_answer
from curation.teachers.llm.reading import UnreadableAnswerError, read_answer, read_entries


class Pair(BaseModel):
    word: str
    number: int = Field(ge=0)


RIGHT = Pair(word="a", number=1)
JSON = '{"word": "a", "number": 1}'


@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"\n  {JSON}\n",
        f"```json\n{JSON}\n```",
        f"Here is the answer:\n{JSON}\nI hope it helps.",
        f'<think>{{"word": "no", "number": 9}} or so?</think>\n{JSON}',
        f"For {{x}} the answer is {JSON}",
        f'It has the form {{"word": 1}}: {JSON}',
        f"{JSON}\nAgain: {JSON}",
    ],
)
def test_the_answer_is_found_in_what_goes_round_it(text: str) -> None:
    assert read_answer(text, Pair) == RIGHT


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "empty"),
        ("I cannot say.", "not JSON"),
        (JSON[:-3], "not JSON"),
        ('{"word": "a"}', "number: Field required"),
        ('{"word": "a", "number": -1}', "greater than or equal to 0"),
        (f"See: {JSON[:-1]}, }}", "not JSON"),
        (f'{JSON} or {{"word": "b", "number": 2}}', "more than one"),
        ("[1]", "object"),
        ('Sure: {"word": "a"}', "number: Field required"),
    ],
)
def test_a_fault_is_told(text: str, told: str) -> None:
    with pytest.raises(UnreadableAnswerError, match=told):
        read_answer(text, Pair)


def test_a_value_outside_of_a_long_list_is_told_without_the_list() -> None:
    leaves = tuple(f"a.rather.long.name.of.a.leaf.{number}" for number in range(50))
    for allowed, told in ((leaves, "word: 'cats' is none of the values allowed here"), (("dogs",), "dogs")):
        answer = create_model("Answer", word=(Literal[allowed], ...))  # type: ignore[valid-type]
        with pytest.raises(UnreadableAnswerError, match=told) as caught:
            read_answer('{"word": "cats"}', answer)
        assert len(str(caught.value)) < 100


def test_a_piece_of_a_broken_answer_is_never_taken_for_an_answer() -> None:
    broken = '{"items": [' + JSON + ', {"word": "b", "numb}'
    with pytest.raises(UnreadableAnswerError):
        read_answer(broken, Pair)


def test_of_a_text_that_was_cut_only_the_whole_counts() -> None:
    assert read_answer(JSON, Pair, whole=True) == RIGHT
    with pytest.raises(UnreadableAnswerError):
        read_answer(f"So: {JSON} and further", Pair, whole=True)


@pytest.mark.parametrize("text", ["{" * 100_000, '{"a":' * 50_000, "{}" * 50_000, '{"' * 40_000])
def test_braces_without_end_are_a_fault_like_any_other(text: str) -> None:
    with pytest.raises(UnreadableAnswerError):
        read_answer(text, Pair)


@given(st.text(), st.integers(min_value=0, max_value=2**60), st.text(alphabet=st.characters(exclude_characters="{}")))
def test_any_answer_survives_any_prose_without_braces(word: str, number: int, prose: str) -> None:
    answer = Pair(word=word, number=number)
    assert read_answer(prose.replace("<", "") + json.dumps(answer.model_dump()), Pair) == answer


@given(st.text())
def test_any_text_is_an_answer_or_a_fault(text: str) -> None:
    try:
        read = read_answer(text, Pair)
    except UnreadableAnswerError as fault:
        assert str(fault)
    else:
        assert read.number >= 0


VERDICTS = verdicts_answer(("f",))


def entry(name: str, tool: str = "f") -> dict[str, object]:
    return {"id": name, "natural": True, "solvable": True, "tools": [tool], "detail": None}


def verdicts(*entries: object) -> str:
    return json.dumps({"verdicts": entries})


def test_entries_that_are_not_at_fault_are_taken_and_the_others_told_by_id() -> None:
    text = f"<think>{{}}</think> Here it is: {verdicts(entry('a'), entry('b', 'g'), entry('c'))}"
    with pytest.raises(UnreadableAnswerError):
        read_answer(text, VERDICTS)
    kept, faults = read_entries(text, VERDICTS)
    assert kept == read_answer(verdicts(entry("a"), entry("c")), VERDICTS)
    assert faults == {"b": "tools.0: Input should be 'f'"}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (verdicts(entry("a"), entry("b", "g")), ["b"]),  # not more good ones than others
        (verdicts(entry("a"), entry("a", "g"), entry("b")), ["a"]),  # which of the two was meant?
        (verdicts(entry("a"), entry("b"), "c", {"natural": True}), ["", "None"]),
        (verdicts(entry("a"), entry("b")) + verdicts(entry("a")), []),
        (verdicts(entry("a"), entry("b"))[:-2], []),
        (json.dumps({"verdicts": {"a": entry("a")}}), []),
        ("", []),
    ],
)
def test_of_what_is_mostly_at_fault_or_in_doubt_nothing_is_taken(text: str, ids: list[str]) -> None:
    kept, faults = read_entries(text, VERDICTS)
    assert kept is None and list(faults) == ids


def test_only_entries_with_an_id_stand_for_themselves() -> None:
    proposal = {"kind": "drop", "node_id": "a", "target": None, "name": None, "description": None, "parts": []}
    good = proposal | {"evidence": [], "reason": "Because.", "confidence": 0.5}
    text = json.dumps({"proposals": [good, good, proposal]})
    assert read_entries(text, ProposalsAnswer) == (None, {})
