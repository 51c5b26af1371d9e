"""The growth of the taxonomy as a workspace goes through it, run, decisions and run again, on the sample's log.

Each case has a workspace of its own, kept under ``.benchmarks/evolution``; the stages before the taxonomy are built
once. The truth of the sample scores what was proposed and plays the reviewer; no stage sees it.

* *Pure* is a proposal to add a leaf at least four fifths of whose evidence are rows of the hidden leaf; it is *right*
  if its place is the hidden leaf's parent or a node above that. The root counts as above (the person places it then)
  and is shown as such.
* The *control* asks the same of a run with the whole domain, in which the leaf is there: its pure proposals are parts
  of the leaf that the teacher does not know. A leaf is found where the plant has a right proposal, and pure ones of
  more raw rows than the control.
* *Accepted* is the right proposal, under the true name and parent of the leaf. Rows *under* the parent are those with
  a label at or below it before; *outside* are rows that changed and had none there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from curation.taxonomy.compare import CHANGES
from tests.benchmarks.corpus import CACHE, sample
from tests.benchmarks.measure import ROOT

__all__ = [
    "Desk",
    "Found",
    "decided",
    "domain_without",
    "evenly",
    "found_of",
    "left_for_development",
    "plant",
    "planted_leaves",
    "rounds",
    "unlike",
]

PURE = 0.8
PLACE = CACHE / "evolution"
SHARED_STAGES = ("ingest", "lexical", "embed")
MOST_ROUNDS = 5
SOURCE = ROOT / "curation/domain/map_travel"

Row = list[Any]


def planted_leaves(taxonomy: Any, rows: dict[str, int], least: int = 100) -> list[str]:
    """The first leaf of each level-2 category (or level-1 leaf) with enough queries in the log."""
    first: dict[str, str] = {}
    for node in taxonomy.nodes:
        if node.is_leaf and not node.is_other and rows.get(node.node_id, 0) >= least:
            first.setdefault(".".join(node.node_id.split(".")[:2]), node.node_id)
    return list(first.values())


def evenly(items: list[str], most: int) -> list[str]:
    """`most` of them (or all), spread over the list."""
    most = min(most, len(items))
    return [items[at * len(items) // most] for at in range(most)]


def domain_without(leaves: Sequence[str], source: Path, target: Path) -> Path:
    """Copy a domain to ``target`` without some leaves, their seeds, their examples and whatever else names them."""
    target.mkdir(parents=True, exist_ok=True)

    def rewritten(name: str, take: Callable[[Any, str], None]) -> None:
        content = yaml.safe_load((source / name).read_text("utf-8"))
        for leaf in leaves:
            take(content, leaf)
        text = yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=1000)
        (target / name).write_text(text, encoding="utf-8")

    rewritten("taxonomy.yaml", _take_node)
    rewritten("seeds.yaml", _take_seeds)
    rewritten("plans.yaml", _take_plans)
    for name in ("tools.yaml", "dimensions.yaml"):
        shutil.copy(source / name, target / name)
    return target


def _take_node(content: Any, leaf: str) -> None:
    *above, name = leaf.split(".")
    below = content["taxonomy"]
    for step in above:
        below = below[step]["children"]
    del below[name]


def _take_seeds(content: Any, leaf: str) -> None:
    content["seeds"].pop(leaf, None)
    content["negatives"] = [block for block in content["negatives"] if block["primary"] != leaf]
    for block in (*content["seeds"].values(), *content["negatives"]):
        for lang in set(block) - {"reason", "primary"}:
            for seed in block[lang]:
                if isinstance(seed, dict) and leaf in seed.get("secondary", ()):
                    seed["secondary"].remove(leaf)
                    if not seed["secondary"]:
                        del seed["secondary"]


def _take_plans(content: Any, leaf: str) -> None:
    content["nodes"].pop(leaf, None)
    rules = []
    for rule in content["rules"]:
        if leaf in rule.get("nodes", ()):
            rule["nodes"] = [node for node in rule["nodes"] if node != leaf]
            if not rule["nodes"]:
                continue  # without nodes it would hold everywhere
        rules.append(rule)
    content["rules"] = rules


@dataclass(frozen=True)
class Found:
    """What is proposed of a leaf.

    Attributes:
        pure: Ids of the pure proposals, the weightiest first: the order that a person sees.
        weight: Raw rows behind them.
        right: The first right one of them; None for none.
        place: Its place among all proposals to add a leaf.
        parent: Where it wants the leaf.
    """

    pure: tuple[str, ...]
    weight: int
    right: str | None = None
    place: int | None = None
    parent: str | None = None


def found_of(proposals: dict[str, Any], leaf: str, truth: dict[int, str]) -> Found:
    """The pure and the right proposals for a leaf among those of the stage, in their order."""
    adding = [(key, one) for key, one in proposals.items() if one.kind == "add" and one.source == "expand"]
    places = {key: place for place, (key, _) in enumerate(adding, 1)}
    pure = {key: one for key, one in adding if _share(one, leaf, truth) >= PURE}
    weight = sum(one.weight for one in pure.values())
    for key, one in pure.items():
        if one.node_id is None or leaf.startswith(f"{one.node_id}."):
            return Found(tuple(pure), weight, key, places[key], one.node_id or "(root)")
    return Found(tuple(pure), weight)


def _share(proposal: Any, leaf: str | None, truth: dict[int, str]) -> float:
    """Share of a proposal's evidence that are rows of a leaf."""
    return sum(truth.get(row.query_id) == leaf for row in proposal.evidence) / max(1, len(proposal.evidence))


def unlike(before: pl.DataFrame, after: pl.DataFrame, node: str | None) -> tuple[int, int]:
    """Rows of `annotations` that differ in anything but the version: all, and those that had no label at or below
    ``node``; None is the root, which has all of them."""
    columns = [name for name in before.columns if name != "taxonomy_version"]
    old, new = ({row["query_id"]: row for row in table.select(columns).to_dicts()} for table in (before, after))
    changed = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    outside = [key for key in changed if key not in old or not _under(old[key], node)]
    return len(changed), len(outside)


def _under(row: dict[str, Any], node: str | None) -> bool:
    labels = [label for label in (row["primary"], *(row["secondary"] or ())) if label]
    return node is None or any(f"{label}.".startswith(f"{node}.") for label in labels)


class Desk:
    """A workspace of the sample's log, run as `curate run` does and reviewed by whoever knows the truth.

    Args:
        name: Of the workspace.
        domain: Name or directory of its domain.
    """

    def __init__(self, name: str, domain: str | Path = "map_travel") -> None:
        self.root = PLACE / name
        base = PLACE / "base"
        if self.root != base:
            if not (base / "latest").exists():
                Desk(base.name).run("+embeddings")
            _link_objects(base, self.root)
        for left in ("review", "runs"):
            shutil.rmtree(self.root / left, ignore_errors=True)
        (self.root / "latest").unlink(missing_ok=True)
        self.root.mkdir(parents=True, exist_ok=True)
        log = {"path": str(sample().log), "text": "query", "time": "ts", "source": "source"}
        recipe = {"log": log, "domain": str(domain)}
        (self.root / "recipe.yaml").write_text(yaml.safe_dump(recipe, allow_unicode=True), encoding="utf-8")

    def run(self, select: str = "+proposals") -> Desk:
        """What `curate run --select` does."""
        from curation import Recipe
        from curation.engine.session import Session

        with Session(Recipe.load(self.root), self.root, select=(select,)) as session:
            session.run()
        return self

    def table(self, name: str) -> pl.DataFrame:
        """A published table."""
        from curation import Workspace

        return Workspace(self.root).table(name).collect()

    @property
    def review(self) -> Any:
        """A fresh look at what waits."""
        from curation.taxonomy.review import Review

        return Review(self.root)

    def decide(self, entries: list[dict[str, Any]]) -> Any:
        """Write the decisions file and carry it out; what it did."""
        path = self.review.decisions_file
        path.parent.mkdir(exist_ok=True)
        # JSON is YAML with quotes: an id such as 1e23... would be a number.
        path.write_text(json.dumps(entries, ensure_ascii=False, indent=1), encoding="utf-8")
        return self.review.apply("scripted reviewer")

    def metric(self, name: str) -> float:
        """A metric of the published run."""
        return float(self.table("metrics").filter(pl.col("name") == name)["value"].item())

    @cached_property
    def truth(self) -> dict[int, str]:
        """Leaf of each query that has one."""
        from tests.benchmarks import scores

        found = scores.query_truth(sample().rows(), self.table("occurrences")).select("query_id", "leaf")
        return dict(found.drop_nulls().iter_rows())


def _link_objects(base: Path, root: Path) -> None:
    """The objects of the stages before the taxonomy, as hard links."""
    for stage in SHARED_STAGES:
        for source in (base / "objects" / stage).iterdir():
            target = root / "objects" / stage / source.name
            if not target.exists():
                shutil.copytree(source, target, copy_function=os.link)


def left_for_development(counts: dict[str, int], checked: Collection[str], least: int = 100) -> list[str]:
    """The leaves with enough queries in the log that the check does not hide; the root's Other is none."""
    from curation.domain.model import OTHER

    return sorted(leaf for leaf, count in counts.items() if count >= least and leaf not in {*checked, OTHER})


def plant(most: int, accept: bool = True, development: bool = False, wide: bool = False) -> Iterator[Row]:
    """For each hidden leaf: what was proposed, the control, what accepting it did; at the end how many are found.

    For development the leaves are hidden that the check leaves alone, so that it stays one. ``wide`` accepts with the
    leaves elsewhere named that hold evidence.
    """
    from curation.domain import load_domain

    control = Desk("base").run()
    truth, there = control.truth, control.table("annotations")["query_id"].to_list()
    counts: dict[str, int] = {}
    for leaf in (truth[query_id] for query_id in there if query_id in truth):
        counts[leaf] = counts.get(leaf, 0) + 1
    known, hits = control.review.waiting, 0
    leaves = evenly(planted_leaves(load_domain("map_travel").taxonomy, counts), most)
    if development:
        leaves = left_for_development(counts, leaves)
    for leaf in leaves:
        name = leaf.replace(".", "-")
        desk = Desk(name, domain_without([leaf], SOURCE, PLACE / "domains" / name)).run()
        waiting = desk.review.waiting
        found, also = found_of(waiting, leaf, truth), found_of(known, leaf, truth)
        hit = found.right is not None and found.weight > also.weight
        hits += hit
        adding = sum(one.kind == "add" for one in waiting.values())
        row: Row = [leaf, counts[leaf], adding, len(found.pure), found.weight, len(also.pure), also.weight]
        row += [found.place or "-", found.parent or "-", "yes" if hit else "no"]
        yield [*row, *(_accepted(desk, found.right, leaf, wide) if found.right and accept else ["-"] * 6)]
    yield [f"found: {hits} of {len(leaves)}", *["-"] * 15]


def _accepted(desk: Desk, proposal: str, leaf: str, wide: bool) -> Row:
    """Accept a proposal below the true parent of its leaf, and look at what that did.

    Returns:
        Rows with a label at or below the parent, those annotated again, those that changed, those of them that had no
        label there; recall and precision of the accepted leaf by the truth.
    """
    before, parent = desk.table("annotations"), leaf.rpartition(".")[0] or None
    decision = _placed(proposal, leaf)
    if wide:
        review = desk.review
        held = {review.places.get(row.query_id) for row in review.waiting[proposal].evidence}
        decision["again"] = sorted(held - {None})
    desk.decide([decision])
    after = desk.run("+annotations").table("annotations")
    changed, outside = unlike(before, after, parent)
    there = sum(_under(row, parent) for row in before.select("primary", "secondary").to_dicts())
    said = dict(after.select("query_id", "primary").iter_rows())
    taken = [key for key, primary in said.items() if primary == leaf]
    right = sum(desk.truth.get(key) == leaf for key in taken)
    whole = sum(desk.truth.get(key) == leaf for key in said)
    again = int(desk.metric("annotated_again"))
    return [there, again, changed, outside, f"{right / whole:.2f}", f"{right / max(1, len(taken)):.2f}"]


def _placed(proposal: str, leaf: str) -> dict[str, Any]:
    """The decision that accepts a proposal under the true name and place of its leaf."""
    parent, _, name = leaf.rpartition(".")
    return {"proposal": proposal, "decision": "edit", "name": name, "target": parent or None}


def decided(proposals: dict[str, Any], missing: Collection[str], truth: dict[int, str]) -> list[dict[str, Any]]:
    """What a reviewer who knows the truth decides.

    A leaf that is missing is added by its first right proposal, under its true name and place; rows of an Other go to
    the leaf that at least four fifths of them are of. Everything else is declined: the truth has no such thing.
    """
    right = {found.right: leaf for leaf in sorted(missing) if (found := found_of(proposals, leaf, truth)).right}
    entries = []
    for key, one in proposals.items():
        into_target = one.kind == "merge" and one.source == "expand" and _share(one, one.target, truth) >= PURE
        decision = {"proposal": key, "decision": "accept" if into_target else "reject"}
        entries.append(_placed(key, right[key]) if key in right else decision)
    return entries


def rounds(hidden: int) -> Iterator[Row]:
    """Rounds of a scripted reviewer from a domain without ``hidden`` leaves until nothing is accepted any more."""
    from curation.domain import load_domain

    whole = load_domain("map_travel").taxonomy
    gone = evenly(planted_leaves(whole, dict.fromkeys(whole.leaves, 1000)), hidden)
    desk = Desk("rounds", domain_without(gone, SOURCE, PLACE / "domains/rounds"))
    for number in range(1, MOST_ROUNDS + 2):
        review = desk.run().review
        tree = review.current.taxonomy
        missing = [leaf for leaf in gone if leaf not in tree.leaf_set]
        entries = decided(review.waiting, missing, desk.truth)
        accepted = sum(one["decision"] != "reject" for one in entries)
        again = int(desk.metric("annotated_again"))
        row = [number, tree.version, len(tree.leaves), len(missing), len(review.waiting), accepted, again]
        yield [*row, *_accuracy(desk), _faults(desk)]
        if not accepted:
            break
        desk.decide(entries)


def _accuracy(desk: Desk) -> Row:
    """Share of the annotated queries whose leaf is the true one, and distance of the version from the one before."""
    said = desk.table("annotations").select("query_id", "primary").iter_rows()
    pairs = [(primary, desk.truth[key]) for key, primary in said if key in desk.truth]
    record = desk.review.current.record
    apart = "-" if record is None else f"{record.convergence['total']:.3f}"
    return [f"{sum(a == b for a, b in pairs) / len(pairs):.3f}", apart]


def _faults(desk: Desk) -> str:
    """Whether every version is the one before with its operations, in the tables and in what `--compare` says."""
    from typer.testing import CliRunner

    from curation.cli.app import app
    from curation.taxonomy.compare import compare
    from curation.taxonomy.lineage import Lineage
    from curation.taxonomy.operations import apply

    history, faults = desk.review.history, []
    lineage = Lineage(desk.table("taxonomy"), desk.table("taxonomy_migrations"))
    for name, version in history.versions.items():
        if lineage.taxonomy(name).by_id != version.taxonomy.by_id:
            faults.append(f"table `taxonomy` of {name}")
        if version.record is None:
            continue
        before = version.record.from_
        if apply(history.get(before).taxonomy, version.record.operations, name).by_id != version.taxonomy.by_id:
            faults.append(f"operations of {name}")
        said = CliRunner().invoke(app, ["review", str(desk.root), "--compare", before, name])
        changes = compare(history, before, name)
        lines = [line for line in said.output.splitlines() if line.split(" ")[0] in CHANGES]
        table = desk.table("taxonomy_changes").filter(pl.col("version") == name).height
        if said.exit_code or len(lines) != len(changes) or table != len(changes):
            faults.append(f"changes of {name}")
    return ", ".join(faults) or "right"
