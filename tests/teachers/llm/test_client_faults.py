"""The client against a server that plays faults: what passes is waited out, what fails fails alone or ends the run.

Over real HTTP; L2 to L4 of ../shared/faults.md, and more.
"""

from __future__ import annotations

import email.utils
import time
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from curation.errors import CurationError
from curation.teachers.llm.client import open_client
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.asking import PROSE, ask, fails, once
from tests.teachers.llm.server import KEY, Act, Script, Sent, Server, label, request


def always(act: Act, *numbers: int) -> Script:
    return lambda sent: act if sent.asked in numbers else Act()


# -- passing faults


@pytest.mark.parametrize("date", [False, True])
def test_a_429_is_waited_out(server: Server, tmp_path: Path, date: bool) -> None:
    """L2: three times 429 with Retry-After, in seconds or as a date."""

    def script(sent: Sent) -> Act:
        if sent.time > 3:
            return Act()
        soon = email.utils.formatdate(time.time() + 1.2, usegmt=True)
        return Act(429, {"retry-after": soon if date else "0.3"})

    server.script = script
    started = time.perf_counter()
    outcomes = ask(server, tmp_path, [7], retries=3)
    assert outcomes[0].value == label(7)
    assert len(server.sent) == 4
    assert time.perf_counter() - started >= (0.2 if date else 0.9)


@pytest.mark.parametrize(
    "act",
    [
        Act(500),
        Act(502, content="<html>Bad gateway</html>"),
        Act(503, {"retry-after": "0"}),
        Act(529),
        Act(408),
        Act(409),
        Act(end="drop"),
        Act(end="half"),
        Act(end="drip"),
        Act(delay=30),
        Act(content="<html>Welcome</html>"),
        Act(content={"choices": []}),
        Act(content={"choices": None}),
        Act(content={"error": {"message": "upstream is down", "code": 502}}),
        Act(content=[]),
        Act(content=b'{"choices": ['),
        Act(finish="error", text=""),
    ],
    ids=repr,
)
def test_a_fault_that_passes_is_waited_out(server: Server, tmp_path: Path, act: Act) -> None:
    server.script = once(act, 3)
    # Short only where the fault is that nothing comes: a busy machine answers late, too.
    outcomes = ask(server, tmp_path, range(6), timeout=3 if act.delay or act.end == "drip" else 60)
    assert [outcome.value for outcome in outcomes] == [label(number) for number in range(6)]
    assert Counter(sent.asked for sent in server.sent) == {0: 1, 1: 1, 2: 1, 3: 2, 4: 1, 5: 1}


def test_a_call_that_always_fails_is_given_up_and_the_others_are_not(server: Server, tmp_path: Path) -> None:
    server.script = always(Act(500), 3)
    outcomes = ask(server, tmp_path, range(10), retries=2, max_failed_share=0.1)
    assert [outcome.kind for outcome in outcomes] == ["ok"] * 3 + ["failed"] + ["ok"] * 6
    assert "3 tries" in (outcomes[3].error or "")
    assert "500" in (outcomes[3].error or "")
    assert len(server.sent) == 9 + 3
    # It is not remembered as an answer: the next run tries again.
    server.script = lambda sent: Act()
    outcomes = ask(server, tmp_path, range(10))
    assert [outcome.cached for outcome in outcomes] == [True] * 3 + [False] + [True] * 6
    assert outcomes[3].value == label(3)


def test_an_outage_ends_the_run_and_leaves_the_rest_for_the_next(server: Server, tmp_path: Path) -> None:
    def script(sent: Sent) -> Act:
        return Act() if len(server.sent) <= 20 else Act(503)

    server.script = script
    error = fails(server, tmp_path, range(100), retries=1)
    assert "does not answer" in error.message
    assert len(server.sent) < 100
    server.script = lambda sent: Act()
    outcomes = ask(server, tmp_path, range(100))
    assert all(outcome.value == label(number) for number, outcome in enumerate(outcomes))
    assert sum(outcome.cached for outcome in outcomes) == 20


def test_requests_that_an_endpoint_cannot_do_are_not_taken_for_an_outage(server: Server, tmp_path: Path) -> None:
    """All that is left always fails, also in the next run: the endpoint is asked something else."""
    ask(server, tmp_path, range(10))
    server.script = lambda sent: Act(500) if sent.asked >= 10 else Act()
    for _ in range(2):
        outcomes = ask(server, tmp_path, range(18), retries=1, max_failed_share=0.5)
        assert [outcome.kind for outcome in outcomes] == ["ok"] * 10 + ["failed"] * 8


def test_an_endpoint_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    settings = LlmSettings(base_url="http://127.0.0.1:9/v1", model="m", key_env=None, retries=2)
    with open_client(settings, tmp_path, "annotate") as client, pytest.raises(CurationError, match="does not answer"):
        client.ask([request(number) for number in range(100)])


def test_an_endpoint_that_hangs_from_the_start_is_told_in_the_time_of_one_call(
    server: Server, tmp_path: Path
) -> None:
    """Many calls take turns at the only place in flight; they do not get their repetitions one after the other."""
    server.script = lambda sent: Act(delay=30)
    error = fails(server, tmp_path, range(60), concurrency=16, timeout=0.3, retries=2)
    assert "does not answer" in error.message
    assert "llm.timeout" in (error.hint or "")
    assert len(server.sent) <= 4


# -- fatal faults


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (Act(401, content={"error": {"message": f"Incorrect API key provided: {KEY}."}}), "API key"),
        (Act(403), "access"),
        (Act(402), "money"),
        (Act(404, content={"error": {"message": "The model `local` does not exist"}}), "does not exist"),
        (Act(400, content={"error": {"message": "temperature must be a string"}}), "temperature"),
        (
            Act(400, content={"error": {"message": "max_tokens is too large: 9. At most 8 are supported"}}),
            "max_tokens",
        ),
        (Act(429, content={"error": {"message": "x", "code": "insufficient_quota"}}), "quota"),
        (Act(429, {"retry-after": "86400"}), "minutes"),
    ],
    ids=lambda value: str(value)[:12],
)
def test_what_every_call_will_meet_ends_the_run_after_one_call(
    server: Server, tmp_path: Path, act: Act, named: str
) -> None:
    """L2."""
    server.script = lambda sent: act
    assert named in fails(server, tmp_path, range(50)).message
    assert len(server.sent) == 1


def test_a_key_that_is_withdrawn_ends_the_run_and_loses_no_answer(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act() if len(server.sent) <= 30 else Act(401)
    fails(server, tmp_path, range(100))
    before = len(server.sent)
    assert before < 100
    server.script = lambda sent: Act()
    outcomes = ask(server, tmp_path, range(100))
    assert sum(outcome.cached for outcome in outcomes) == 30
    assert len(server.sent) == before + 70


@pytest.mark.parametrize(
    ("act", "named"),
    [
        (Act(400, content={"error": {"message": "maximum context length is 8192 tokens"}}), "length"),
        (Act(400, content={"error": {"message": "filtered", "code": "content_filter"}}), "content filter"),
        (Act(400, content={"error": {"message": "cannot parse this"}}), "rejected"),
        (Act(text=None, finish="content_filter"), ""),
        (Act(refusal="I must not."), "I must not."),
    ],
)
def test_a_request_that_is_itself_refused_fails_alone(server: Server, tmp_path: Path, act: Act, named: str) -> None:
    server.script = always(act, 5)
    outcomes = ask(server, tmp_path, range(10), max_failed_share=0.1)
    assert [outcome.kind for outcome in outcomes] == ["ok"] * 5 + ["failed"] + ["ok"] * 4
    assert named in (outcomes[5].error or "")
    assert len(server.sent) == 10


# -- answers at fault


def test_prose_is_repaired_or_failed_with_its_raw_answer_kept(server: Server, tmp_path: Path) -> None:
    """L3: one answer mended, one not."""

    def script(sent: Sent) -> Act:
        return Act(text=PROSE) if sent.asked == 8 or (sent.asked == 7 and not sent.repair) else Act()

    server.script = script
    with open_client(server.settings(max_failed_share=0.2), tmp_path, "annotate") as client:
        outcomes = client.ask([request(number) for number in range(5, 10)])
        calls = client.calls()
    assert [outcome.kind for outcome in outcomes] == ["ok", "ok", "repaired", "failed", "ok"]
    assert outcomes[2].value == label(7)
    assert (outcomes[3].value, outcomes[3].raw) == (None, PROSE)
    assert len(server.sent) == 5 + 2
    row = calls.filter(pl.col("request_key") == outcomes[3].key).row(0, named=True)
    assert (row["outcome"], row["answer"], row["prompt_tokens"]) == ("failed", PROSE, 200)


def test_a_cut_answer_is_told_from_a_fault_and_never_asked_again_as_it_was(server: Server, tmp_path: Path) -> None:
    """L4: cut at 100 tokens for 1 and 2, cut at 200 still for 2."""

    def script(sent: Sent) -> Act:
        enough = {1: 200, 2: 400}.get(sent.asked, 0)
        return Act() if sent.body["max_tokens"] >= enough else Act(text='{"word": "w', finish="length")

    server.script = script
    for _ in range(2):
        outcomes = ask(server, tmp_path, range(4), max_tokens=100, max_failed_share=0.25)
        assert [outcome.kind for outcome in outcomes] == ["ok", "ok", "truncated", "ok"]
        assert outcomes[2].raw == '{"word": "w'
    assert len(server.sent) == 6
    assert max(sent.time for sent in server.sent) == 1


def test_too_many_failures_stop_the_run_before_the_money_is_gone(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(text=PROSE if sent.asked % 2 else None)
    error = fails(server, tmp_path, range(400), max_failed_share=0.05, repairs=0)
    assert "not JSON" in error.message
    assert "max_failed_share" in error.message
    assert len(server.sent) < 100


def test_too_many_failures_end_the_run_before_more_is_paid_for(server: Server, tmp_path: Path) -> None:
    """One call at a time, two requests open: when the first has failed, the second is not repaired any more."""
    server.script = lambda sent: Act(text=PROSE)
    error = fails(server, tmp_path, range(60), concurrency=1, max_failed_share=0)
    assert len(server.sent) == 3
    # The bad answer is remembered: the hint names what asks for it again.
    assert fails(server, tmp_path, range(60), concurrency=1, max_failed_share=0).message == error.message
    assert len(server.sent) == 3
    assert "llm.repairs" in (error.hint or "")


def test_the_gate_is_open_up_to_its_share(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(text=PROSE if sent.asked % 10 == 0 else None)
    assert Counter(outcome.kind for outcome in ask(server, tmp_path, range(40), max_failed_share=0.1, repairs=0)) == {
        "ok": 36,
        "failed": 4,
    }
    assert "4 of" in fails(server, tmp_path, range(40), max_failed_share=0.09, repairs=0).message
    assert len(server.sent) == 40


def test_what_got_no_answer_is_told_from_bad_answers_and_asked_again(server: Server, tmp_path: Path) -> None:
    """Two of 11, given up after different numbers of tries: one reason; nobody is told to raise the repairs."""
    server.script = lambda sent: Act(429 if sent.asked == 9 and sent.time == 1 else 500) if sent.asked > 8 else Act()
    error = fails(server, tmp_path, range(11), max_failed_share=0.1, retries=1, concurrency=4)
    assert "(2): the endpoint gave no answer in" in error.message
    assert "asks again for what got none" in (error.hint or "") and "repairs" not in (error.hint or "")
    server.script = lambda sent: Act()
    assert sum(outcome.cached for outcome in ask(server, tmp_path, range(11))) == 9
