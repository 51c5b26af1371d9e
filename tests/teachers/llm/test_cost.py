"""Tokens and money beforehand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.teachers.llm.client import open_client
from curation.teachers.llm.cost import cost_bound, estimate, expected_prompt, prompt_bound
from curation.teachers.llm.dialogue import Call, answer_schema
from curation.teachers.llm.outcome import Message
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.server import Label, Server, request

SETTINGS = LlmSettings(
    model="local", price_prompt=2.0, price_completion=8.0, max_tokens=100, concurrency=10, currency="USD"
)


def call(text: str) -> Call:
    return Call((Message(role="user", content=text),), Label, 100)


@given(st.text())
def test_the_bound_is_above_bytes_and_above_what_is_expected(text: str) -> None:
    bound = prompt_bound(call(text))
    assert bound >= len(text.encode()) + len(answer_schema(Label).encode())
    assert bound >= expected_prompt(call(text))


def test_expected_tokens_by_hand() -> None:
    empty = expected_prompt(call(""))
    assert expected_prompt(call("a" * 400)) - empty == 100
    assert expected_prompt(call("路线" * 50)) - empty == 100


def test_the_most_that_a_call_costs() -> None:
    assert cost_bound(call("x"), SETTINGS) == pytest.approx((prompt_bound(call("x")) * 2 + 100 * 8) / 1e6)


def test_an_estimate_by_hand_without_a_cache() -> None:
    sample = [request(number) for number in range(10, 20)]
    tokens = expected_prompt(Call(sample[0].messages, Label, 100))
    found = estimate(SETTINGS, 1000, sample)
    assert (found.rows, found.calls) == (1000, 1000)
    assert (found.prompt_tokens, found.completion_tokens) == (1000 * tokens, 100_000)
    assert found.money == pytest.approx((1000 * tokens * 2 + 100_000 * 8) / 1e6)
    # 1 s and 100 tokens at 50 a second, 10 at once.
    assert found.seconds == pytest.approx(1000 * 3 / 10)


def test_limits_of_rates_make_it_longer() -> None:
    slow = SETTINGS.model_copy(update={"requests_per_minute": 100})
    assert estimate(slow, 1000, [request(1)]).seconds == pytest.approx(600)
    slow = SETTINGS.model_copy(update={"tokens_per_minute": 1000})
    assert estimate(slow, 1000, [request(1)]).seconds > 100 * 60


def test_no_price_no_money() -> None:
    assert estimate(LlmSettings(model="m"), 10, [request(1)]).money is None


def test_nothing_to_ask_costs_nothing() -> None:
    found = estimate(SETTINGS, 0, [])
    assert (found.calls, found.prompt_tokens, found.money, found.seconds) == (0, 0, 0.0, 0.0)


def test_a_cache_tells_how_long_answers_are_and_what_is_answered(server: Server, tmp_path: Path) -> None:
    settings = server.settings(price_prompt=2.0, price_completion=8.0, max_tokens=100)
    with open_client(settings, tmp_path, "annotate") as client:
        client.ask([request(number) for number in range(10, 15)])
    found = estimate(settings, 1000, [request(number) for number in range(10, 20)], tmp_path)
    assert found.calls == 500
    assert found.completion_tokens == 5000
    assert estimate(settings, 1000, [request(10)], tmp_path).calls == 0
    assert not (tmp_path / "none").exists()
    assert estimate(settings, 10, [request(10)], tmp_path / "none").calls == 10
    assert not (tmp_path / "none").exists()
