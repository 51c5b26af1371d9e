"""Benchmarks by name: ``python -m tests.benchmarks NAME [ARGUMENTS]``; without a name, what there is."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

__all__ = ["benchmarks", "main"]


def benchmarks() -> dict[str, str]:
    """Name to first line of the docstring of every module here that has a ``main``; nothing is imported."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        if "main" in functions and not path.name.startswith(("_", "test_")):
            found[path.stem] = (ast.get_docstring(tree) or "").split("\n")[0]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark that the first argument names with the others."""
    arguments = sys.argv[1:] if arguments is None else arguments
    found = benchmarks()
    if not arguments or arguments[0] not in found:
        if arguments and arguments[0] not in ("-h", "--help"):
            print(f"there is no benchmark {arguments[0]!r}", file=sys.stderr)
        print("usage: python -m tests.benchmarks NAME [ARGUMENTS]\n")
        for name, title in found.items():
            print(f"  {name:12} {title}")
        return 0 if not arguments or arguments[0] in ("-h", "--help") else 2
    return import_module(f"tests.benchmarks.{arguments[0]}").main(arguments[1:]) or 0


if __name__ == "__main__":
    raise SystemExit(main())
