"""The recipe: one YAML file that says which log, which domain, which stages with which parameters."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, field_validator

from curation.engine.settings import Settings
from curation.engine.stage import Params, Stage
from curation.errors import CurationError

__all__ = ["LogSource", "Recipe", "RunOptions", "input_files", "section_models"]

RECIPE_NAME = "recipe.yaml"


class LogSource(Settings):
    """Where the raw log lies and what its columns are called."""

    path: Path = Field(description="directory, file or glob; relative to the recipe")
    format: Literal["auto", "parquet", "csv", "jsonl"] = Field("auto", description="auto goes by the file names")
    text: str = Field("query", description="column with the query text")
    time: str | None = Field(None, description="column with the time stamp, if there is one")
    source: str | None = Field(None, description="column that says where a row came from, if there is one")

    @cached_property
    def _files(self) -> list[Path]:
        from curation.engine.readers import log_files

        return log_files(self.path, self.format)

    def files(self) -> list[Path]:
        """The log's files, sorted by path."""
        return self._files

    @property
    def root(self) -> Path:
        """The directory that file names in tables are relative to."""
        if self.path.is_dir():
            return self.path
        parts = self.path.parts
        magic = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts) - 1)
        return Path(*parts[:magic])


class RunOptions(Settings):
    """How to run; nothing here shapes a result, so nothing here makes a table stale."""

    workers: int = Field(0, ge=0, description="threads; 0 takes every core this process may use")
    memory_gb: float = Field(8.0, gt=0, description="memory the stages should stay under")
    log_level: Literal["debug", "info", "warning"] = Field("info", description="how much is said")

    @property
    def threads(self) -> int:
        """``workers``, or the number of usable cores where it is 0."""
        return self.workers or len(os.sched_getaffinity(0))


class _Head(Settings):
    log: LogSource
    domain: str = Field("map_travel", description="a shipped domain or a directory with domain files")
    earlier: Path | None = Field(None, description="workspace of an earlier day; relative to the recipe")

    @field_validator("earlier", mode="before")
    @classmethod
    def _one_workspace(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, str | Path):
            raise ValueError("it is the path of one workspace; that one may name a still earlier one itself")
        return value

    seed: int = Field(20251224, ge=0, description="seed of every random choice")
    run: RunOptions = RunOptions()


def input_files(params: Params) -> dict[str, Path]:
    """The parameters that name a file whose content is an input: field name to absolute path, unset ones left out."""
    found = {}
    for name, field in type(params).model_fields.items():
        extra = field.json_schema_extra
        if isinstance(extra, dict) and extra.get("input_file") and getattr(params, name) is not None:
            found[name] = Path(getattr(params, name))
    return found


class _Lines:
    """Finds the line of a key in the YAML the person wrote, for error messages only."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def where(self, location: tuple[Any, ...]) -> str:
        if self._path is None:
            return "recipe"
        from ruamel.yaml import YAML

        node, line = YAML().load(self._path.read_text(encoding="utf-8")), 1
        for step in location:
            data = getattr(getattr(node, "lc", None), "data", None) or {}
            if step not in data:
                break
            line = data[step][0] + 1
            node = node[step]
        return f"{self._path}, line {line}"


@dataclass(frozen=True)
class Recipe:
    """A validated recipe.

    Attributes:
        path: The recipe file; None for one made in memory.
        root: Directory that relative paths start from.
        log, domain, seed, run: The head of the recipe.
        sections: Parameters of every stage and of the sections that stages share, defaults filled in, input files as
            absolute paths.
        earlier: Workspace of an earlier day: what it kept also represents queries of this one; None for none.
    """

    path: Path | None
    root: Path
    log: LogSource
    domain: str
    seed: int
    run: RunOptions
    sections: dict[str, Params]
    earlier: Path | None = None

    def with_workers(self, workers: int | None) -> Recipe:
        """This recipe with another number of threads; itself for None."""
        if workers is None:
            return self
        return replace(self, run=self.run.model_copy(update={"workers": workers}))

    @classmethod
    def load(cls, path: str | Path, stages: Mapping[str, Stage] | None = None) -> Recipe:
        """Read the recipe file, or the ``recipe.yaml`` of a workspace directory.

        Raises:
            CurationError: It is missing, is not YAML, or has an unknown key or a wrong value; the line is named.
        """
        path = Path(path)
        if path.is_dir():
            path = path / RECIPE_NAME
        if not path.is_file():
            raise CurationError(
                f"there is no recipe at {path}", "Make a workspace with `curate init DIR`, or name a recipe file."
            )
        return cls.from_dict(_parse_yaml(path), root=path.parent, path=path, stages=stages)

    @classmethod
    def from_dict(
        cls,
        document: Mapping[str, Any],
        *,
        root: str | Path = ".",
        path: Path | None = None,
        stages: Mapping[str, Stage] | None = None,
    ) -> Recipe:
        """Validate a recipe given as a mapping; relative paths in it start from ``root``."""
        if stages is None:
            from curation.pipeline import STAGES

            stages = STAGES
        lines, root = _Lines(path), Path(root).resolve()
        models = section_models(stages)
        known = [*_Head.model_fields, *models]
        for key in document:
            if key not in known:
                close = difflib.get_close_matches(str(key), known, 1)
                raise CurationError(
                    f"{lines.where((key,))}: unknown key {key!r}",
                    f"Did you mean {close[0]!r}?" if close else f"The keys are {', '.join(known)}.",
                )
        head = _validate(_Head, {k: v for k, v in document.items() if k in _Head.model_fields}, (), lines)
        log = head.log.model_copy(update={"path": _absolute(head.log.path, root)})
        sections = {
            name: _resolve_files(_validate(model, document.get(name) or {}, (name,), lines), root)
            for name, model in models.items()
        }
        domain = head.domain
        if (root / domain).is_dir():
            domain = str((root / domain).resolve())
        earlier = head.earlier and _earlier(_absolute(head.earlier, root), lines, root)
        return cls(path and path.resolve(), root, log, domain, head.seed, head.run, sections, earlier)


def section_models(stages: Mapping[str, Stage]) -> dict[str, type[Params]]:
    """The sections a recipe may have with their models: each stage's own, then those that stages share."""
    models = {name: stage.params for name, stage in stages.items()}
    for stage in stages.values():
        models |= stage.sections
    return models


def _earlier(path: Path, lines: _Lines, root: Path) -> Path:
    hint = "Name the directory of a workspace whose run is finished, or take the line out."
    if not path.is_dir():
        raise CurationError(f"{lines.where(('earlier',))}: there is no workspace at {path}", hint)
    if path.resolve() == root:
        raise CurationError(f"{lines.where(('earlier',))}: a workspace cannot be its own earlier one", hint)
    chain = [path.resolve()]
    while (before := _named_earlier(chain[-1])) is not None and before not in chain:
        if before == root:
            steps = " -> ".join(map(str, [root, *chain, root]))
            raise CurationError(
                f"{lines.where(('earlier',))}: the earlier workspaces go round in a circle: {steps}",
                "Take the line `earlier` out of the recipe of the first day.",
            )
        chain.append(before)
    return path


def _named_earlier(root: Path) -> Path | None:
    """The workspace that the recipe in a workspace names as earlier; None where there is none to be read."""
    if not (root / RECIPE_NAME).is_file():
        return None
    try:
        named = _parse_yaml(root / RECIPE_NAME).get("earlier")
    except CurationError:
        return None
    return _absolute(Path(named), root).resolve() if isinstance(named, str) else None


def _absolute(path: Path, root: Path) -> Path:
    return Path(os.path.normpath(root / path.expanduser()))


def _usual_files(params: Params, root: Path) -> dict[str, Path]:
    """Input files that the recipe does not name and that lie where they usually do."""
    found = {}
    for name, field in type(params).model_fields.items():
        extra = field.json_schema_extra
        place = extra.get("usual_place") if isinstance(extra, dict) else None
        if isinstance(place, str) and (root / place).exists():
            found[name] = Path(place)
    return found


def _resolve_files(params: Params, root: Path) -> Params:
    update = {
        name: _absolute(path, root) for name, path in (_usual_files(params, root) | input_files(params)).items()
    }
    for name, path in update.items():
        if not path.exists():
            raise CurationError(f"the file {path} named by {name!r} in the recipe does not exist")
    kind = {name: path if isinstance(getattr(params, name), Path) else str(path) for name, path in update.items()}
    return params.model_copy(update=kind) if update else params


def _parse_yaml(path: Path) -> Mapping[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise CurationError(f"{path} is not UTF-8 text (byte {error.start})") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise CurationError(f"{path}, line {line}: not valid YAML: {error.problem}") from None
    except YAMLError as error:
        raise CurationError(f"{path}: not valid YAML: {error}") from None
    if not isinstance(document, Mapping):
        raise CurationError(f"{path}: a recipe is a mapping of keys, this is {type(document).__name__}")
    return document


def _validate(model: type[BaseModel], document: Any, prefix: tuple[str, ...], lines: _Lines) -> Any:
    """``model`` built from ``document``; the first fault becomes a sentence with its line."""
    if not isinstance(document, Mapping):
        raise CurationError(
            f"{lines.where(prefix)}: {'.'.join(prefix) or 'the recipe'} must be a mapping of keys, not {document!r}"
        )
    try:
        return model.model_validate(dict(document))
    except ValidationError as error:
        fault = error.errors()[0]
        location = (*prefix, *fault["loc"])
        name = ".".join(str(step) for step in location)
        where = lines.where(location)
        if fault["type"] == "extra_forbidden":
            owner: Any = model
            for step in fault["loc"][:-1]:
                owner = getattr(owner.model_fields.get(step), "annotation", owner)
            fields = list(getattr(owner, "model_fields", model.model_fields))
            close = difflib.get_close_matches(str(fault["loc"][-1]), fields, 1)
            hint = f"Did you mean {close[0]!r}?" if close else f"The keys here are {', '.join(fields)}."
            raise CurationError(f"{where}: unknown key {name!r}", hint) from None
        if fault["type"] == "missing":
            raise CurationError(f"{where}: {name!r} is missing", "Add it to the recipe.") from None
        told = fault["msg"].removeprefix("Value error, ")
        given = "" if isinstance(fault["input"], Mapping) else f" = {fault['input']!r}"
        raise CurationError(f"{where}: {name or 'the recipe'}{given} is wrong: {told}") from None
