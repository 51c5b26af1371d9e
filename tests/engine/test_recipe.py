from __future__ import annotations

import pytest
from pydantic import Field

from curation.engine.recipe import Recipe, input_files
from curation.engine.stage import Params, Stage
from curation.errors import CurationError
from tests.engine.toy import STAGES, LexicalParams


def load(tmp_path, text):
    path = tmp_path / "recipe.yaml"
    path.write_text(text, encoding="utf-8")
    return Recipe.load(path, stages=STAGES)


def test_defaults_and_relative_paths(tmp_path):
    recipe = load(tmp_path, "log: {path: logs/july}\nlexical: {modulus: 3}\n")
    assert recipe.log.path == tmp_path / "logs" / "july"
    assert recipe.sections["lexical"].modulus == 3
    assert recipe.sections["ingest"].rows == 40
    assert recipe.run.threads >= 1


def test_a_directory_means_its_recipe(tmp_path):
    load(tmp_path, "log: {path: .}")
    assert Recipe.load(tmp_path, stages=STAGES).root == tmp_path


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("log: {path: .}\n\nlexicall:\n  modulus: 2\n", "line 3: unknown key 'lexicall'", "lexical"),
        ("log: {path: .}\nlexical:\n  # why\n  modullus: 2\n", "line 4: unknown key 'lexical.modullus'", "modulus"),
        ("log:\n  path: .\n  txt: q\n", "line 3: unknown key 'log.txt'", "text"),
        ("log: {path: .}\nrun:\n  worker: 2\n", "line 3: unknown key 'run.worker'", "workers"),
        ("log: {path: .}\ningest:\n  rows: many\n", "line 3: ingest.rows = 'many' is wrong", None),
        ("log: {path: .}\ningest:\n  slow: .nan\n", "line 3: ingest.slow = nan is wrong", None),
        ("log: {path: .}\ningest:\n  rows: -1\n", "line 3: ingest.rows = -1 is wrong", None),
        ("log: {path: .}\ningest:\n  rows: true\n", "line 3: ingest.rows = True is wrong: a number is wanted", None),
        ("log: {path: .}\ningest:\n  slow: no\n  rows: 1\n", "line 3: ingest.slow = 'no' is wrong", None),
        ("log: {path: .}\nrun: {memory_gb: false}\n", "line 2: run.memory_gb = False is wrong: a number", None),
        ("log: {path: .}\nlexical: 7\n", "line 2: lexical must be a mapping", None),
        ("seed: 1\n", "'log' is missing", None),
        ("log: {path: .}\nlog: {path: x}\n", "line 2: not valid YAML", None),
        ("log: [\n", "not valid YAML", None),
        ("- a\n", "a recipe is a mapping", None),
        (
            "log: {path: .}\nlexical: {file: gone.csv}\n",
            "gone.csv named by 'file' in the recipe does not exist",
            None,
        ),
    ],
)
def test_e5_a_wrong_recipe_gets_a_sentence_with_its_line(tmp_path, text, message, hint):
    with pytest.raises(CurationError) as caught:
        load(tmp_path, text)
    assert message in caught.value.message
    if hint:
        assert hint in caught.value.hint


def test_no_recipe_says_how_to_get_one(tmp_path):
    with pytest.raises(CurationError, match="there is no recipe") as caught:
        Recipe.load(tmp_path)
    assert "curate init" in caught.value.hint


def test_input_files_become_absolute(tmp_path):
    (tmp_path / "s.csv").write_text("x")
    recipe = load(tmp_path, "log: {path: .}\nlexical: {file: s.csv}\n")
    assert input_files(recipe.sections["lexical"]) == {"file": tmp_path / "s.csv"}
    assert input_files(LexicalParams()) == {}


def test_not_utf8(tmp_path):
    (tmp_path / "recipe.yaml").write_bytes(b"log: \xff\xfe")
    with pytest.raises(CurationError, match="not UTF-8"):
        Recipe.load(tmp_path, stages=STAGES)


class Usual(Params):
    file: str | None = Field(None, json_schema_extra={"input_file": True, "usual_place": "review/it.csv"})


def test_an_input_file_in_its_usual_place_need_not_be_named(tmp_path):
    stages = {"one": Stage("one", lambda ctx: None, Usual, makes=("queries",))}
    document = {"log": {"path": "log"}}
    assert Recipe.from_dict(document, root=tmp_path, stages=stages).sections["one"].file is None
    for place in ("review/it.csv", "mine.csv"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("x")
    assert Recipe.from_dict(document, root=tmp_path, stages=stages).sections["one"].file == str(
        tmp_path / "review" / "it.csv"
    )
    named = Recipe.from_dict(document | {"one": {"file": "mine.csv"}}, root=tmp_path, stages=stages)
    assert named.sections["one"].file == str(tmp_path / "mine.csv")
