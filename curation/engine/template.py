"""The recipe that a new workspace starts with: every setting with its default and what it means, as comments."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from curation.engine.recipe import LogSource, RunOptions
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


def _fields(model: type[BaseModel], given: Mapping[str, Any]) -> list[str]:
    """One line a field; those in ``given`` are set, the others stand as comments with their default."""
    lines = []
    for name, field in model.model_fields.items():
        if field.description:
            lines += [f"  # {line}" for line in textwrap.wrap(field.description, _WIDTH)]
        default = field.get_default(call_default_factory=True)
        if name in given:
            lines.append(f"  {name}: {_value(given[name])}")
        elif default is not PydanticUndefined:
            lines.append(f"  # {name}: {_value(default)}")
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
        "log:",
        *_fields(LogSource, log),
        "",
        "# A shipped domain (map_travel), or a directory with taxonomy.yaml, seeds.yaml, tools.yaml ...",
        f"domain: {domain}",
        "",
        "# Every random choice starts from this seed.",
        f"seed: {seed}",
        "",
        "# How to run; nothing here changes a result.",
        "# run:",
        *(line.replace("  # ", "#   # ", 1) for line in _fields(RunOptions, {})),
    ]
    for stage in stages.values():
        fields = _fields(stage.params, {})
        if fields:
            lines += ["", f"# {stage.title or stage.name}.", f"# {stage.name}:"]
            lines += [
                line.replace("  # ", "#   ", 1) if _is_setting(line) else "#   # " + line[4:] for line in fields
            ]
    return "\n".join(lines) + "\n"


def _is_setting(line: str) -> bool:
    name, colon, _ = line.strip().removeprefix("# ").partition(":")
    return bool(colon) and name.isidentifier()
