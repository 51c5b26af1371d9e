"""The desk a person reviews at: what waits, what was decided, versions, seeds. Knows no HTTP."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.domain.model import REASONS
from curation.errors import CurationError
from curation.review_page import inputs
from curation.review_page.book import Book, ReviewFile
from curation.review_page.edits import check_unchanged, edits_of
from curation.review_page.files import DecisionsFile, SeedsFile
from curation.review_page.journal import Step
from curation.review_page.material import Material, fold_text
from curation.review_page.seeds_text import label_of, seed_key, split_seed_key
from curation.review_page.versions import line_of_change, lines_of_versions, seeds_place, stamp
from curation.taxonomy.compare import compare
from curation.taxonomy.decisions import Decision, read_decisions
from curation.taxonomy.entries import review_lock
from curation.taxonomy.places import REVIEW
from curation.taxonomy.review import Review

__all__ = ["Desk"]

_PAGE = 20
_MOST_ROWS = 500
_STATES = {"accept": "accepted", "edit": "edited", "reject": "rejected"}
_STATUS = ("waiting", *_STATES.values(), "impossible")
_PROPOSAL, _SEED = "proposal:", "seed:"
_Value = dict[str, Any]


class Desk:
    """One person's review of one workspace; the methods give and take JSON's types and may be called from any thread.

    Args:
        root: The workspace.
        by: Who reviews, if that is known from the start; the page lets them say another name.

    Raises:
        CurationError: It is none, its recipe or versions file is wrong, or another page holds it.
    """

    def __init__(self, root: Path, by: str | None = None) -> None:
        self._by = by
        self._review = Review(root)
        self.root = self._review.root
        self._stamp: Any = None
        self.seeds_file = seeds_place(self._review.seeds_file)
        files: list[ReviewFile] = [DecisionsFile(self._review.decisions_file, _PROPOSAL, self._parse)]
        if self.seeds_file:
            trees, proposed = (lambda: self._review.label_versions), (lambda: self._material.seeds)
            files.append(SeedsFile(self.seeds_file, _SEED, trees, proposed))
        self.book = Book(self.root / REVIEW, files)
        try:
            self._refresh()
        except BaseException:
            self.book.close()
            raise

    def close(self) -> None:
        """Fold what stands into the files, and let go of the workspace."""
        self.book.close()

    # -- looking

    def state(self) -> dict[str, Any]:
        """Counts, what undo and redo would do, and what is wrong with a file, if anything."""
        with self.book.lock:
            self._refresh()
            self.book.pull()
            material, trouble = self._material, self.book.wrong or self.book.stuck
            counts = dict.fromkeys(_STATUS, 0)
            for key, value in self._decided(_PROPOSAL).items():
                counts[_STATES[value["decision"]]] += key in material.proposal_ids
            counts["impossible"] = len(material.problems)
            counts["waiting"] = len(material.proposal_ids) - sum(counts.values())
            labelled = {split_seed_key(key)[0] for key in self._decided(_SEED)}
            undo, redo = self.book.titles
            return {
                "workspace": self.root.name,
                "by": self._by,
                "material": hashlib.sha256(repr(self._stamp).encode()).hexdigest()[:12],
                "version": self._review.current.name,
                "annotated_with": material.annotated_with,
                "is_behind": material.is_behind,
                "has_proposals": "proposals" in material.tables,
                "proposals": counts | {"all": len(material.proposal_ids)},
                "seeds": {"all": len(material.seeds), "labelled": sum(key in labelled for key in material.seeds)},
                "seeds_file": str(self.seeds_file) if self.seeds_file else None,
                "undo": undo,
                "redo": redo,
                "trouble": {"message": trouble.message, "hint": trouble.hint} if trouble else None,
                "is_wrong": self.book.wrong is not None,
            }

    def tree(self) -> list[dict[str, Any]]:
        """The nodes of the current version, in document order, with counts and waiting proposals."""
        waiting = self._waiting_by_node()
        return [
            self._near(node.node_id)
            | {"parent_id": node.parent_id, "level": node.level, "name": node.name}
            | {"is_other": node.is_other, "is_leaf": node.is_leaf, "waiting": waiting.get(node.node_id, 0)}
            for node in self._material.taxonomy.nodes
        ]

    def node(self, node_id: str, order: str = "frequent", offset: int = 0) -> dict[str, Any]:
        """A node (the root for an empty id), rows at or below it, the nodes beside and below it."""
        material, taxonomy = self._material, self._material.taxonomy
        node = taxonomy.node(node_id) if node_id else None
        beside = [other for other in taxonomy.children(node.parent_id) if other is not node] if node else []
        evidence = material.examples(node_id, inputs.one_of(order, ("frequent", "unsure")), _PAGE + 1, offset)
        return {
            "node_id": node_id,
            "description": node.description if node else "All nodes.",
            "examples": list(node.examples) if node else [],
            "counts": material.counts_of(node_id),
            "evidence": evidence[:_PAGE],
            "more": len(evidence) > _PAGE,
            "siblings": [self._near(other.node_id) for other in beside],
            "children": [self._near(other.node_id) for other in taxonomy.children(node_id or None)],
        }

    def closest(self, node_id: str) -> list[dict[str, Any]]:
        """Leaves outside a node that are most like it; none for the root."""
        if not node_id:
            return []
        found = self._material.closest(self._material.taxonomy.node(node_id).node_id)
        return [row | self._near(row["node_id"]) for row in found]

    def _near(self, node_id: str) -> dict[str, Any]:
        description = self._material.taxonomy.node(node_id).description
        return {"node_id": node_id, "description": description, **self._material.counts.get(node_id, {})}

    def find_proposals(self, query: Mapping[str, str]) -> list[str]:
        """Ids of proposals; ``kind``, ``source``, ``status``, ``node``, ``words`` narrow, ``sort`` orders."""
        status = query.get("status", "")
        if status:
            inputs.one_of(status, _STATUS)
        return self._material.find_proposals(
            kind=query.get("kind", ""),
            source=query.get("source", ""),
            node=query.get("node", ""),
            words=query.get("words", ""),
            sort=query.get("sort", "confidence"),
            accepts=(lambda key: self._status(key) == status) if status else None,
        )

    def rows(self, ids: list[str]) -> list[dict[str, Any]]:
        """What lines of the list show, for at most 500 ids."""
        rows = self._material.proposals_at(ids[:_MOST_ROWS])
        return [row | {"status": self._status(row["proposal_id"])} for row in rows]

    def proposal(self, proposal_id: str) -> dict[str, Any]:
        """All of one proposal, what was decided, and what its node and target are now."""
        row = self._material.proposal(proposal_id)
        taxonomy = self._material.taxonomy
        about = {
            row[name]: taxonomy.by_id[row[name]] for name in ("node_id", "target") if row[name] in taxonomy.by_id
        }
        return row | {
            "status": self._status(proposal_id),
            "decided": self.book.values.get(_PROPOSAL + proposal_id),
            "takes_examples": self._material.as_proposal(proposal_id).takes_examples,
            "about": {node_id: node.description for node_id, node in about.items()},
        }

    def find_seeds(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Queries proposed for labelling, with the label of the labeller ``by`` and the number of other labellers.

        What others said is not shown: labels of several people are worth something if they are independent.
        """
        by, status = query.get("by", ""), query.get("status", "")
        if status:
            inputs.one_of(status, ("waiting", "labelled"))
        words = fold_text(query.get("words", "")).split()
        labels: dict[str, dict[str, Any]] = {}
        for key, value in self._decided(_SEED).items():
            query_id, labeller = split_seed_key(key)
            labels.setdefault(query_id, {})[labeller] = value
        found = []
        for query_id, seed in self._material.seeds.items():
            own = labels.get(query_id, {}).get(by)
            text = fold_text(seed["text"])
            if all(word in text for word in words) and (not status or (own is not None) == (status == "labelled")):
                others = len(labels.get(query_id, {})) - (own is not None)
                found.append(seed | {"label": own, "others": others})
        return found

    # -- deciding

    def decide(self, body: dict[str, Any]) -> dict[str, Any]:
        """Decide proposals, one or many in one step.

        Args:
            body: ``ids``; ``decision`` (accept, reject, edit, or null to let them wait again); for an edit what
                replaces fields of the proposal: ``name``, ``description``, ``target``, ``examples``, ``again``,
                ``parts``; ``note``; ``by``; ``waiting_only`` leaves out those that do not wait.
        """
        ids, decision = inputs.texts(body, "ids"), body.get("decision")
        with self.book.lock:
            for key in ids:
                if key not in self._material.proposal_ids:
                    raise KeyError(key)
            if body.get("waiting_only"):
                ids = [key for key in ids if self._status(key) == "waiting"]
            if decision is None:
                check_unchanged(body, None)
                return self._do(
                    dict.fromkeys((_PROPOSAL + key for key in ids), None), f"let wait: {self._title(ids)}"
                )
            inputs.one_of(decision, tuple(_STATES))
            problems = [self._material.problems[key] for key in ids if key in self._material.problems]
            if problems and decision != "reject":
                raise CurationError(f"it cannot be carried out: {problems[0]}")
            edits = self._edits(ids, body, decision)
            value = {"decision": "edit" if edits else "accept" if decision == "edit" else decision, **edits}
            value |= {name: said for name in ("note", "by") if (said := inputs.text(body, name))}
            return self._do({_PROPOSAL + key: value for key in ids}, f"{value['decision']}: {self._title(ids)}")

    def _edits(self, ids: list[str], body: dict[str, Any], decision: str) -> _Value:
        if decision != "edit":
            check_unchanged(body, decision)
            return {}
        if len(ids) != 1:
            raise CurationError("an edit is about one proposal")
        return edits_of(self._material.as_proposal(ids[0]), body, self._material.taxonomy)

    def label(self, body: dict[str, Any]) -> dict[str, Any]:
        """Label a seed, or take its label away.

        Args:
            body: ``query_id``; ``by``, the labeller; ``primary`` (a leaf), ``tags``, ``secondary``, ``reason``, none
                of them to take the label away.
        """
        if self.seeds_file is None:
            raise CurationError(
                f"the page cannot write labels into {self._review.seeds_file}",
                "Name a .csv file or a directory as seeds.file in the recipe.",
            )
        seed = self._material.seeds[inputs.text(body, "query_id") or ""]
        by, taxonomy = inputs.text(body, "by") or "", self._material.taxonomy
        primary, reason = inputs.text(body, "primary"), inputs.text(body, "reason")
        tags, secondary = inputs.texts(body, "tags"), inputs.texts(body, "secondary")
        for leaf in (primary, *secondary):
            if leaf is not None and leaf not in taxonomy.leaf_set:
                raise CurationError(f"{leaf!r} is no leaf of version {taxonomy.version}")
        if reason is not None:
            inputs.one_of(reason, REASONS)
        if primary is None and (secondary or reason):
            raise CurationError("secondary leaves and a reason need a primary leaf")
        secondary = [leaf for leaf in secondary if leaf != primary]
        label = label_of(seed | {"tags": tags, "primary": primary, "secondary": secondary, "reason": reason})
        key = _SEED + seed_key(seed["query_id"], by)
        return self._do({key: label if primary or tags else None}, f"label: {seed['text'][:40]}")

    def undo(self) -> dict[str, Any]:
        """Take the last step back."""
        with self.book.lock:
            return self._did(self.book.undo())

    def redo(self) -> dict[str, Any]:
        """Do the last undone step again."""
        with self.book.lock:
            return self._did(self.book.redo())

    def _do(self, after: dict[str, _Value | None], title: str) -> dict[str, Any]:
        with self.book.lock:
            return self._did(self.book.do(after, title))

    def _did(self, step: Step | None) -> dict[str, Any]:
        """The new state, and which proposals and seeds a step touched."""
        touched = step.changes if step else {}
        return {
            "title": step.title if step else None,
            "proposals": [key.removeprefix(_PROPOSAL) for key in touched if key.startswith(_PROPOSAL)],
            "seeds": [split_seed_key(key.removeprefix(_SEED))[0] for key in touched if key.startswith(_SEED)],
            "state": self.state(),
        }

    def _title(self, ids: list[str]) -> str:
        if len(ids) != 1:
            return f"{len(ids):,} proposals"
        row = self._material.proposal(ids[0])
        return f"{row['kind']} {row['name'] if row['kind'] == 'add' else row['node_id']}"

    # -- versions

    def versions(self) -> list[dict[str, Any]]:
        """All versions, the newest first."""
        return lines_of_versions(self._review)

    def compare(self, old: str, new: str) -> list[dict[str, Any]]:
        """What changed from one version to another."""
        return [line_of_change(change) for change in compare(self._review.history, old, new)]

    def preview(self) -> dict[str, Any]:
        """What applying would change, without doing it."""
        with self.book.lock:
            self.book.settle()
            preview = self._review.preview()
            rows = self._material.labelled.height
            return {
                "accepted": len(preview.plan.accepted),
                "rejected": len(preview.plan.rejected),
                "own": len(preview.plan.operations) - len(preview.plan.accepted),
                "from": self._review.current.name,
                "to": preview.version.name if preview.version else None,
                "changes": [line_of_change(change) for change in preview.changes],
                "again": preview.again,
                "notes": preview.notes,
                "rows": rows,
                "seal": preview.seal,
            }

    def apply(self, body: dict[str, Any]) -> dict[str, Any]:
        """Make a new version of what was accepted, and note what was rejected.

        Args:
            body: ``seal`` of the preview that the person saw; ``by``.
        """
        with self.book.lock:
            self.book.settle()
            preview = self._review.apply(inputs.text(body, "by"), inputs.text(body, "seal"))
            return {"version": preview.version.name if preview.version else None, "state": self.state()}

    def return_to(self, body: dict[str, Any]) -> dict[str, Any]:
        """Make a version that has the tree of an earlier one.

        Args:
            body: ``version``; ``by``.
        """
        with self.book.lock:
            self.book.settle()
            record = self._review.return_to(inputs.text(body, "version") or "", inputs.text(body, "by"))
            return {"version": record.version, "state": self.state()}

    def put_away(self) -> dict[str, Any]:
        """Move a decisions file with a mistake in it out of the way, to where applied ones lie."""
        with self.book.lock:
            self.book.pull()
            if self.book.wrong is not None:
                with review_lock(self.root / REVIEW):
                    self._review.put_away()
            return {"state": self.state()}

    # -- inside

    def _refresh(self) -> None:
        """Read tables and versions anew when a run or a version came meanwhile."""
        now = stamp(self._review)
        if now == self._stamp:
            return
        self._review = Review(self.root)
        self._review.finish()
        material = self._material = Material(self._review.workspace, self._review.current.taxonomy)
        self._stamp = now
        ids = "".join(sorted(material.proposal_ids))
        about = f"version {self._review.current.name}, proposals {hashlib.sha256(ids.encode()).hexdigest()[:16]}"
        self.book.begin(about, lambda key: key.startswith(_SEED) or key[len(_PROPOSAL) :] in material.proposal_ids)

    def _parse(self, text: str, path: Path) -> dict[str, _Value]:
        """The decisions in the text of a decisions file; operations of a person's own are not among them."""
        found = {}
        for given in read_decisions(path, self._review.proposals, self._review.history.accepted, text):
            if isinstance(given.what, Decision) and given.what.decision is not None:
                value = given.what.model_dump(mode="json", exclude_unset=True)
                found[value.pop("proposal")] = value
        return found

    def _decided(self, prefix: str) -> dict[str, _Value]:
        values = list(self.book.values.items())
        return {key.removeprefix(prefix): value for key, value in values if key.startswith(prefix)}

    def _status(self, proposal_id: str) -> str:
        value = self.book.values.get(_PROPOSAL + proposal_id)
        if value is not None:
            return _STATES[value["decision"]]
        return "impossible" if proposal_id in self._material.problems else "waiting"

    def _waiting_by_node(self) -> dict[str, int]:
        material = self._material
        known = material.proposal_ids
        nodes = material.proposals["node_id"].to_list() if known else []
        settled = Counter(
            nodes[known[key]] for key in {*self._decided(_PROPOSAL), *material.problems} if key in known
        )
        return {node: number - settled[node] for node, number in Counter(nodes).items() if node is not None}
