"""The request cache: whole after a kill, shared by processes, exact about money."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import CurationError
from curation.teachers.llm.cache import Cache, Claim, Money
from curation.teachers.llm.outcome import Reply

REPLY = Reply("text with \n 字 \x00 and 'quotes'", "stop", 100, 10, 0.25, 1.5)


def put(cache: Cache, key: str, reply: Reply = REPLY, owner: str | None = None) -> Reply:
    return cache.put(key, reply, stage="annotate", model="m", currency="USD", owner=owner)


def claim(cache: Cache, key: str, bound: float = 1.0, budget: float | None = None) -> Claim:
    return cache.claim(key, bound, currency="USD", budget=budget)


def test_an_answer_is_found_again_as_it_was_by_another_object(tmp_path: Path) -> None:
    with Cache(tmp_path / "new" / "place") as cache:
        assert cache.get("a") is None
        put(cache, "a")
    with Cache(tmp_path / "new" / "place") as cache:
        assert cache.get("a") == REPLY
        assert cache.usual("m") == (10, 1.5)
        assert cache.usual("n") is None


def test_a_call_is_claimed_once_until_it_is_answered_or_given_up(tmp_path: Path) -> None:
    with Cache(tmp_path) as one, Cache(tmp_path) as two:
        assert claim(one, "a") is Claim.GRANTED
        assert claim(two, "a") is Claim.TAKEN
        assert claim(one, "a") is Claim.TAKEN
        one.release("a", lost=False)
        assert claim(two, "a") is Claim.GRANTED
        put(two, "a")
        assert claim(one, "a") is Claim.TAKEN
        assert one.get("a") == REPLY
        assert one.money("USD") == Money(0.25, 0.0, 0.0)


def test_nobody_gives_up_the_claim_of_another(tmp_path: Path) -> None:
    with Cache(tmp_path) as one, Cache(tmp_path) as two:
        claim(one, "a")
        two.release("a", lost=True)
        two.settle()
        assert claim(two, "a") is Claim.TAKEN
        assert two.money("USD") == Money(0.0, 0.0, 1.0)


def test_of_two_answers_the_first_stays_and_both_were_paid(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        put(cache, "a")
        assert put(cache, "a", Reply("other", "stop", 1, 1, 0.5, 0.1)) == REPLY
        assert cache.money("USD").spent == 0.75


def test_the_budget_counts_what_is_spent_lost_and_under_way(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        assert claim(cache, "spent", 1.0, budget=4.0) is Claim.GRANTED
        put(cache, "spent", Reply("", "stop", 1, 1, 1.0, 0.1))
        assert claim(cache, "lost", 1.0, budget=4.0) is Claim.GRANTED
        cache.release("lost", lost=True)
        assert claim(cache, "under way", 1.5, budget=4.0) is Claim.GRANTED
        assert claim(cache, "small", 0.5, budget=4.0) is Claim.GRANTED
        # 1 spent, 1 lost, 2 under way: there may be room once the calls under way turn out cheaper ...
        assert claim(cache, "wait", 0.5, budget=4.0) is Claim.WAIT
        # ... but not for this one, whatever they cost.
        assert claim(cache, "broke", 2.5, budget=4.0) is Claim.BROKE
        assert cache.money("USD") == Money(1.0, 1.0, 2.0)
        assert claim(cache, "unlimited", 100.0) is Claim.GRANTED


def test_money_of_another_currency_is_another_budget(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        put(cache, "a")
        assert cache.claim("b", 1.0, currency="CNY", budget=1.0) is Claim.GRANTED
        assert cache.money("CNY") == Money(0.0, 0.0, 1.0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["claim", "put", "lose", "free"]), st.integers(1, 9))))
def test_spent_and_lost_and_claimed_never_exceed_the_budget(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str, int]]
) -> None:
    """Against a model in memory: whatever happens to claims, the sum of all money stays within the budget."""
    held: dict[str, int] = {}
    answered: set[str] = set()
    spent = lost = 0
    with Cache(tmp_path_factory.mktemp("cache")) as cache:
        for number, step, units in steps:
            key = str(number)
            if step == "claim":
                granted = claim(cache, key, float(units), budget=20.0) is Claim.GRANTED
                room = spent + lost + sum(held.values()) + units <= 20
                assert granted == (room and key not in held and key not in answered)
                if granted:
                    held[key] = units
            elif key in held:
                bound = held.pop(key)
                if step == "put":
                    put(cache, key, Reply("", "stop", 1, 1, bound / 2, 0.1))
                    answered.add(key)
                    spent += bound / 2
                else:
                    cache.release(key, lost=step == "lose")
                    lost += bound * (step == "lose")
            assert cache.money("USD") == Money(spent, lost, sum(held.values()))
            assert spent + lost + sum(held.values()) <= 20


WORKER = """
import sys, time
from pathlib import Path
from curation.teachers.llm.cache import Cache, Claim
from curation.teachers.llm.outcome import Reply
cache = Cache(Path(sys.argv[1]))
cache.settle()
granted = 0
for number in range(int(sys.argv[2])):
    key = f"call {number}"
    if cache.claim(key, 1.0, currency="USD", budget=None) is Claim.GRANTED:
        granted += 1
        if sys.argv[3] == "hang" and granted == 3:
            print("claimed", flush=True)
            time.sleep(300)
        cache.put(key, Reply(key, "stop", 1, 1, 0.5, 0.1), stage="s", model="m", currency="USD")
print(granted, flush=True)
cache.close()
"""


def start(directory: Path, calls: int, how: str = "work") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORKER, str(directory), str(calls), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_the_cache_and_make_each_call_once(tmp_path: Path) -> None:
    workers = [start(tmp_path, 200) for _ in range(3)]
    granted = [int(worker.communicate(timeout=300)[0]) for worker in workers]
    assert sum(granted) == 200
    with Cache(tmp_path) as cache:
        assert all(cache.get(f"call {number}") is not None for number in range(200))
        assert cache.money("USD") == Money(100.0, 0.0, 0.0)


def test_a_cache_another_process_is_just_making_is_waited_for(tmp_path: Path) -> None:
    # A writer of a database that is not in WAL mode yet: sqlite refuses the change at once, timeout or not.
    other = sqlite3.connect(tmp_path / "llm.sqlite", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    other.execute("CREATE TABLE begun (key TEXT)")
    end = threading.Timer(0.3, other.execute, ["COMMIT"])
    end.start()
    with Cache(tmp_path) as cache:
        assert not end.is_alive()
        assert cache.get("call") is None
    end.join()
    other.close()


def test_caches_may_be_opened_and_closed_at_the_same_moment(tmp_path: Path) -> None:
    def open_some(directory: Path) -> None:
        for _ in range(3):
            with Cache(directory) as cache:
                assert cache.get("call") is None

    with ThreadPoolExecutor(6) as threads:
        for number in range(40):
            list(threads.map(open_some, [tmp_path / str(number)] * 6))


def test_claims_of_a_killed_process_are_settled_as_lost_and_its_answers_stay(tmp_path: Path) -> None:
    worker = start(tmp_path, 10, "hang")
    assert worker.stdout is not None
    assert worker.stdout.readline() == "claimed\n"
    with Cache(tmp_path) as cache:
        cache.settle()
        assert claim(cache, "call 2") is Claim.TAKEN
        os.kill(worker.pid, signal.SIGKILL)
        worker.communicate(timeout=300)
        cache.settle()
        cache.settle()
        assert cache.money("USD") == Money(1.0, 1.0, 0.0)
        assert [cache.get(f"call {number}") is not None for number in range(3)] == [True, True, False]
        assert claim(cache, "call 2") is Claim.GRANTED
        assert [path.name for path in (tmp_path / "llm.owners").iterdir()] == [cache.owner]


def test_an_owner_leaves_no_file_behind(tmp_path: Path) -> None:
    with Cache(tmp_path) as cache:
        claim(cache, "a")
        assert len(list((tmp_path / "llm.owners").iterdir())) == 1
    assert not list((tmp_path / "llm.owners").iterdir())


def test_calls_of_a_batch_are_claimed_beyond_the_process(tmp_path: Path) -> None:
    with Cache(tmp_path) as one:
        one.open_batch("t", "http://host/v1")
        claims = one.claim_all(
            [("a", 1.0), ("b", 1.0), ("c", 1.0)], Cache.batch_owner("t"), currency="USD", budget=2.0
        )
        assert claims == [Claim.GRANTED, Claim.GRANTED, Claim.BROKE]
        one.name_batch("t", "batch-1")
    with Cache(tmp_path) as two:
        two.settle()
        assert [(owed.token, owed.address, owed.batch_id) for owed in two.batches()] == [
            ("t", "http://host/v1", "batch-1")
        ]
        assert two.in_batch("t") == {"a", "b"}
        # A batch takes hours: its money is not waited for.
        assert claim(two, "d", 1.0, budget=2.0) is Claim.BROKE
        put(two, "a", owner=Cache.batch_owner("t"))
        assert two.in_batch("t") == {"b"}
        two.close_batch("t")
        assert two.batches() == []
        assert two.money("USD") == Money(0.25, 0.0, 0.0)


def test_a_batch_that_a_living_process_is_submitting_is_left_to_it(tmp_path: Path) -> None:
    with Cache(tmp_path) as one, Cache(tmp_path) as two:
        one.open_batch("t", "http://host/v1")
        assert len(one.batches()) == 1
        assert two.batches() == []


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "llm.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(CurationError, match="damaged"):
        Cache(tmp_path)


def test_a_file_of_a_later_version_is_told(tmp_path: Path) -> None:
    Cache(tmp_path).close()
    with sqlite3.connect(tmp_path / "llm.sqlite") as database:
        database.execute("PRAGMA user_version=99")
    with pytest.raises(CurationError, match="later version"):
        Cache(tmp_path)


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CurationError, match="cannot be written"):
        Cache(tmp_path / "file" / "cache")
