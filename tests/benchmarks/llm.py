"""The LLM client under fire: 10,000 requests, 200 in flight, 5 % faults of each kind, a kill in the middle.

The server is a process of its own (``python -m tests.benchmarks llm --serve``) and says itself how often it was
asked. Which fault a request meets follows from its number, so that the calls needed can be counted beforehand.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from tests.benchmarks.measure import ROOT, cpu_seconds, print_table
from tests.teachers.llm.server import Act, Sent, Server, good, label, request

__all__ = ["main"]

KINDS: dict[str, tuple[int, str]] = {
    # Kind of fault: calls that a request which meets it needs, and how it ends.
    "429": (2, "ok"),
    "500": (2, "ok"),
    "dropped": (2, "ok"),
    "half": (2, "ok"),
    "hang": (2, "ok"),
    "not a completion": (2, "ok"),
    "prose, mended": (2, "repaired"),
    "prose, not mended": (2, "failed"),
    "cut, whole at twice": (2, "ok"),
    "cut twice": (2, "truncated"),
    "filtered": (1, "failed"),
    "rejected": (1, "failed"),
}
"""Each takes 5 % of the requests; the rest is answered at once."""

_DELAY, _TIMEOUT = 0.5, 15.0
"""Seconds that an answer takes, and that the client waits for one."""
_SHARE = 20


def kind_of(number: int) -> str | None:
    """The fault that a request meets."""
    place = number * 7 % _SHARE
    return list(KINDS)[place] if place < len(KINDS) else None


def script(sent: Sent) -> Act:
    """Plays the fault of a request: passing ones the first time it is sent."""
    first, delay = sent.time == 1, _DELAY
    match kind_of(sent.asked):
        case "429" if first:
            return Act(429, {"retry-after": "0.2"})
        case "500" if first:
            return Act(500, delay=delay)
        case "dropped" if first:
            return Act(end="drop", delay=delay)
        case "half" if first:
            return Act(end="half", delay=delay)
        case "hang" if first:
            return Act(end="drop", delay=4 * _TIMEOUT)
        case "not a completion" if first:
            return Act(content="<html>Sign in</html>", delay=delay)
        case "prose, mended" if not sent.repair:
            return Act(text="I think it is this.", delay=delay)
        case "prose, not mended":
            return Act(text="I think it is this.", delay=delay)
        case "cut, whole at twice" if sent.body["max_tokens"] == 64:
            return Act(text=good(sent.asked)[:9], finish="length", delay=delay)
        case "cut twice":
            return Act(text=good(sent.asked)[:9], finish="length", delay=delay)
        case "filtered":
            return Act(finish="content_filter", text="", delay=delay)
        case "rejected":
            return Act(400, content={"error": {"message": "the prompt is too long: context length 10"}}, delay=delay)
    return Act(delay=delay)


def serve() -> None:
    """Run the server; a line on standard input is answered with its counts, the end of it is the end."""
    with Server(script) as server:
        print(server.url, flush=True)
        for _ in sys.stdin:
            asked = Counter(sent.asked for sent in server.sent)
            print(
                json.dumps({"calls": len(server.sent), "peak": server.peak, "now": server.in_flight, "asked": asked}),
                flush=True,
            )


def ask(url: str, cache: Path, rows: int, in_flight: int) -> None:
    """Ask all rows; prints what became of them and what it cost."""
    from curation.teachers.llm.client import open_client
    from curation.teachers.llm.settings import LlmSettings

    settings = LlmSettings(
        base_url=url, model="local", key_env=None, concurrency=in_flight, timeout=_TIMEOUT, max_tokens=64,
        max_failed_share=1.0, price_prompt=1.0, price_completion=1.0,
    )  # fmt: skip
    cpu, started = cpu_seconds(), time.perf_counter()
    with open_client(settings, cache, "benchmark") as client:
        outcomes = client.ask([request(number) for number in range(rows)])
        table = client.calls()
    wall, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    wrong = sum(
        outcome.request_id != f"r{number}"
        or (outcome.value is None) != (outcome.error is not None)
        or (outcome.value is not None and outcome.value != label(number))
        or outcome.kind != KINDS.get(kind_of(number) or "", (1, "ok"))[1]
        for number, outcome in enumerate(outcomes)
    )
    kinds = Counter(outcome.kind for outcome in outcomes)
    result = {
        "rows": len(outcomes), "wrong": wrong, **kinds, "cached": sum(outcome.cached for outcome in outcomes),
        "wall": wall, "cpu": cpu, "table": table.height, "spent": table.select(pl.col("cost").sum()).item(),
    }  # fmt: skip
    print(json.dumps(result), flush=True)


class _Fire:
    """The server process and what it counted since the last look."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.benchmarks", "llm", "--serve"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()

    def count(self) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("count\n")
        self.process.stdin.flush()
        counted: dict[str, Any] = json.loads(self.process.stdout.readline())
        return counted

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


def _child(url: str, cache: Path, rows: int, in_flight: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.benchmarks", "llm", "--ask", url, "--cache", str(cache)]
    command += ["--rows", str(rows), "--in-flight", str(in_flight)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def _finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    output = process.communicate()[0]
    if process.returncode:
        raise SystemExit(f"the client ended with code {process.returncode}")
    result: dict[str, Any] = json.loads(output)
    return result


def needed(rows: int) -> int:
    """Calls that the rows need: one each, and one more for each fault that a second can mend."""
    return sum(map(_need, range(rows)))


def _need(number: int) -> int:
    return KINDS.get(kind_of(number) or "", (1, "ok"))[0]


def _row(name: str, result: dict[str, Any], calls: int, need: int, peak: int | str) -> list[Any]:
    kinds = [result.get(kind, 0) for kind in ("ok", "repaired", "truncated", "failed")]
    return [name, result["rows"], *kinds, result["wrong"], calls, need, peak, result["wall"], result["cpu"]]


def main(arguments: list[str]) -> int:
    """Print what became of the rows, calls made and needed: in one go, and killed in the middle and resumed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks llm", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000, help="requests")
    parser.add_argument("--in-flight", type=int, default=200, help="requests in flight at most")
    parser.add_argument("--serve", action="store_true", help="only run the server")
    parser.add_argument("--ask", metavar="URL", help="only ask a server that runs")
    parser.add_argument("--cache", type=Path, help="directory of the request cache, with --ask")
    options = parser.parse_args(arguments)
    if options.serve:
        serve()
        return 0
    if options.ask:
        ask(options.ask, options.cache, options.rows, options.in_flight)
        return 0
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        fire = _Fire()
        result = _finished(_child(fire.url, Path(scratch, "whole"), options.rows, options.in_flight))
        counted = fire.count()
        lines.append(_row("in one go", result, counted["calls"], needed(options.rows), counted["peak"]))
        again = _finished(_child(fire.url, Path(scratch, "whole"), options.rows, options.in_flight))
        # The rejected are asked again: a rejection is no answer, and another endpoint may take them.
        rejected = sum(kind_of(number) == "rejected" for number in range(options.rows))
        lines.append(_row("again", again, fire.count()["calls"] - counted["calls"], rejected, ""))
        often = Counter(
            kind_of(int(number)) for number, calls in counted["asked"].items() if calls > _need(int(number))
        )
        fire.close()

        fire = _Fire()
        victim = _child(fire.url, Path(scratch, "killed"), options.rows, options.in_flight)
        while fire.count()["calls"] < needed(options.rows) // 2:
            time.sleep(0.2)
        os.kill(victim.pid, signal.SIGKILL)
        killed = fire.count()
        victim.communicate()
        result = _finished(_child(fire.url, Path(scratch, "killed"), options.rows, options.in_flight))
        counted = fire.count()
        # More than needed: what was under way at the kill, and what had been rejected.
        under_way = killed["now"] + sum(kind_of(int(number)) == "rejected" for number in killed["asked"])
        most = needed(options.rows) + under_way
        lines.append(_row(f"killed after {killed['calls']:,} calls", result, counted["calls"], most, counted["peak"]))
        fire.close()
    headings = "run, rows, ok, repaired, truncated, failed, wrong, calls, at most, in flight, wall s, client CPU s"
    print_table(headings.split(", "), lines)
    print(f"asked more often than needed in one go: {sum(often.values())} {dict(often)}")
    return 0
