"""Sessions of the toy pipeline; apart from its stages, whose code is part of their keys."""

from __future__ import annotations

from curation.engine.recipe import Recipe
from curation.engine.session import Session
from tests.engine.toy import STAGES


def session(root, select=(), observer=None, **sections):
    """A session of the toy pipeline on ``root``."""
    recipe = Recipe.from_dict({"log": {"path": "."}, **sections}, root=root, stages=STAGES)
    return Session(recipe, root, stages=STAGES, select=select, observer=observer)


def main() -> None:
    """Run once in a process of its own, to be killed: ``python -m tests.engine.toy_session ROOT SECTIONS``."""
    import json
    import sys

    with session(sys.argv[1], **json.loads(sys.argv[2])) as running:
        running.run()


if __name__ == "__main__":
    main()
