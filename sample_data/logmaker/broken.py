"""Rows that are no queries at all: nulls, blanks, control characters, binary, dumps of other things."""

from __future__ import annotations

import numpy as np

__all__ = ["REASONS", "broken_rows"]

# Why a row is broken, and how often among the broken ones: the reasons of the ingest stage's rejects. `empty` is the
# empty string or nothing but blanks.
REASONS = ("null_text", "empty", "control_characters", "binary", "too_long")
SHARES = (0.2, 0.4, 0.2, 0.17, 0.03)
BLANKS = ("", "", "", "", "", " ", "   ", "\t", "\n", "\r\n", "\u3000", "\u00a0 ", "\u200b", " \n ", "\u3000\u3000")
CONTROL = [chr(c) for c in (0, 1, 2, 3, 4, 5, 6, 7, 8, 14, 15, 16, 17, 20, 21, 22, 23, 24, 26, 27, 127, 0x85, 0x9D)]
HEADERS = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR",
    b"\xff\xd8\xff\xe0\x00\x10JFIF\x00",
    b"PK\x03\x04\x14\x00",
    b"\x1f\x8b\x08\x00",
    b"OggS\x00\x02",
    b"RIFF\xf8\x24\x00\x00WAVE",
    b"\x7fELF\x02\x01",
)
LINES = (
    "at com.map.nav.Engine.step(Engine.java:{n})\n",
    '{{"lat":{n},"lng":{m},"acc":{n}}},',
    "route_segment_{n}=ok;",
    "%E5%AF%BC%E8%88%AA{n}%20",
)


def broken_rows(n: int, rng: np.random.Generator) -> tuple[list[str | None], list[str]]:
    """``n`` broken texts and the reason of each."""
    reasons = [REASONS[i] for i in rng.choice(len(REASONS), n, p=SHARES)]
    return [_MAKERS[reason](rng) for reason in reasons], reasons


def _control(rng: np.random.Generator) -> str:
    return "".join(CONTROL[i] for i in rng.integers(0, len(CONTROL), rng.integers(2, 14)))


def _binary(rng: np.random.Generator) -> str:
    head = HEADERS[rng.integers(0, len(HEADERS))]
    return (head + rng.bytes(int(rng.integers(24, 90)))).decode("utf-8", "replace")


def _too_long(rng: np.random.Generator) -> str:
    line = LINES[rng.integers(0, len(LINES))]
    return "".join(
        line.format(n=n, m=m) for n, m in rng.integers(0, 4000, (int(rng.integers(500, 1500)), 2)).tolist()
    )


_MAKERS = {
    "null_text": lambda rng: None,
    "empty": lambda rng: BLANKS[rng.integers(0, len(BLANKS))],
    "control_characters": _control,
    "binary": _binary,
    "too_long": _too_long,
}
