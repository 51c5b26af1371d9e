"""``dimensions.yaml``: what constraints a domain knows and how they are worded.

The file holds ``dimensions`` and, as far as they are needed, what these share::

    fold: {內: 内}                              # character to character, before matching
    fragments: {en: {num: '\\d+|two|three'}}     # <<num>> in a regex stands for it, in brackets
    negation: {en: '(?:no|without)\\s+'}         # what negates the words right after it
    ignore: {en: {words: [..], patterns: [..]}} # looks like a constraint and is none
    tables: {distance: {km: 1 km, m: 0.001 km}} # for the templates of values
    compose: {when: [{value: .., regex: ..}]}   # rules that make one value of several words
    dimensions:
      budget:
        description: ..
        negatable: false
        lexicon: {en: {low_cost: [cheap, on a budget]}}
        patterns: {en: [{value: '<={n*u:money}', regex: 'under (?P<n><<num>>) (?P<u>pounds)'}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from curation.domain.document import Document
from curation.domain.model import Dimension, LexiconEntry, Pattern, Wording

__all__ = ["parse_dimensions"]

_FRAGMENT = re.compile(r"<<(\w+)>>")
_KEYS = ("fold", "fragments", "negation", "ignore", "tables", "compose", "dimensions")
_Fragments = dict[str, dict[str, str]]


def parse_dimensions(document: Document) -> tuple[dict[str, Dimension], Wording]:
    """The dimensions in the order of the file, which is their priority, and what they share."""
    root = document.root
    document.keys(root, _KEYS, ("dimensions",), "the file")
    fragments = _fragments(document, root)
    bodies = document.mapping(root, "dimensions", "dimensions")
    dimensions = {name: _dimension(document, bodies, name, fragments) for name in bodies}
    return dimensions, _wording(document, root, fragments)


def _dimension(document: Document, bodies: dict[str, Any], name: str, fragments: _Fragments) -> Dimension:
    what = f"the dimension {name}"
    body = document.mapping(bodies, name, what)
    document.keys(body, ("description", "negatable", "lexicon", "patterns"), ("description",), what)
    negatable = body.get("negatable", False)
    if not isinstance(negatable, bool):
        raise document.error(f"negatable of {name} must be true or false", body, "negatable")
    lexicon: list[LexiconEntry] = []
    for lang, values in _section(document, body, "lexicon", f"lexicon of {name}"):
        for value in document.mapping(values, lang, f"the {lang} lexicon of {name}"):
            texts = document.texts(values[lang], value, f"the {lang} words for {value}")
            lexicon.extend(LexiconEntry(value, lang, text) for text, _ in texts)
    patterns: list[Pattern] = []
    for lang, items in _section(document, body, "patterns", f"patterns of {name}"):
        patterns.extend(_patterns(document, items, lang, f"the {lang} patterns of {name}", lang, fragments))
    description = " ".join(document.text(body, "description", f"description of {name}").split())
    return Dimension(name, description, tuple(lexicon), tuple(patterns), negatable)


def _wording(document: Document, root: dict[str, Any], fragments: _Fragments) -> Wording:
    fold = {}
    for source, owner in _section(document, root, "fold", "fold"):
        target = document.text(owner, source, "a character of fold")
        if len(source) != 1 or len(target) != 1:
            raise document.error(f"fold maps one character to one, not {source!r} to {target!r}", owner, source)
        fold[source] = target
    negation = {
        lang: _regex(document, owner, lang, f"the {lang} negation", lang, fragments)
        for lang, owner in _section(document, root, "negation", "negation")
    }
    tables = {
        name: {
            str(word).casefold(): document.text(owner[name], word, f"a value of table {name}", empty=True)
            for word in document.mapping(owner, name, f"table {name}")
        }
        for name, owner in _section(document, root, "tables", "tables")
    }
    compose = {
        name: tuple(_patterns(document, owner, name, f"the rules of {name}", None, fragments))
        for name, owner in _section(document, root, "compose", "compose")
    }
    return Wording(fold, negation, _ignore(document, root, fragments), tables, compose)


def _ignore(document: Document, root: dict[str, Any], fragments: _Fragments) -> Dimension:
    lexicon: list[LexiconEntry] = []
    patterns: list[Pattern] = []
    for lang, owner in _section(document, root, "ignore", "ignore"):
        body = document.mapping(owner, lang, f"ignore of {lang}")
        document.keys(body, ("words", "patterns"), (), f"ignore of {lang}")
        if "words" in body:
            lexicon.extend(
                LexiconEntry("", lang, text) for text, _ in document.texts(body, "words", "words to ignore")
            )
        for _, index in document.texts(body, "patterns", "patterns to ignore") if "patterns" in body else ():
            regex = _regex(document, body["patterns"], index, "a pattern to ignore", lang, fragments)
            patterns.append(Pattern("", lang, regex))
    return Dimension("", "Looks like a constraint and is none.", tuple(lexicon), tuple(patterns))


def _section(document: Document, owner: dict[str, Any], key: str, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Keys of the mapping ``owner[key]``, where it is there, with the mapping."""
    if key in owner:
        section = document.mapping(owner, key, what)
        for name in section:
            yield name, section


def _fragments(document: Document, root: dict[str, Any]) -> _Fragments:
    """Fragments by language; one may use those above it."""
    fragments: _Fragments = {}
    for lang, owner in _section(document, root, "fragments", "fragments"):
        fragments[lang] = {}
        for name in document.mapping(owner, lang, f"fragments of {lang}"):
            fragments[lang][name] = _regex(document, owner[lang], name, f"the fragment {name}", lang, fragments)
    return fragments


def _patterns(
    document: Document, owner: Any, key: Any, what: str, lang: str | None, fragments: _Fragments
) -> Iterator[Pattern]:
    """The list of ``{value, regex}`` at ``owner[key]``; where ``lang`` is None each names its ``lang``."""
    items = document.sequence(owner, key, what)
    keys = ("value", "regex") if lang else ("value", "regex", "lang")
    for index in range(len(items)):
        item = document.mapping(items, index, f"an entry of {what}")
        document.keys(item, keys, keys, f"an entry of {what}")
        own = lang or document.text(item, "lang", f"the language of an entry of {what}")
        regex = _regex(document, item, "regex", f"a regex of {what}", own, fragments)
        yield Pattern(document.text(item, "value", f"a value of {what}"), own, regex)


def _regex(document: Document, owner: Any, key: Any, what: str, lang: str, fragments: _Fragments) -> str:
    """The regex at ``owner[key]``, or the list of its alternatives, with its fragments in place."""
    if isinstance(owner[key], list):
        items = range(len(document.sequence(owner, key, what)))
        return "|".join(_regex(document, owner[key], index, what, lang, fragments) for index in items)
    known = fragments.get(lang, {})

    def fragment(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise document.error(f"{what} uses <<{match[1]}>>, which is no fragment of {lang} above it", owner, key)
        return f"(?:{known[match[1]]})"

    return _FRAGMENT.sub(fragment, document.text(owner, key, what))
