"""Reading a domain directory; every mistake is told with its file and line.

A directory holds ``taxonomy.yaml`` and, as far as the domain has them, ``seeds.yaml``, ``tools.yaml``,
``dimensions.yaml``, ``plans.yaml`` and ``grammar.yaml``. The domain's name is that of the directory.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

from curation.domain.dimensions import parse_dimensions
from curation.domain.document import Document, plain
from curation.domain.grammar import Grammar, parse_grammar
from curation.domain.model import (
    OTHER,
    REASONS,
    Domain,
    DomainParts,
    Node,
    SeedQuery,
    Taxonomy,
    Tool,
    Wording,
    other_description,
)
from curation.domain.plans import Plans, parse_plans
from curation.errors import CurationError

__all__ = ["FILES", "SHIPPED", "domain_fingerprint", "load_domain", "load_seeds", "load_taxonomy"]

FILES = ("taxonomy.yaml", "tools.yaml", "dimensions.yaml", "seeds.yaml", "plans.yaml", "grammar.yaml")
"""The files of a domain directory; only the first must be there."""

SHIPPED = ("map_travel",)
"""Domains that come with the package; their names stand for their directories."""

_NAME = re.compile(r"[\w-]+")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LANG = re.compile(r"[a-z]{2,3}")
_NODE_KEYS = ("description", "examples", "children")


def load_domain(path_or_name: str | Path) -> Domain:
    """Load the domain in a directory, or the shipped domain of that name.

    A bare name of :data:`SHIPPED` always means the shipped one; write ``./name`` for a directory of the same name.
    Loading the same bytes again gives the same object. Raises :class:`CurationError` naming file and line.
    """
    directory = _directory(path_or_name)
    return _load(directory, domain_fingerprint(directory))


@lru_cache(maxsize=8)
def _load(directory: Path, fingerprint: str) -> Domain:
    paths = {name: directory / name for name in FILES if (directory / name).exists()}
    document = Document(paths["taxonomy.yaml"])
    taxonomy = _parse_taxonomy(document)
    title = document.text(document.root, "title", "title") if "title" in document.root else directory.name
    declared = _declared_languages(document)
    tools = _parse_tools(Document(paths["tools.yaml"])) if "tools.yaml" in paths else {}
    dimensions, wording = (
        parse_dimensions(Document(paths["dimensions.yaml"])) if "dimensions.yaml" in paths else ({}, Wording())
    )
    seeds = load_seeds(paths["seeds.yaml"], taxonomy, declared) if "seeds.yaml" in paths else ()
    languages = declared or tuple(dict.fromkeys(seed.lang for seed in seeds))
    parts = DomainParts(taxonomy, tools, dimensions, languages)
    plans, grammar = Plans(), Grammar()
    if path := paths.get("plans.yaml"):
        plans = parse_plans(Document(path), path, parts)
    if path := paths.get("grammar.yaml"):
        grammar = parse_grammar(Document(path), path, parts)
    name = directory.name
    return Domain(name, title, languages, taxonomy, tools, dimensions, seeds, plans, grammar, fingerprint, wording)


def domain_fingerprint(path_or_name: str | Path) -> str:
    """SHA-256 over the names and bytes of the domain's files, without reading what is in them."""
    directory = _directory(path_or_name)
    digest = hashlib.sha256()
    for name in FILES:
        path = directory / name
        if path.exists():
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()


def load_taxonomy(path: Path) -> Taxonomy:
    """Load one version of a taxonomy from a file in the format of ``taxonomy.yaml``."""
    return _parse_taxonomy(Document(path))


def load_seeds(path: Path, taxonomy: Taxonomy, languages: tuple[str, ...] = ()) -> tuple[SeedQuery, ...]:
    """Load labelled seed queries from a file in the format of ``seeds.yaml``.

    Args:
        path: The file.
        taxonomy: Whose leaves the labels must be.
        languages: Languages that may be used; empty for any.
    """
    document = Document(path)
    root = document.root
    document.keys(root, ("seeds", "negatives"), (), "the file")
    reader = _SeedReader(document, taxonomy, languages)
    if root.get("seeds") is not None:
        leaves = document.mapping(root, "seeds", "seeds")
        for leaf in leaves:
            reader.leaf(leaves, leaf, leaf)
            by_language = document.mapping(leaves, leaf, f"seeds of {leaf}")
            reader.read(by_language, tuple(by_language), leaf, None)
    if root.get("negatives") is not None:
        blocks = document.sequence(root, "negatives", "negatives")
        for index in range(len(blocks)):
            block = document.mapping(blocks, index, "an entry of negatives")
            for key in ("reason", "primary"):
                if key not in block:
                    raise document.error(f"an entry of negatives has no {key!r}", blocks, index)
            reason = document.text(block, "reason", "reason")
            if reason not in REASONS:
                raise document.error(
                    f"unknown reason {reason!r}", block, "reason", f"The reasons are {', '.join(REASONS)}."
                )
            primary = document.text(block, "primary", "primary")
            reader.leaf(block, "primary", primary)
            reader.read(block, tuple(key for key in block if key not in ("reason", "primary")), primary, reason)
    return tuple(reader.seeds)


class _SeedReader:
    """Collects the seeds of one file and checks them against each other."""

    def __init__(self, document: Document, taxonomy: Taxonomy, languages: tuple[str, ...]) -> None:
        self.document, self.taxonomy, self.languages = document, taxonomy, languages
        self.seeds: list[SeedQuery] = []
        self._lines: dict[tuple[str, str], int | None] = {}

    def leaf(self, owner: Any, key: Any, leaf: str) -> None:
        """Check that ``leaf``, which stands at ``owner[key]``, is one that labels may use."""
        if leaf in self.taxonomy.leaf_set:
            return
        if leaf in self.taxonomy.by_id:
            raise self.document.error(
                f"{leaf} is not a leaf, it has children", owner, key, f"Use one of its leaves, or {leaf}.{OTHER}."
            )
        raise self.document.error(f"unknown leaf {leaf!r}", owner, key, _nearest(leaf, self.taxonomy.leaves))

    def read(self, owner: dict[str, Any], languages: tuple[str, ...], primary: str, reason: str | None) -> None:
        """Read the lists of seeds at the keys ``languages`` of ``owner``."""
        for lang in languages:
            if not _LANG.fullmatch(lang) or (self.languages and lang not in self.languages):
                known = ", ".join(self.languages) or "ISO 639 codes such as en"
                raise self.document.error(
                    f"unknown language {lang!r} for {primary}", owner, lang, f"Languages are {known}."
                )
            items = self.document.sequence(owner, lang, f"the {lang} seeds of {primary}")
            for index in range(len(items)):
                self._item(items, index, lang, primary, reason)

    def _item(self, items: list[Any], index: int, lang: str, primary: str, reason: str | None) -> None:
        document, item = self.document, items[index]
        secondary: tuple[str, ...] = ()
        if isinstance(item, dict):
            document.keys(item, ("text", "secondary"), ("text",), "a seed")
            text = document.text(item, "text", "the text of a seed")
            secondary = self._secondary(item, primary) if "secondary" in item else ()
        else:
            text = document.text(items, index, f"a seed of {primary}")
        key = (lang, " ".join(unicodedata.normalize("NFKC", text).casefold().split()))
        line = document.line(items, index)
        if key in self._lines:
            raise document.error(
                f"{text!r} is already a seed, in line {self._lines[key]}", items, index, "Keep one of the two."
            )
        self._lines[key] = line
        self.seeds.append(SeedQuery(text, lang, primary, secondary, reason))

    def _secondary(self, item: dict[str, Any], primary: str) -> tuple[str, ...]:
        labels = set()
        for label, index in self.document.texts(item, "secondary", "secondary"):
            self.leaf(item["secondary"], index, label)
            if label == primary or label in labels:
                raise self.document.error(f"{label} is given twice", item["secondary"], index)
            labels.add(label)
        return tuple(sorted(labels))


def _directory(path_or_name: str | Path) -> Path:
    if str(path_or_name) in SHIPPED:
        return Path(__file__).parent / str(path_or_name)
    directory = Path(path_or_name)
    if not directory.is_dir():
        raise CurationError(
            f"there is no domain {str(path_or_name)!r}",
            hint=f"Give a directory with a taxonomy.yaml, or a shipped domain: {', '.join(SHIPPED)}.",
        )
    directory = directory.resolve()
    for name in FILES:
        other = directory / name.replace(".yaml", ".yml")
        if other.exists():
            raise CurationError(f"{other} is not read", hint=f"Rename it to {name}.")
    if not (directory / "taxonomy.yaml").exists():
        raise CurationError(
            f"the domain {directory} has no taxonomy.yaml", hint="Write one; the shipped domain shows the format."
        )
    return directory


def _declared_languages(document: Document) -> tuple[str, ...]:
    if "languages" not in document.root:
        return ()
    languages = []
    for lang, index in document.texts(document.root, "languages", "languages"):
        if not _LANG.fullmatch(lang) or lang in languages:
            raise document.error(
                f"{lang!r} is not a language code, or given twice",
                document.root["languages"],
                index,
                "Use ISO 639 codes such as en and zh.",
            )
        languages.append(lang)
    return tuple(languages)


def _parse_taxonomy(document: Document) -> Taxonomy:
    root = document.root
    document.keys(root, ("title", "languages", "version", "taxonomy"), ("version", "taxonomy"), "the file")
    nodes: list[Node] = []
    _add_children(document, root, "taxonomy", None, nodes)
    return Taxonomy(document.text(root, "version", "version"), tuple(nodes))


def _add_children(document: Document, owner: Any, key: str, parent: str | None, nodes: list[Node]) -> None:
    """Append the nodes below ``parent``, which stand at ``owner[key]``, and their Other; depth first."""
    place = parent or "the taxonomy"
    children = owner[key]
    names = list(children) if isinstance(children, dict | list) else []
    if not names:
        raise document.error(f"{place} must have at least one category under {key!r}", owner, key)
    level = 1 if parent is None else parent.count(".") + 2
    seen = set()
    for index, name in enumerate(names):
        at = index if isinstance(children, list) else name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise document.error(
                f"{name!r} is not a name for a category of {place}", children, at, "Use letters, digits, _ and -."
            )
        if name == OTHER or name in seen:
            reason = "is kept by itself, it is never written" if name == OTHER else "is given twice"
            raise document.error(f"{name!r} under {place} {reason}", children, at, "Remove it.")
        seen.add(name)
        _add_node(document, children, name, parent, level, nodes)
    other_id = OTHER if parent is None else f"{parent}.{OTHER}"
    nodes.append(Node(other_id, parent, level, OTHER, other_description(parent), is_other=True, is_leaf=True))


def _add_node(document: Document, owner: Any, name: str, parent: str | None, level: int, nodes: list[Node]) -> None:
    node_id = name if parent is None else f"{parent}.{name}"
    body = None if isinstance(owner, list) else owner[name]
    if not isinstance(body, dict):  # a leaf in short: its name alone, or its name and its description
        description = (
            name.replace("_", " ") if body is None else document.text(owner, name, f"description of {node_id}")
        )
        nodes.append(Node(node_id, parent, level, name, description, is_other=False, is_leaf=True))
        return
    document.keys(body, _NODE_KEYS, ("description",), node_id)
    description = " ".join(document.text(body, "description", f"description of {node_id}").split())
    is_leaf = "children" not in body
    examples = _examples(document, body, node_id)
    nodes.append(Node(node_id, parent, level, name, description, is_other=False, is_leaf=is_leaf, examples=examples))
    if not is_leaf:
        _add_children(document, body, "children", node_id, nodes)


def _examples(document: Document, body: dict[str, Any], node_id: str) -> tuple[str, ...]:
    """``examples`` of a node: a list, or lists by language."""
    if "examples" not in body:
        return ()
    what = f"examples of {node_id}"
    if not isinstance(body["examples"], dict):
        return tuple(text for text, _ in document.texts(body, "examples", what))
    by_language = document.mapping(body, "examples", what)
    return tuple(text for lang in by_language for text, _ in document.texts(by_language, lang, what))


def _parse_tools(document: Document) -> dict[str, Tool]:
    """``tools: {group: {name: {description, parameters: <JSON Schema object>}}}``."""
    document.keys(document.root, ("tools",), ("tools",), "the file")
    groups = document.mapping(document.root, "tools", "tools")
    tools: dict[str, Tool] = {}
    for group in groups:
        members = document.mapping(groups, group, f"the tools of {group}")
        for name in members:
            if name in tools or not _TOOL_NAME.fullmatch(name):
                reason = "is in another group already" if name in tools else "is not a name for a tool"
                raise document.error(
                    f"{name!r} {reason}", members, name, "Use up to 64 of A-Z, a-z, 0-9, _ and -, each name once."
                )
            tools[name] = _parse_tool(document, members, name, group)
    return tools


def _parse_tool(document: Document, owner: Any, name: str, group: str) -> Tool:
    body = document.mapping(owner, name, f"the tool {name}")
    document.keys(body, ("description", "parameters"), ("description", "parameters"), f"the tool {name}")
    description = " ".join(document.text(body, "description", f"description of {name}").split())
    schema = document.mapping(body, "parameters", f"parameters of {name}")
    if schema.get("type") != "object":
        raise document.error(f"parameters of {name} must be a JSON Schema with type: object", body, "parameters")
    properties = document.mapping(schema, "properties", f"properties of {name}") if "properties" in schema else {}
    for argument in properties:
        document.mapping(properties, argument, f"the argument {argument} of {name}")
    required = []
    for argument, index in document.texts(schema, "required", f"required of {name}") if "required" in schema else ():
        if argument not in properties:
            raise document.error(
                f"{name} requires {argument!r}, which is none of its properties", schema["required"], index
            )
        required.append(argument)
    return Tool(name, group, description, plain(schema), tuple(required))


def _nearest(word: str, words: tuple[str, ...]) -> str | None:
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    return f"Did you mean {close[0]}?" if close else None
