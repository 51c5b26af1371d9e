"""Frames: one intent with its slots and the wordings it is said in, read from the YAML files of a family.

Syntax of a wording: ``{slot}`` is a word of the slot, ``{slot2}`` a second one, ``{slot.city}`` its city; ``<x|...>``
marks a constraint of the dimension with the letter x; a wording that starts with ``b) `` has another sense than those
without, so that it is no paraphrase of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from logmaker.vocabulary import Vocabulary

__all__ = ["DIFFICULTY", "DIMENSIONS", "Field", "Frame", "Wording", "read_frames"]

DIMENSIONS = {
    "s": "spatial_scope",
    "t": "time",
    "b": "budget",
    "m": "transport_mode",
    "p": "party",
    "q": "preference",
    "r": "route",
    "n": "quantity",
    # Words that one careful person would mark and another would not: neither finding nor missing them is a mistake.
    "o": "optional",
}
# Difficulty classes as the inclusive range of difficulties that a careful person would accept.
DIFFICULTY = {"unexecutable": (-1, -1), "no_tool": (0, 0), "easy": (1, 2), "medium": (3, 3), "hard": (4, 5)}
TOKEN = re.compile(r"\{([a-z_]+)(\d?)(\.city)?\}|<([a-z])\||>")
SENSE = re.compile(r"^([a-z])\) ")


@dataclass(frozen=True)
class Field:
    """A slot in a wording: ``draw`` numbers the word that is drawn, ``attribute`` is ``city`` or None."""

    draw: int
    attribute: str | None


@dataclass(frozen=True)
class Wording:
    """One way to say a frame.

    Attributes:
        pieces: Literal text and fields in order.
        draws: For every word to draw: (slot name, which of that slot's words in the frame).
        marks: (dimension, first piece, piece after the last) of the marked constraints.
        p: Probability within its frame and language.
    """

    frame: Frame
    lang: str
    sense: str
    pieces: tuple[str | Field, ...]
    draws: tuple[tuple[str, int], ...]
    marks: tuple[tuple[str, int, int], ...]
    p: float


@dataclass(frozen=True, eq=False)
class Frame:
    """An intent: all its wordings of one sense with the same words in the slots are paraphrases."""

    name: str
    leaf: str | None
    secondary: tuple[str, ...]
    difficulty: tuple[int, int]
    reason: str | None
    weight: float


def read_frames(files: list[Path], vocabulary: Vocabulary, exponent: float) -> list[Wording]:
    """All wordings of a family, in the order of the files.

    Args:
        files: YAML files, each a list of frames.
        vocabulary: Tells slot names from their numbers.
        exponent: Zipf exponent of the wordings of a frame, in the order they are written.
    """
    yaml = YAML(typ="safe")
    wordings = []
    names: set[str] = set()
    for path in files:
        for entry in yaml.load(path.read_text("utf-8")):
            frame, texts = _frame(entry)
            if frame.name in names:
                raise ValueError(f"{path.name}: two frames are called {frame.name}")
            names.add(frame.name)
            for lang, lines in texts.items():
                weights = [(i + 1) ** -exponent for i in range(len(lines))]
                for line, weight in zip(lines, weights, strict=True):
                    wordings.append(_wording(frame, lang, line, weight / sum(weights), vocabulary))
    return wordings


def _frame(entry: dict[str, Any]) -> tuple[Frame, dict[str, list[str]]]:
    entry = dict(entry)
    frame = Frame(
        entry.pop("frame"),
        entry.pop("leaf", None),
        tuple(sorted(entry.pop("secondary", ()))),
        DIFFICULTY[entry.pop("difficulty", "easy")],
        entry.pop("reason", None),
        float(entry.pop("weight")),
    )
    return frame, {lang: [line.strip() for line in text.splitlines() if line.strip()] for lang, text in entry.items()}


def _wording(frame: Frame, lang: str, line: str, p: float, vocabulary: Vocabulary) -> Wording:
    sense = "a"
    if match := SENSE.match(line):
        sense, line = match[1], line[match.end() :]
    pieces: list[str | Field] = []
    draws: list[tuple[str, int]] = []
    marks: list[tuple[str, int, int]] = []
    opened: list[tuple[str, int]] = []
    at = 0
    for match in TOKEN.finditer(line):
        if match.start() > at:
            pieces.append(line[at : match.start()])
        at = match.end()
        name, number, attribute, letter = match.groups()
        if letter:
            opened.append((DIMENSIONS[letter], len(pieces)))
        elif name:
            if name + number in vocabulary:
                name, number = name + number, ""
            draw = (name, int(number or 1))
            if draw not in draws:
                draws.append(draw)
            pieces.append(Field(draws.index(draw), "city" if attribute else None))
        else:
            dimension, start = opened.pop()
            marks.append((dimension, start, len(pieces)))
    if at < len(line):
        pieces.append(line[at:])
    if opened:
        raise ValueError(f"frame {frame.name}: a constraint is opened and not closed in {line!r}")
    return Wording(frame, lang, sense, tuple(pieces), tuple(draws), tuple(sorted(marks, key=lambda m: m[1])), p)
