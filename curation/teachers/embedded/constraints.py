"""Constraints in queries: what limits the answer, its canonical value and the exact words it was read from.

The words are data (``dimensions.yaml``); this module finds them in a column of texts. Lexicons go through one
Aho-Corasick pass over the column. Regular expressions go through Rust first, one alternation a dimension, then one by
one on the rows that hit; Python sees only pairs of row and pattern that match. Overlaps go to the longest match,
then to the dimension that stands first in the file, then to its patterns before its lexicon.

All offsets are code points of the text as given. Matching itself runs on a folded copy of equal length: full-width
ASCII to ASCII and the domain's own characters (``fold``); case is ignored; ``\\b``, ``\\w`` and ``\\d`` mean ASCII, so
that a word boundary lies between ``KFC`` and a Chinese character.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from curation.errors import CurationError
from curation.teachers.embedded.values import Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curation.domain.model import Dimension, Domain, Pattern

__all__ = ["CONSTRAINTS", "Recogniser", "recognise", "rust_regex"]

CONSTRAINTS = pl.List(
    pl.Struct({"dimension": pl.String, "value": pl.String, "text": pl.String, "start": pl.Int32, "end": pl.Int32})
)
"""Type of a column of constraints, as in ``annotations.constraints``."""

_BLOCK = 50_000
_FLAGS = re.ASCII | re.IGNORECASE
_WIDE = {chr(0xFF01 + index): chr(0x21 + index) for index in range(94)} | {"\u3000": " ", "’": "'", "‘": "'"}
_NOT = "not_"


def recognise(
    texts: pl.Series | Sequence[str | None], langs: pl.Series | Sequence[str | None] | None, domain: Domain
) -> pl.Series:
    """Constraints of every text; see :meth:`Recogniser.recognise`. Compile a :class:`Recogniser` once for many calls."""
    return Recogniser(domain).recognise(texts, langs)


def rust_regex(regex: str) -> str:
    """``regex`` for Rust's engine, matching at least where Python's does.

    Look-around is left out (Rust has none, and without it more matches), group names too (they may repeat in an
    alternation); ``\\b`` becomes the ASCII one.
    """
    out: list[str] = []
    position = 0
    while position < len(regex):
        if regex[position] == "\\":
            pair = regex[position : position + 2]
            out.append({"\\b": r"(?-u:\b)", "\\d": "[0-9]", "\\w": "[0-9A-Za-z_]"}.get(pair, pair))
            position += 2
        elif regex[position] == "[":
            end = _class_end(regex, position)
            out.append(regex[position:end].replace("\\d", "0-9").replace("\\w", "0-9A-Za-z_"))
            position = end
        elif regex.startswith(("(?=", "(?!", "(?<=", "(?<!"), position):
            position = _group_end(regex, position)
            out.append("(?:)")
        elif regex.startswith("(?P<", position):
            out.append("(?:")
            position = regex.index(">", position) + 1
        else:
            out.append(regex[position])
            position += 1
    return "".join(out)


def _class_end(regex: str, start: int) -> int:
    position = start + 2 if regex.startswith("[^", start) else start + 1
    position += regex.startswith("]", position)
    while position < len(regex) and regex[position] != "]":
        position += 2 if regex[position] == "\\" else 1
    return position + 1


def _group_end(regex: str, start: int) -> int:
    depth, position = 0, start
    while position < len(regex):
        if regex[position] == "\\":
            position += 2
            continue
        if regex[position] == "[":
            position = _class_end(regex, position)
            continue
        depth += (regex[position] == "(") - (regex[position] == ")")
        position += 1
        if depth == 0:
            return position
    return position


@dataclass(frozen=True)
class _Rule:
    """A compiled pattern: where it stands in the order of priority, what it gives."""

    priority: int
    dimension: int
    lang: str
    value: str
    python: re.Pattern[str]
    rust: str


@dataclass
class _Candidates:
    """Columns of candidate constraints of a block."""

    row: list[int]
    start: list[int]
    end: list[int]
    priority: list[int]
    dimension: list[int]
    value: list[str]

    def add(self, row: int, start: int, end: int, priority: int, dimension: int, value: str) -> None:
        self.row.append(row)
        self.start.append(start)
        self.end.append(end)
        self.priority.append(priority)
        self.dimension.append(dimension)
        self.value.append(value)


class Recogniser:
    """The dimensions of a domain, compiled. Holds no state between calls beyond a cache of values."""

    def __init__(self, domain: Domain) -> None:
        wording = domain.wording
        self._dimensions: list[Dimension] = [*domain.dimensions.values(), wording.ignore]
        self._languages = domain.languages
        self._values = Values(wording)
        self._fold = _WIDE | wording.fold
        self._table = str.maketrans(self._fold)
        self._cache: dict[tuple[int, tuple[str | None, ...]], str | None] = {}
        self._groups: list[tuple[str, list[_Rule]]] = []
        words: dict[str, list[tuple[int, int, str, str]]] = {}
        priority = 0
        for index, dimension in enumerate(self._dimensions):
            rules = []
            for pattern in dimension.patterns:
                rules.append(self._rule(pattern, priority, index))
                priority += 1
            if rules:
                self._groups.append(("|".join(f"(?:{rule.rust})" for rule in rules), rules))
            for entry in dimension.lexicon:
                word = entry.text.translate(self._table).lower()
                words.setdefault(word, []).append((priority, index, entry.lang, entry.value))
            priority += 1
        self._words = dict(sorted(words.items()))
        negations = [f"(?:{regex})" for regex in wording.negation.values()]
        self._negation = re.compile(f"(?:{'|'.join(negations)})$", _FLAGS) if negations else None
        self._negation_rust = f"(?i){rust_regex('|'.join(negations))}"

    def _rule(self, pattern: Pattern, priority: int, index: int) -> _Rule:
        name = self._dimensions[index].name or "ignore"
        try:
            python = re.compile(pattern.regex, _FLAGS)
            self._values.check(pattern.value, python)
            rust = rust_regex(pattern.regex)
            pl.Series([""]).str.contains(f"(?i){rust}")
        except (re.error, pl.exceptions.PolarsError, CurationError) as error:
            raise CurationError(f"dimensions.yaml: a {pattern.lang} pattern of {name} is wrong: {error}") from None
        return _Rule(priority, index, pattern.lang, pattern.value, python, rust)

    def recognise(
        self, texts: pl.Series | Sequence[str | None], langs: pl.Series | Sequence[str | None] | None = None
    ) -> pl.Series:
        """Constraints of every text, in the order of the text, without overlaps.

        Args:
            texts: The texts; None is an empty one.
            langs: Language of every text. Wording of another language counts too, except where both are languages of
                the domain written in the same script. None: all wording counts everywhere.

        Returns:
            A series of :data:`CONSTRAINTS`, one list a text; ``text == texts[i][start:end]`` in code points.
        """
        column = pl.Series("text", texts, dtype=pl.String).fill_null("")
        languages = None if langs is None else pl.Series("lang", langs, dtype=pl.String).fill_null("")
        if not self._groups and not self._words:
            return pl.Series("constraints", [[]] * len(column), dtype=CONSTRAINTS)
        blocks = [
            self._block(column[at : at + _BLOCK], None if languages is None else languages[at : at + _BLOCK])
            for at in range(0, len(column), _BLOCK)
        ]
        return pl.concat(blocks) if blocks else pl.Series("constraints", [], dtype=CONSTRAINTS)

    def _block(self, texts: pl.Series, langs: pl.Series | None) -> pl.Series:
        folded = texts.str.replace_many(list(self._fold), list(self._fold.values()))
        barred = None if langs is None else self._barred(langs)
        found = _Candidates([], [], [], [], [], [])
        self._find_words(folded, barred, found)
        self._find_patterns(folded, barred, found)
        self._negate(folded, found)
        return self._column(texts, found, _resolve(found))

    @cached_property
    def _scripts(self) -> dict[str, bool]:
        """Language of the domain: whether its lexicon is written in Latin letters."""
        latin: dict[str, list[bool]] = {}
        for dimension in self._dimensions:
            for entry in dimension.lexicon:
                latin.setdefault(entry.lang, []).append(entry.text.isascii())
        return {lang: sum(flags) * 2 > len(flags) for lang, flags in latin.items()}

    def _barred(self, langs: pl.Series) -> dict[str, np.ndarray] | None:
        """Wording language to the rows where it does not count; None when it counts everywhere."""
        barred = {}
        for wording in self._scripts:
            others = [
                lang
                for lang in self._languages
                if lang != wording and lang in self._scripts and self._scripts[lang] == self._scripts[wording]
            ]
            if others:
                barred[wording] = langs.is_in(others).to_numpy()
        return barred or None

    def _find_words(self, folded: pl.Series, barred: dict[str, np.ndarray] | None, found: _Candidates) -> None:
        """Lexicon entries, by one Aho-Corasick pass and a second over the rows that hit."""
        if not self._words:
            return
        keys = pl.Series(list(self._words))
        # One byte of padding on both sides: every match has a byte before and after it.
        padded = pl.DataFrame({"text": " " + folded + " "}).with_row_index("row")
        at = pl.col("text").str.find_many(pl.lit(keys).implode(), ascii_case_insensitive=True, overlapping=True)
        hits = padded.with_columns(at=at).filter(pl.col("at").list.len() > 0)
        word = pl.col("text").str.extract_many(pl.lit(keys).implode(), ascii_case_insensitive=True, overlapping=True)
        hits = hits.with_columns(word=word).explode("at", "word").with_columns(pl.col("word").str.to_lowercase())
        raw = pl.col("text").cast(pl.Binary)
        size = pl.col("word").str.len_bytes()
        alone = ~(
            _word_byte(raw.bin.slice(pl.col("at").cast(pl.Int64) - 1, 1)) & _word_byte(raw.bin.slice(pl.col("at"), 1))
            | _word_byte(raw.bin.slice(pl.col("at") + size - 1, 1))
            & _word_byte(raw.bin.slice(pl.col("at") + size, 1))
        )
        hits = hits.filter(alone).with_columns(
            start=raw.bin.slice(0, pl.col("at")).cast(pl.String).str.len_chars().cast(pl.Int64) - 1
        )
        for row, text, start in hits.select("row", "word", "start").iter_rows():
            for priority, dimension, lang, value in self._words[text]:
                if barred is None or lang not in barred or not barred[lang][row]:
                    found.add(row, start, start + len(text), priority, dimension, value)

    def _find_patterns(self, folded: pl.Series, barred: dict[str, np.ndarray] | None, found: _Candidates) -> None:
        for group, rules in self._groups:
            rows = folded.str.contains(f"(?i){group}").arg_true()
            part = folded.gather(rows)
            for rule in rules if len(part) else ():
                hit = part.str.contains(f"(?i){rule.rust}").arg_true()
                for row, text in zip(rows.gather(hit).to_list(), part.gather(hit).to_list(), strict=True):
                    if barred is None or rule.lang not in barred or not barred[rule.lang][row]:
                        self._match(rule, row, text, found)

    def _match(self, rule: _Rule, row: int, text: str, found: _Candidates) -> None:
        span = "span" if "span" in rule.python.groupindex else 0
        for match in rule.python.finditer(text):
            start, end = match.span(span)
            if start < end:
                value = self._value(rule, match)
                if value is not None:
                    found.add(row, start, end, rule.priority, rule.dimension, value)

    def _value(self, rule: _Rule, match: re.Match[str]) -> str | None:
        if "{" not in rule.value:
            return rule.value
        key = (rule.priority, match.groups())
        if key not in self._cache:
            if len(self._cache) > 1_000_000:
                self._cache.clear()
            self._cache[key] = self._values.fill(rule.value, match.groupdict())
        return self._cache[key]

    def _negate(self, folded: pl.Series, found: _Candidates) -> None:
        """Take a negation right before a constraint of a negatable dimension into it."""
        if self._negation is None:
            return
        negatable = [dimension.negatable for dimension in self._dimensions]
        rows = folded.str.contains(self._negation_rust)
        texts = dict(zip(rows.arg_true().to_list(), folded.filter(rows).to_list(), strict=True))
        for index in range(len(found.row)):
            text = texts.get(found.row[index])
            if text is None or not negatable[found.dimension[index]] or found.value[index].startswith(_NOT):
                continue
            match = self._negation.search(text, 0, found.start[index])
            if match and match.start() < match.end():
                found.start[index] = match.start()
                found.value[index] = _NOT + found.value[index]

    def _column(self, texts: pl.Series, found: _Candidates, kept: np.ndarray) -> pl.Series:
        """The kept candidates as one list a text."""
        ignore = len(self._dimensions) - 1
        names = [dimension.name for dimension in self._dimensions]
        kept = kept[np.fromiter((found.dimension[index] != ignore for index in kept), dtype=bool, count=len(kept))]
        frame = pl.DataFrame(
            {
                "row": pl.Series([found.row[index] for index in kept], dtype=pl.UInt32),
                "dimension": pl.Series([names[found.dimension[index]] for index in kept], dtype=pl.String),
                "value": pl.Series([found.value[index] for index in kept], dtype=pl.String),
                "start": pl.Series([found.start[index] for index in kept], dtype=pl.Int32),
                "end": pl.Series([found.end[index] for index in kept], dtype=pl.Int32),
            }
        ).sort("row", "start")
        source = texts.gather(frame["row"]).rename("source")
        frame = frame.with_columns(
            text=pl.lit(source).str.slice(pl.col("start"), (pl.col("end") - pl.col("start")).cast(pl.UInt32))
        )
        lists = frame.group_by("row", maintain_order=True).agg(
            constraints=pl.struct("dimension", "value", "text", "start", "end")
        )
        rows = pl.DataFrame({"row": pl.Series(range(len(texts)), dtype=pl.UInt32)})
        joined = rows.join(lists, on="row", how="left", maintain_order="left")["constraints"]
        return joined.fill_null(pl.Series([[]], dtype=CONSTRAINTS).first()).cast(CONSTRAINTS)


def _word_byte(byte: pl.Expr) -> pl.Expr:
    """Whether a one-byte slice is an ASCII letter, digit or underscore."""
    word = [bytes([code]) for code in range(128) if chr(code).isalnum() or code == ord("_")]
    return byte.is_in(word)


def _resolve(found: _Candidates) -> np.ndarray:
    """Indexes of the candidates to keep: longest first, then priority, then position; none overlaps another."""
    row, start, end = np.array(found.row, np.int64), np.array(found.start, np.int64), np.array(found.end, np.int64)
    order = np.lexsort((start, np.array(found.priority, np.int64), start - end, row))
    kept: list[int] = []
    taken: list[tuple[int, int]] = []
    current = -1
    rows, starts, ends = row[order].tolist(), start[order].tolist(), end[order].tolist()
    for index, (at, low, high) in zip(order.tolist(), zip(rows, starts, ends, strict=True), strict=True):
        if at != current:
            current, taken = at, []
        if all(high <= begin or low >= stop for begin, stop in taken):
            taken.append((low, high))
            kept.append(index)
    return np.array(kept, np.int64)
