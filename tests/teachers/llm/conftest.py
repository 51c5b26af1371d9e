"""Fixtures of the client's tests: a key, short waits, a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from curation.teachers.llm import batch, limits
from tests.teachers.llm.server import KEY, Server


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key in the environment, repetitions and polls without long waits."""
    monkeypatch.setenv("LOCAL_KEY", KEY)
    monkeypatch.setattr(limits, "BACKOFF_FIRST", 0.01)
    monkeypatch.setattr(limits, "BACKOFF_MOST", 0.05)
    monkeypatch.setattr(batch, "POLL_FIRST", 0.02)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running
