"""Renders prompts: the template of a job in a language, filled in, with the data in a message of its own.

What people typed never goes through the template language. It stands as JSON in the user's message, or as JSON in a
line of the system message where a labelled seed is shown, so braces, quotes, newlines, template syntax and orders
inside a query arrive as they are and as data.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from curation.teachers import prompts as templates
from curation.teachers.llm.outcome import Message
from curation.teachers.prompts import LANGUAGES, Job, Language

if TYPE_CHECKING:
    from jinja2 import Environment, Template

__all__ = ["Prompt", "conversation", "data_of", "load_prompt", "main_language", "prompt_language"]

_VERSION = "{#- version: "


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    folder = files(templates)
    environment = ImmutableSandboxedEnvironment(
        loader=FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["json"] = _json
    return environment


@dataclass(frozen=True)
class Prompt:
    """A template of :mod:`curation.teachers.prompts`.

    Attributes:
        job: What is asked.
        language: Of the instructions; that of the data, as far as there is a template for it.
        version: As its first line says.
    """

    job: Job
    language: Language
    version: int

    @property
    def tag(self) -> str:
        """Job, language and version as they stand at the head of request ids: ``annotate.zh.1``."""
        return f"{self.job}.{self.language}.{self.version}"

    def instructions(self, **context: Any) -> str:
        """The system message.

        Args:
            context: What the template names; a name that is missing is an error, never an empty text.
        """
        template: Template = _environment().get_template(f"{self.job}.{self.language}.j2")
        return template.render(**context).strip()


def conversation(instructions: str, data: Mapping[str, Any]) -> tuple[Message, ...]:
    """Instructions, then ``data``, anything that JSON can hold, in a message of its own."""
    return (Message(role="system", content=instructions), Message(role="user", content=_json(dict(data))))


def data_of(messages: Iterable[Message]) -> Any:
    """The data that :func:`conversation` put into a conversation, read back."""
    return json.loads(next(message["content"] for message in messages if message["role"] == "user"))


@lru_cache(maxsize=64)
def load_prompt(job: Job, language: Language) -> Prompt:
    """The prompt of a job in a language."""
    first = (files(templates) / f"{job}.{language}.j2").read_text(encoding="utf-8").partition("\n")[0]
    return Prompt(job, language, int(first.removeprefix(_VERSION).split()[0]))


def prompt_language(lang: str | None) -> Language:
    """The language that instructions about texts in ``lang`` (ISO 639-1) are given in: its own, or English."""
    return next((known for known in LANGUAGES if known == lang), "en")


def main_language(langs: Iterable[str | None]) -> Language:
    """The language for instructions about texts in several languages: what most of them take; English for a tie."""
    counts = Counter(map(prompt_language, langs))
    return min(LANGUAGES, key=lambda language: (-counts[language], language))
