"""The review of a workspace: what waits for a person, and what becomes of what they decided.

``curate review``, its web page, flows and unattended runs all go through :class:`Review`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from curation.errors import CurationError
from curation.taxonomy.base import read_history
from curation.taxonomy.compare import Change, compare
from curation.taxonomy.consequences import Again, Dropped, again_of, dropped, opened, rows_again
from curation.taxonomy.convergence import convergence
from curation.taxonomy.decisions import Decision, Plan, plan_of, read_decisions
from curation.taxonomy.document import taxonomy_text
from curation.taxonomy.entries import replace_text, review_lock
from curation.taxonomy.lineage import Lineage
from curation.taxonomy.places import BASE_FILE, DECISIONS_FILE, REVIEW, SEEDS_FILE, VERSIONS_FILE
from curation.taxonomy.proposal import Proposal, from_frame
from curation.taxonomy.versions import History, Record, Version, append, next_version, now

if TYPE_CHECKING:
    from curation.domain.model import Taxonomy
    from curation.engine.workspace import Workspace

__all__ = ["Preview", "Review", "locked"]


@dataclass(frozen=True)
class Preview:
    """What applying the decisions would do.

    Attributes:
        plan: The operations and the decisions behind them.
        version: The version they make; None when they only decline.
        changes: Its changes against the current one.
        again: Rows that are annotated again, of those annotated in the published run.
        dropped: What goes with each node that is dropped.
        opened: A sentence for each leaf that gets children.
        named: What each node named under ``again`` does.
        seal: Stands for all that the preview was made from: the same seal, the same outcome.
    """

    plan: Plan
    version: Version | None
    changes: list[Change]
    again: int
    dropped: list[Dropped]
    opened: list[str]
    named: list[Again]
    seal: str

    @property
    def notes(self) -> list[str]:
        """What a person should know before applying it, a sentence each."""
        return [*map(str, self.dropped), *self.opened, *map(str, self.plan.elsewhere), *map(str, self.named)]


class Review:
    """The review of the workspace in ``directory`` (or of a recipe file there).

    What it reads is read once; make another to look again.

    Raises:
        CurationError: There is no recipe, or a file of the review is wrong (line named).
    """

    def __init__(self, directory: Path) -> None:
        from curation.domain import load_domain
        from curation.engine.recipe import Recipe
        from curation.engine.workspace import Workspace

        self.place = Path(directory)
        self.recipe = Recipe.load(directory)
        self.root = self.recipe.root
        self.section = cast(Any, self.recipe.sections["taxonomy"])
        self.versions_file = Path(self.section.versions or self.root / VERSIONS_FILE)
        self.decisions_file = self.root / DECISIONS_FILE
        self.seeds_file = Path(getattr(self.recipe.sections["seeds"], "file", None) or self.root / SEEDS_FILE)
        self.domain = load_domain(self.recipe.domain)
        self.workspace: Workspace = Workspace(self.root)
        self._induced = self._induced_tree() if self.section.induce and self.section.base is None else None
        self.history: History = self._read_history()
        name = self.section.version
        self.current: Version = self.history.newest if name is None else self.history.get(name)

    def _read_history(self) -> History:
        return read_history(self.section, self.domain, self._induced)

    def _induced_tree(self) -> Taxonomy:
        """The first version of the published tables."""
        nodes, migrations = self._table("taxonomy"), self._table("taxonomy_migrations")
        if nodes is None or migrations is None:
            raise CurationError("no taxonomy is induced yet", f"Type: curate run {self.root}")
        lineage = Lineage(nodes, migrations)
        return lineage.taxonomy(lineage.versions[0])

    def _table(self, name: str) -> pl.DataFrame | None:
        """A published table; None where no run made it yet."""
        run = self.workspace.store.run()
        return self.workspace.table(name).collect() if run and name in run["tables"] else None

    @cached_property
    def proposals(self) -> dict[str, Proposal]:
        """The proposals of the published run by id, the weightiest first; none if they are not of the current version
        (a version was made since, and the next run proposes anew)."""
        table = self._table("proposals")
        if table is None:
            return {}
        rows = table.filter(pl.col("base_version") == self.current.name)
        return from_frame(rows.sort(["weight", "confidence", "proposal_id"], descending=[True, True, False]))

    @cached_property
    def places(self) -> dict[int, str]:
        """Leaf of each annotated query that is evidence of a proposal to add a leaf."""
        run = self.workspace.store.run()
        evidence = {row.query_id for one in self.proposals.values() if one.kind == "add" for row in one.evidence}
        if not evidence or not run or "annotations" not in run["tables"]:
            return {}
        wanted = pl.Series(sorted(evidence), dtype=pl.UInt64).implode()
        rows = self.workspace.table("annotations").filter(pl.col("query_id").is_in(wanted))
        return dict(rows.select("query_id", "primary").drop_nulls().collect().iter_rows())

    @property
    def waiting(self) -> dict[str, Proposal]:
        """The proposals that can be carried out."""
        return {key: one for key, one in self.proposals.items() if one.problem is None}

    @property
    def is_behind(self) -> bool:
        """Whether the published tables are of another version than the current one, so that a run is due."""
        table = self._table("taxonomy")
        return table is not None and self.current.name not in table.filter("is_current")["version"].unique()

    @property
    def lost(self) -> list[str]:
        """Versions that the published tables have and the versions file has not: somebody took them out of it."""
        table = self._table("taxonomy")
        known = [] if table is None else table["version"].unique(maintain_order=True).to_list()
        return [name for name in known if name not in self.history.versions]

    @cached_property
    def unlabelled(self) -> pl.DataFrame:
        """Queries proposed for labelling that nobody labelled yet: rows of `seeds`."""
        from curation.taxonomy.labellers import has_label
        from curation.teachers.seeds_file import read_seeds_file

        seeds = self._table("seeds")
        if seeds is None:
            return pl.DataFrame(schema={"query_id": pl.UInt64, "text": pl.String, "lang": pl.String})
        proposed = seeds.filter(pl.col("origin") == "proposed")
        if not self.seeds_file.exists():
            return proposed
        rows = read_seeds_file(self.seeds_file, self.label_versions)
        return proposed.join(rows.filter(has_label()), on="query_id", how="anti", maintain_order="left")

    def not_in_log(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Those of some `rows` with a ``query_id`` that are no queries of the published run; none without a run."""
        run = self.workspace.store.run()
        if not run or "queries" not in run["tables"]:
            return rows.clear()
        queries = self.workspace.table("queries").select("query_id")
        known = queries.filter(pl.col("query_id").is_in(rows["query_id"].implode())).collect()
        return rows.join(known, on="query_id", how="anti", maintain_order="left")

    @property
    def label_versions(self) -> list[Any]:
        """The trees whose leaves a seeds file may name, the current one first."""
        line = [version.name for version in reversed(self.history.lineage(self.current.name))]
        names = [*line, *(name for name in reversed(self.history.versions) if name not in line)]
        return [self.history.get(name).taxonomy for name in names]

    def write_files(self, labels: bool = True) -> dict[Path, int]:
        """Add what waits to the files that people edit; what stands in them is kept.

        Args:
            labels: Write queries to label too, not only proposals.

        Returns:
            For each file that was written how many proposals, or queries to label, wait.

        Raises:
            CurationError: A file that is there is wrong; its line is named.
        """
        from curation.taxonomy.review_file import decisions_text, seeds_text

        written = {}
        self.finish()
        if self.waiting:
            plan = self.plan()  # what is there must be right before more is added
            if plan.stale and not plan.operations and not plan.rejected and plan.undecided == len(self.waiting):
                self._put_away_stale()
            before = self.decisions_file.read_text(encoding="utf-8") if self.decisions_file.exists() else ""
            replace_text(self.decisions_file, decisions_text(before, self.current.name, self.waiting))
            written[self.decisions_file] = len(self.waiting)
        if labels and not self.unlabelled.is_empty() and self.seeds_file.suffix == ".csv":
            before = self.seeds_file.read_bytes().decode("utf-8") if self.seeds_file.exists() else ""
            replace_text(self.seeds_file, seeds_text(before, self.unlabelled))
            written[self.seeds_file] = self.unlabelled.height
        return written

    def _put_away_stale(self) -> None:
        """Put the decisions file away if nothing is in it but what an earlier run proposed and nobody decided."""
        given = read_decisions(self.decisions_file, self.proposals, self.history.accepted)
        stale = [isinstance(one.what, Decision) and one.what.proposal not in self.proposals for one in given]
        if all(stale):
            locked(self.place, Review.put_away)

    # -- decisions

    def plan(self, text: str | None = None) -> Plan:
        """What the decisions file (or ``text`` in its place) comes to.

        Raises:
            CurationError: An entry is wrong; its line is named.
        """
        if text is None and self.carried_out is not None:
            return Plan(undecided=len(self.waiting))
        given = read_decisions(self.decisions_file, self.proposals, self.history.accepted, text)
        return plan_of(self.current.taxonomy, self.decisions_file, given, self.proposals, self.places)

    def preview(self) -> Preview:
        """What :meth:`apply` would do now.

        Raises:
            CurationError: An entry of the decisions file is wrong; its line is named.
        """
        plan, seal = self.plan(), self._seal()
        if not plan.operations:
            return Preview(plan, None, [], 0, [], [], [], seal)
        history = self._read_history()
        made = history.add(self._record(plan))
        assert made is not None
        changes = compare(history, self.current.name, made.name)
        rows = self._annotations
        tree = self.current.taxonomy
        again, falls = rows_again(made, rows), dropped(made, tree, rows)
        named = again_of(plan.named, tree, plan.unnamed, rows)
        return Preview(plan, made, changes, again, falls, opened(made, tree), named, seal)

    def _seal(self) -> str:
        digest = hashlib.sha256(self.current.name.encode())
        for path in (self.decisions_file, self.versions_file):
            digest.update(path.read_bytes() if path.exists() else b"")
            digest.update(b"\0")
        digest.update("".join(sorted(self.proposals)).encode())
        return digest.hexdigest()[:16]

    @property
    def _annotations(self) -> pl.LazyFrame | None:
        run = self.workspace.store.run()
        return self.workspace.table("annotations") if run and "annotations" in run["tables"] else None

    def _record(self, plan: Plan, **more: Any) -> Record:
        """The record of a plan; ``more`` fields of it: who, from what file."""
        declined = tuple(proposal.gist for proposal in plan.rejected)
        if not plan.operations:
            return Record(declined=declined, at=now(), **more)
        return Record(
            version=next_version(self.history.versions),
            from_=self.current.name,
            at=now(),
            operations=tuple(plan.operations),
            accepted=tuple(plan.accepted),
            declined=declined,
            **more,
        )

    @property
    def carried_out(self) -> Record | None:
        """The record that carries out the decisions file as it stands; None where none does.

        There is one when whoever applied the file was stopped before it was put away.
        """
        last = self.history.last
        return last if last and last.decisions and last.decisions == self._digest() else None

    def _digest(self) -> str | None:
        """Stands for the bytes of the decisions file; None where there is no file."""
        if not self.decisions_file.exists():
            return None
        return hashlib.sha256(self.decisions_file.read_bytes()).hexdigest()[:16]

    def finish(self) -> Record | None:
        """Put a decisions file away that is :attr:`carried_out`; the record that did, None where there is none."""
        return None if self.carried_out is None else locked(self.place, lambda review: review._finish())

    def _finish(self) -> Record | None:
        record = self.carried_out
        if record is not None:
            self.put_away()
        return record

    def apply(self, by: str | None = None, seal: str | None = None) -> Preview:
        """Carry the decisions out: a version is appended, the decisions file goes to ``review/decided``.

        A crash in between is harmless: the version says which file it carries out, see :meth:`finish`.

        Args:
            by: Who decided.
            seal: Of the preview that was agreed to; something else that was decided since is refused.

        Raises:
            CurationError: Nothing is decided, an entry is wrong, the file is carried out already, or the files
                changed since the preview.
        """
        return locked(self.place, lambda review: review._apply(by, seal))

    def _apply(self, by: str | None, seal: str | None) -> Preview:
        digest = self._digest()
        if self._finish() is not None:
            raise CurationError(f"{self.decisions_file} was carried out already; it is put away now", "Look again.")
        preview = self.preview()
        if seal is not None and seal != preview.seal:
            raise CurationError("the decisions, or the versions, changed since they were shown", "Look again first.")
        if not preview.plan.operations and not preview.plan.rejected:
            raise self._nothing()
        self._commit(self._record(preview.plan, by=by, decisions=digest))
        self.put_away()
        return preview

    def _nothing(self) -> CurationError:
        if self.decisions_file.exists():
            return CurationError(
                f"nothing is decided in {self.decisions_file}",
                "Write `accept`, `reject` or `edit` after `decision:`, then apply again.",
            )
        if self.is_behind:
            return CurationError(
                f"nothing is decided since version {self.current.name} was made", f"Now: curate run {self.root}"
            )
        return CurationError(
            f"nothing is decided: there is no {self.decisions_file}", f"Type: curate review {self.root} --file"
        )

    def accept(self, plan: Plan, by: str, note: str) -> Record:
        """Carry out what an unattended run accepts; call it under :func:`locked` only."""
        return self._commit(self._record(plan, by=by, auto=True, note=note))

    def return_to(self, version: str, by: str | None = None) -> Record:
        """Make a version that has the tree and the labels of an earlier one.

        Raises:
            CurationError: There is no such version, or it is the current one, or the current one returned to it.
        """
        return locked(self.place, lambda review: review._return_to(version, by))

    def _return_to(self, version: str, by: str | None) -> Record:
        if self.history.get(version).name == self.current.name:
            raise CurationError(f"version {version!r} is the current one")
        made = self.current.record
        if made is not None and made.return_to == version:
            raise CurationError(f"version {self.current.name!r} has tree and labels of version {version!r} already")
        name = next_version(self.history.versions)
        record = Record(version=name, from_=self.current.name, return_to=version, at=now(), by=by)
        return self._commit(record)

    def _commit(self, record: Record) -> Record:
        seeds = self._table("seeds")
        made = self.history.add(record)
        if made is not None and seeds is not None:
            numbers = convergence(self.history, self.current.name, made.name, seeds)
            record = record.model_copy(update={"convergence": numbers})
        if self._induced is not None:
            replace_text(self.root / BASE_FILE, taxonomy_text(self._induced, f"Induced for {self.root.name}"))
        append(self.versions_file, record)
        return record

    def put_away(self) -> None:
        """Move the decisions file out of the way of the next review."""
        place = self.root / REVIEW / "decided"
        place.mkdir(exist_ok=True)
        stem, number = now().replace(":", ""), 1
        while (target := place / f"{stem}-{number}.yaml").exists():
            number += 1
        self.decisions_file.rename(target)


def locked(directory: Path, work: Callable[[Review], Any]) -> Any:
    """Do ``work`` on a fresh review of ``directory`` while no other process changes its files."""
    with review_lock(Review(directory).root / REVIEW):
        return work(Review(directory))
