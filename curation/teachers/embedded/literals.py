"""Literals that a regular expression cannot match without, and the characters that it can begin with.

Searching a column for thousands of literals at once is cheap (Aho-Corasick), running a hundred expressions over it
is not. The idea is that of trigram indexes (R. Cox, "Regular Expression Matching with a Trigram Index", 2012): the
expression is read into a tree, and from the tree comes a set of strings one of which is in every match.

The subset of syntax: literals, classes, groups (named, not captured, with ``-i``), alternation, look-around, anchors,
``\\b \\d \\s \\w`` and escaped punctuation, quantifiers greedy or lazy. ``\\s`` stands for the space alone: text is
folded so that it holds no other white space. ASCII letters are lower-cased.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Literals", "LiteralsError", "literals"]

_MOST_STRINGS = 400
_MOST_CHARACTERS = 80
_MOST_LITERALS = 2000
_MOST_SETS = 3
_DIGITS = frozenset("0123456789")
_WORD = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyz_")
_GROUP = re.compile(r"\(\?(?P<kind>P<\w+>|:|-i:|=|!|<=|<!)")
_COUNT = re.compile(r"\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\}")


class LiteralsError(ValueError):
    """The expression uses syntax outside the subset."""


@dataclass(frozen=True)
class _Characters:
    """One character of a set; of any, when ``members`` is None."""

    members: frozenset[str] | None


@dataclass(frozen=True)
class _Sequence:
    """One item after the other; without items it matches nothing at all, as look-around and anchors do."""

    items: tuple[_Node, ...]


@dataclass(frozen=True)
class _Choice:
    options: tuple[_Node, ...]


@dataclass(frozen=True)
class _Repeat:
    item: _Node
    low: int
    high: int | None


_Node = _Characters | _Sequence | _Choice | _Repeat
_NOTHING = _Sequence(())


@dataclass(frozen=True)
class Literals:
    """What can be told of the matches of an expression without running it.

    Attributes:
        required: Sets of strings (lower case); every match holds at least one of each. The most telling first, at
            most three; empty when nothing is required.
        first: Characters (lower case) with which every match begins; None when it can be any, or nothing.
    """

    required: tuple[frozenset[str], ...]
    first: frozenset[str] | None


def literals(regex: str) -> Literals:
    """Analyse ``regex``; :class:`LiteralsError` when it uses syntax outside the subset."""
    tree = _Reader(regex).read()
    characters, nullable = _first(tree)
    items = tree.items if isinstance(tree, _Sequence) else (tree,)
    found = [_sparse(strings) for strings in sorted(_Analysis().found(items), key=_telling, reverse=True)]
    telling = [strings for at, strings in enumerate(found) if _worth(strings, 1 if at == 0 else 1.5)]
    return Literals(tuple(dict.fromkeys(telling))[:_MOST_SETS], None if nullable else characters)


class _Reader:
    """Reads an expression into a tree by recursive descent."""

    def __init__(self, regex: str) -> None:
        self.regex = regex
        self.at = 0

    def read(self) -> _Node:
        node = self._choice()
        if self.at < len(self.regex):
            raise LiteralsError(f"unbalanced ) at {self.at}")
        return node

    def _choice(self) -> _Node:
        options = [self._sequence()]
        while self.regex.startswith("|", self.at):
            self.at += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else _Choice(tuple(options))

    def _sequence(self) -> _Node:
        items = []
        while self.at < len(self.regex) and self.regex[self.at] not in "|)":
            items.append(self._repeated(self._item()))
        return items[0] if len(items) == 1 else _Sequence(tuple(items))

    def _repeated(self, item: _Node) -> _Node:
        while self.at < len(self.regex):
            character = self.regex[self.at]
            count = _COUNT.match(self.regex, self.at)
            if character in "*+?":
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
                self.at += 1
            elif count:
                low = int(count["low"] or 0)
                high = low if not count["comma"] else int(count["high"]) if count["high"] else None
                self.at = count.end()
            else:
                break
            self.at += self.regex.startswith("?", self.at)  # lazy
            item = _Repeat(item, low, high)
        return item

    def _item(self) -> _Node:
        character = self.regex[self.at]
        if character == "(":
            return self._group()
        if character == "[":
            return self._class()
        self.at += 1
        if character in "^$":
            return _NOTHING
        if character == ".":
            return _Characters(None)
        if character == "\\":
            return self._escape()
        return _Characters(frozenset((character.lower(),)))

    def _group(self) -> _Node:
        kind = ""
        if self.regex.startswith("(?", self.at):
            match = _GROUP.match(self.regex, self.at)
            if not match:
                raise LiteralsError(f"a kind of group that is not supported at {self.at}")
            kind = match["kind"]
            self.at = match.end()
        else:
            self.at += 1
        node = self._choice()
        if not self.regex.startswith(")", self.at):
            raise LiteralsError("a ( that is never closed")
        self.at += 1
        return _NOTHING if kind in ("=", "!", "<=", "<!") else node

    def _escape(self) -> _Node:
        character = self.regex[self.at : self.at + 1]
        self.at += 1
        if character in ("b", "B"):
            return _NOTHING
        if character in ("d", "w", "s"):
            return _Characters({"d": _DIGITS, "w": _WORD, "s": frozenset(" ")}[character])
        if character in ("D", "W", "S"):
            return _Characters(None)
        if not character or character.isalnum():
            raise LiteralsError(f"\\{character} is not supported")
        return _Characters(frozenset((character,)))

    def _class(self) -> _Node:
        self.at += 1
        negated = self.regex.startswith("^", self.at)
        self.at += negated
        members: set[str] = set()
        open_ended, first = negated, True
        while first or not self.regex.startswith("]", self.at):
            first = False
            if self.at >= len(self.regex):
                raise LiteralsError("a [ that is never closed")
            low = self._class_member()
            if low is None or len(low) > 1:
                open_ended, members = open_ended or low is None, members | (low or set())
                continue
            (character,) = low
            if self.regex.startswith("-", self.at) and not self.regex.startswith("-]", self.at):
                self.at += 1
                high = self._class_member()
                if high is None or len(high) > 1:
                    raise LiteralsError("a range that ends in a class")
                codes = range(ord(character), ord(next(iter(high))) + 1)
                open_ended = open_ended or len(codes) > _MOST_CHARACTERS
                members.update(chr(code).lower() for code in codes[:_MOST_CHARACTERS])
            else:
                members.add(character.lower())
        self.at += 1
        return _Characters(None if open_ended else frozenset(members))

    def _class_member(self) -> frozenset[str] | None:
        if self.regex[self.at] != "\\":
            self.at += 1
            return frozenset(self.regex[self.at - 1])
        self.at += 1
        node = self._escape()
        return node.members if isinstance(node, _Characters) else frozenset("\b")


class _Analysis:
    """Required literals of one tree; what is known of a node is kept, since its parents ask again."""

    def __init__(self) -> None:
        self._known: dict[int, frozenset[str] | None] = {}

    def exact(self, node: _Node) -> frozenset[str] | None:
        """All strings that ``node`` matches, when they are few."""
        key = id(node)
        if key not in self._known:
            self._known[key] = self._exact(node)
        return self._known[key]

    def _exact(self, node: _Node) -> frozenset[str] | None:
        if isinstance(node, _Characters):
            return node.members if node.members is not None and len(node.members) <= _MOST_CHARACTERS else None
        if isinstance(node, _Choice):
            options = [self.exact(option) for option in node.options]
            return (
                _few([string for option in options if option for string in option]) if None not in options else None
            )
        if isinstance(node, _Repeat):
            strings = self.exact(node.item)
            if strings is None or node.high is None or node.high > 2:
                return None
            powers = [frozenset([""]), strings, _product(strings, strings)][node.low : node.high + 1]
            return _few([string for power in powers if power for string in power]) if None not in powers else None
        product: frozenset[str] | None = frozenset([""])
        for item in node.items:
            product = _product(product, self.exact(item))
        return product

    def required(self, node: _Node) -> frozenset[str] | None:
        """Strings of which every match of ``node`` holds one; None when there is no such set."""
        if isinstance(node, _Characters):
            return self.exact(node)
        if isinstance(node, _Choice):
            options = [self.required(option) for option in node.options]
            if None in options:
                return None
            return frozenset([string for option in options if option for string in option])
        if isinstance(node, _Repeat):
            return self.required(node.item) if node.low >= 1 else None
        return max(self.found(node.items), key=_telling, default=None)

    def found(self, items: tuple[_Node, ...]) -> list[frozenset[str]]:
        """Sets required by a sequence: of runs of items with few strings, and what single items require."""
        found: list[frozenset[str]] = []
        run = frozenset([""])
        for item in items:
            strings = self.exact(item)
            longer = _product(run, strings)
            if longer is not None:
                run = longer
                continue
            repeated = self.exact(item.item) if isinstance(item, _Repeat) and item.low >= 1 else None
            if repeated is not None:  # "x+": one x ends the run, one begins the next
                run = _product(run, repeated) or run
            if "" not in run:
                found.append(run)
            run = strings or repeated or frozenset([""])
            needed = self.required(item) if strings is None and repeated is None else None
            if needed:
                found.append(needed)
        if "" not in run:
            found.append(run)
        return found


def _first(node: _Node) -> tuple[frozenset[str] | None, bool]:
    """First characters (None: any) and whether ``node`` can match nothing."""
    if isinstance(node, _Characters):
        return node.members, False
    if isinstance(node, _Choice):
        options = [_first(option) for option in node.options]
        nullable = any(empty for _, empty in options)
        if any(characters is None for characters, _ in options):
            return None, nullable
        return frozenset(character for characters, _ in options for character in characters or ()), nullable
    if isinstance(node, _Repeat):
        characters, nullable = _first(node.item)
        return characters, nullable or node.low == 0
    total: frozenset[str] = frozenset()
    for item in node.items:
        characters, nullable = _first(item)
        if characters is None:
            return None, False
        total |= characters
        if not nullable:
            return total, False
    return total, True


def _product(left: frozenset[str] | None, right: frozenset[str] | None) -> frozenset[str] | None:
    if left is None or right is None or len(left) * len(right) > _MOST_STRINGS:
        return None
    return frozenset(a + b for a in left for b in right)


def _few(strings: list[str]) -> frozenset[str] | None:
    result = frozenset(strings)
    return result if len(result) <= _MOST_STRINGS else None


def _sparse(strings: Iterable[str]) -> frozenset[str]:
    """Without strings that hold another of the set."""
    everything = frozenset(strings)
    return frozenset(
        string
        for string in everything
        if not any(
            string[start:end] in everything
            for start in range(len(string))
            for end in range(start + 1, len(string) + 1)
            if end - start < len(string)
        )
    )


def _telling(strings: frozenset[str]) -> tuple[float, int, list[str]]:
    """Order of sets: by their least telling string, then the smaller one."""
    return min(map(_weight, strings)), -len(strings), sorted(strings)


def _worth(strings: frozenset[str], least: float) -> bool:
    """Whether looking for the set tells anything, and is not more work than it saves."""
    return len(strings) <= _MOST_LITERALS and min(map(_weight, strings)) >= least


def _weight(string: str) -> float:
    """How telling a literal is: ideographs are rarer than digits and signs, these than letters."""
    return sum(
        2.5 if ord(character) > 0x2E80 else 1.0 if character.isalpha() else 0.3 if character == " " else 1.5
        for character in string
    )
