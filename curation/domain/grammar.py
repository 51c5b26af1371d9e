"""``grammar.yaml``: how queries are worded, so that the embedded teacher can write new ones.

A *need* is one thing a query asks for, filed under a leaf, with phrases by language: ``first`` ones can open a query
or be all of it, ``next`` ones go on from another need ("and is it going to rain there"). ``then`` names the needs
that may follow. A *slot* in braces stands for one of its fillers, the same one throughout a query.
*Joins* put two or three phrases together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curation.domain.document import Document
from curation.domain.model import DomainParts

__all__ = ["Grammar", "Need", "Slot", "parse_grammar", "slots_of"]

_SLOT = re.compile(r"\{(\w+)\}")
_MOST_NEEDS = 3


def slots_of(phrase: str) -> tuple[str, ...]:
    """Names of the slots of a phrase, in order, each once."""
    return tuple(dict.fromkeys(_SLOT.findall(phrase)))


@dataclass(frozen=True)
class Slot:
    """What may stand for ``{name}``.

    Attributes:
        name: Its name.
        fillers: Fillers by language.
        harvest: Regexes by language; what group 1 of one finds in an observed query may stand here too.
        like: A filler taken from an observed query must match this regex as a whole; by language.
    """

    name: str
    fillers: Mapping[str, tuple[str, ...]]
    harvest: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    like: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Need:
    """One thing a query asks for; see the head of the module."""

    name: str
    leaf: str
    first: Mapping[str, tuple[str, ...]]
    next: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    then: tuple[str, ...] = ()


@dataclass(frozen=True)
class Grammar:
    """The grammar of a domain; empty for a domain without ``grammar.yaml``.

    ``joins[lang][n]`` are templates over ``{0}`` .. ``{n-1}`` for ``n`` phrases.
    """

    slots: Mapping[str, Slot] = field(default_factory=dict)
    needs: Mapping[str, Need] = field(default_factory=dict)
    joins: Mapping[str, Mapping[int, tuple[str, ...]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.needs)

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages in which some need can open a query, sorted."""
        return tuple(sorted({lang for need in self.needs.values() for lang in need.first}))

    def sequences(self, lang: str) -> Iterator[tuple[str, ...]]:
        """Names of needs that can be joined to one query in ``lang``, shortest first, in the order of the file."""
        level: list[tuple[str, ...]] = [(name,) for name, need in self.needs.items() if lang in need.first]
        for length in range(1, _MOST_NEEDS + 1):
            yield from level
            if not self.joins.get(lang, {}).get(length + 1):
                return
            level = [(*names, follower) for names in level for follower in self._followers(names, lang)]

    def _followers(self, names: tuple[str, ...], lang: str) -> Iterator[str]:
        for follower in self.needs[names[-1]].then:
            if follower not in names and lang in self.needs[follower].next:
                yield follower


def parse_grammar(document: Document, path: Path, parts: DomainParts) -> Grammar:
    """Read ``grammar.yaml``.

    Args:
        document: The opened file.
        path: Where it lies; errors name it.
        parts: Taxonomy and languages that it may name.

    Raises:
        CurationError: For the first name or phrase that is wrong, with its line.
    """
    return _Parser(document, parts).parse()


class _Parser:
    def __init__(self, document: Document, parts: DomainParts) -> None:
        self.document = document
        self.parts = parts
        self.slots: dict[str, Slot] = {}

    def parse(self) -> Grammar:
        document, root = self.document, self.document.root
        document.keys(root, ("slots", "needs", "joins"), ("needs",), "the file")
        slots = document.mapping(root, "slots", "slots") if "slots" in root else {}
        for name in slots:
            self.slots[name] = self._slot(slots, name)
        bodies = document.mapping(root, "needs", "needs")
        needs = {name: self._need(bodies, name) for name in bodies}
        return Grammar(self.slots, needs, self._joins() if "joins" in root else {})

    def _slot(self, slots: Any, name: str) -> Slot:
        document, what = self.document, f"the slot {name}"
        body = document.mapping(slots, name, what)
        fillers, harvest, like = {}, {}, {}
        for lang in body:
            if lang in ("harvest", "like"):
                continue
            self._lang(body, lang)
            fillers[lang] = tuple(text for text, _ in document.texts(body, lang, f"the {lang} fillers of {name}"))
        for lang, owner in self._by_language(body, "harvest"):
            regexes = document.sequence(owner, lang, f"the {lang} harvest of {name}")
            harvest[lang] = tuple(self._regex(regexes, index, what, groups=1) for index in range(len(regexes)))
        for lang, owner in self._by_language(body, "like"):
            like[lang] = self._regex(owner, lang, what)
        if not any(fillers.values()):
            raise document.error(f"{what} has no fillers", slots, name)
        return Slot(name, fillers, harvest, like)

    def _by_language(self, body: Any, key: str) -> Iterator[tuple[str, Any]]:
        if key in body:
            owner = self.document.mapping(body, key, key)
            for lang in owner:
                self._lang(owner, lang)
                yield lang, owner

    def _lang(self, owner: Any, lang: str) -> None:
        if self.parts.languages and lang not in self.parts.languages:
            known = ", ".join(self.parts.languages)
            raise self.document.error(f"unknown language {lang!r}", owner, lang, f"There are {known}.")

    def _regex(self, owner: Any, key: Any, what: str, groups: int = 0) -> str:
        text = self.document.text(owner, key, f"a regex of {what}")
        try:
            found = re.compile(text).groups
        except re.error as error:
            raise self.document.error(f"{what} has a regex that cannot be used: {error}", owner, key) from None
        if found < groups:
            raise self.document.error(f"{what} has a regex without a group, which says what to take", owner, key)
        return text

    def _need(self, bodies: Any, name: str) -> Need:
        document, what = self.document, f"the need {name}"
        body = document.mapping(bodies, name, what)
        document.keys(body, ("leaf", "first", "next", "then"), ("leaf", "first"), what)
        leaf = document.text(body, "leaf", f"the leaf of {name}")
        if leaf not in self.parts.taxonomy.leaf_set:
            raise document.error(f"{leaf!r} is no leaf of the taxonomy", body, "leaf")
        then = []
        for other, index in document.texts(body, "then", f"then of {name}") if "then" in body else ():
            if other not in bodies:
                raise document.error(f"there is no need {other!r}", body["then"], index)
            then.append(other)
        first = self._phrases(body, "first", what)
        if not first:
            raise document.error(f"{what} has no phrases", body, "first")
        return Need(name, leaf, first, self._phrases(body, "next", what), tuple(then))

    def _phrases(self, body: Any, key: str, what: str) -> dict[str, tuple[str, ...]]:
        phrases = {}
        for lang, owner in self._by_language(body, key):
            found = []
            for text, index in self.document.texts(owner, lang, f"the {lang} phrases of {what}"):
                for slot in slots_of(text):
                    if slot not in self.slots or not self.slots[slot].fillers.get(lang):
                        raise self.document.error(f"there is no {lang} slot {slot!r}", owner[lang], index)
                found.append(text)
            if found:
                phrases[lang] = tuple(found)
        return phrases

    def _joins(self) -> dict[str, dict[int, tuple[str, ...]]]:
        joins: dict[str, dict[int, tuple[str, ...]]] = {}
        for lang, owner in self._by_language(self.document.root, "joins"):
            joins[lang] = {}
            for text, index in self.document.texts(owner, lang, f"the {lang} joins"):
                count = len(slots_of(text))
                numbers = [str(number) for number in range(count)]
                if sorted(slots_of(text)) != numbers or not 2 <= count <= _MOST_NEEDS:
                    raise self.document.error(
                        f"a join needs {{0}} and {{1}}, and may have {{2}}, not {text!r}", owner[lang], index
                    )
                joins[lang][count] = (*joins[lang].get(count, ()), text)
        return joins
