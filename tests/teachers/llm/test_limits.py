"""Limits: how many calls are in flight, how fast they start, how long a repetition waits."""

from __future__ import annotations

import asyncio
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.teachers.llm import limits as module
from curation.teachers.llm.limits import Congestion, Limits, Pace, backoff
from curation.teachers.llm.settings import LlmSettings


@given(st.text(), st.integers(min_value=1, max_value=2000))
def test_backoff_is_bounded_and_repeatable(key: str, attempt: int) -> None:
    seconds = backoff(key, attempt)
    assert seconds == backoff(key, attempt)
    most = min(module.BACKOFF_MOST, module.BACKOFF_FIRST * 2.0 ** min(attempt - 1, 60))
    assert most / 2 <= seconds <= most


def test_calls_that_failed_together_do_not_come_back_together() -> None:
    assert len({backoff(f"call {number}", 1) for number in range(100)}) == 100


def test_an_endpoint_is_asked_once_until_it_has_answered_then_twice_as_much_each_round() -> None:
    congestion = Congestion(100)
    sizes = []
    for _ in range(9):
        sizes.append(int(congestion.limit))
        for _ in range(int(congestion.limit)):
            congestion.success()
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 100, 100]


def test_overload_lowers_the_limit_once_for_all_calls_that_were_sent_before() -> None:
    congestion = Congestion(100)
    for _ in range(200):
        congestion.success()
    epoch = congestion.epoch
    seen = [congestion.setback(epoch) for _ in range(100)]
    assert sum(seen) == 1
    assert congestion.limit == pytest.approx(70)


@pytest.mark.parametrize(("most", "growth"), [(10, 1.0), (100, 7.0)])
def test_after_an_overload_the_limit_grows_by_one_or_a_tenth_a_round(most: int, growth: float) -> None:
    congestion = Congestion(most)
    for _ in range(200):
        congestion.success()
    while not congestion.setback(congestion.epoch):
        pass
    before = congestion.limit
    for _ in range(int(before)):
        congestion.success()
    assert congestion.limit == pytest.approx(before + growth, abs=0.1)


@pytest.mark.parametrize("seed", range(10))
def test_single_setbacks_are_noise(seed: int) -> None:
    """A tenth of all calls fails, in no connection with how many are in flight."""
    congestion, chance = Congestion(200), random.Random(seed)
    limits = []
    for _ in range(10_000):
        if chance.random() < 0.1:
            congestion.setback(congestion.epoch)
        else:
            congestion.success()
        limits.append(congestion.limit)
    assert sum(limits[5000:]) / 5000 > 150


@pytest.mark.parametrize("capacity", [1, 3, 10, 40])
def test_the_limit_finds_the_capacity_of_an_endpoint(capacity: int) -> None:
    """Rounds of calls to an endpoint that refuses what is beyond its capacity."""
    congestion = Congestion(200)
    sizes, refused, sent = [], 0, 0
    for _ in range(400):
        size, epoch = int(congestion.limit), congestion.epoch
        sizes.append(size)
        for place in range(size):
            if place < capacity:
                congestion.success()
            else:
                congestion.setback(epoch)
        refused, sent = refused + max(0, size - capacity), sent + size
    settled = sizes[100:]
    assert capacity * 0.6 <= sum(settled) / len(settled) <= capacity * 1.5 + 1
    assert refused < (0.55 if capacity == 1 else 0.3) * sent


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.1, 50)), min_size=1, max_size=60))
def test_no_minute_has_more_than_its_share(steps: list[tuple[float, float]]) -> None:
    """Calls come at any times with any sizes; each starts as soon as it may."""
    pace, now, starts = Pace(100), 0.0, []
    for gap, units in steps:
        now += gap
        now += pace.wait(now)
        pace.take(now, units)
        starts.append((now, units))
    for first, (begin, _) in enumerate(starts):
        inside = [units for at, units in starts[first:] if at < begin + 60]
        assert sum(inside[:-1]) <= 100 + 1e-6


def test_tokens_that_were_not_used_are_given_back() -> None:
    pace = Pace(60)
    pace.take(0.0, 30)
    assert pace.wait(0.0) == 30.0
    pace.correct(-20)
    assert pace.wait(0.0) == 10.0


def test_no_rate_no_wait() -> None:
    pace = Pace(None)
    pace.take(0.0, 1e9)
    assert pace.wait(0.0) == 0.0


async def run_calls(limits: Limits, calls: int, tokens: int = 1) -> tuple[int, float]:
    """Most calls in flight, and seconds until all were made."""
    peak, started = 0, time.perf_counter()

    async def call() -> None:
        nonlocal peak
        async with limits.slot(tokens):
            peak = max(peak, limits.in_flight)
            await asyncio.sleep(0.001)
            limits.success()

    await asyncio.gather(*(call() for _ in range(calls)))
    return peak, time.perf_counter() - started


def test_in_flight_never_exceeds_the_setting() -> None:
    async def main() -> tuple[int, float]:
        return await run_calls(Limits(LlmSettings(concurrency=7), asyncio.get_running_loop().time), 100)

    assert asyncio.run(main())[0] == 7


@pytest.mark.parametrize("given", [{"requests_per_minute": 1200}, {"tokens_per_minute": 12_000}])
def test_rates_are_kept(given: dict[str, int]) -> None:
    async def main() -> tuple[int, float]:
        return await run_calls(Limits(LlmSettings(**given), asyncio.get_running_loop().time), 11, tokens=10)

    assert asyncio.run(main())[1] >= 0.5


@pytest.mark.parametrize(
    ("headers", "pauses"),
    [
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "200ms"}, True),
        ({"x-ratelimit-remaining-tokens": "4", "x-ratelimit-reset-tokens": "0.2s"}, True),
        ({"x-ratelimit-remaining-tokens": "400", "x-ratelimit-reset-tokens": "9s"}, False),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "later"}, False),
        ({"x-ratelimit-remaining-requests": "none", "x-ratelimit-reset-requests": "9s"}, False),
        ({}, False),
    ],
)
def test_rate_limit_headers_are_heeded(headers: dict[str, str], pauses: bool) -> None:
    async def main() -> tuple[int, float]:
        limits = Limits(LlmSettings(), asyncio.get_running_loop().time)
        limits.observe(headers, 10)
        return await run_calls(limits, 1)

    seconds = asyncio.run(main())[1]
    assert (0.2 if pauses else 0.0) <= seconds < 5


def test_a_cancelled_wait_leaves_the_place_to_the_next() -> None:
    async def main() -> tuple[int, float]:
        limits = Limits(LlmSettings(concurrency=1), asyncio.get_running_loop().time)
        async with limits.slot(1):
            waiting = [asyncio.create_task(run_calls(limits, 1)) for _ in range(3)]
            await asyncio.sleep(0.01)
            waiting[0].cancel()
            waiting[1].cancel()
        return await asyncio.wait_for(waiting[2], 2)

    assert asyncio.run(main())[0] == 1
