"""The recipe's section ``llm``: which endpoint answers, how it is asked, how fast, and for how much money."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, field_validator, model_validator

from curation.engine.stage import Params
from curation.errors import CurationError

__all__ = ["LlmSettings", "api_key", "require_endpoint"]

_FREE: dict[str, Any] = {"free": True}
"""Marks a field that shapes no answer, so that changing it makes no table stale."""


class LlmSettings(Params):
    """Which LLM is asked, how, and for how much money.

    Fields marked ``free`` shape no answer. The endpoint's address is among them: who answers is said by ``model``,
    wherever it is served. Two different models must therefore not go by one name.
    """

    base_url: str | None = Field(
        None, description="address of an OpenAI-compatible endpoint, such as http://localhost:8000/v1",
        json_schema_extra=_FREE,
    )  # fmt: skip
    model: str | None = Field(None, description="name of the model, as the endpoint knows it")
    key_env: str | None = Field(
        "OPENAI_API_KEY", description="environment variable with the API key; null where none is needed",
        json_schema_extra=_FREE,
    )  # fmt: skip
    temperature: float = Field(0.0, ge=0, le=2, description="0 makes answers as repeatable as the model allows")
    max_tokens: int = Field(1024, ge=1, description="tokens an answer may have; doubled once for one that was cut")
    structured: Literal["auto", "json_schema", "json_object", "text"] = Field(
        "auto", description="how the form of an answer is asked for; auto takes the strictest that the endpoint has"
    )
    extra: dict[str, JsonValue] = Field(
        {}, description="more fields of the request's body, such as {reasoning_effort: low}"
    )
    repairs: int = Field(1, ge=0, le=5, description="times the model is shown the fault of an answer and asked again")
    concurrency: int = Field(16, ge=1, le=1000, description="requests in flight at most", json_schema_extra=_FREE)
    requests_per_minute: int | None = Field(
        None, ge=1, description="requests a minute at most; null for no limit", json_schema_extra=_FREE
    )
    tokens_per_minute: int | None = Field(
        None, ge=1, description="tokens a minute at most, both ways; null for no limit", json_schema_extra=_FREE
    )
    timeout: float = Field(120.0, gt=0, description="seconds an answer may take", json_schema_extra=_FREE)
    retries: int = Field(
        6, ge=0, le=20, description="times a call that met a passing fault is sent again", json_schema_extra=_FREE
    )
    price_prompt: float | None = Field(
        None, ge=0, description="price of a million tokens sent", json_schema_extra=_FREE
    )
    price_completion: float | None = Field(
        None, ge=0, description="price of a million tokens received", json_schema_extra=_FREE
    )
    currency: str = Field("USD", min_length=1, description="currency of prices and budget", json_schema_extra=_FREE)
    budget: float | None = Field(
        None, ge=0, description="money that may be spent in this workspace in all; null for no limit",
        json_schema_extra=_FREE,
    )  # fmt: skip
    batch: bool = Field(
        False, description="whether to use the endpoint's batch interface: slow, often at half the price",
        json_schema_extra=_FREE,
    )  # fmt: skip
    max_failed_share: float = Field(
        0.05,
        ge=0,
        le=1,
        description="share of rows in failed requests above which the stage stops",
        json_schema_extra=_FREE,
    )

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("must be an address such as https://host/v1")
        if parts.username or parts.password or parts.query:
            raise ValueError("must not hold a password or a query: the key belongs into the environment (key_env)")
        return url.rstrip("/")

    @field_validator("extra")
    @classmethod
    def _own_fields(cls, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        ours = {
            "messages",
            "model",
            "temperature",
            "max_tokens",
            "max_completion_tokens",
            "response_format",
            "stream",
            "n",
        }
        if taken := sorted(ours & set(extra)):
            raise ValueError(f"must not set {', '.join(taken)}")
        return extra

    @model_validator(mode="after")
    def _budget_needs_prices(self) -> LlmSettings:
        if self.budget is not None and (self.price_prompt is None or self.price_completion is None):
            raise ValueError("a budget needs price_prompt and price_completion (0 for a model that costs nothing)")
        return self

    def ready(self) -> None:
        """See :meth:`curation.engine.stage.Params.ready`."""
        require_endpoint(self)

    @property
    def priced(self) -> bool:
        """Whether money can be told."""
        return self.price_prompt is not None and self.price_completion is not None

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Money for so many tokens; 0 where no price is set."""
        return ((self.price_prompt or 0.0) * prompt_tokens + (self.price_completion or 0.0) * completion_tokens) / 1e6


def require_endpoint(settings: LlmSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Refuse settings that no endpoint can be asked with, before any work.

    Raises:
        CurationError: The address, the model or the key is missing.
    """
    for name, example in (("base_url", "http://localhost:8000/v1"), ("model", "the model's name")):
        if not getattr(settings, name):
            raise CurationError(
                f"an LLM is to be asked, but the recipe has no llm.{name}",
                f"Set `{name}: {example}` in the section `llm` of the recipe, or use the embedded teacher.",
            )
    api_key(settings, environment)


def api_key(settings: LlmSettings, environment: Mapping[str, str] = os.environ) -> str | None:
    """The key from the environment; None where the settings say that none is needed.

    Raises:
        CurationError: The variable is not set, or does not hold what a header can carry.
    """
    if settings.key_env is None:
        return None
    key = environment.get(settings.key_env, "").strip()
    if not key:
        raise CurationError(
            f"the environment variable {settings.key_env} with the API key is not set",
            "Set it, name another one as `llm.key_env`, or set `key_env: null` for an endpoint that needs no key.",
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise CurationError(
            f"the environment variable {settings.key_env} holds no API key: it has characters that no key has",
            "Set it anew; look for white space or quotes that were pasted along.",
        )
    return key
