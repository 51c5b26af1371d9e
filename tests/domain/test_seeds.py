"""The shipped seed queries: every leaf well covered, no line twice, nothing copied from the measuring data."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

import curation.domain
from curation.domain.load import load_seeds, load_taxonomy
from curation.domain.model import SeedQuery, Taxonomy

DIRECTORY = Path(curation.domain.__file__).parent / "map_travel"
REASONS = ("missing_tool", "missing_info", "no_actionable", "no_tool_needed")
LANGUAGES = ("zh", "en")
HAN = re.compile(r"[㐀-鿿]")


def bare(text: str) -> str:
    """``text`` without case, width, punctuation, symbols and spaces: what makes two lines the same line."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if unicodedata.category(char)[0] in "LNM")


def measuring_file() -> Path | None:
    """The travelbench file in a ``shared`` folder next to the checkout or above it; None where it is absent."""
    for parent in Path(__file__).resolve().parents:
        path = parent / "shared" / "data" / "travelbench" / "dev.jsonl"
        if path.exists():
            return path
    return None


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    return load_taxonomy(DIRECTORY / "taxonomy.yaml")


@pytest.fixture(scope="module")
def seeds(taxonomy: Taxonomy) -> tuple[SeedQuery, ...]:
    return load_seeds(DIRECTORY / "seeds.yaml", taxonomy, LANGUAGES)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return yaml.safe_load((DIRECTORY / "seeds.yaml").read_text(encoding="utf-8"))


def test_every_leaf_has_seeds_in_each_language(taxonomy: Taxonomy, seeds: tuple[SeedQuery, ...]) -> None:
    counts = Counter((seed.primary, seed.lang) for seed in seeds if seed.reason is None)
    leaves = [leaf for leaf in taxonomy.leaves if not taxonomy.node(leaf).is_other]
    assert len(leaves) == 30
    assert [(leaf, lang) for leaf in leaves for lang in LANGUAGES if counts[leaf, lang] < 12] == []


def test_positive_seeds_are_never_filed_under_other(taxonomy: Taxonomy, seeds: tuple[SeedQuery, ...]) -> None:
    assert [seed.text for seed in seeds if seed.reason is None and taxonomy.node(seed.primary).is_other] == []


def test_every_reason_has_negatives_in_each_language(seeds: tuple[SeedQuery, ...]) -> None:
    counts = Counter((seed.reason, seed.lang) for seed in seeds if seed.reason is not None)
    assert {reason for reason, _ in counts} == set(REASONS)
    assert [reason for reason in REASONS if counts[reason, "zh"] < 40 or counts[reason, "en"] < 20] == []


def test_no_line_stands_twice(seeds: tuple[SeedQuery, ...]) -> None:
    """Over both languages and over positives and negatives: one text must not teach two labels."""
    counts = Counter(bare(seed.text) for seed in seeds)
    assert [text for text, count in counts.items() if count > 1] == []


def test_every_secondary_is_another_leaf(taxonomy: Taxonomy, seeds: tuple[SeedQuery, ...]) -> None:
    wrong = [
        (seed.text, leaf)
        for seed in seeds
        for leaf in seed.secondary
        if leaf == seed.primary or leaf not in taxonomy.leaf_set or taxonomy.node(leaf).is_other
    ]
    assert wrong == []
    assert sum(bool(seed.secondary) for seed in seeds) >= 60


def test_lines_are_text_in_the_language_they_are_filed_under(seeds: tuple[SeedQuery, ...]) -> None:
    """Lines of the wrong list, or of letters and digits alone, would teach nothing about their language."""
    wrong = [seed.text for seed in seeds if bool(HAN.search(seed.text)) != (seed.lang == "zh")]
    assert wrong == []
    assert [seed.text for seed in seeds if not bare(seed.text) or seed.text != seed.text.strip()] == []


def test_every_scalar_is_a_string(document: dict[str, Any]) -> None:
    """Unquoted ``yes``, ``12:30`` or ``1e3`` would be read as something else than text."""
    blocks = [*document["seeds"].values(), *document["negatives"]]
    items = [item for block in blocks for lang in LANGUAGES for item in block[lang]]
    texts = [item["text"] if isinstance(item, dict) else item for item in items]
    assert [text for text in texts if not isinstance(text, str)] == []


def test_lengths_vary_within_each_leaf(seeds: tuple[SeedQuery, ...]) -> None:
    """A classifier must not learn a leaf by the length of its lines."""
    lengths: dict[str, list[int]] = {}
    for seed in seeds:
        if seed.reason is None and seed.lang == "zh":
            lengths.setdefault(seed.primary, []).append(len(seed.text))
    assert [leaf for leaf, values in lengths.items() if max(values) < 2 * min(values)] == []


def test_no_line_of_the_measuring_data(seeds: tuple[SeedQuery, ...]) -> None:
    path = measuring_file()
    if path is None:
        pytest.skip("the travelbench measuring data is not on this machine")
    with path.open(encoding="utf-8") as file:
        measured = {bare(json.loads(line)["query"]) for line in file}
    assert [seed.text for seed in seeds if bare(seed.text) in measured] == []
