"""The review command: what waits for a person, the files they edit, and what becomes of them."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from curation.cli.console import console, counted, table_of
from curation.errors import CurationError

if TYPE_CHECKING:
    import polars as pl

    from curation.taxonomy.compare import Change
    from curation.taxonomy.labellers import Difference
    from curation.taxonomy.review import Preview, Review
    from curation.taxonomy.versions import Record

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
    by: Annotated[str | None, typer.Option(help="Who reviews; your user name, or the name on the page.")] = None,
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

        return serve(directory, port=port, open_browser=browser, by=by)
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
        if desk.decisions_file.exists():
            _say(
                f"{desk.decisions_file} belongs to version {desk.current.name}: move it away before the next review."
            )
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
        more = counted(impossible, "more proposal")
        _say(f"{more} cannot be carried out: curate show proposals, column `problem`.")
    seeds = desk.unlabelled.height
    if seeds:
        _say("1 query waits for a label." if seeds == 1 else f"{seeds:,} queries wait for labels.")
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
        _behind(desk)


def _behind(desk: Review) -> None:
    _say(f"The tables are of another version than {desk.current.name}: curate run {desk.root}")
    if desk.lost:
        _say(f"They know of {', '.join(desk.lost)} too, which is not in {desk.versions_file} (any more).")


def _write(desk: Review) -> None:
    written = desk.write_files()
    if desk.is_behind:
        _behind(desk)
    if not written:
        if not desk.is_behind:
            _say("Nothing waits for review. Set seeds.propose in the recipe to get queries to label.")
        return
    if desk.decisions_file in written:
        _say(f"{desk.decisions_file} holds {counted(written[desk.decisions_file], 'proposal')}.")
    if desk.seeds_file in written:
        waiting = counted(written[desk.seeds_file], "query to label", "queries to label")
        _say(f"{desk.seeds_file} holds {waiting}: fill in `primary` or `tags`.")
    _say(f"Then: curate review {desk.root} --check")


def _check(desk: Review) -> None:
    preview = desk.preview()
    if desk.carried_out is not None:
        _say(f"{_made(desk.carried_out)}, and whoever applied them was stopped. --apply puts the file away.")
    elif not desk.decisions_file.exists():
        _say(f"There are no decisions: {desk.decisions_file} is not there. --file writes it.")
    else:
        _told(preview, desk)
    _labels(desk)
    if preview.version is not None:
        _say(f"To carry it out: curate review {desk.root} --apply")


def _made(record: Record) -> str:
    return f"These decisions are {f'version {record.version}' if record.version else 'noted'} already"


def _apply(desk: Review, by: str | None) -> None:
    before = desk.finish()
    if before is not None:
        _say(f"{_made(before)}: whoever applied them was stopped. Now: curate run {desk.root}")
        return
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
    accepted, operations = counted(len(plan.accepted), "proposal"), counted(len(plan.operations), "operation")
    if plan.operations or plan.rejected:
        _say(
            f"{accepted} accepted, {len(plan.rejected):,} rejected, {plan.undecided:,} left for later; "
            f"{operations} on version {desk.current.name}."
        )
    else:
        _say(f"Nothing is decided yet in {desk.decisions_file}; {counted(plan.undecided, 'proposal')} left.")
    if plan.stale:
        stale = "1 entry is about a proposal" if plan.stale == 1 else f"{plan.stale:,} entries are about proposals"
        _say(f"{stale} of an earlier run, and decided nothing of it.")
    if preview.version is not None:
        _changes(preview.changes, "The tree stays as it is.")
        for note in preview.notes:
            _say(note)
        _say(f"{counted(preview.again, 'row')} will be annotated again.")


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
    from curation.taxonomy.labellers import differences, label_sets, settled
    from curation.teachers.seeds_file import other_columns, read_seeds_file

    rows = read_seeds_file(desk.seeds_file, desk.label_versions)
    one = settled(rows)
    with_leaf = one["primary"].count()
    tagged = int((one["tags"].list.len() > 0).sum())
    disputed = int(one["disputed"].sum())
    queries = counted(one.height, "query", "queries")
    _say(f"{desk.seeds_file}: {queries}, {with_leaf:,} with a primary leaf, {tagged:,} with tags.")
    if notes := other_columns(desk.seeds_file):
        _say(f"Columns that are left out: {', '.join(notes)}.")
    _strangers(desk, rows)
    said = label_sets(rows)
    if len(said) > 1:
        names = ", ".join(f"{name} {len(labels):,}" for name, labels in said.items())
        _say(f"Labelled by {names}; {disputed:,} disputed. {_agreement(said)}")
        _differences(differences(rows))


def _strangers(desk: Review, rows: pl.DataFrame) -> None:
    """Say which labelled texts are no queries of the log: they teach all the same."""
    from curation.taxonomy.labellers import has_label

    strange = desk.not_in_log(rows.filter(has_label()))
    if strange.is_empty():
        return
    many = "1 text is no query" if strange.height == 1 else f"{strange.height:,} texts are no queries"
    _say(f"{many} of this log; labels count as examples all the same:")
    for place, text in strange.select("place", "text").head(_SHOWN).iter_rows():
        _say(f"  {place}: {_short(text)}" if place else f"  {_short(text)}")
    _more(strange.height)


def _differences(found: list[Difference]) -> None:
    """Say of which queries people think differently, and who said what."""
    for one in found[:_SHOWN]:
        outcome = "most say the same, which counts" if one.is_settled else "no label counts"
        _say(f"  {_short(one.text)}: {outcome}")
        for place, who, what in one.said:
            _say(f"    {place}, {who}: {what}" if place else f"    {who}: {what}")
    _more(len(found))


def _more(count: int) -> None:
    if count > _SHOWN:
        _say(f"  ... and {count - _SHOWN:,} more")


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
    queries = counted(len(shared), "query", "queries")
    return f"Agreement on {queries}: Krippendorff's alpha {alpha:.2f} (MASI distance)."


def _versions(desk: Review) -> None:
    cells: list[list[Any]] = []
    for name, version in desk.history.versions.items():
        record = version.record
        made = "first version"
        if record is not None:
            made = counted(len(record.operations), "operation")
            made = f"returns to {record.return_to}" if record.return_to else made
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
