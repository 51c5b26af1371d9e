"""The client pays for an answer once: it is kept over runs, kills and interrupts, and the budget holds.

L6 is of ../shared/faults.md.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import schemas
from curation.errors import CurationError
from curation.teachers.llm.cache import Cache
from curation.teachers.llm.client import open_client
from tests.teachers.llm.asking import PROSE, ask, fails, once
from tests.teachers.llm.server import KEY, Act, Server, label, request

PRICES: dict[str, Any] = {"price_prompt": 1000.0, "price_completion": 1000.0}
"""With 100 tokens sent and 10 received, a call costs 0.11."""


def spent(cache: Path) -> float:
    with Cache(cache) as opened:
        money = opened.money("USD")
    assert money.claimed == 0
    return money.spent + money.lost


def answered_twice(server: Server) -> list[int]:
    return [number for number, times in Counter(sent.asked for sent in server.sent).items() if times > 1]


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


# -- kills and interrupts


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
    assert [int(process.communicate(timeout=300)[0]) for process in children] == [100, 100]
    assert len(server.sent) == 100


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_killed_goes_on_where_it_stopped(server: Server, tmp_path: Path, end: signal.Signals) -> None:
    # Far more than are asked before it ends, also where this thread gets its turn late.
    server.script = lambda sent: Act(delay=0.05)
    process = child(server, tmp_path, 600)
    while len(server.sent) < 60:
        time.sleep(0.01)
    os.kill(process.pid, end)
    process.communicate(timeout=300)
    assert process.returncode != 0
    time.sleep(0.2)
    before = len(server.sent)
    assert before < 600
    server.script = lambda sent: Act()
    outcomes = ask(server, tmp_path, range(600))
    assert all(outcome.value == label(number) for number, outcome in enumerate(outcomes))
    # At most what was in flight is asked twice.
    assert len(server.sent) <= 600 + 8
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
            client.ask([request(number) for number in range(1000)], interrupt)
        time.sleep(0.2)
        stopped = len(server.sent)
        time.sleep(0.2)
        assert len(server.sent) == stopped < 1000
        # The client can still be used.
        outcomes = client.ask([request(number) for number in range(20)])
    assert sum(outcome.cached for outcome in outcomes) >= 10


def test_an_interrupt_keeps_the_answers_of_calls_under_way(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(delay=0.3)

    def interrupt(done: int, total: int) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    with (
        open_client(server.settings(concurrency=4, **PRICES), tmp_path, "annotate") as client,
        pytest.raises(KeyboardInterrupt),
    ):
        client.ask([request(number) for number in range(300)], interrupt)
    assert len(server.sent) < 300
    assert spent(tmp_path) == pytest.approx(len(server.sent) * 0.11)  # nothing counts as lost
    server.script = lambda sent: Act()
    assert len(ask(server, tmp_path, range(300))) == 300
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


# -- money


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


def test_a_refusal_of_the_first_call_costs_nothing(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(401)
    fails(server, tmp_path, range(60), **PRICES)
    assert len(server.sent) == 1
    assert spent(tmp_path) == 0


def test_no_money_no_call(server: Server, tmp_path: Path) -> None:
    fails(server, tmp_path, range(3), budget=0.0, **PRICES)
    assert server.sent == []


def test_a_model_that_costs_nothing_needs_no_money(server: Server, tmp_path: Path) -> None:
    assert len(ask(server, tmp_path, range(3), budget=0.0, price_prompt=0.0, price_completion=0.0)) == 3


def test_tokens_are_bounded_where_the_endpoint_does_not_tell(server: Server, tmp_path: Path) -> None:
    server.script = lambda sent: Act(usage=False)
    with open_client(server.settings(max_tokens=50), tmp_path, "annotate") as client:
        client.ask([request(1)])
        row = client.calls().row(0, named=True)
    assert row["prompt_tokens"] > len(str(request(1).messages)) // 4
    assert 0 < row["completion_tokens"] <= 50
