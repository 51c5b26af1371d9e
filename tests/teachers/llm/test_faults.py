"""Faults: which status is fatal, which passes, how long to wait."""

from __future__ import annotations

from typing import Any

import pytest

from curation.teachers.llm.faults import (
    FatalFault,
    PassingFault,
    RejectedFault,
    classify,
    error_of,
    retry_after,
    seconds_of,
)


def told(message: str, code: str = "") -> dict[str, Any]:
    return {"error": {"message": message, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, told("bad key"), FatalFault),
        (403, told("not allowed"), FatalFault),
        (403, told("input was flagged by moderation"), RejectedFault),
        (402, told("pay"), FatalFault),
        (404, told("no such model"), FatalFault),
        (429, told("You exceeded your current quota", "insufficient_quota"), FatalFault),
        (429, told("slow down"), PassingFault),
        (408, "", PassingFault),
        (500, told("oops"), PassingFault),
        (502, "<html>bad gateway</html>", PassingFault),
        (529, told("overloaded"), PassingFault),
        (400, told("temperature must be a number"), RejectedFault),
        (413, "", RejectedFault),
        (422, told("bad"), RejectedFault),
    ],
)
def test_a_status_is_sorted_by_what_to_do(status: int, body: Any, kind: type) -> None:
    fault = classify(status, body, {})
    assert type(fault) is kind
    assert str(status) in fault.reason


def test_what_the_endpoint_says_is_passed_on() -> None:
    assert "no such model: x" in classify(404, told("no such model:\n x"), {}).reason


@pytest.mark.parametrize(
    ("message", "code", "of_request", "filtered"),
    [
        ("This model's maximum context length is 8192 tokens", "context_length_exceeded", True, False),
        ("prompt is too long: 9000 tokens", "", True, False),
        ("triggering our content management policy", "content_filter", True, True),
        ("temperature must be below 2", "", False, False),
    ],
)
def test_a_request_that_is_itself_at_fault_is_told_from_a_way_of_asking(
    message: str, code: str, of_request: bool, filtered: bool
) -> None:
    fault = classify(400, told(message, code), {})
    assert isinstance(fault, RejectedFault)
    assert (fault.of_request, fault.filtered) == (of_request, filtered)


def test_only_a_429_is_about_other_calls() -> None:
    faults = [classify(status, "", {}) for status in (429, 503, 529, 500)]
    assert [(fault.overload, fault.throttled) for fault in faults if isinstance(fault, PassingFault)] == [
        (True, True),
        (True, False),
        (True, False),
        (False, False),
    ]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2s"}, 2.0),
        ({"x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "2s"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=60.0) == seconds


def test_an_endpoint_that_asks_for_hours_ends_the_run() -> None:
    fault = classify(429, told("daily limit"), {"retry-after": "7200"})
    assert isinstance(fault, FatalFault)
    assert "120 minutes" in fault.reason


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("120ms", 0.12), ("6m0s", 360.0), ("1h2m3.5s", 3723.5), ("2", 2.0), ("1x", None), ("", None), ("nan", None)],
)
def test_durations_of_rate_limit_headers(text: str, seconds: float | None) -> None:
    assert seconds_of(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "m"}}, "m"),
        ({"error": "m"}, "m"),
        ({"message": "m"}, "m"),
        ({"detail": "m"}, "m"),
        ("m", "m"),
        (None, ""),
        ([1], ""),
    ],
)
def test_errors_are_read_in_all_their_forms(body: Any, message: str) -> None:
    assert error_of(body)[0] == message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "<html><head><title>502 Bad Gateway</title></head>\r\n<body><h1>Bad</h1></body></html>",
            "502 Bad Gateway Bad",
        ),
        ("<!DOCTYPE html><style>a > b { }</style><!-- no --><p>Sign in</p>", "Sign in"),
        (" upstream a < b ", "upstream a < b"),
    ],
)
def test_of_a_page_only_its_words_are_told(body: str, words: str) -> None:
    assert error_of(body) == (words, "")
