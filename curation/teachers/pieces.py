"""A SentencePiece model file, and its units by the `tokenizers` library: the definition of what a text's units are.

:mod:`curation.teachers.unigram` gives the same units some ten times faster and hands the texts on which it might not
to :class:`Definition`.
"""

from __future__ import annotations

import struct
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.normalizers import Precompiled

__all__ = ["BEGIN", "END", "MAX_UNITS", "SPACE", "UNKNOWN", "Definition", "piece_list", "replacements"]

UNKNOWN, BEGIN, END = 0, 1, 2
MAX_UNITS = 256
"""Longer texts are cut here: some 400 Chinese characters or 200 English words."""
SPACE = "▁"
"""How a space is written in a unit."""


def _fields(data: bytes) -> list[tuple[int, Any]]:
    """Fields of one protobuf message as (number, bytes or int or float) in order."""
    out: list[tuple[int, Any]] = []
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            out.append((number, varint()))
        elif kind == 2:
            size = varint()
            out.append((number, data[at : at + size]))
            at += size
        elif kind in (1, 5):
            size, form = (8, "<d") if kind == 1 else (4, "<f")
            out.append((number, struct.unpack(form, data[at : at + size])[0]))
            at += size
        else:
            raise ValueError(f"protobuf wire type {kind} is not known")
    return out


def piece_list(model: bytes) -> list[tuple[str, float]]:
    """Units and their log probabilities of a SentencePiece model file, in the order of their ids."""
    pieces = []
    for number, value in _fields(model):
        if number == 1:
            parts = dict(_fields(value))
            pieces.append((parts[1].decode(), float(parts.get(2, 0.0))))
    return pieces


def replacements(model: bytes) -> Precompiled:
    """The compiled replacements of characters (NFKC and more) of a SentencePiece model file."""
    from tokenizers import normalizers

    return normalizers.Precompiled(dict(_fields(dict(_fields(model))[3]))[2])


class Definition:
    """The units of texts by the `tokenizers` library: some 27 µs a query.

    Takes the units with their scores and the replacements of one model file. The library's tables are built when
    first needed.
    """

    def __init__(self, pieces: list[tuple[str, float]], replaced: Precompiled) -> None:
        self._pieces, self._replaced = pieces, replaced
        self._made: Tokenizer | None = None
        self._lock = Lock()

    def rows(self, texts: list[str]) -> list[list[int]]:
        """Unit ids of every text, the first `MAX_UNITS`, without marks; those of an empty text are `UNKNOWN`."""
        tokeniser = self._tokeniser()
        rows = [encoding.ids for encoding in tokeniser.encode_batch_fast(texts, add_special_tokens=False)]
        for i in _rows_with(UNKNOWN, rows):
            # One unknown unit per character, as the network was trained; the tokeniser fuses runs of them.
            slow = tokeniser.encode(texts[i], add_special_tokens=False)
            runs = zip(slow.ids, slow.tokens, strict=True)
            rows[i] = [u for unit, token in runs for u in ([unit] * len(token) if unit == UNKNOWN else [unit])]
        return [row[:MAX_UNITS] or [UNKNOWN] for row in rows]

    def _tokeniser(self) -> Tokenizer:
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

        with self._lock:
            if self._made is None:
                made = Tokenizer(models.Unigram(self._pieces, unk_id=UNKNOWN, byte_fallback=False))
                spaces = normalizers.Replace(Regex(" {2,}"), " ")
                made.normalizer = normalizers.Sequence([self._replaced, normalizers.Strip(), spaces])
                made.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=False)
                self._made = made
            return self._made


def _rows_with(unit: int, rows: list[list[int]]) -> list[int]:
    """Which rows have a unit."""
    flat = np.fromiter(chain.from_iterable(rows), np.int64)
    found = np.flatnonzero(flat == unit)
    ends = np.cumsum([len(row) for row in rows])
    return [int(i) for i in np.unique(np.searchsorted(ends, found, side="right"))]
