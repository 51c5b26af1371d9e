"""A local endpoint that answers by a function of a request's data: for tests of stages with the real client."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from curation.teachers.llm.prompts import data_of
from tests.teachers.llm.server import KEY, Act, Sent, Server

__all__ = ["answering"]


class Data(dict[str, Any]):
    """The data of a request; ``told`` are the instructions that came with it."""

    told = ""


def answering(monkeypatch: pytest.MonkeyPatch, **answers: Callable[[Any], Any]) -> Server:
    """A server, to be entered.

    Args:
        monkeypatch: Sets the key in the environment.
        answers: By the name of the form that is asked for (``labels``, ``scores``, ``queries``, ``verdicts``): given
            the data of a request, what JSON can hold, a text, or an :class:`Act`.
    """
    monkeypatch.setenv("LOCAL_KEY", KEY)

    def script(sent: Sent) -> Act:
        form = sent.body["response_format"]["json_schema"]["name"].lower()
        data = Data(data_of(sent.body["messages"]))
        data.told = sent.body["messages"][0]["content"]
        said = answers[form](data)
        if isinstance(said, Act):
            return said
        return Act(text=said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))

    return Server(script)
