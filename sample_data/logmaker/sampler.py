"""Draws rows: who says what, when, and with what noise. Columnar; only distinct variants are made one by one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from logmaker import broken
from logmaker.frames import Field, Wording
from logmaker.vocabulary import Slot, Vocabulary

__all__ = ["SOURCES", "Drawn", "Family", "Piece", "label_hash", "mix", "sample_rows"]

SOURCES = ("voice", "typed", "web", "widget")
SOURCE_SHARES = (0.52, 0.38, 0.07, 0.03)
VARIANTS = 64  # variants of one kind of noise that a query can have
VARIANT_DECAY = 0.6  # how fast their frequencies fall
HEAD_PULL, HEAD_LENGTH = 5.0, 5.0  # popular ranks are about popular words: how strongly, and how far down
RANK_SCALE = 3.0  # how many things share the head of a frame
RANK_TAIL = 1.05  # how fast popularity falls: P(rank > r) ~ r^-RANK_TAIL
ROWS_PER_SESSION = 2.3
REPEAT_SHARE = 0.06  # rows of a session that ask again what the row before asked
BROKEN_SHARE = 0.006
# Requests by hour of day, Monday to Sunday.
HOURS = np.array([6, 4, 3, 2, 3, 6, 14, 30, 38, 34, 33, 36, 38, 33, 32, 34, 37, 44, 47, 40, 33, 26, 18, 11], float)
DAYS = np.array([1.0, 0.97, 0.98, 1.0, 1.12, 1.25, 1.18])
EPOCH_WEEKDAY = 3  # 1970-01-01 was a Thursday
NAME = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", np.uint8)


@dataclass(frozen=True)
class Piece:
    """Distinct variants of one wording: their text, and for the truth where they came from."""

    wording: int
    rows: np.ndarray  # index into the distinct variants
    words: list[np.ndarray]  # per draw, the drawn word of each
    parts: list[tuple[str, ...]]  # the clean text in parts
    clean: list[str]


@dataclass(frozen=True)
class Family:
    """Wordings with their slots and the noise they suffer.

    Attributes:
        wordings: All wordings.
        p: Probability of each, their sum is 1.
        slots: Per wording, the slot of each draw.
        kinds: Kinds of noise, in the order of their numbers.
        shares: Probability of each kind by source.
        apply: ``(text, kind, number, lang, parts) -> text``.
        plain_kinds: Number of leading kinds that text with personal data and other languages may suffer.
        noisy_languages: Languages that the other kinds of noise are made for.
        fresh_share: Share of the rows that ask about what nobody else asks about.
    """

    wordings: list[Wording]
    p: np.ndarray
    slots: list[list[Slot]]
    kinds: tuple[str, ...]
    shares: Mapping[str, tuple[float, ...]]
    apply: Callable[[str, str, int, str, tuple[str, ...]], str]
    plain_kinds: int
    noisy_languages: tuple[str, ...]
    fresh_share: float

    @classmethod
    def build(
        cls,
        wordings: list[Wording],
        vocabulary: Vocabulary,
        languages: Mapping[str, float],
        kinds: tuple[str, ...],
        shares: Mapping[str, tuple[float, ...]],
        apply: Callable[[str, str, int, str, tuple[str, ...]], str],
        plain_kinds: int,
        noisy_languages: tuple[str, ...],
        fresh_share: float,
    ) -> Family:
        """Join wordings and slots; ``languages`` gives the share of the log that each language has."""
        p = np.zeros(len(wordings))
        for lang, share in languages.items():
            rows = [i for i, wording in enumerate(wordings) if wording.lang == lang]
            weights = np.array([wordings[i].frame.weight * wordings[i].p for i in rows])
            p[rows] = share * weights / weights.sum()
        slots = [[vocabulary.slot(name, w.lang) for name, _ in w.draws] for w in wordings]
        p /= p.sum()
        return cls(wordings, p, slots, kinds, shares, apply, plain_kinds, noisy_languages, fresh_share)


@dataclass(frozen=True)
class Drawn:
    """Rows of one stretch of time, in its order.

    Attributes:
        texts: Distinct strings (null possible), ``variant`` points into them for every row.
        base: Hash of wording and words of every distinct string; 0 for broken ones.
        kind: Number of the kind of noise of every distinct string.
        pieces: Where the distinct strings came from, by wording.
        breakage: For strings after the first ``n_sound``, why they are broken.
    """

    variant: np.ndarray
    texts: pa.Array
    base: np.ndarray
    kind: np.ndarray
    n_sound: int
    pieces: list[Piece]
    breakage: list[str]
    ts: np.ndarray
    session: pa.Array
    source: np.ndarray


def mix(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: a bijection that spreads every bit (Steele, Lea, Flood 2014)."""
    x = np.asarray(x, np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def sample_rows(family: Family, n: int, start: int, end: int, rng: np.random.Generator) -> Drawn:
    """``n`` rows with time stamps from ``start`` to ``end`` (microseconds since 1970).

    What is said is drawn in the order of the wordings (so that each wording's words are drawn at once) and then
    shuffled into sessions, which are then put in the order of time.
    """
    said, words, base = _say(family, n, rng)
    order, first, ts, session, source = _sessions(n, start, end, rng)
    again = (rng.random(n) < REPEAT_SHARE) & ~first
    content = rng.permutation(n)[np.maximum.accumulate(np.where(again, 0, np.arange(n)))][order]
    kind, number = _noise(family, said[content], source, rng)
    variant_hash = mix(base[content] ^ mix(kind.astype(np.uint64) * np.uint64(VARIANTS) + number))
    _, one, variant = np.unique(variant_hash, return_index=True, return_inverse=True)
    texts, pieces = _render(family, said, words, content[one], kind[one], variant_hash[one])
    rows = np.flatnonzero(rng.random(n) < BROKEN_SHARE)
    strings, breakage = broken.broken_rows(len(rows), rng)
    variant[rows] = len(one) + np.arange(len(rows))
    nothing = np.zeros(len(rows), np.uint64)
    return Drawn(
        variant=variant,
        texts=pa.array(texts + strings, pa.large_string()),
        base=np.concatenate([base[content[one]], nothing]),
        kind=np.concatenate([kind[one], nothing.astype(kind.dtype)]),
        n_sound=len(one),
        pieces=pieces,
        breakage=breakage,
        ts=ts,
        session=session,
        source=source,
    )


def _say(family: Family, n: int, rng: np.random.Generator) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Wording, drawn words and hash of ``n`` queries, sorted by wording.

    What is asked about is a rank in the endless list of things that a frame can be asked about; popularity falls with
    the rank, and the rank alone decides the words. So all wordings of a frame are about the same popular things.
    """
    counts = rng.multinomial(n, family.p)
    said = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    rank = _ranks(n, family.fresh_share, rng)
    words = [np.zeros(n, np.int32) for _ in range(max(len(slots) for slots in family.slots))]
    base = mix(said.astype(np.uint64) + np.uint64(1))
    stop = 0
    for wording, slots, count in zip(family.wordings, family.slots, counts, strict=True):
        start, stop = stop, stop + int(count)
        part, ranks = base[start:stop], rank[start:stop]
        for d, slot in enumerate(slots):
            name, which = wording.draws[d]
            quantile = _uniform(ranks, f"{wording.frame.name} {name} {which}")
            drawn = slot.at(quantile ** (1 + HEAD_PULL / (1 + ranks / HEAD_LENGTH)))
            for earlier in range(d):
                if wording.draws[earlier][0] == name:
                    drawn = np.where(drawn == words[earlier][start:stop], (drawn + 1) % len(slot), drawn)
            words[d][start:stop] = drawn
            part = mix(part * np.uint64(31) + drawn.astype(np.uint64) + np.uint64(1))
        base[start:stop] = part
    return said, words, base


def _ranks(n: int, fresh_share: float, rng: np.random.Generator) -> np.ndarray:
    """Ranks 0, 1, 2 ... by a Lomax law (Zipf-Mandelbrot with a continuous tail), or, for the fresh, far out."""
    u = np.maximum(rng.random(n), 2.0**-60)
    rank = RANK_SCALE * (u ** (-1 / RANK_TAIL) - 1)
    fresh = rng.random(n) < fresh_share
    rank = np.minimum(rank, 2.0**40).astype(np.uint64)
    rank[fresh] = rng.integers(2**40, 2**62, int(fresh.sum()), dtype=np.uint64)
    return rank


def _uniform(ranks: np.ndarray, label: str) -> np.ndarray:
    """Numbers in [0, 1) that depend on rank and label alone."""
    return (mix(mix(ranks) ^ label_hash(label)) >> np.uint64(11)).astype(np.float64) * 2.0**-53


@cache
def label_hash(label: str) -> np.uint64:
    """64 bits of a name, the same everywhere."""
    return np.uint64(int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest(), "little"))


def _noise(
    family: Family, said: np.ndarray, source: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    kind = np.zeros(len(said), np.uint8)
    u = rng.random(len(said))
    for s, name in enumerate(SOURCES):
        rows = np.flatnonzero(source == s)
        kind[rows] = np.searchsorted(np.cumsum(family.shares[name])[:-1], u[rows], side="right")
    plain = np.array(
        [
            wording.lang not in family.noisy_languages or any(slot.masked for slot in slots)
            for wording, slots in zip(family.wordings, family.slots, strict=True)
        ]
    )
    kind[plain[said] & (kind >= family.plain_kinds)] = 0
    number = np.minimum(rng.geometric(VARIANT_DECAY, len(said)) - 1, VARIANTS - 1).astype(np.uint64)
    number[kind == 0] = 0
    return kind, number


def _render(
    family: Family,
    said: np.ndarray,
    words: list[np.ndarray],
    content: np.ndarray,
    kind: np.ndarray,
    number: np.ndarray,
) -> tuple[list[str], list[Piece]]:
    texts: list[str] = [""] * len(content)
    order = np.argsort(content, kind="stable")
    wording_of = said[content[order]]
    bounds = np.flatnonzero(np.diff(wording_of, prepend=-1, append=len(family.wordings)))
    pieces = []
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        rows = order[start:stop]
        w = int(wording_of[start])
        wording, slots = family.wordings[w], family.slots[w]
        drawn = [words[d][content[rows]] for d in range(len(slots))]
        parts = _parts(wording, slots, drawn, len(rows))
        clean = ["".join(part) for part in parts]
        names = [family.kinds[k] for k in kind[rows].tolist()]
        for row, text, part, name, bits in zip(
            rows.tolist(), clean, parts, names, number[rows].tolist(), strict=True
        ):
            texts[row] = text if name == "clean" else family.apply(text, name, bits, wording.lang, part)
        pieces.append(Piece(w, rows, drawn, parts, clean))
    return texts, pieces


def _parts(wording: Wording, slots: list[Slot], drawn: list[np.ndarray], n: int) -> list[tuple[str, ...]]:
    columns = []
    for piece in wording.pieces:
        if isinstance(piece, Field):
            slot = slots[piece.draw]
            source = slot.city if piece.attribute and slot.city is not None else slot.texts
            columns.append(source[drawn[piece.draw]].tolist())
        else:
            columns.append([piece] * n)
    return list(zip(*columns, strict=True))


def _sessions(
    n: int, start: int, end: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, pa.Array, np.ndarray]:
    """Sessions of ``n`` rows: a session's rows follow each other within minutes, and sessions overlap.

    Returns:
        The order that sorts the rows by time and whether a row is the first of its session, both in the order of the
        sessions; then time stamps, session names and sources in the order of time.
    """
    lengths = rng.geometric(1 / ROWS_PER_SESSION, n)
    n_sessions = int(np.searchsorted(np.cumsum(lengths), n)) + 1
    of = np.repeat(np.arange(n_sessions), lengths[:n_sessions])[:n]
    begin = _moments(n_sessions, start, end, rng)[of]
    first = np.diff(of, prepend=-1) > 0
    gap = np.where(first, 0, rng.exponential(40e6, n)).astype(np.int64)
    total = np.cumsum(gap)
    ts = np.minimum(begin + total - np.repeat(total[first], np.diff(np.flatnonzero(np.append(first, True)))), end - 1)
    sources = rng.choice(len(SOURCES), n_sessions, p=SOURCE_SHARES).astype(np.uint8)
    source = np.where(rng.random(n) < 0.08, rng.choice(2, n).astype(np.uint8), sources[of])
    letters = NAME[rng.integers(0, len(NAME), (n_sessions, 10))]
    names = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(10), n_sessions, [None, pa.py_buffer(np.ascontiguousarray(letters))]
    )
    order = np.argsort(ts, kind="stable")
    session = names.cast(pa.binary()).cast(pa.string()).take(pa.array(of[order]))
    return order, first, ts[order], session, source[order]


def _moments(n: int, start: int, end: int, rng: np.random.Generator) -> np.ndarray:
    """Moments by the hour-of-day and day-of-week profile, on a grid of minutes."""
    minutes = np.arange(start // 60_000_000, -(-end // 60_000_000))
    weight = HOURS[(minutes // 60) % 24] * DAYS[(minutes // 1440 + EPOCH_WEEKDAY) % 7]
    cdf = np.cumsum(weight)
    minute = minutes[np.searchsorted(cdf / cdf[-1], rng.random(n), side="right")]
    return np.clip(minute * 60_000_000 + rng.integers(0, 60_000_000, n), start, end - 1)
