"""Requests put through the client to a server that plays a script: what the client's tests have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curation.errors import CurationError
from curation.teachers.llm.client import open_client
from curation.teachers.llm.outcome import Outcome
from tests.teachers.llm.server import KEY, Act, Script, Server, request

PROSE = "I think that it is w7."


def ask(server: Server, cache: Path, numbers: range | list[int], **given: Any) -> list[Outcome]:
    with open_client(server.settings(**given), cache, "annotate") as client:
        return client.ask([request(number) for number in numbers])


def once(act: Act, *numbers: int) -> Script:
    """Plays ``act`` the first time each of the numbers is asked, and is good after."""
    return lambda sent: act if sent.asked in numbers and sent.time == 1 else Act()


def fails(server: Server, cache: Path, numbers: range | list[int], **given: Any) -> CurationError:
    with pytest.raises(CurationError) as caught:
        ask(server, cache, numbers, **given)
    assert caught.value.hint
    assert KEY not in str(caught.value)
    return caught.value
