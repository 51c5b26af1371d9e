"""The batch interface: joined by id whatever comes back, found again after a kill, paid once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.errors import CurationError
from curation.teachers.llm import batch
from curation.teachers.llm.cache import Cache
from curation.teachers.llm.client import open_client
from curation.teachers.llm.outcome import Outcome
from tests.teachers.llm.server import Act, Server, label, request

PRICES: dict[str, Any] = {"price_prompt": 1000.0, "price_completion": 1000.0, "max_tokens": 20}


def ask(server: Server, cache: Path, numbers: Sequence[int], **given: Any) -> list[Outcome]:
    with open_client(server.settings(batch=True, **given), cache, "annotate") as client:
        return client.ask([request(number) for number in numbers])


def right(outcomes: list[Outcome], numbers: Sequence[int]) -> bool:
    return [(outcome.request_id, outcome.value) for outcome in outcomes] == [
        (f"r{number}", label(number)) for number in numbers
    ]


def asked(server: Server) -> list[list[int]]:
    """The numbers asked in each batch, sorted."""
    return [sorted(batch.asked) for batch in server.batches.batches.values()]


def left_over(cache: Path) -> tuple[int, float]:
    with Cache(cache) as opened:
        return len(opened.batches()), opened.money("USD").claimed


def test_one_request_shows_the_way_and_the_others_go_in_one_batch(server: Server, tmp_path: Path) -> None:
    """The output comes shuffled."""
    assert right(ask(server, tmp_path, range(20)), range(20))
    assert [sent.asked for sent in server.sent] == [0]
    assert asked(server) == [list(range(1, 20))]
    assert left_over(tmp_path) == (0, 0.0)


def test_the_form_that_the_first_request_found_is_used(server: Server, tmp_path: Path) -> None:
    message = "response_format json_schema is not supported"
    server.script = lambda sent: (
        Act(400, content={"error": {"message": message}})
        if sent.body.get("response_format", {}).get("type") == "json_schema"
        else Act()
    )
    assert right(ask(server, tmp_path, range(5)), range(5))
    assert len(server.sent) == 2
    assert len(asked(server)) == 1


def test_missing_double_unknown_and_broken_lines(server: Server, tmp_path: Path) -> None:
    """L1: what is missing is asked again; what came twice or unasked is let go."""

    def mangle(lines: list[Any], number: int) -> list[Any]:
        if number:
            return lines
        unknown = {**lines[0], "custom_id": "nobody"}
        twice = {**lines[3], "response": {"status_code": 200, "body": {"choices": []}}}
        return [b"no json", b"[]", b'{"custom_id": 3}', unknown, *reversed(lines[2:]), twice, lines[4]]

    server.batches.mangle = mangle
    with open_client(server.settings(batch=True, **PRICES), tmp_path, "annotate") as client:
        outcomes = client.ask([request(number) for number in range(10)])
    assert right(outcomes, range(10))
    assert asked(server)[0] == list(range(1, 10))
    assert len(asked(server)[1]) == 2
    with Cache(tmp_path) as cache:
        # No answer is paid twice.
        assert cache.money("USD").spent == pytest.approx(10 * 0.11)


def test_what_is_missing_again_has_failed(server: Server, tmp_path: Path) -> None:
    server.batches.mangle = lambda lines, number: [line for line in lines if "w5" not in str(line)]
    outcomes = ask(server, tmp_path, range(10), max_failed_share=0.1)
    assert [outcome.kind for outcome in outcomes] == ["ok"] * 5 + ["failed"] + ["ok"] * 4
    assert "left it out" in (outcomes[5].error or "")
    assert asked(server) == [list(range(1, 10)), [5], [5]][: len(asked(server))]
    assert len(asked(server)) == 2


def test_repairs_and_cut_answers_go_in_the_next_batch(server: Server, tmp_path: Path) -> None:
    def script(sent: Any) -> Act:
        if sent.asked == 3 and not sent.repair:
            return Act(text="prose")
        if sent.asked == 4 and sent.body["max_tokens"] == 100:
            return Act(text="{", finish="length")
        return Act()

    server.script = script
    outcomes = ask(server, tmp_path, range(6), max_tokens=100)
    assert right(outcomes, range(6))
    assert outcomes[3].kind == "repaired"
    assert asked(server) == [[1, 2, 3, 4, 5], [3, 4]]


def failing(status: int, message: str) -> Any:
    """Puts the first line of the first batch into the error file."""

    def errors(lines: list[Any], number: int) -> list[Any]:
        body = {"error": {"message": message}}
        return [] if number else [{**lines[0], "response": {"status_code": status, "body": body}}]

    return errors


@pytest.mark.parametrize(
    ("status", "message", "kind", "batches"), [(400, "cannot be parsed", "failed", 1), (500, "oops", "ok", 2)]
)
def test_the_error_file_is_read(
    server: Server, tmp_path: Path, status: int, message: str, kind: str, batches: int
) -> None:
    server.batches.mangle = lambda lines, number: lines[1:] if number == 0 else lines
    server.batches.errors = failing(status, message)
    outcomes = ask(server, tmp_path, range(10), max_failed_share=0.1)
    assert [outcome.kind for outcome in outcomes] == ["ok", kind, *["ok"] * 8]
    assert kind == "ok" or message in (outcomes[1].error or "")
    assert len(asked(server)) == batches


def test_a_fatal_line_ends_the_run_and_keeps_the_answers(server: Server, tmp_path: Path) -> None:
    server.batches.mangle = lambda lines, number: lines[1:]
    server.batches.errors = failing(401, "the key was withdrawn")
    with pytest.raises(CurationError, match="withdrawn"):
        ask(server, tmp_path, range(10))
    server.batches.mangle = lambda lines, number: lines
    server.batches.errors = lambda lines, number: []
    outcomes = ask(server, tmp_path, range(10))
    assert sum(outcome.cached for outcome in outcomes) == 9


def test_an_expired_batch_gives_what_it_has_and_the_rest_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.batches.status = "expired"
    expired = {"code": "batch_expired", "message": "too late"}
    server.batches.mangle = lambda lines, number: lines[:4] if number == 0 else lines
    server.batches.errors = lambda lines, number: (
        [{**line, "response": None, "error": expired} for line in lines[4:]] if number == 0 else []
    )
    assert right(ask(server, tmp_path, range(10)), range(10))
    assert asked(server) == [list(range(1, 10)), list(range(5, 10))]


@pytest.mark.parametrize(("status", "named"), [("failed", "line 1 is no request"), ("cancelled", "was cancelled")])
def test_a_batch_that_ended_otherwise_needs_a_person(server: Server, tmp_path: Path, status: str, named: str) -> None:
    server.batches.status = status
    with pytest.raises(CurationError, match=named) as caught:
        ask(server, tmp_path, range(5))
    assert caught.value.hint
    assert left_over(tmp_path) == (0, 0.0)


def test_passing_faults_around_a_batch_are_waited_out(server: Server, tmp_path: Path) -> None:
    server.batches.broken = {
        "POST /files": [500],
        "POST /batches": [429],
        "GET /batches": [503, 502],
        "GET /files": [500],
    }
    assert right(ask(server, tmp_path, range(5)), range(5))
    assert len(asked(server)) == 1
    assert not any(server.batches.broken.values())


def test_a_batch_that_was_made_although_no_answer_came_is_not_made_twice(server: Server, tmp_path: Path) -> None:
    server.batches.late = [500]
    assert right(ask(server, tmp_path, range(5)), range(5))
    assert asked(server) == [[1, 2, 3, 4]]


@pytest.mark.parametrize("missing", ["POST /files", "POST /batches"])
def test_an_endpoint_without_batches_is_told(server: Server, tmp_path: Path, missing: str) -> None:
    server.batches.broken = {missing: [404] * 9, "GET /batches": [404] * 9}
    with pytest.raises(CurationError, match="batch") as caught:
        ask(server, tmp_path, range(5))
    assert "llm.batch" in (caught.value.hint or "")
    # Nothing was submitted, so nothing is in the way of asking one by one.
    with open_client(server.settings(), tmp_path, "annotate") as client:
        assert right(client.ask([request(number) for number in range(5)]), range(5))


def test_large_jobs_are_cut(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "_MOST_REQUESTS", 4)
    assert right(ask(server, tmp_path, range(11)), range(11))
    assert sorted(map(len, asked(server))) == [2, 4, 4]


def test_the_budget_bounds_what_is_submitted(server: Server, tmp_path: Path) -> None:
    """A call costs 0.11, bounded by about 1: rounds get larger while real costs turn out lower, then it ends."""
    with pytest.raises(CurationError, match="budget") as caught:
        ask(server, tmp_path, range(200), budget=8.0, **PRICES)
    with Cache(tmp_path) as cache:
        money = cache.money("USD")
    assert 4.0 < money.spent <= 8.0
    assert (money.lost, money.claimed) == (0.0, 0.0)
    number = 1 + sum(map(len, asked(server)))
    assert f"{number} of 200" in caught.value.message
    outcomes = ask(server, tmp_path, range(200), budget=100.0, **PRICES)
    assert right(outcomes, range(200))
    assert len(server.sent) + sum(map(len, asked(server))) == 200


CHILD = """
import sys
from pathlib import Path
from curation.teachers.llm import batch
from curation.teachers.llm.client import open_client
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.server import request
batch.POLL_FIRST = 0.02
settings = LlmSettings(base_url=sys.argv[1], model="local", key_env="LOCAL_KEY", batch=True)
with open_client(settings, Path(sys.argv[2]), "annotate") as client:
    client.ask([request(number) for number in range(20)])
"""


def killed_while_waiting(server: Server, cache: Path) -> None:
    """A process that submits a batch and is killed while it waits."""
    server.batches.polls = 10**9
    process = subprocess.Popen([sys.executable, "-c", CHILD, server.url, str(cache)])
    while not any(one.polls > 2 for one in server.batches.batches.values()):
        time.sleep(0.02)
        assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    server.batches.polls = 1


@pytest.mark.parametrize("as_batch", [True, False])
def test_a_batch_is_found_again_after_a_kill(server: Server, tmp_path: Path, as_batch: bool) -> None:
    killed_while_waiting(server, tmp_path)
    with open_client(server.settings(batch=as_batch), tmp_path, "annotate") as client:
        assert right(client.ask([request(number) for number in range(20)]), range(20))
    assert asked(server) == [list(range(1, 20))]
    assert len(server.sent) == 1


def test_a_batch_whose_id_was_lost_in_a_kill_is_found_by_its_tag(server: Server, tmp_path: Path) -> None:
    killed_while_waiting(server, tmp_path)
    with Cache(tmp_path) as cache:
        (owed,) = cache.batches()
        cache._db.execute("UPDATE batches SET batch_id = NULL")
    assert right(ask(server, tmp_path, range(20)), range(20))
    assert len(asked(server)) == 1
    assert next(iter(server.batches.batches.values())).metadata == {"curation_batch": owed.token}


def test_a_batch_that_was_killed_before_it_was_submitted_is_submitted_anew(server: Server, tmp_path: Path) -> None:
    killed_while_waiting(server, tmp_path)
    with Cache(tmp_path) as cache:
        cache._db.execute("UPDATE batches SET batch_id = NULL")
    server.batches.batches.clear()
    assert right(ask(server, tmp_path, range(20)), range(20))
    assert asked(server) == [list(range(2, 20))]


def test_a_batch_at_another_endpoint_is_told(server: Server, tmp_path: Path) -> None:
    killed_while_waiting(server, tmp_path)
    with Server() as other, pytest.raises(CurationError, match="still owes"):
        ask(other, tmp_path, range(20))
