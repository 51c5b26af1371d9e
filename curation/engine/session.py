"""A session: one recipe on one workspace, planned and run stage by stage.

``curate run`` and the Prefect flow drive the same session, so they end in the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import shutil
import time
import uuid
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from curation.engine.accounts import check_account
from curation.engine.build import BuildContext, InputTable
from curation.engine.collect import collect
from curation.engine.graph import COLLECTED, Graph
from curation.engine.keys import canonical, counted_params, differences, key_document, key_of
from curation.engine.machine import give_back_memory, peak_memory, sentences
from curation.engine.recipe import Recipe, input_files
from curation.engine.stage import Stage
from curation.engine.step import Observer, Step
from curation.engine.store import Store
from curation.engine.workspace import Workspace
from curation.errors import CurationError

__all__ = ["Session"]


class Session:
    """Plan and build the stages of ``recipe``; use as a context manager to hold the workspace's lock.

    Args:
        recipe: The recipe.
        root: The workspace; the recipe's directory when not given.
        stages: The stages there are; those of :mod:`curation.pipeline` when not given.
        select: Selection expressions, see :meth:`Graph.select`.
        observer: Told what happens.
    """

    def __init__(
        self,
        recipe: Recipe,
        root: Path | None = None,
        *,
        stages: Mapping[str, Stage] | None = None,
        select: Iterable[str] = (),
        observer: Observer | None = None,
    ) -> None:
        if stages is None:
            from curation.pipeline import STAGES

            stages = STAGES
        self.recipe = recipe
        self.store = Store(Path(root or recipe.root).resolve())
        self.graph = Graph(stages)
        self.selected = self.graph.select(select)
        self.observer = observer
        self._inputs: dict[str, InputTable] = {}
        self._keys: dict[str, str] = {}
        self._lock = contextlib.ExitStack()
        self._published = self.store.run()

    def __enter__(self) -> Session:
        self._lock.enter_context(self.store.lock())
        return self

    def __exit__(self, *exception: object) -> None:
        self._lock.close()

    # -- sources

    @cached_property
    def domain(self) -> Any:
        """The domain named by the recipe, loaded once."""
        from curation.domain import load_domain

        return load_domain(self.recipe.domain)

    @cached_property
    def _earlier(self) -> dict[str, InputTable] | None:
        """The tables of the earlier workspace that some stage reads; None when the recipe names none."""
        if self.recipe.earlier is None:
            return None
        before = Workspace(self.recipe.earlier)
        tables = {table for stage in self.graph.stages.values() for table in stage.earlier}
        try:
            return {table: _input_table(*before.place(table)) for table in sorted(tables)}
        except CurationError as error:
            raise CurationError(
                f"the earlier workspace {self.recipe.earlier} is not built as a whole: {error.message}",
                f"Type `curate run {self.recipe.earlier}` first, or take `earlier` out of the recipe.",
            ) from None

    @cached_property
    def _log_hashes(self) -> dict[str, str]:
        return self.store.hash_sources(self.recipe.log.files(), self.recipe.log.root)

    @cached_property
    def _log_digest(self) -> str:
        log, hashes = self.recipe.log, self._log_hashes
        columns = {"text": log.text, "time": log.time, "source": log.source, "format": log.format}
        return hashlib.sha256(canonical({"files": hashes, "columns": columns})).hexdigest()[:16]

    def check_sources(self) -> None:
        """Look at the log and the domain before any work.

        Raises:
            CurationError: A file is missing, damaged or lacks the text column, or a domain file is wrong.
        """
        if any(self.graph.stages[name].source == "log" for name in self.selected):
            from curation.engine.readers import check_log

            own = [self.store.root / place for place in ("objects", "parts", "runs", "latest", "cache", "_tmp")]
            inside = [f for f in self.recipe.log.files() if any(f.is_relative_to(place) for place in own)]
            if inside:
                raise CurationError(
                    f"log.path {self.recipe.log.path} takes in the workspace's own tables ({inside[0]})",
                    "Put the log in a directory of its own.",
                )
            check_log(self.recipe.log)
        if any(self.graph.stages[name].uses_domain for name in self.selected):
            _ = self.domain
        _ = self._earlier
        for name in self.selected:
            stage = self.graph.stages[name]
            if stage.check is not None:
                shared = {other: self.recipe.sections[other] for other in stage.shared}
                more = [shared] if len(inspect.signature(stage.check).parameters) > 2 else []
                stage.check(self.recipe.sections[name], self.domain if stage.uses_domain else None, *more)

    # -- planning

    def _document(self, stage: Stage) -> dict[str, Any]:
        params = self.recipe.sections[stage.name]
        shared = {}
        for name in (*stage.shared, *stage.used(self.recipe.sections)):
            section, owner = self.recipe.sections[name], self.graph.stages.get(name)
            shared[name] = counted_params(section, input_files(section), owner.free if owner else ())
        sources = {}
        if stage.source == "log":
            sources["log"] = self._log_digest
        if stage.uses_domain:
            sources["domain"] = self.domain.fingerprint
        if self._earlier is not None:
            sources |= {f"earlier {table}": self._earlier[table].digest for table in stage.earlier}
        return key_document(
            stage,
            params=counted_params(params, input_files(params), stage.free),
            shared=shared,
            seed=self.recipe.seed if stage.seeded else None,
            inputs={table: self._inputs[table].digest for table in stage.reads},
            sources=sources,
        )

    def _current(self, stage: Stage) -> dict[str, Any] | None:
        """Manifest of the stage's published object."""
        keys = (self._published or {}).get("stages", {})
        return self.store.manifest(stage.name, keys[stage.name]) if stage.name in keys else None

    def _previous(self, step: Step) -> dict[str, InputTable]:
        """Published tables that the stage read and made, if its published object differs only in its inputs."""
        stage, current = step.stage, self._current(step.stage)
        if current is None or self._published is None:
            return {}
        before, now = current["key_document"], step.document
        if any(before.get(part) != now[part] for part in now if part not in ("inputs", "sources")):
            return {}
        if before["sources"].get("domain") != now["sources"].get("domain"):
            return {}
        found = {}
        for table in (*stage.reads, *stage.makes):
            owner = stage.name if table in stage.makes else self.graph.maker[table]
            key = self._published["stages"].get(owner)
            manifest = self.store.manifest(owner, key) if key else None
            if key and manifest and self.store.is_whole(owner, key):
                directory = self.store.table_directory(owner, key, table)
                found[table] = _input_table(directory, manifest["tables"][table])
        return found

    def step(self, name: str) -> Step:
        """What is to be done for the stage ``name``, given the stages before it."""
        stage = self.graph.stages[name]
        unbuilt = [table for table in stage.reads if table not in self._inputs]
        if unbuilt:
            why = [f"input table {table} will be rebuilt" for table in unbuilt]
            return Step(stage, "stale" if name in self.selected else "left out", why)
        document = self._document(stage)
        key, current = key_of(document), self._current(stage)
        why = differences(current["key_document"] if current else None, document)
        if self.store.is_whole(name, key):
            return Step(stage, "restored" if why else "fresh", why, key, document)
        return Step(
            stage,
            "stale" if name in self.selected else "left out",
            why or ["its files are gone or damaged"],
            key,
            document,
        )

    def plan(self) -> list[Step]:
        """Every stage with what a run would do, without doing it."""
        self.check_sources()
        steps = []
        for name in self.graph.order:
            step = self.step(name)
            if step.status in ("fresh", "restored"):
                self._adopt(step)
            steps.append(step)
        return steps

    def table(self, name: str) -> InputTable | None:
        """A table as this session reads it; where it is still to be built, as it is published; None for neither."""
        if name in self._inputs:
            return self._inputs[name]
        stage = self.graph.stages[self.graph.maker[name]]
        manifest = self._current(stage)
        if manifest is None:
            return None
        directory = self.store.table_directory(stage.name, manifest["key"], name)
        return _input_table(directory, manifest["tables"][name])

    # -- running

    def check_ready(self) -> None:
        """Look at everything that can be told before any work: sources, and sections that stale stages use.

        Raises:
            CurationError: See :meth:`check_sources`; or a section is not ready (no endpoint, no key).
        """
        for step in self.plan():
            if step.status == "stale":
                for name in step.stage.used(self.recipe.sections):
                    self.recipe.sections[name].ready()

    def run(self) -> dict[str, Any]:
        """Build what is stale, then publish; returns the run document (see :meth:`publish`)."""
        self.check_ready()
        for name in self.graph.order:
            self.ensure(name)
        return self.publish()

    def ensure(self, name: str) -> dict[str, Any] | None:
        """Make the stage's object exist and return its manifest; None for a stale stage that is left out.

        Raises:
            CurationError: The stage fails for a reason a person can mend, or its accounting is wrong.
        """
        step = self.step(name)
        if step.status == "left out" or (step.key is None and name not in self.selected):
            return None
        if step.key is None:
            missing = [table for table in step.stage.reads if table not in self._inputs]
            raise CurationError(
                f"stage {name} reads {missing[0]}, which is stale and not selected",
                f"Select +{name} to build it too.",
            )
        if step.status == "stale":
            if self.observer:
                self.observer.started(step)
            self._build(step)
        manifest = self._adopt(step)
        if self.observer:
            self.observer.finished(step, manifest)
        return manifest

    def _adopt(self, step: Step) -> dict[str, Any]:
        """Take a built object's tables as inputs of what follows."""
        assert step.key is not None
        manifest = self.store.manifest(step.stage.name, step.key)
        assert manifest is not None
        self._keys[step.stage.name] = step.key
        for table in step.stage.makes:
            files = manifest["tables"][table]
            directory = self.store.table_directory(step.stage.name, step.key, table)
            self._inputs[table] = _input_table(directory, files)
        return manifest

    def _build(self, step: Step) -> None:
        stage, key = step.stage, step.key
        assert key is not None
        started, peak_before = time.perf_counter(), peak_memory()
        with sentences(stage.name, self.store.root):
            context = BuildContext(
                stage,
                key,
                self.store,
                params=self.recipe.sections[stage.name],
                shared={name: self.recipe.sections[name] for name in (*stage.shared, *stage.sections)},
                seed=self.recipe.seed,
                workers=self.recipe.run.threads,
                memory=int(self.recipe.run.memory_gb * (1 << 30)),
                inputs={table: self._inputs[table] for table in stage.reads},
                log=self.recipe.log if stage.source == "log" else None,
                domain=(lambda: self.domain) if stage.uses_domain else None,
                earlier={name: self._earlier[name] for name in stage.earlier} if self._earlier is not None else None,
                previous=self._previous(step),
                on_progress=self._forward(stage.name),
            )
            try:
                stage.run(context)
            except FileNotFoundError as error:
                if stage.source == "log":
                    raise CurationError(f"the log changed while it was read: {error.filename} is gone") from error
                raise
            self._check_log_unchanged(stage, context)
            built = context.finish()
            try:
                check_account(stage, built["account"], self._account_before(stage))
            except CurationError:
                shutil.rmtree(context.build)  # its finished parts are wrong: the next run must not take them up
                raise
            manifest = {
                "stage": stage.name,
                "key": key,
                "key_document": step.document,
                "why": step.why,
                "tables": self.store.describe_files(context.build / "data"),
                "seconds": round(time.perf_counter() - started, 2),
                "peak_memory": max(peak_memory(), peak_before),
                "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                **built,
            }
            self.store.commit(stage.name, key, manifest)
        give_back_memory()

    def _check_log_unchanged(self, stage: Stage, context: BuildContext) -> None:
        """A log that changed while it was read must not be stored under the key of the log before."""
        if stage.source != "log":
            return
        log = self.recipe.log
        changed = [
            file
            for file, digest in self.store.hash_sources([f for f in log.files() if f.exists()], log.root).items()
            if self._log_hashes.get(file) != digest
        ]
        gone = [str(file) for file in log.files() if not file.exists()]
        if changed or gone:
            shutil.rmtree(context.build)
            raise CurationError(f"the log changed while it was read: {(changed + gone)[0]}", "Run again.")

    def _forward(self, stage: str) -> Any:
        def forward(done: int, total: int, note: str) -> None:
            if self.observer:
                self.observer.progress(stage, done, total, note)

        return forward

    def _account_before(self, stage: Stage) -> dict[str, Any] | None:
        """The account of the stage that this one comes after; None where it starts a chain."""
        if stage.after is None:
            return None
        before = self.store.manifest(stage.after, self._keys[stage.after])
        assert before is not None
        return before["account"]

    def publish(self) -> dict[str, Any]:
        """Make the tables of this session visible together; a run that changed nothing publishes nothing.

        Returns:
            The run document: ``id``, ``stages`` (name to key), ``tables`` (name to [stage, key]), ``published``.
        """
        keys = {name: self._keys[name] for name in self.graph.order if name in self._keys}
        if self._published and self._published["stages"] == keys:
            return self._published | {"published": False}
        with sentences("publish", self.store.root):
            collected = collect(self.store, self.graph, keys)
        tables = {table: (name, keys[name]) for name in keys for table in self.graph.stages[name].makes}
        tables |= dict.fromkeys(COLLECTED, ("run", collected))
        name = time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + uuid.uuid4().hex[:6]
        document = {
            "id": name,
            "stages": keys,
            "tables": {table: list(place) for table, place in tables.items()},
            "recipe": str(self.recipe.path) if self.recipe.path else None,
        }
        with sentences("publish", self.store.root):
            self.store.publish(document, tables)
        self._published = document
        return document | {"published": True}


def _input_table(directory: Path, files: Mapping[str, Any]) -> InputTable:
    """A built table from its directory and what its object's manifest says of its files."""
    return InputTable(
        files=tuple(directory / file for file in files if file.endswith(".parquet")),
        directory=directory,
        rows=sum(entry["rows"] for entry in files.values()),
        digest=hashlib.sha256(canonical({f: e["sha256"] for f, e in files.items()})).hexdigest()[:16],
    )
