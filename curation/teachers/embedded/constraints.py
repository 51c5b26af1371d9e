"""Constraints in queries: what limits the answer, its canonical value and the exact words it was read from.

The words are data (``dimensions.yaml``); this module finds them in a column of texts. One Aho-Corasick pass looks for
the lexicon and for the literals without which no pattern can match (:mod:`.literals`); an expression runs only over
the rows that hold one of its literals. Overlaps go to the longest match, then to the dimension that stands first in
the file, then to its patterns before its lexicon.

All offsets are code points of the text as given. Matching itself runs on a folded copy of equal length: full-width
ASCII to ASCII, white space to a space, and the domain's own characters (``fold``). Case is ignored; ``\\b``, ``\\w``
and ``\\d`` mean ASCII, so that a word boundary lies between ``KFC`` and a Chinese character.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from curation.errors import CurationError
from curation.teachers.embedded.literals import LiteralsError, literals
from curation.teachers.embedded.values import Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from curation.domain.model import Dimension, Domain, Pattern

__all__ = ["CONSTRAINTS", "Recogniser", "recognise"]

CONSTRAINTS = pl.List(
    pl.Struct({"dimension": pl.String, "value": pl.String, "text": pl.String, "start": pl.Int32, "end": pl.Int32})
)
"""Type of a column of constraints, as in ``annotations.constraints``."""

_BLOCK = 50_000
_CASED = "(?-i:"
_UPPER = re.compile(r"\\.|\(\?P<\w+>|[A-Z]")
_WIDE = {chr(0xFF01 + index): chr(0x21 + index) for index in range(94)} | {"’": "'", "‘": "'"}
_WIDE |= dict.fromkeys("\t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u2002\u2003\u2009\u202f\u3000", " ")
_LOWER = {chr(code): chr(code + 32) for code in range(ord("A"), ord("Z") + 1)}
_NOT = "not_"
_SCHEMA = {"row": pl.UInt32, "start": pl.Int32, "end": pl.Int32, "dimension": pl.UInt32, "value": pl.String}
_ENTRIES = {"word": pl.String, "priority": pl.Int64, "dimension": pl.Int64, "lang": pl.String, "value": pl.String}


def recognise(
    texts: pl.Series | Sequence[str | None], langs: pl.Series | Sequence[str | None] | None, domain: Domain
) -> pl.Series:
    """Constraints of every text, see :meth:`Recogniser.recognise`; compile a :class:`Recogniser` for many calls."""
    return Recogniser(domain).recognise(texts, langs)


@dataclass(frozen=True)
class _Rule:
    """A compiled pattern: where it stands in the order of priority, what it gives, what it cannot match without."""

    priority: int
    dimension: int
    lang: str
    value: str
    regex: re.Pattern[str]
    cased: bool
    required: tuple[frozenset[str], ...]


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
        self._cache: dict[tuple[int, tuple[str | None, ...]], str | None] = {}
        self._rules: list[_Rule] = []
        entries: list[tuple[str, int, int, str, str]] = []
        table = str.maketrans(self._fold)
        priority = 0
        for index, dimension in enumerate(self._dimensions):
            for pattern in dimension.patterns:
                self._rules.append(self._rule(pattern, priority, index))
                priority += 1
            entries += [
                (entry.text.translate(table).lower(), priority, index, entry.lang, entry.value)
                for entry in dimension.lexicon
            ]
            priority += 1
        self._entries = pl.DataFrame(entries, schema=_ENTRIES, orient="row")
        negations = "|".join(f"(?:{regex})" for regex in wording.negation.values())
        self._negation = re.compile(f"(?:{_lowered(negations)})$", re.ASCII) if negations else None
        self._negation_required = literals(negations).required if negations else ()
        required = [rule.required for rule in self._rules] + [self._negation_required]
        self._sets = {
            words: at for at, words in enumerate(dict.fromkeys(words for sets in required for words in sets))
        }
        triggers = [(word, at) for words, at in self._sets.items() for word in sorted(words)]
        self._triggers = pl.DataFrame(triggers, schema={"word": pl.String, "set": pl.Int32}, orient="row")
        self._words = pl.concat([self._entries["word"], self._triggers["word"]]).unique().sort()

    def _rule(self, pattern: Pattern, priority: int, index: int) -> _Rule:
        name = self._dimensions[index].name or "ignore"
        try:
            known = literals(pattern.regex)
            # The class at the front lets the engine skip positions at once where no alternative can begin.
            guard = f"(?=[{re.escape(''.join(sorted(known.first)))}])" if known.first else ""
            # Lower-case expressions over lower-case text: ignoring case costs the engine its short cuts.
            cased = _CASED in pattern.regex
            regex = re.compile(
                f"{guard}(?:{pattern.regex if cased else _lowered(pattern.regex)})",
                re.ASCII | re.IGNORECASE if cased else re.ASCII,
            )
            self._values.check(pattern.value, regex)
        except (re.error, LiteralsError, CurationError) as error:
            raise CurationError(f"dimensions.yaml: a {pattern.lang} pattern of {name} is wrong: {error}") from None
        return _Rule(priority, index, pattern.lang, pattern.value, regex, cased, known.required)

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
        if not self._rules and self._entries.is_empty():
            return pl.Series("constraints", [[]] * len(column), dtype=CONSTRAINTS)
        blocks = [
            self._block(column[at : at + _BLOCK], None if languages is None else languages[at : at + _BLOCK])
            for at in range(0, len(column), _BLOCK)
        ]
        return pl.concat(blocks) if blocks else pl.Series("constraints", [], dtype=CONSTRAINTS)

    def _block(self, texts: pl.Series, langs: pl.Series | None) -> pl.Series:
        folded = texts.str.replace_many(list(self._fold), list(self._fold.values()))
        barred = {} if langs is None else self._barred(langs)
        found = _Candidates([], [], [], [], [], [])
        lower = folded.str.replace_many(list(_LOWER), list(_LOWER.values()))
        hits = self._hits(lower)
        self._add_words(hits, barred, found)
        holding = hits.select("row", "word").join(self._triggers, on="word").select("set", "row").unique()
        rows = {key[0]: part["row"].sort() for key, part in holding.partition_by("set", as_dict=True).items()}
        for rule in self._rules:
            at = self._rows(rule.required, rows, len(lower))
            self._add_matches(rule, at, folded if rule.cased else lower, barred, found)
        negated = set(self._rows(self._negation_required, rows, len(lower)).to_list())
        kept = _resolve(found)
        self._negate(lower, negated, found, kept)
        return self._column(texts, found, kept)

    def _rows(self, required: tuple[frozenset[str], ...], rows: dict[int, pl.Series], size: int) -> pl.Series:
        """Rows that hold a string of each required set; all ``size`` rows when nothing is required."""
        none = pl.Series(dtype=pl.UInt32)
        found = [rows.get(self._sets[words], none).to_numpy() for words in required] or [np.arange(size)]
        return pl.Series(reduce(partial(np.intersect1d, assume_unique=True), found), dtype=pl.UInt32)

    @cached_property
    def _scripts(self) -> dict[str, bool]:
        """Language of the domain: whether its lexicon is written in Latin letters."""
        latin: dict[str, list[bool]] = {}
        for dimension in self._dimensions:
            for entry in dimension.lexicon:
                latin.setdefault(entry.lang, []).append(entry.text.isascii())
        return {lang: sum(flags) * 2 > len(flags) for lang, flags in latin.items()}

    def _barred(self, langs: pl.Series) -> dict[str, np.ndarray]:
        """Wording language to whether it does not count, by row; a language that counts everywhere is left out."""
        barred = {}
        for wording, latin in self._scripts.items():
            others = [lang for lang in self._languages if lang != wording and self._scripts.get(lang) == latin]
            if others:
                barred[wording] = langs.is_in(others).to_numpy()
        return barred

    def _hits(self, lower: pl.Series) -> pl.DataFrame:
        """Every occurrence of a word or literal: its row, text, ``word`` and byte offset ``at``.

        Texts stand between two spaces, so that every occurrence has a byte before and after it.
        """
        words = pl.lit(self._words).implode()
        frame = pl.DataFrame({"text": " " + lower + " "}).with_row_index("row")
        frame = frame.with_columns(at=pl.col("text").str.find_many(words, overlapping=True))
        frame = frame.filter(pl.col("at").list.len() > 0)
        return frame.with_columns(word=pl.col("text").str.extract_many(words, overlapping=True)).explode("at", "word")

    def _add_words(self, hits: pl.DataFrame, barred: dict[str, np.ndarray], found: _Candidates) -> None:
        """Occurrences of lexicon entries that stand alone: no ASCII letter or digit runs on over their edges."""
        raw, at = pl.col("text").cast(pl.Binary), pl.col("at").cast(pl.Int64)
        end = at + pl.col("word").str.len_bytes()
        alone = ~(_word_byte(raw, at - 1) & _word_byte(raw, at) | _word_byte(raw, end - 1) & _word_byte(raw, end))
        start = raw.bin.slice(0, at).cast(pl.String).str.len_chars().cast(pl.Int64) - 1
        words = hits.join(self._entries, on="word").filter(alone).with_columns(start=start)
        words = words.with_columns(end=pl.col("start") + pl.col("word").str.len_chars())
        for wording, flags in barred.items():
            words = words.filter((pl.col("lang") != wording) | ~pl.Series(flags).gather(words["row"]))
        found.row += words["row"].to_list()
        found.start += words["start"].to_list()
        found.end += words["end"].to_list()
        found.priority += words["priority"].to_list()
        found.dimension += words["dimension"].to_list()
        found.value += words["value"].to_list()

    def _add_matches(
        self, rule: _Rule, rows: pl.Series, texts: pl.Series, barred: dict[str, np.ndarray], found: _Candidates
    ) -> None:
        """Matches of one pattern in the given rows."""
        if rule.lang in barred:
            rows = rows.filter(~pl.Series(barred[rule.lang]).gather(rows))
        span = "span" if "span" in rule.regex.groupindex else 0
        find = rule.regex.finditer
        for row, text in zip(rows.to_list(), texts.gather(rows).to_list(), strict=True):
            for match in find(text):
                start, end = match.span(span)
                value = self._value(rule, match) if start < end else None
                if value is not None:
                    found.add(row, start, end, rule.priority, rule.dimension, value)

    def _value(self, rule: _Rule, match: re.Match[str]) -> str | None:
        if "{" not in rule.value:
            return rule.value
        key = (rule.priority, match.groups())
        if key not in self._cache:
            if len(self._cache) > 1_000_000:
                self._cache.clear()
            self._cache[key] = self._values.fill(rule.value, match.groupdict(), rule.lang)
        return self._cache[key]

    def _negate(self, lower: pl.Series, rows: set[int], found: _Candidates, kept: np.ndarray) -> None:
        """Take a negation right before a kept constraint of a negatable dimension into it."""
        if self._negation is None or not rows:
            return
        negatable = [dimension.negatable for dimension in self._dimensions]
        before = (-1, 0)
        for index in sorted(kept.tolist(), key=lambda index: (found.row[index], found.start[index])):
            row, start = found.row[index], found.start[index]
            free = before[1] if before[0] == row else 0
            before = (row, found.end[index])
            if row not in rows or not negatable[found.dimension[index]] or found.value[index].startswith(_NOT):
                continue
            match = self._negation.search(lower[row], free, start)
            if match and match.start() < match.end():
                found.start[index] = match.start()
                found.value[index] = _NOT + found.value[index]

    def _column(self, texts: pl.Series, found: _Candidates, kept: np.ndarray) -> pl.Series:
        """The kept candidates as one list a text; of the same dimension and value only the first of a text."""
        names = pl.Series([dimension.name for dimension in self._dimensions])
        frame = pl.DataFrame({name: getattr(found, name) for name in _SCHEMA}, schema=_SCHEMA)[kept]
        frame = frame.filter(pl.col("dimension") != len(names) - 1).sort("row", "start")
        frame = frame.unique(["row", "dimension", "value"], keep="first", maintain_order=True)
        source = pl.lit(texts.gather(frame["row"]).rename("source"))
        frame = frame.with_columns(
            dimension=names.gather(frame["dimension"]),
            text=source.str.slice(pl.col("start"), (pl.col("end") - pl.col("start")).cast(pl.UInt32)),
        )
        lists = frame.group_by("row", maintain_order=True).agg(
            constraints=pl.struct("dimension", "value", "text", "start", "end")
        )
        rows = pl.DataFrame({"row": pl.Series(range(len(texts)), dtype=pl.UInt32)})
        joined = rows.join(lists, on="row", how="left", maintain_order="left")["constraints"]
        return joined.fill_null(pl.Series([[]], dtype=CONSTRAINTS).first()).cast(CONSTRAINTS)


def _lowered(regex: str) -> str:
    """``regex`` with its ASCII letters in lower case, escapes and names of groups left as they are."""
    return _UPPER.sub(lambda match: match[0] if len(match[0]) > 1 else match[0].lower(), regex)


def _word_byte(raw: pl.Expr, at: pl.Expr) -> pl.Expr:
    """Whether the byte of ``raw`` at ``at`` is an ASCII letter, digit or underscore."""
    word = [bytes([code]) for code in range(128) if chr(code).isalnum() or code == ord("_")]
    return raw.bin.slice(at, 1).is_in(word)


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
