"""Slots: lists of words with how often each is said, read from the YAML files of a family.

A slot is a list (``zh``, ``en`` ...), a ``range`` of numbers, a ``compose`` of other slots, or a ``union`` of slots.
Items are said with Zipf-like frequencies in the order they are written. ``a/b`` are two names of one thing, ``x@y``
gives the attribute ``city`` of ``x``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from ruamel.yaml import YAML

__all__ = ["Slot", "Vocabulary", "zipf"]

SYNONYM_DECAY = 0.5  # the second name of a thing is said half as often as the first
BLANK_SEPARATED = {"zh"}
SLOT = re.compile(r"\{([a-z_0-9]+)\}")


@dataclass(frozen=True)
class Slot:
    """One slot in one language.

    Attributes:
        texts: The words, an object array of ``n`` strings.
        canon: ``n`` ints; two words with the same number name the same thing.
        p: ``n`` probabilities, their sum is 1.
        city: ``n`` strings for ``{slot.city}``, or None.
        dimension: Constraint dimension that the words express, or None.
        masked: Kind of personal data that the words are, or None.
    """

    texts: np.ndarray
    canon: np.ndarray
    p: np.ndarray
    city: np.ndarray | None = None
    dimension: str | None = None
    masked: str | None = None
    cdf: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cdf = np.cumsum(self.p)
        object.__setattr__(self, "cdf", cdf / cdf[-1])

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, u: np.ndarray) -> np.ndarray:
        """Indices of the words at the quantiles ``u`` in [0, 1): uniform quantiles draw by the probabilities."""
        return np.minimum(np.searchsorted(self.cdf, u, side="right"), len(self) - 1).astype(np.int32)


def zipf(n: int, exponent: float) -> np.ndarray:
    """Probabilities of ranks 1..n, proportional to rank^-exponent."""
    weights = np.arange(1, n + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


class Vocabulary:
    """All slots of a family, built on demand for a language.

    Args:
        documents: Parsed YAML documents; lists of one slot in several documents are joined by language.
        extra: Ready slots by (name, language), such as personal data.
        seed: Chooses the words of a slot that is a sample of its composition.
    """

    def __init__(self, documents: list[dict[str, Any]], extra: dict[tuple[str, str], Slot], seed: int) -> None:
        self._specs: dict[str, dict[str, Any]] = {}
        for document in documents:
            for name, spec in document.items():
                self._specs.setdefault(name, {}).update(spec)
        self._slots = dict(extra)
        self._extra = {name for name, _ in extra}
        self._seed = seed

    @classmethod
    def read(cls, files: list[Path], extra: dict[tuple[str, str], Slot], seed: int) -> Vocabulary:
        """Read the YAML files of a family."""
        yaml = YAML(typ="safe")
        return cls([yaml.load(path.read_text("utf-8")) for path in files], extra, seed)

    def __contains__(self, name: str) -> bool:
        return name in self._specs or name in self._extra

    def slot(self, name: str, lang: str) -> Slot:
        """The slot ``name`` in ``lang``; ``KeyError`` names both if there is none."""
        key = (name, lang)
        if key not in self._slots:
            if name not in self._specs:
                raise KeyError(f"no slot {name!r} in {lang}")
            self._slots[key] = self._build(name, lang, self._specs[name])
        return self._slots[key]

    def _build(self, name: str, lang: str, spec: dict[str, Any]) -> Slot:
        exponent = float(spec.get("zipf", 0.8))
        dimension = spec.get("dimension")
        if "union" in spec:
            return self._union(lang, spec, dimension)
        if "range" in spec:
            low, high = spec["range"]
            form = spec.get(f"{lang}_format", "{}")
            words = [form.format(i) for i in range(low, high + 1)]
            return Slot(_array(words), np.arange(len(words)), zipf(len(words), exponent), dimension=dimension)
        if "compose" in spec and lang in spec["compose"]:
            return self._compose(lang, spec["compose"][lang], spec.get("sample"), dimension, name)
        if lang not in spec:
            raise KeyError(f"slot {name!r} has no words in {lang}")
        return _words(spec[lang], lang, exponent, dimension)

    def _compose(self, lang: str, form: str, sample: int | None, dimension: str | None, name: str) -> Slot:
        names = SLOT.findall(form)
        parts = [self.slot(part, lang) for part in names]
        sizes = tuple(len(part) for part in parts)
        total = int(np.prod(sizes))
        rng = np.random.default_rng([self._seed, len(form), total])
        chosen = np.arange(total) if sample is None or sample >= total else rng.choice(total, sample, replace=False)
        index = np.unravel_index(np.sort(chosen), sizes)
        template = SLOT.sub("%s", form)
        columns = [part.texts[i] for part, i in zip(parts, index, strict=True)]
        words = [template % values for values in zip(*columns, strict=True)]
        p = np.ones(len(chosen))
        canon = np.zeros(len(chosen), np.int64)
        for part, i in zip(parts, index, strict=True):
            p *= part.p[i]
            canon = canon * (int(part.canon.max()) + 1) + part.canon[i]
        order = rng.permutation(len(chosen))
        canon = np.unique(canon, return_inverse=True)[1]
        return Slot(_array(words)[order], canon[order], p[order] / p.sum(), dimension=dimension)

    def _union(self, lang: str, spec: dict[str, Any], dimension: str | None) -> Slot:
        sources = [(self.slot(n, lang), float(w)) for n, w in spec["union"].items() if self._has(n, lang)]
        texts, canon, p, offset = [], [], [], 0
        for slot, weight in sources:
            texts.append(slot.texts)
            canon.append(slot.canon + offset)
            offset += int(slot.canon.max()) + 1
            p.append(slot.p * weight)
        words = np.concatenate(texts)
        probabilities = np.concatenate(p)
        # The same words from two sources are one thing: the first keeps its number, the later ones take it.
        first: dict[str, int] = {}
        numbers = np.concatenate(canon)
        for i, word in enumerate(words):
            numbers[i] = first.setdefault(word, numbers[i])
        return Slot(words, numbers, probabilities / probabilities.sum(), dimension=dimension)

    def _has(self, name: str, lang: str) -> bool:
        spec = self._specs[name]
        if "range" in spec or "union" in spec:
            return True
        return lang in spec or lang in spec.get("compose", {})


def _words(text: str, lang: str, exponent: float, dimension: str | None) -> Slot:
    items = text.split() if lang in BLANK_SEPARATED else [i.strip() for i in text.split(";") if i.strip()]
    words, canon, weights, cities = [], [], [], []
    for number, (item, weight) in enumerate(zip(items, zipf(len(items), exponent), strict=True)):
        names, _, city = item.partition("@")
        alternatives = _alternatives(names)
        share = SYNONYM_DECAY ** np.arange(len(alternatives))
        for word, part in zip(alternatives, share / share.sum(), strict=True):
            words.append(word)
            canon.append(number)
            weights.append(weight * part)
            cities.append(city)
    return Slot(
        _array(words),
        np.array(canon),
        np.array(weights),
        city=_array(cities) if any(cities) else None,
        dimension=dimension,
    )


def _alternatives(names: str) -> list[str]:
    return [name.strip() for name in names.split("/") if name.strip()]


def _array(words: list[str]) -> np.ndarray:
    out = np.empty(len(words), object)
    out[:] = words
    return out
