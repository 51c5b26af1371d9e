"""The graph of stages: order, checks and selection, from what the stages declare to read and make."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from curation.engine.stage import Stage
from curation.errors import CurationError

__all__ = ["Graph"]

COLLECTED = ("rejects", "ledger", "metrics", "teacher_calls")
"""Tables that the engine makes of what all stages report; every run has them."""


class Graph:
    """Stages in an order in which each comes after those it reads from.

    Raises:
        CurationError: Two stages make one table, a table is read that nobody makes, or there is a cycle.
    """

    def __init__(self, stages: Mapping[str, Stage]) -> None:
        self.stages = dict(stages)
        self.maker: dict[str, str] = {}
        for stage in self.stages.values():
            for table in stage.makes:
                if table in self.maker:
                    raise CurationError(
                        f"the stages {self.maker[table]} and {stage.name} both make the table {table}"
                    )
                self.maker[table] = stage.name
        for stage in self.stages.values():
            for table in stage.reads:
                if table not in self.maker:
                    raise CurationError(
                        f"stage {stage.name} reads the table {table}, which no stage makes",
                        "Add the stage that makes it, or take this one out.",
                    )
        self.order = self._sorted()

    def parents(self, name: str) -> list[str]:
        """Stages that ``name`` reads from, in the order of its inputs."""
        return list(dict.fromkeys(self.maker[table] for table in self.stages[name].reads))

    def _sorted(self) -> list[str]:
        order: list[str] = []
        waiting = list(self.stages)
        while waiting:
            ready = next((name for name in waiting if all(p in order for p in self.parents(name))), None)
            if ready is None:
                raise CurationError(f"the stages {', '.join(self._cycle(waiting))} read from each other in a circle")
            order.append(ready)
            waiting.remove(ready)
        return order

    def _cycle(self, names: list[str]) -> list[str]:
        path = [names[0]]
        while True:
            following = next(p for p in self.parents(path[-1]) if p in names)
            if following in path:
                return path[path.index(following) :]
            path.append(following)

    def _closure(self, start: str, step: Mapping[str, Iterable[str]]) -> set[str]:
        found, waiting = set(), [start]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting.extend(step[name])
        return found

    def stage_of(self, name: str) -> str:
        """The stage called ``name`` or that makes the table ``name``."""
        if name in self.stages:
            return name
        if name in self.maker:
            return self.maker[name]
        known = [*self.stages, *self.maker]
        close = difflib.get_close_matches(name, known, 1)
        raise CurationError(
            f"there is no stage or table {name!r}",
            f"Did you mean {close[0]!r}?" if close else f"There are {', '.join(known)}.",
        )

    def select(self, expressions: Iterable[str]) -> list[str]:
        """Stages named by ``expressions``, in order; all of them when there is none.

        ``name`` is that stage (or the maker of that table), ``+name`` also all it needs, ``name+`` all that needs it.
        """
        expressions = [part for expression in expressions for part in expression.replace(",", " ").split()]
        if not expressions:
            return list(self.order)
        up = {name: self.parents(name) for name in self.order}
        down: dict[str, list[str]] = {
            name: [child for child in self.order if name in up[child]] for name in self.order
        }
        chosen: set[str] = set()
        for expression in expressions:
            name = self.stage_of(expression.strip("+"))
            chosen.add(name)
            if expression.startswith("+"):
                chosen |= self._closure(name, up)
            if expression.endswith("+"):
                chosen |= self._closure(name, down)
        return [name for name in self.order if name in chosen]
