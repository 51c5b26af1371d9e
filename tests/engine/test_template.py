"""The commented recipe of a new workspace."""

from __future__ import annotations

import re

from curation.engine.recipe import Recipe, section_models
from curation.engine.template import recipe_template
from curation.pipeline import STAGES


def template():
    return recipe_template(STAGES, {"path": "log", "text": "q"}, "map_travel", 5)


def load(directory, text):
    (directory / "recipe.yaml").write_text(text, encoding="utf-8")
    return Recipe.load(directory)


def test_it_loads_with_every_default(tmp_path):
    recipe = load(tmp_path, template())
    assert recipe.seed == 5
    assert recipe.log.text == "q"
    assert recipe.sections == {name: model() for name, model in section_models(STAGES).items()}


def test_every_commented_setting_may_be_uncommented(tmp_path):
    """What stands in the comments is true: setting all of it changes nothing."""
    lines = []
    for line in template().splitlines():
        section = re.fullmatch(r"# ([a-z_0-9]+):", line)
        setting = re.fullmatch(r"# (  [a-z_0-9]+: .*)", line)
        lines.append(f"{section[1]}:" if section else setting[1] if setting else line)
    everything = load(tmp_path, "\n".join(lines))
    assert everything.sections == {name: model() for name, model in section_models(STAGES).items()}
    named = "\n".join(lines)
    for name, stage in STAGES.items():
        for field in stage.params.model_fields:
            assert re.search(rf"^{name}:(\n(  |#  ).*)*\n  {field}: ", named, re.MULTILINE), (name, field)


def test_every_setting_says_what_it_means():
    for name, stage in STAGES.items():
        for field, info in stage.params.model_fields.items():
            assert info.description, (name, field)
