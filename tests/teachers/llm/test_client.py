"""The client against a server that plays faults (../shared/faults.md, L1 to L6, and more), over real HTTP."""

from __future__ import annotations

import email.utils
import logging
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import schemas
from curation.errors import CurationError
from curation.teachers.llm.cache import Cache
from curation.teachers.llm.client import Client, open_client
from curation.teachers.llm.outcome import Outcome, Request
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.server import KEY, Act, Label, Script, Sent, Server, good, label, request

PROSE = "I think that it is w7."
PRICES: dict[str, Any] = {"price_prompt": 1000.0, "price_completion": 1000.0}
"""With 100 tokens sent and 10 received, a call costs 0.11."""


def ask(server: Server, cache: Path, numbers: range | list[int], **given: Any) -> list[Outcome]:
    with open_client(server.settings(**given), cache, "annotate") as client:
        return client.ask([request(number) for number in numbers])


def once(act: Act, *numbers: int) -> Script:
    """Plays ``act`` the first time each of the numbers is asked, and is good after."""
    return lambda sent: act if sent.asked in numbers and sent.time == 1 else Act()


def always(act: Act, *numbers: int) -> Script:
    return lambda sent: act if sent.asked in numbers else Act()


def fails(server: Server, cache: Path, numbers: range | list[int], **given: Any) -> CurationError:
    with pytest.raises(CurationError) as caught:
        ask(server, cache, numbers, **given)
    assert caught.value.hint
    assert KEY not in str(caught.value)
    return caught.value


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
            [request(number) for number in range(20)],
            lambda done, total: seen.append((done, total, threading.current_thread() is threading.main_thread())),
        )
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert seen[-1] == (20, 20, True)


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
    outcomes = ask(server, tmp_path, range(6), timeout=1.5 if act.delay or act.end == "drip" else 60)
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


def test_the_gate_is_open_up_to_its_share(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(text=PROSE if sent.asked % 10 == 0 else None)
    assert Counter(outcome.kind for outcome in ask(server, tmp_path, range(40), max_failed_share=0.1, repairs=0)) == {
        "ok": 36,
        "failed": 4,
    }
    assert "4 of" in fails(server, tmp_path, range(40), max_failed_share=0.09, repairs=0).message
    assert len(server.sent) == 40


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


# -- cache


def test_a_second_run_asks_nothing_and_has_the_same_table(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(text=PROSE if sent.asked == 3 and not sent.repair else None)
    tables = []
    for _ in range(2):
        with open_client(server.settings(**PRICES), tmp_path, "annotate") as client:
            outcomes = client.ask([request(number) for number in range(20)])
            tables.append(client.calls())
    assert len(server.sent) == 21
    assert all(outcome.cached for outcome in outcomes)
    assert tables[0].equals(tables[1])
    contract = schemas.load("teacher_calls")
    assert contract.schema.validate(tables[0]).height == 20
    assert tables[0]["cost"].sum() == pytest.approx(21 * 0.11)
    assert set(tables[0]["outcome"]) == {"ok", "repaired"}
    assert tables[0]["request_key"].is_sorted()


def test_stages_share_answers(server: Server, tmp_path: Path) -> None:
    for stage in ("annotate", "difficulty"):
        with open_client(server.settings(), tmp_path, stage) as client:
            client.ask([request(1)])
            assert client.calls()["stage"].to_list() == [stage]
    assert len(server.sent) == 1


def test_one_repair_more_needs_no_call_that_was_made(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(text=PROSE if len(sent.body["messages"]) == 2 else None)
    assert ask(server, tmp_path, [7], repairs=0, max_failed_share=1.0)[0].kind == "failed"
    assert ask(server, tmp_path, [7], repairs=1)[0].kind == "repaired"
    assert len(server.sent) == 2


def test_a_model_that_repeats_a_bad_answer_is_asked_anew_for_each_repair(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(text=PROSE)
    assert ask(server, tmp_path, [7], repairs=1, max_failed_share=1.0)[0].kind == "failed"
    server.script = lambda sent: Act()
    assert ask(server, tmp_path, [7], repairs=2)[0].kind == "repaired"
    assert len(server.sent) == 3


def test_the_key_is_nowhere_on_disk(server: Server, tmp_path: Path) -> None:
    server.script = once(Act(500, content={"error": {"message": f"who is {KEY}?"}}), 1)
    ask(server, tmp_path, range(3))
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_the_key_is_in_no_log(server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server.script = once(Act(500), 1)
    with caplog.at_level(logging.DEBUG):
        ask(server, tmp_path, range(3))
    assert caplog.text
    assert KEY not in caplog.text


def test_tokens_are_bounded_where_the_endpoint_does_not_tell(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(usage=False)
    with open_client(server.settings(max_tokens=50), tmp_path, "annotate") as client:
        client.ask([request(1)])
        row = client.calls().row(0, named=True)
    assert row["prompt_tokens"] > len(str(request(1).messages)) // 4
    assert 0 < row["completion_tokens"] <= 50


CHILD = """
import sys
from pathlib import Path
from curation.teachers.llm.client import open_client
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.server import request
settings = LlmSettings(base_url=sys.argv[1], model="local", key_env="LOCAL_KEY", concurrency=8)
with open_client(settings, Path(sys.argv[2]), "annotate") as client:
    print(sum(outcome.kind == "ok" for outcome in client.ask([request(n) for n in range(int(sys.argv[3]))])))
"""


def child(server: Server, cache: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, server.url, str(cache), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_at_once_pay_once(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(delay=0.02)
    children = [child(server, tmp_path, 100) for _ in range(2)]
    assert [int(process.communicate(timeout=60)[0]) for process in children] == [100, 100]
    assert len(server.sent) == 100


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_killed_goes_on_where_it_stopped(server: Server, tmp_path: Path, end: signal.Signals) -> None:
    server.script = lambda sent: Act(delay=0.05)
    process = child(server, tmp_path, 200)
    while len(server.sent) < 60:
        time.sleep(0.01)
    os.kill(process.pid, end)
    process.communicate(timeout=30)
    assert process.returncode != 0
    time.sleep(0.2)
    before = len(server.sent)
    assert before < 200
    server.script = lambda sent: Act()
    outcomes = ask(server, tmp_path, range(200))
    assert all(outcome.value == label(number) for number, outcome in enumerate(outcomes))
    # At most what was in flight is asked twice.
    assert len(server.sent) <= 200 + 8
    assert sum(outcome.cached for outcome in outcomes) >= before - 8


def test_an_interrupt_in_the_callers_thread_cancels_and_keeps_what_was_answered(
    server: Server, tmp_path: Path
) -> None:
    server.script = lambda sent: Act(delay=0.05)

    def interrupt(done: int, total: int) -> None:
        if done >= 10:
            raise KeyboardInterrupt

    with open_client(server.settings(concurrency=4), tmp_path, "annotate") as client:
        with pytest.raises(KeyboardInterrupt):
            client.ask([request(number) for number in range(200)], interrupt)
        time.sleep(0.2)
        stopped = len(server.sent)
        time.sleep(0.2)
        assert len(server.sent) == stopped < 200
        # The client can still be used.
        outcomes = client.ask([request(number) for number in range(20)])
    assert sum(outcome.cached for outcome in outcomes) >= 10


def answered_twice(server: Server) -> list[int]:
    return [number for number, times in Counter(sent.asked for sent in server.sent).items() if times > 1]


def test_an_interrupt_keeps_the_answers_of_calls_under_way(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(delay=0.3)

    def interrupt(done: int, total: int) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    with (
        open_client(server.settings(concurrency=4, **PRICES), tmp_path, "annotate") as client,
        pytest.raises(KeyboardInterrupt),
    ):
        client.ask([request(number) for number in range(40)], interrupt)
    assert len(server.sent) < 40
    assert spent(tmp_path) == pytest.approx(len(server.sent) * 0.11)  # nothing counts as lost
    server.script = lambda sent: Act()
    assert len(ask(server, tmp_path, range(40))) == 40
    assert answered_twice(server) == []


def test_a_refusal_in_the_midst_keeps_the_answers_of_calls_under_way(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(401) if sent.asked == 20 else Act(delay=0.3)
    assert "refuses" in fails(server, tmp_path, range(60), concurrency=8, **PRICES).message
    made = len(server.sent)
    assert 20 < made < 40
    assert spent(tmp_path) == pytest.approx((made - 1) * 0.11)  # nothing counts as lost
    server.script = lambda sent: Act()
    ask(server, tmp_path, range(60), **PRICES)
    assert answered_twice(server) == [20]


def test_a_refusal_of_the_first_call_costs_nothing(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(401)
    fails(server, tmp_path, range(60), **PRICES)
    assert len(server.sent) == 1
    assert spent(tmp_path) == 0


def test_too_many_failures_end_the_run_before_more_is_paid_for(server: Server, tmp_path: Path) -> None:
    """One call at a time, two requests open: when the first has failed, the second is not repaired any more."""
    server.script = lambda sent: Act(text=PROSE)
    error = fails(server, tmp_path, range(60), concurrency=1, max_failed_share=0)
    assert len(server.sent) == 3
    # The bad answer is remembered: the hint names what asks for it again.
    assert fails(server, tmp_path, range(60), concurrency=1, max_failed_share=0).message == error.message
    assert len(server.sent) == 3
    assert "llm.repairs" in (error.hint or "")


def test_an_endpoint_that_hangs_from_the_start_is_told_in_the_time_of_one_call(
    server: Server, tmp_path: Path
) -> None:
    """Many calls take turns at the only place in flight; they do not get their repetitions one after the other."""
    server.script = lambda sent: Act(delay=30)
    error = fails(server, tmp_path, range(60), concurrency=16, timeout=0.3, retries=2)
    assert "does not answer" in error.message
    assert "llm.timeout" in (error.hint or "")
    assert len(server.sent) <= 4


# -- money


def spent(cache: Path) -> float:
    with Cache(cache) as opened:
        money = opened.money("USD")
    assert money.claimed == 0
    return money.spent + money.lost


def test_the_budget_stops_the_run_and_is_not_exceeded(server: Server, tmp_path: Path) -> None:
    """L6: a call costs 0.11 and at most 2.2 or so: the rest of the budget is used as far as bounds allow."""
    error = fails(server, tmp_path, range(100), budget=5.0, max_tokens=20, **PRICES)
    answered = len(server.sent)
    assert 20 < answered < 46
    assert spent(tmp_path) == pytest.approx(answered * 0.11)
    assert "5 USD" in error.message
    assert f"{answered} of 100 requests are answered, {100 - answered} are left" in error.message
    # Run again: nothing more is spent, the same is said.
    again = fails(server, tmp_path, range(100), budget=5.0, max_tokens=20, **PRICES)
    assert f"{answered} of 100" in again.message
    assert len(server.sent) == answered
    # With more money it goes on.
    outcomes = ask(server, tmp_path, range(100), budget=50.0, max_tokens=20, **PRICES)
    assert all(outcome.value == label(number) for number, outcome in enumerate(outcomes))
    assert len(server.sent) == 100


def test_the_budget_is_one_for_all_stages(server: Server, tmp_path: Path) -> None:
    settings = server.settings(budget=5.0, max_tokens=20, **PRICES)
    for stage, numbers in (("annotate", range(10)), ("difficulty", range(10, 20))):
        with open_client(settings, tmp_path, stage) as client:
            client.ask([request(number) for number in numbers])
    with open_client(settings, tmp_path, "synthesis") as client, pytest.raises(CurationError, match="budget"):
        client.ask([request(number) for number in range(20, 60)])
    assert spent(tmp_path) <= 5.0


def test_a_call_that_may_have_been_billed_counts_with_the_most_it_may_have_cost(
    server: Server, tmp_path: Path
) -> None:
    server.script = once(Act(end="drop"), 0)
    ask(server, tmp_path, [0], **PRICES)
    with Cache(tmp_path) as cache:
        money = cache.money("USD")
    assert money.spent == pytest.approx(0.11)
    assert money.lost > 0.11


def test_no_money_no_call(server: Server, tmp_path: Path) -> None:
    fails(server, tmp_path, range(3), budget=0.0, **PRICES)
    assert server.sent == []


def test_a_model_that_costs_nothing_needs_no_money(server: Server, tmp_path: Path) -> None:
    assert len(ask(server, tmp_path, range(3), budget=0.0, price_prompt=0.0, price_completion=0.0)) == 3


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


def test_a_client_is_closed_twice_without_harm(server: Server, tmp_path: Path) -> None:
    client = Client(server.settings(), tmp_path, stage="annotate")
    client.close()
    client.close()


def test_nothing_is_left_of_a_client_that_was_closed(server: Server, tmp_path: Path) -> None:
    ask(server, tmp_path, range(3))
    assert not [thread for thread in threading.enumerate() if thread.name == "llm client"]
    with sqlite3.connect(tmp_path / "llm.sqlite") as database:
        assert database.execute("SELECT count(*) FROM claims").fetchone() == (0,)


def test_a_request_takes_any_model() -> None:
    assert Request("r", (), Label).answer.model_validate_json(good(3)) == label(3)
