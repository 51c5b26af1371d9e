"""Settings: what is refused before any work, what counts for the key of a stage, what a key may look like."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from curation.errors import CurationError
from curation.teachers.llm.settings import LlmSettings, api_key, require_endpoint

SHAPING = {"model", "temperature", "max_tokens", "structured", "extra", "repairs"}


def test_exactly_what_shapes_an_answer_counts_for_the_key_of_a_stage() -> None:
    fields: dict[str, Any] = LlmSettings.model_fields
    assert {name for name, field in fields.items() if not (field.json_schema_extra or {}).get("free")} == SHAPING


def test_every_setting_says_what_it_means() -> None:
    assert all(field.description for field in LlmSettings.model_fields.values())


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"base_url": "localhost:8000/v1"}, "address"),
        ({"base_url": "https://user:secret@host/v1"}, "password"),
        ({"base_url": "https://host/v1?key=secret"}, "query"),
        ({"extra": {"messages": []}}, "messages"),
        ({"budget": 1.0}, "price_prompt"),
        ({"budget": 1.0, "price_prompt": 1.0}, "price_completion"),
        ({"retry": 3}, "retry"),
        ({"concurrency": 0}, "concurrency"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError, match=named):
        LlmSettings(**given)


@pytest.mark.parametrize(
    ("given", "environment", "named"),
    [
        ({"model": "m"}, {"OPENAI_API_KEY": "k"}, "llm.base_url"),
        ({"base_url": "http://host/v1"}, {"OPENAI_API_KEY": "k"}, "llm.model"),
        ({"base_url": "http://host/v1", "model": "m"}, {}, "OPENAI_API_KEY"),
        (
            {"base_url": "http://host/v1", "model": "m", "key_env": "MINE"},
            {"OPENAI_API_KEY": "k", "MINE": " "},
            "MINE",
        ),
        ({"base_url": "http://host/v1", "model": "m"}, {"OPENAI_API_KEY": "two words"}, "OPENAI_API_KEY"),
        ({"base_url": "http://host/v1", "model": "m"}, {"OPENAI_API_KEY": "“quoted”"}, "OPENAI_API_KEY"),
    ],
)
def test_what_is_missing_is_named_with_what_to_do(
    given: dict[str, Any], environment: dict[str, str], named: str
) -> None:
    with pytest.raises(CurationError, match=named) as caught:
        require_endpoint(LlmSettings(**given), environment)
    assert caught.value.hint
    assert all(value.strip() not in str(caught.value) for value in environment.values() if len(value.strip()) > 1)


def test_the_key_is_read_without_the_line_break_it_was_pasted_with() -> None:
    assert api_key(LlmSettings(), {"OPENAI_API_KEY": "sk-1\n"}) == "sk-1"


def test_an_endpoint_may_need_no_key() -> None:
    settings = LlmSettings(base_url="http://localhost:1/v1/", model="m", key_env=None)
    require_endpoint(settings, {})
    assert api_key(settings, {}) is None
    assert settings.base_url == "http://localhost:1/v1"


def test_cost_is_per_million_tokens() -> None:
    assert LlmSettings(price_prompt=2.0, price_completion=8.0).cost(500_000, 250_000) == 3.0
    assert LlmSettings().cost(500_000, 250_000) == 0.0
