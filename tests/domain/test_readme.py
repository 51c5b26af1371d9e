"""The files of a domain that the README shows are a domain."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from curation.domain import load_domain
from curation.domain.load import FILES
from curation.domain.model import REASONS
from curation.teachers.seeds_file import COLUMNS

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SHOWN = dict(re.findall(r"```yaml\n# (\w+\.yaml): [^\n]*\n(.*?)```", README, re.DOTALL))


@pytest.fixture
def domain(tmp_path):
    for name, text in SHOWN.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return load_domain(tmp_path)


def test_all_files_but_the_grammar_are_shown_and_read(domain):
    assert set(SHOWN) == set(FILES) - {"grammar.yaml"}
    assert set(domain.taxonomy.leaves) == {"music.play", "music.stop", "music.other", "weather", "other"}
    assert {seed.reason for seed in domain.seeds} == {None, "missing_tool"}
    assert domain.plans.of("music.stop").steps[0].tool == "play_music"


def test_the_columns_of_a_seeds_file_and_its_reasons_are_told():
    table = README[README.index("| column | holds |") :]
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.*) \|$", table.split("\n\n")[0])
    assert {name for name, _ in rows} == set(COLUMNS)
    assert set(re.findall(r"`(\w+)` \(", dict(rows)["reason"])) == set(REASONS)
