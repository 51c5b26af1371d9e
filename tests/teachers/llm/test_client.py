"""The client over real HTTP: each request gets its own outcome, in the dialect and within the limits of the endpoint.

L1 and L5 are of ../shared/faults.md.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from curation.teachers.llm.client import Client, open_client
from curation.teachers.llm.outcome import Request
from tests.teachers.llm.asking import PROSE, ask, fails, once
from tests.teachers.llm.server import KEY, Act, Label, Script, Sent, Server, good, label, request

# -- answers


def test_every_request_has_its_own_outcome_in_their_order(server: Server, tmp_path: Path) -> None:
    """L1: the slower a request, the earlier it was sent."""
    server.script = lambda sent: Act(delay=0.2 if sent.asked < 5 else 0.0)
    outcomes = ask(server, tmp_path, range(40))
    assert [(outcome.request_id, outcome.value) for outcome in outcomes] == [
        (f"r{number}", label(number)) for number in range(40)
    ]
    assert {(outcome.kind, outcome.error, outcome.cached) for outcome in outcomes} == {("ok", None, False)}
    assert len(server.sent) == 40


def test_what_is_sent(server: Server, tmp_path: Path) -> None:
    ask(server, tmp_path, [7], temperature=0.5, max_tokens=64, extra={"seed": 3})
    sent = server.sent[0]
    assert sent.authorization == f"Bearer {KEY}"
    form = sent.body.pop("response_format")
    assert sent.body == {
        "model": "local",
        "messages": list(request(7).messages),
        "temperature": 0.5,
        "max_tokens": 64,
        "seed": 3,
    }
    assert form["type"] == "json_schema"
    assert form["json_schema"]["strict"] is True
    schema = form["json_schema"]["schema"]
    assert (schema["required"], schema["additionalProperties"]) == (["word", "number"], False)


def test_no_request_no_call(server: Server, tmp_path: Path) -> None:
    assert ask(server, tmp_path, []) == []
    assert server.sent == []


def test_two_requests_of_one_id_are_a_mistake(server: Server, tmp_path: Path) -> None:
    with (
        open_client(server.settings(), tmp_path, "annotate") as client,
        pytest.raises(ValueError, match="request_id"),
    ):
        client.ask([request(1, "same"), request(2, "same")])


def test_equal_requests_cost_one_call(server: Server, tmp_path: Path) -> None:
    """L5."""
    with open_client(server.settings(), tmp_path, "annotate") as client:
        outcomes = client.ask([request(7, f"row {row}") for row in range(10)])
        assert client.calls().height == 1
    assert [outcome.request_id for outcome in outcomes] == [f"row {row}" for row in range(10)]
    assert all(outcome.value == label(7) for outcome in outcomes)
    assert len(server.sent) == 1


def test_progress_is_told_in_the_callers_thread_and_ends_at_all(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int, bool]] = []
    server.script = lambda sent: Act(delay=0.05)
    with open_client(server.settings(concurrency=2), tmp_path, "annotate") as client:
        client.ask(
            [request(number) for number in range(60)],
            lambda done, total: seen.append((done, total, threading.current_thread() is threading.main_thread())),
        )
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert seen[-1] == (60, 60, True)


def test_the_key_is_in_no_log(server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server.script = once(Act(500), 1)
    with caplog.at_level(logging.DEBUG):
        ask(server, tmp_path, range(3))
    assert caplog.text
    assert KEY not in caplog.text


def test_a_request_takes_any_model() -> None:
    assert Request("r", (), Label).answer.model_validate_json(good(3)) == label(3)


# -- dialects


def unsupported(*forms: str) -> Script:
    def script(sent: Sent) -> Act:
        form = sent.body.get("response_format", {}).get("type", "text")
        message = f"This response_format type is unavailable: {form}"
        return Act(400, content={"error": {"message": message}}) if form in forms else Act()

    return script


@pytest.mark.parametrize(
    ("missing", "form"), [(["json_schema"], "json_object"), (["json_schema", "json_object"], None)]
)
def test_the_strictest_form_that_the_endpoint_has_is_found_once(
    server: Server, tmp_path: Path, missing: list[str], form: str | None
) -> None:
    server.script = unsupported(*missing)
    outcomes = ask(server, tmp_path, range(50))
    assert all(outcome.value == label(number) for number, outcome in enumerate(outcomes))
    assert len(server.sent) == 50 + len(missing)
    last = server.sent[-1].body
    assert last.get("response_format", {}).get("type") == form
    # The schema is told in words instead, and the question stays as it was.
    assert '"number"' in last["messages"][0]["content"]
    assert last["messages"][1] == {"role": "user", "content": str(server.sent[-1].asked)}


def test_an_endpoint_that_does_not_heed_the_form_is_told_in_words(server: Server, tmp_path: Path) -> None:
    """It takes any response_format, and answers in prose unless the schema stands in the messages."""
    server.script = lambda sent: Act(text=None if '"number"' in str(sent.body["messages"]) else PROSE)
    outcomes = ask(server, tmp_path, range(50))
    assert all(outcome.value == label(number) for number, outcome in enumerate(outcomes))
    assert len(server.sent) == 51


def test_a_form_that_is_set_is_not_changed(server: Server, tmp_path: Path) -> None:
    server.script = unsupported("json_schema")
    fails(server, tmp_path, range(5), structured="json_schema")
    assert len(server.sent) == 1


def test_answers_are_found_again_though_the_form_was_another(server: Server, tmp_path: Path) -> None:
    server.script = unsupported("json_schema")
    ask(server, tmp_path, range(5))
    server.script = lambda sent: Act()
    assert all(outcome.cached for outcome in ask(server, tmp_path, range(5)))


def test_the_name_of_the_limit_of_tokens_is_learnt(server: Server, tmp_path: Path) -> None:
    message = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    server.script = lambda sent: (
        Act(400, content={"error": {"message": message}}) if "max_tokens" in sent.body else Act()
    )
    assert len(ask(server, tmp_path, range(5), max_tokens=77)) == 5
    assert len(server.sent) == 6
    assert server.sent[-1].body["max_completion_tokens"] == 77


# -- limits


def test_an_endpoint_with_few_places_is_not_run_over(server: Server, tmp_path: Path) -> None:
    """It has 4 places and refuses the fifth: the client finds that out, and no request fails."""
    server.script = lambda sent: Act(delay=0.02) if server.in_flight < 4 else Act(429)
    outcomes = ask(server, tmp_path, range(200), concurrency=64, retries=3)
    assert {outcome.kind for outcome in outcomes} == {"ok"}
    assert len(server.sent) < 400


def test_rejections_are_no_sign_of_overload(server: Server, tmp_path: Path) -> None:
    """Nothing but requests that are too long: they fail side by side, not one after the other."""
    message = "the prompt is too long"
    server.script = lambda sent: Act(400, content={"error": {"message": message}}, delay=0.05)
    outcomes = ask(server, tmp_path, range(40), max_failed_share=1.0)
    assert {outcome.kind for outcome in outcomes} == {"failed"}
    assert server.peak > 2
    assert len(server.sent) == 40


def test_no_more_are_in_flight_than_set(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(delay=0.02)
    ask(server, tmp_path, range(60), concurrency=5)
    assert 1 < server.peak <= 5


def test_requests_a_minute_are_kept(server: Server, tmp_path: Path) -> None:
    started = time.perf_counter()
    ask(server, tmp_path, range(11), requests_per_minute=1200)
    assert time.perf_counter() - started >= 0.5


# -- closing


def test_a_client_is_closed_twice_without_harm(server: Server, tmp_path: Path) -> None:
    client = Client(server.settings(), tmp_path, stage="annotate")
    client.close()
    client.close()


def test_nothing_is_left_of_a_client_that_was_closed(server: Server, tmp_path: Path) -> None:
    ask(server, tmp_path, range(3))
    assert not [thread for thread in threading.enumerate() if thread.name == "llm client"]
    with sqlite3.connect(tmp_path / "llm.sqlite") as database:
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)
