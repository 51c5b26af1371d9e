"""Keys: what a stage's output depends on, as a document that can be hashed and compared field by field."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from curation.engine.stage import Params, Stage

__all__ = ["FORMAT", "canonical", "code_hashes", "differences", "file_digest", "key_document", "key_of"]

FORMAT = 2
"""Raised when the layout of objects or the meaning of a key document changes: everything is built anew."""

_FIRST_PARTY = ("curation", "schemas")
# The engine lends a stage its inputs and takes its frames; none of it shapes their content (FORMAT covers what does).
_NOT_COUNTED = {"curation", "curation.errors", "curation.engine", "curation.engine.stage", "curation.engine.recipe"}


def canonical(document: Any) -> bytes:
    """JSON bytes that are equal for equal documents: sorted keys, no white space."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode()


def key_of(document: dict[str, Any]) -> str:
    """The key of a key document: 16 hexadecimal digits of its SHA-256."""
    return hashlib.sha256(canonical(document)).hexdigest()[:16]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, or of the names and bytes of all files below a directory, in hexadecimal."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        listed = {str(file.relative_to(path)): file_digest(file) for file in files}
        return hashlib.sha256(canonical(listed)).hexdigest()
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        first = node.body[0] if node.body else None
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def _imported(tree: ast.AST, module: str, is_package: bool) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                parents = parents[: len(parents) - node.level + is_package]
                base = ".".join([*parents, base] if base else parents)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _source(module: str) -> Path | None:
    """File of a module, found importing nothing but its top package (``find_spec`` would run its parents)."""
    top, *rest = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or not spec.submodule_search_locations:
        return None
    place = Path(next(iter(spec.submodule_search_locations)))
    for part in rest[:-1]:
        place = place / part
    for file in (
        (place / "__init__.py",) if not rest else (place / f"{rest[-1]}.py", place / rest[-1] / "__init__.py")
    ):
        if file.is_file():
            return file
    return None


def _package_data(file: Path) -> list[tuple[str, str]]:
    """Names and digests of what lies beside a package's ``__init__.py`` and is no code, such as templates."""
    if file.name != "__init__.py":
        return []
    others = [path for path in sorted(file.parent.iterdir()) if path.is_file() and path.suffix not in (".py", ".pyc")]
    return [(path.name, file_digest(path)) for path in others if not path.name.startswith(".")]


@lru_cache(maxsize=1024)
def _read_module(module: str) -> tuple[str, tuple[str, ...]] | None:
    """(hash of the syntax tree without comments and docstrings, first-party modules it imports).

    Files beside a package's ``__init__.py`` that are no code count with it.
    """
    file = _source(module)
    if file is None:
        return None
    tree = _without_docstrings(ast.parse(file.read_text(encoding="utf-8")))
    names = {
        name for name in _imported(tree, module, file.name == "__init__.py") if name.split(".")[0] in _FIRST_PARTY
    }
    content = ast.dump(tree) + (str(data) if (data := _package_data(file)) else "")
    return hashlib.sha256(content.encode()).hexdigest()[:16], tuple(sorted(names))


def code_hashes(module: str) -> dict[str, str]:
    """Hash of the syntax tree of ``module`` and of every first-party module it imports, however indirectly.

    Comments, docstrings and layout do not count; imports inside functions do, and files of packages that are no code.
    """
    hashes: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in hashes or name in _NOT_COUNTED:
            continue
        found = _read_module(name)
        if found is not None:
            hashes[name], imported = found
            waiting.extend(imported)
    return dict(sorted(hashes.items()))


def _library_version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "absent"


def counted_params(params: Params, input_files: dict[str, Path], free_names: Iterable[str] = ()) -> dict[str, Any]:
    """The parameters that shape the output: without the free ones, with input files named by their content."""
    free = {
        name
        for name, field in type(params).model_fields.items()
        if isinstance(field.json_schema_extra, dict) and field.json_schema_extra.get("free")
    }
    document = params.model_dump(mode="json", exclude=free | set(free_names))
    return document | {name: {"sha256": file_digest(path)} for name, path in input_files.items()}


def key_document(
    stage: Stage,
    *,
    params: dict[str, Any],
    shared: dict[str, Any],
    seed: int | None,
    inputs: dict[str, str],
    sources: dict[str, str],
) -> dict[str, Any]:
    """Everything that the output of ``stage`` depends on.

    Args:
        stage: The stage.
        params: Its counted parameters (:func:`counted_params`).
        shared: Counted parameters of the sections it shares, by section.
        seed: Seed of the recipe; None for a stage without random choices.
        inputs: Content digest of every table it reads.
        sources: Content digest of the log, the domain and the earlier workspace's tables where it reads them.
    """
    code: dict[str, str] = code_hashes(stage.run.__module__)
    for table in stage.makes:
        code |= code_hashes(f"schemas.{table}")
    return {
        "format": FORMAT,
        "stage": stage.name,
        "version": stage.version,
        "code": code,
        "params": params,
        "shared": shared,
        "seed": seed,
        "inputs": inputs,
        "sources": sources,
        "libraries": {name: _library_version(name) for name in stage.libraries},
    }


def _flat(document: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(document, dict) and document:
        flat: dict[str, Any] = {}
        for name, value in document.items():
            flat |= _flat(value, f"{prefix}.{name}" if prefix else str(name))
        return flat
    return {prefix: document}


def differences(old: dict[str, Any] | None, new: dict[str, Any]) -> list[str]:
    """Why a stage with key document ``new`` is not the one built with ``old``: one line a differing field."""
    if old is None:
        return ["never built"]
    before, after = _flat(old), _flat(new)
    lines = []
    for field in sorted(before.keys() | after.keys()):
        a, b = before.get(field, "absent"), after.get(field, "absent")
        if a == b:
            continue
        kind, _, name = field.partition(".")
        if kind == "code":
            what = "added" if a == "absent" else "removed" if b == "absent" else "changed"
            lines.append(f"code of {name} {what}")
        elif kind == "inputs":
            lines.append(f"input table {name} changed")
        elif kind == "sources":
            lines.append(f"the {name} changed")
        elif kind == "libraries":
            lines.append(f"library {name}: {a} -> {b}")
        elif kind in ("params", "shared"):
            owner = name if kind == "shared" else f"{new['stage']}.{name}"
            lines.append(f"recipe {owner}: {a} -> {b}")
        else:
            lines.append(f"{field}: {a} -> {b}")
    return lines
