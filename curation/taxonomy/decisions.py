"""What a person decides of the proposals, and the operations that follow from it.

``review/decisions.yaml`` is a list; an entry decides one proposal, or is an operation of the person's own::

    - proposal: "3fa9c2d1e0b7"
      decision: accept
    - proposal: "0c1d2e3f4a5b"
      decision: edit
      name: night_markets
      note: clearer
    - {op: move, node: discovery.area_summaries, parent: planning_and_decision}

All ids are those of the version that the proposals speak of, whatever other entries do to the tree.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from curation.domain.model import OTHER, Taxonomy
from curation.errors import CurationError
from curation.taxonomy import operations as ops
from curation.taxonomy.editor import Editor, edited
from curation.taxonomy.entries import Entries, shown
from curation.taxonomy.evidence import Elsewhere, Named, below, elsewhere, held, named
from curation.taxonomy.proposal import Proposal

__all__ = [
    "EDITABLE",
    "Decision",
    "Elsewhere",
    "Given",
    "Plan",
    "Planner",
    "elsewhere",
    "operation_of",
    "plan_of",
    "read_decisions",
]

EDITABLE = {
    "add": ("name", "description", "target", "examples", "again"),
    "merge": ("target",),
    "split": ("parts",),
    "rename": ("name",),
    "move": ("target",),
    "drop": (),
    "describe": ("description",),
}
"""What may be edited of a proposal, by kind; the target of an added leaf is its parent, ``again`` names nodes
elsewhere whose rows are annotated again too."""


class Decision(BaseModel):
    """What was decided of one proposal; without ``decision`` nothing was yet."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    proposal: str
    decision: Literal["accept", "reject", "edit"] | None = None
    name: str | None = None
    description: str | None = None
    target: str | None = Field(None, validation_alias=AliasChoices("target", "parent"))
    examples: tuple[str, ...] | None = None
    parts: tuple[ops.NewLeaf, ...] | None = None
    again: tuple[str, ...] | None = None
    note: str | None = None
    by: str | None = None

    @property
    def edits(self) -> dict[str, Any]:
        """The fields that replace those of the proposal."""
        given = self.model_fields_set - {"proposal", "decision", "note", "by"}
        return {
            name: getattr(self, name) for name in sorted(given) if name == "target" or getattr(self, name) is not None
        }


@dataclass(frozen=True)
class Given:
    """An entry of the decisions file and the line it begins at."""

    index: int
    line: int
    what: Decision | ops.Operation


@dataclass
class Plan:
    """What decisions come to.

    Attributes:
        operations: What makes the next version, one after the other.
        accepted: Ids of the proposals they carry out.
        rejected: Proposals that are not to come again.
        undecided: How many proposals nothing was decided of.
        stale: How many entries decide nothing of a proposal that does not wait any more.
        left_out: Proposals that could not be carried out, with the reason.
        elsewhere: New leaves with evidence outside their parent.
        named: The nodes that entries name under ``again``.
        unnamed: `operations` as they were if no entry named any.
    """

    operations: list[ops.Operation] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    rejected: list[Proposal] = field(default_factory=list)
    undecided: int = 0
    stale: int = 0
    left_out: list[tuple[Proposal, str]] = field(default_factory=list)
    elsewhere: list[Elsewhere] = field(default_factory=list)
    named: list[Named] = field(default_factory=list)
    unnamed: list[ops.Operation] = field(default_factory=list)


class Planner:
    """Collects operations that all speak of the nodes of one version, and makes them follow one another."""

    def __init__(self, base: Taxonomy) -> None:
        self._base = base
        self._editor = Editor(base)
        self._used: list[str] = []
        self.operations: list[ops.Operation] = []
        self.unnamed: list[ops.Operation] = []

    def take(self, operation: ops.Operation, named: Collection[str] = ()) -> None:
        """Add an operation; ``named`` are those nodes of its ``again`` that a person named.

        Raises:
            CurationError: It cannot be carried out after those before it; it is not added.
        """
        try:
            current = self._translated(operation)
            if isinstance(operation, ops.Drop):
                self._check_unused(operation.node)
            idle = self._editor.idle(current)
            if idle is not None:
                raise CurationError(f"{operation.op}: {idle}", "Change it, or take the entry out.")
            self._editor.do(current)
        except CurationError as error:
            self._editor = edited(self._base, self.operations)
            message = error.message.partition(", ")[2] if error.message.startswith("operation ") else error.message
            raise CurationError(message, error.hint) from None
        self.operations.append(current)
        self.unnamed.append(self._without(current, named))
        self._used += _uses(operation)

    def _check_unused(self, node: str) -> None:
        """Refuse to drop what an entry before works on: in the other order that one is refused."""
        here = self._now(node)
        for other in self._used:
            if below(self._editor.now(other) or "", here):
                raise CurationError(
                    f"{node} is dropped, with {other}, which another entry works on",
                    "Take one of the two back, or decide them in turn.",
                )

    def _translated(self, operation: ops.Operation) -> ops.Operation:
        """The operation with the ids that nodes of the base have by now."""
        changes: dict[str, Any] = {}
        for name in ("node", "parent", "into"):
            if getattr(operation, name, None) is not None:
                changes[name] = self._now(getattr(operation, name))
        if isinstance(operation, ops.Merge):
            changes["nodes"] = tuple(self._now(node) for node in operation.nodes)
        if isinstance(operation, ops.Add | ops.Examples):
            still = (self._editor.now(node) for node in operation.again)
            changes["again"] = tuple(node for node in still if node is not None)
        return operation.model_copy(update=changes)

    def _without(self, current: ops.Operation, named: Collection[str]) -> ops.Operation:
        if not named or not isinstance(current, ops.Add | ops.Examples):
            return current
        names = {self._editor.now(node) for node in named}
        return current.model_copy(update={"again": tuple(node for node in current.again if node not in names)})

    def is_gone(self, node_id: str) -> bool:
        """Whether an operation so far takes a node of the version away."""
        return self._editor.now(node_id) is None

    def _now(self, node_id: str) -> str:
        now = self._editor.now(node_id)
        if now is None:
            raise CurationError(
                f"{node_id} is taken away by another decision", "Take one of the two back, or decide them in turn."
            )
        return now


def _uses(operation: ops.Operation) -> list[str]:
    """Nodes of the base that must stay for an operation to be worth anything."""
    match operation:
        case ops.Drop():
            return []
        case ops.Split():
            return [operation.node.rpartition(".")[0]]
        case ops.Merge():
            return [operation.into]
        case _:
            named = (getattr(operation, "node", None), getattr(operation, "parent", None))
            return [node for node in named if node]


def read_decisions(
    path: Path, proposals: Mapping[str, Proposal], applied: Iterable[str] = (), text: str | None = None
) -> list[Given]:
    """The entries of a decisions file.

    Args:
        path: The file; one that is not there holds no decision.
        proposals: Those that wait, by id.
        applied: Ids that a version already carries out: entries about them are left out.
        text: What is in the file, where that is known already.

    Raises:
        CurationError: For the first entry that is wrong, with its line. One that decides nothing of a proposal that
            does not wait any more is not: later runs propose anew.
    """
    entries, done = Entries(path, text), set(applied)
    found: list[Given] = []
    seen: dict[str, int] = {}
    for index in range(len(entries)):
        line = entries.line(index)
        if entries.has(index, "op"):
            found.append(Given(index, line, entries.read(index, ops.AnyOperation)))
            continue
        decision: Decision = entries.read(index, Decision)
        key = decision.proposal
        if key in done:
            continue
        if key in seen:
            raise entries.error(f"proposal {key} is decided in line {seen[key]} already", index, "proposal")
        seen[key] = line
        if key in proposals:
            _check_edits(entries, index, decision, proposals[key])
        elif decision.decision is not None:
            raise entries.error(
                f"there is no proposal {key!r} any more: a later run, or another version, has proposals of its own",
                index,
                "proposal",
                hint="Take the entry out, or move the file away; then `curate review --file` writes what waits now.",
            )
        found.append(Given(index, line, decision))
    return found


def _check_edits(entries: Entries, index: int, decision: Decision, proposal: Proposal) -> None:
    allowed = EDITABLE[proposal.kind]
    for name in decision.edits:
        if name not in allowed:
            what = ", ".join(allowed) or "nothing"
            raise entries.error(
                f"a proposal to {proposal.kind} has no {name}", index, name, hint=f"It can change: {what}."
            )
    if decision.decision == "edit" and not decision.edits:
        what = f"Change one of {', '.join(allowed)}, or write `accept`." if allowed else "Write `accept`."
        raise entries.error("edit changes nothing", index, "decision", hint=what)
    if decision.decision in ("accept", None) and (changed := _differing(decision, proposal)):
        said = "accept takes a proposal as it is" if decision.decision else "nothing is decided"
        raise entries.error(
            f"{said}, and this entry changes {', '.join(changed)}",
            index,
            changed[0],
            hint="Write `decision: edit` to change it, or take these fields out.",
        )


def _differing(decision: Decision, proposal: Proposal) -> list[str]:
    """The fields of a decision that say anything else than the proposal does."""
    if not decision.edits:
        return []
    try:
        plain = operation_of(proposal)
    except CurationError:  # what the proposal lacks, an edit may give
        return list(decision.edits)
    found = []
    for name, value in decision.edits.items():
        try:
            same = operation_of(proposal, {name: value}) == plain
        except CurationError:  # told with its reason when it is carried out
            same = False
        if not same:
            found.append(name)
    return found


def operation_of(
    proposal: Proposal, edits: Mapping[str, Any] | None = None, places: Mapping[int, str] | None = None
) -> ops.Operation:
    """The operation that carries a proposal out, with some of its fields replaced.

    Rows of an Other are merged into a leaf by becoming its examples: an Other itself never goes.

    Args:
        proposal: The proposal.
        edits: Its fields that a person changed.
        places: Leaf of each row of the evidence so far; of the leaves below the parent of a new leaf, those that hold
            some of it are annotated again.

    Raises:
        CurationError: A field makes no sense, such as a name that is none.
    """
    edits = edits or {}
    node = proposal.node_id
    given: dict[str, Any] = {"op": proposal.kind}
    match proposal.kind:
        case "add":
            examples = tuple(dict.fromkeys(row.text for row in proposal.evidence))
            given |= {"parent": edits.get("target", node), "name": edits.get("name", proposal.name)}
            given |= {"description": edits.get("description", proposal.description)}
            given |= {"examples": edits.get("examples", examples)}
            within = _within(held(proposal, places), given["parent"])
            given |= {"again": tuple(sorted(within | set(edits.get("again") or ())))}
        case "merge" if node is not None and node.rpartition(".")[2] == OTHER:
            given = {"op": "examples", "node": edits.get("target", proposal.target), "again": (node,)}
            given |= {"add": tuple(dict.fromkeys(row.text for row in proposal.evidence))}
        case "merge":
            given |= {"nodes": (node,), "into": edits.get("target", proposal.target)}
        case "split":
            parts = [
                {"name": part.name, "description": part.description, "examples": part.examples}
                for part in proposal.parts
            ]
            given |= {"node": node, "parts": edits.get("parts", parts)}
        case "rename":
            given |= {"node": node, "name": edits.get("name", proposal.name)}
        case "move":
            given |= {"node": node, "parent": edits.get("target", proposal.target)}
        case "describe":
            given |= {"node": node, "description": edits.get("description", proposal.description)}
        case _:
            given |= {"node": node}
    try:
        return ops.ANY_OPERATION.validate_python(given)
    except ValidationError as error:
        fault = error.errors()[0]
        name = ".".join(str(step) for step in fault["loc"][1:])
        said = fault["msg"].removeprefix("Value error, ")
        where = given.get("parent", node) if proposal.kind == "add" else node
        what = f"{proposal.kind} {where or 'at level 1'}"
        raise CurationError(f"{what}: {name} = {shown(fault['input'])}: {said}") from None


def _within(evidence: Iterable[str], parent: str | None) -> set[str]:
    """Leaves that hold evidence and lie at or below a node."""
    return {leaf for leaf in evidence if below(leaf, parent)}


def plan_of(
    base: Taxonomy,
    path: Path,
    given: Iterable[Given],
    proposals: Mapping[str, Proposal],
    places: Mapping[int, str] | None = None,
) -> Plan:
    """What the entries of a decisions file come to.

    Args:
        base: The version that all of them speak of.
        path: The file; errors name it.
        given: Its entries.
        proposals: Those that wait, by id.
        places: As for :func:`operation_of`.

    Raises:
        CurationError: Two of them contradict each other, or one makes no sense; file and line are named.
    """
    planner, plan, decided = Planner(base), Plan(), set()
    for entry in given:
        try:
            if not isinstance(entry.what, Decision):
                again = getattr(entry.what, "again", ())
                plan.named += named(entry.what, again, planner.is_gone)
                planner.take(entry.what, again)
                continue
            decision = entry.what
            if decision.decision is None:
                plan.stale += decision.proposal not in proposals
                continue
            proposal = proposals[decision.proposal]
            decided.add(decision.proposal)
            if decision.decision == "reject":
                plan.rejected.append(proposal)
                continue
            operation = operation_of(proposal, decision.edits, places)
            evidence = held(proposal, places)
            again = set(decision.again or ())
            plan.named += named(operation, decision.again or (), planner.is_gone, evidence)
            planner.take(operation, again - _within(evidence, getattr(operation, "parent", None)))
            plan.accepted.append(decision.proposal)
            if left := elsewhere(proposal, operation, places):
                plan.elsewhere.append(left)
        except CurationError as error:
            raise CurationError(f"{path}, line {entry.line}: {error.message}", error.hint) from None
    plan.operations, plan.unnamed = planner.operations, planner.unnamed
    plan.undecided = sum(proposal.problem is None for proposal in proposals.values()) - len(decided)
    return plan
