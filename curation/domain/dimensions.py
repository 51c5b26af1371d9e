"""``dimensions.yaml``: what constraints a domain knows and how they are worded."""

from __future__ import annotations

from typing import Any

from curation.domain.document import Document
from curation.domain.model import Dimension, LexiconEntry, Pattern

__all__ = ["parse_dimensions"]


def parse_dimensions(document: Document) -> dict[str, Dimension]:
    """Parse ``{name: {description, lexicon: {lang: {value: [texts]}}, patterns: {lang: [{value, regex}]}}}``."""
    document.keys(document.root, ("dimensions",), ("dimensions",), "the file")
    bodies = document.mapping(document.root, "dimensions", "dimensions")
    dimensions = {}
    for name in bodies:
        body = document.mapping(bodies, name, f"the dimension {name}")
        document.keys(body, ("description", "lexicon", "patterns"), ("description",), f"the dimension {name}")
        description = " ".join(document.text(body, "description", f"description of {name}").split())
        dimensions[name] = Dimension(
            name, description, tuple(_lexicon(document, body, name)), tuple(_patterns(document, body, name))
        )
    return dimensions


def _lexicon(document: Document, body: dict[str, Any], name: str) -> list[LexiconEntry]:
    entries = []
    by_language = document.mapping(body, "lexicon", f"lexicon of {name}") if "lexicon" in body else {}
    for lang in by_language:
        values = document.mapping(by_language, lang, f"the {lang} lexicon of {name}")
        for value in values:
            for text, _ in document.texts(values, value, f"the {lang} words for {value}"):
                entries.append(LexiconEntry(value, lang, text))
    return entries


def _patterns(document: Document, body: dict[str, Any], name: str) -> list[Pattern]:
    patterns = []
    by_language = document.mapping(body, "patterns", f"patterns of {name}") if "patterns" in body else {}
    for lang in by_language:
        items = document.sequence(by_language, lang, f"the {lang} patterns of {name}")
        for index in range(len(items)):
            item = document.mapping(items, index, f"a {lang} pattern of {name}")
            document.keys(item, ("value", "regex"), ("value", "regex"), f"a {lang} pattern of {name}")
            patterns.append(
                Pattern(
                    document.text(item, "value", f"a value of {name}"),
                    lang,
                    document.text(item, "regex", f"a regex of {name}"),
                )
            )
    return patterns
