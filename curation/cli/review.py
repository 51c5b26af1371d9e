"""The review command: what waits for a person, the files they edit, and what becomes of them."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from curation.cli.console import console, table_of
from curation.errors import CurationError

if TYPE_CHECKING:
    from curation.taxonomy.compare import Change
    from curation.taxonomy.review import Preview, Review

__all__ = ["register"]

_SHOWN = 20


def review(
    directory: Annotated[Path, typer.Argument(help="The workspace directory.")] = Path(),
    file: Annotated[
        bool, typer.Option("--file", help="Write what waits to review/decisions.yaml and review/seeds.csv.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Check these files; say what they would change.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Carry the decisions out: a new version.")] = False,
    versions: Annotated[bool, typer.Option("--versions", help="List the versions of the taxonomy.")] = False,
    show: Annotated[str | None, typer.Option(metavar="V", help="Print a version as YAML.")] = None,
    compare: Annotated[
        tuple[str, str] | None, typer.Option(metavar="V W", help="Say what changed from one version to another.")
    ] = None,
    return_to: Annotated[
        str | None, typer.Option("--return-to", metavar="V", help="Go back to an earlier version.")
    ] = None,
    web: Annotated[bool, typer.Option("--web", help="Review on a local web page.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
    by: Annotated[str | None, typer.Option(help="Who reviews; your user name if not given.")] = None,
) -> None:
    """List what waits for a person: proposals for the taxonomy, and seeds to label.

    `--file` writes it to files; edit them, then `--check` and `--apply`. Or use `--web`.
    Labels of seeds in `review/seeds.csv` are used by the next run.
    """
    from curation.taxonomy.review import Review

    asked = {
        "--file": file,
        "--check": check,
        "--apply": apply,
        "--versions": versions,
        "--show": show is not None,
        "--compare": compare is not None,
        "--return-to": return_to is not None,
        "--web": web,
    }
    given = [name for name, is_given in asked.items() if is_given]
    if len(given) > 1:
        raise CurationError(f"{given[0]} and {given[1]} cannot be asked for together", "Give one of them.")
    if web:
        from curation.review_page import serve

        return serve(directory, port=port, open_browser=browser)
    desk = Review(directory)
    if file:
        return _write(desk)
    if check:
        return _check(desk)
    if apply:
        return _apply(desk, by)
    if versions:
        return _versions(desk)
    if show is not None:
        from curation.taxonomy.document import taxonomy_text

        return typer.echo(taxonomy_text(desk.history.get(show).taxonomy), nl=False)
    if compare is not None:
        from curation.taxonomy import compare as comparing

        return _changes(
            comparing.compare(desk.history, *compare), f"Versions {compare[0]} and {compare[1]} are equal."
        )
    if return_to is not None:
        record = desk.return_to(return_to, by or getpass.getuser())
        _say(f"Version {record.version} has tree and labels of version {return_to}. Now: curate run {desk.root}")
        return None
    return _list(desk)


def _say(text: str) -> None:
    console.print(escape(text), highlight=False, soft_wrap=True)


def _list(desk: Review) -> None:
    _state(desk)
    waiting = desk.waiting
    if waiting:
        from curation.taxonomy.review_file import summary

        cells: list[list[Any]] = [
            [key, escape(summary(one)), one.rows, one.weight, f"{one.confidence:.2f}"]
            for key, one in list(waiting.items())[:_SHOWN]
        ]
        headings = {"proposal": "left", "what": "left", "queries": "right", "raw rows": "right", "sure": "right"}
        console.print(table_of(headings, cells))
        if len(waiting) > _SHOWN:
            _say(f"... and {len(waiting) - _SHOWN:,} more")
    impossible = len(desk.proposals) - len(waiting)
    if impossible:
        _say(f"{impossible:,} more proposals cannot be carried out: curate show proposals, column `problem`.")
    seeds = desk.unlabelled.height
    if seeds:
        _say(f"{seeds:,} queries wait for labels.")
    if waiting or seeds:
        _say(f"Decide: curate review {desk.root} --web, or --file for files to edit.")
    else:
        _say("Nothing waits for review.")


def _state(desk: Review) -> None:
    tree = desk.current.taxonomy
    leaves = sum(node.is_leaf and not node.is_other for node in tree.nodes)
    level1 = sum(not node.is_other for node in tree.children(None))
    _say(f"Taxonomy version {desk.current.name}: {level1} level-1 categories, {leaves} leaves.")
    if desk.is_behind:
        _say(f"The tables are of another version: curate run {desk.root}")


def _write(desk: Review) -> None:
    written = desk.write_files()
    if not written:
        _say("Nothing waits for review. Set seeds.propose in the recipe to get queries to label.")
        return
    if desk.decisions_file in written:
        _say(f"{written[desk.decisions_file]:,} proposals are in {desk.decisions_file}")
    if desk.seeds_file in written:
        _say(f"{written[desk.seeds_file]:,} queries to label are in {desk.seeds_file}: fill in `primary` or `tags`")
    _say(f"Then: curate review {desk.root} --check")


def _check(desk: Review) -> None:
    preview = desk.preview()
    _told(preview, desk)
    _labels(desk)
    if preview.version is not None:
        _say(f"To carry it out: curate review {desk.root} --apply")


def _apply(desk: Review, by: str | None) -> None:
    preview = desk.apply(by or getpass.getuser())
    _told(preview, desk)
    if preview.version is None:
        _say("The rejected proposals will not come again.")
        return
    _say(f"Version {preview.version.name} is in {desk.versions_file}. Now: curate run {desk.root}")
    if desk.section.version is not None:
        _say(f"The recipe keeps to version {desk.section.version}: take `taxonomy.version` out to use the new one.")


def _told(preview: Preview, desk: Review) -> None:
    plan = preview.plan
    _say(
        f"{len(plan.accepted):,} proposals accepted, {len(plan.rejected):,} rejected, {plan.undecided:,} left for "
        f"later; {len(plan.operations):,} operations on version {desk.current.name}."
    )
    if preview.version is not None:
        _changes(preview.changes, "The tree stays as it is.")
        _say(f"{preview.again:,} rows will be annotated again.")


def _changes(changes: list[Change], none: str) -> None:
    if not changes:
        _say(none)
        return
    cells: list[list[Any]] = [
        [one.change, escape(one.node_id), escape(_short(one.before)), escape(_short(one.after))] for one in changes
    ]
    console.print(table_of({"change": "left", "node": "left", "before": "left", "after": "left"}, cells))


def _short(text: str | None) -> str:
    text = " ".join((text or "").split())
    return text if len(text) <= 60 else text[:59] + "…"


def _labels(desk: Review) -> None:
    """Say what is in the seeds file, and how far its labellers agree."""
    if not desk.seeds_file.exists():
        return
    from curation.taxonomy.labellers import label_sets, settled
    from curation.teachers.seeds_file import read_seeds_file

    rows = read_seeds_file(desk.seeds_file, desk.label_versions)
    one = settled(rows)
    with_leaf = one["primary"].count()
    tagged = int((one["tags"].list.len() > 0).sum())
    disputed = int(one["disputed"].sum())
    _say(f"{desk.seeds_file}: {one.height:,} queries, {with_leaf:,} with a primary leaf, {tagged:,} with tags.")
    said = label_sets(rows)
    if len(said) > 1:
        names = ", ".join(f"{name} {len(labels):,}" for name, labels in said.items())
        _say(f"Labelled by {names}; {disputed:,} disputed. {_agreement(said)}")


def _agreement(said: dict[str, dict[int, frozenset[str]]]) -> str:
    from curation.algorithms.agreement import krippendorff_alpha, masi_distance

    units: dict[int, list[frozenset[str]]] = {}
    for labels in said.values():
        for query, label in labels.items():
            units.setdefault(query, []).append(label)
    shared = [values for values in units.values() if len(values) > 1]
    if not shared:
        return "No query was labelled by two of them."
    alpha = krippendorff_alpha(shared, masi_distance)
    return f"Agreement on {len(shared):,} queries: Krippendorff's alpha {alpha:.2f} (MASI distance)."


def _versions(desk: Review) -> None:
    cells: list[list[Any]] = []
    for name, version in desk.history.versions.items():
        record = version.record
        made = "first version"
        if record is not None:
            made = f"returns to {record.return_to}" if record.return_to else f"{len(record.operations)} operations"
        apart = "" if record is None or record.convergence is None else f"{record.convergence['total']:.3f}"
        who = "" if record is None else "unattended" if record.auto else record.by or ""
        mark = "*" if name == desk.current.name else ""
        leaves = sum(node.is_leaf and not node.is_other for node in version.taxonomy.nodes)
        before = "" if record is None else record.from_ or ""
        when = "" if record is None else record.at or ""
        cells.append([mark, escape(name), escape(before), leaves, made, apart, escape(who), escape(when)])
    headings = {"": "left", "version": "left", "from": "left", "leaves": "right", "by way of": "left"}
    console.print(table_of(headings | {"distance": "right", "who": "left", "when": "left"}, cells))


def register(app: typer.Typer) -> None:
    """Add this module's commands to ``app``."""
    app.command()(review)
