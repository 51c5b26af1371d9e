"""The recipe that a new workspace starts with: every setting with its default and what it means, as comments."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from curation.engine.recipe import LogSource, RunOptions, section_models
from curation.engine.stage import Stage

__all__ = ["recipe_template"]

_WIDTH = 100


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, BaseModel):
        return json.dumps(value.model_dump(mode="json"), ensure_ascii=False)
    if isinstance(value, tuple | list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _section(name: str, model: type[BaseModel], given: Mapping[str, Any]) -> list[str]:
    """A section of the recipe: what is given is set; the rest, and a section without anything, is commented out.

    Taking one ``#`` and one space away from a commented setting and its section's head makes it count.
    """
    mark = "" if given else "# "
    lines = [f"{mark}{name}:"]
    for field_name, field in model.model_fields.items():
        lines += [f"{mark}  # {line}" for line in textwrap.wrap(field.description or "", _WIDTH)]
        default = field.get_default(call_default_factory=True)
        if field_name in given:
            lines.append(f"  {field_name}: {_value(given[field_name])}")
        elif default is not PydanticUndefined:
            lines.append(f"{mark or '  # '}{'  ' if mark else ''}{field_name}: {_value(default)}")
    return lines


def recipe_template(stages: Mapping[str, Stage], log: Mapping[str, Any], domain: str, seed: int) -> str:
    """Text of a recipe with the log's settings filled in and all else at its default.

    Args:
        stages: The stages there are.
        log: Fields of :class:`LogSource` to set.
        domain: Shipped domain or directory.
        seed: Seed of every random choice.
    """
    lines = [
        "# Recipe of this workspace. `curate run` builds what it says; lines that are commented out show defaults.",
        "# `curate plan` shows what a change makes stale, `curate why TABLE` says why.",
        "",
        *_section("log", LogSource, log),
        "",
        "# A shipped domain (map_travel), or a directory with taxonomy.yaml, seeds.yaml, tools.yaml ...",
        f"domain: {domain}",
        "",
        "# Every random choice starts from this seed.",
        f"seed: {seed}",
        "",
        "# Workspace of an earlier day: what it has seen, or kept something close to, goes to its representatives.",
        "# earlier: ../yesterday",
        "",
        "# How to run; nothing here changes a result.",
        *_section("run", RunOptions, {}),
    ]
    for stage in stages.values():
        if stage.params.model_fields:
            title = (stage.title or stage.name).rstrip(".")
            lines += ["", f"# {title[0].upper()}{title[1:]}.", *_section(stage.name, stage.params, {})]
    for name, model in section_models(stages).items():
        if name not in stages:
            title = (model.__doc__ or name).splitlines()[0].rstrip(".")
            lines += ["", f"# {title}.", *_section(name, model, {})]
    return "\n".join(lines) + "\n"
