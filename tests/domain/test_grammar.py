"""Reading the grammar of queries: sequences of needs, and how a mistake is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.domain import load_domain
from curation.domain.document import Document
from curation.domain.grammar import Grammar, parse_grammar, slots_of
from curation.domain.model import DomainParts, Node, Taxonomy
from curation.errors import CurationError

SHIPPED = load_domain("map_travel")


def parse(tmp_path: Path, text: str) -> Grammar:
    nodes = tuple(
        Node(name, None, 1, name, name, is_other=False, is_leaf=name != "top") for name in ("top", "a", "b")
    )
    path = tmp_path / "grammar.yaml"
    path.write_text(text, encoding="utf-8")
    return parse_grammar(Document(path), path, DomainParts(Taxonomy("1", nodes), {}, {}, ("zh", "en")))


WHOLE = """
slots:
  city: {en: [Rome, Oslo], harvest: {en: ['to ([A-Z]\\w+)']}, like: {en: '[A-Z][a-z]+'}}
joins:
  en: ['{0} and {1}', '{0}, {1}, {2}']
  zh: ['{0}{1}']
needs:
  one: {leaf: a, first: {en: ['fly to {city}'], zh: [飞]}, next: {en: [fly]}, then: [two, three]}
  two: {leaf: b, first: {en: [rain], zh: [雨]}, next: {en: ['rain in {city}'], zh: [雨呢]}, then: [one, three]}
  three: {leaf: b, first: {en: [eat]}, next: {en: [eat]}}
"""


def test_sequences_follow_then_and_the_phrases_of_the_language(tmp_path: Path) -> None:
    grammar = parse(tmp_path, WHOLE)
    assert grammar.languages == ("en", "zh")
    assert list(grammar.sequences("zh")) == [("one",), ("two",), ("one", "two")]
    assert list(grammar.sequences("en")) == [
        ("one",),
        ("two",),
        ("three",),
        ("one", "two"),
        ("one", "three"),
        ("two", "one"),
        ("two", "three"),
        ("one", "two", "three"),
        ("two", "one", "three"),
    ]
    assert list(grammar.sequences("fr")) == []


def test_slots_of_a_phrase() -> None:
    assert slots_of("from {home} to {city} and {home}") == ("home", "city")


NEED = "needs:\n  one: {leaf: a, first: {en: [go]}}\n"
MISTAKES = [
    ("needs:\n  one: {leaf: top, first: {en: [go]}}", "is no leaf", 2),
    ("needs:\n  one: {leaf: a, first: {en: ['{city}']}}", "no en slot 'city'", 2),
    ("needs:\n  one: {leaf: a, first: {}}", "has no phrases", 2),
    ("needs:\n  one: {leaf: a, first: {fr: [x]}}", "unknown language 'fr'", 2),
    ("needs:\n  one: {leaf: a, first: {en: [go]}, then: [two]}", "no need 'two'", 2),
    (NEED + "slots:\n  city: {}", "has no fillers", 4),
    (NEED + "slots:\n  city: {en: [x], harvest: {en: [abc]}}", "without a group", 4),
    (NEED + "slots:\n  city: {en: [x], harvest: {en: ['(']}}", "cannot be used", 4),
    (NEED + "joins: {en: ['{0} and {2}']}", "a join needs", 3),
    (NEED + "joins: {en: ['{0}']}", "a join needs", 3),
]


@pytest.mark.parametrize(("text", "message", "line"), MISTAKES, ids=[mistake[1] for mistake in MISTAKES])
def test_a_mistake_is_told_with_its_line(tmp_path: Path, text: str, message: str, line: int) -> None:
    with pytest.raises(CurationError, match=r"grammar\.yaml") as caught:
        parse(tmp_path, text)
    assert message in caught.value.message
    assert f"line {line}" in caught.value.message


def test_the_shipped_grammar_is_rich_in_both_languages() -> None:
    grammar = SHIPPED.grammar
    for lang in ("zh", "en"):
        phrases = [phrase for need in grammar.needs.values() for phrase in need.first.get(lang, ())]
        assert len(phrases) == len(set(phrases)) >= 80
        assert len(list(grammar.sequences(lang))) > 1000


def test_every_shipped_slot_has_fillers_in_both_languages_that_it_would_take_from_a_log() -> None:
    import re

    for slot in SHIPPED.grammar.slots.values():
        assert set(slot.fillers) == {"zh", "en"}, slot.name
        for lang in slot.harvest:
            assert lang in slot.like
            assert all(re.compile(regex).groups == 1 for regex in slot.harvest[lang])
