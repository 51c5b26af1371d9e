"""An LLM that proposes changes of a taxonomy: from doubts about seeds (refine) and from clusters of Other (expand).

Every answer becomes proposals for a person; nothing here changes a taxonomy. A proposal that the taxonomy would not
take (an unknown node, a name that is taken, Other touched), that names no evidence, or that was decided before, is
told to the model once, and is then left out and reported as a problem.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from curation.domain.model import OTHER, Taxonomy
from curation.errors import CurationError
from curation.taxonomy.decisions import operation_of
from curation.taxonomy.operations import apply
from curation.taxonomy.proposal import Evidence, Part, Proposal
from curation.teachers.llm.answers import ClusterAnswer, ProposalAnswer, ProposalsAnswer, clusters_answer
from curation.teachers.llm.naming import check_name
from curation.teachers.llm.prompts import load_prompt
from curation.teachers.llm.questions import Question, ask_checked
from curation.teachers.llm.rows import Asker, FaultyAnswerError, Form, Item, judge

if TYPE_CHECKING:
    from curation.domain import Domain
    from curation.teachers.prompts import Language

__all__ = ["Cluster", "Doubt", "Proposed", "doubts_of", "judge_expansion", "propose_for_other", "refine"]

_TAKES = {
    "add": ("name", "description"),
    "merge": ("target",),
    "split": ("parts",),
    "rename": ("name",),
    "move": ("target",),
    "drop": (),
    "describe": ("description",),
}
"""What each kind of proposal needs besides its node; what else an answer fills in is not looked at."""
_SEEDS, _PAIRS = 6, 20
"""Seeds that are shown of a doubt, and pairs of leaves in doubt that are shown."""
_SHOWN = 30
"""Queries of a cluster that the model sees, and evidence rows of a proposal."""


@dataclass(frozen=True)
class Doubt:
    """What a round of labelling the seeds was unsure of.

    Attributes:
        kind: ``ambiguous``: seeds that two leaves fit; ``uncovered``: seeds that no leaf fits; ``confused``: siblings
            that are mistaken for each other.
        leaves: The leaves concerned; none for uncovered seeds.
        evidence: The seeds.
    """

    kind: Literal["ambiguous", "uncovered", "confused"]
    leaves: tuple[str, ...]
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True)
class Cluster:
    """Rows of one Other that resemble each other, the clearest first.

    Attributes:
        evidence: Some of its rows.
        rows: Its distinct queries.
        weight: Raw rows behind them.
        purity: Its cohesion, 0 to 1.
        trend: See :class:`curation.taxonomy.proposal.Proposal`.
    """

    evidence: tuple[Evidence, ...]
    rows: int
    weight: int
    purity: float
    trend: float | None = None


@dataclass(frozen=True)
class Proposed:
    """Proposals, and what could not be used, a sentence each."""

    proposals: tuple[Proposal, ...]
    problems: tuple[str, ...]


def refine(
    client: Asker,
    taxonomy: Taxonomy,
    doubts: Sequence[Doubt],
    domain: Domain,
    *,
    language: Language,
    decided: Sequence[Mapping[str, Any]] = (),
    most: int = 12,
) -> Proposed:
    """Proposals that answer doubts.

    Args:
        client: Who asks.
        taxonomy: The version that the seeds were labelled with.
        doubts: What was found; without any there is nothing to ask.
        domain: Its title.
        language: Of instructions and reasons.
        decided: Gists of proposals that were accepted or declined before; they are not made again.
        most: Proposals at most.
    """
    if not doubts:
        return Proposed((), ())
    rows = {f"s{at}": row for at, row in enumerate(_distinct(doubts))}
    codes = {row.query_id: code for code, row in rows.items()}
    prompt = load_prompt("refine", language)
    data: dict[str, Any] = {"decided": [dict(gist) for gist in decided]}
    for kind in ("ambiguous", "uncovered", "confused"):
        data[kind] = [_shown(doubt, codes) for doubt in doubts if doubt.kind == kind]
    reader = _Reader(taxonomy, rows, decided)

    def salvage(answer: ProposalsAnswer) -> Proposed:
        return reader.read(answer.proposals[:most])

    def check(answer: ProposalsAnswer) -> Proposed:
        proposed = salvage(answer)
        if proposed.problems:
            raise FaultyAnswerError("; ".join(proposed.problems))
        return proposed

    told = prompt.instructions(title=domain.title, nodes=taxonomy.nodes, most=most)
    (judged,) = ask_checked(client, [Question(prompt.tag, told, data, ProposalsAnswer, check, salvage)])
    return judged.value or Proposed((), (f"no proposals were made: {judged.error}",))


def _distinct(doubts: Sequence[Doubt]) -> list[Evidence]:
    """The seeds of all doubts, each once, in order."""
    return list({row.query_id: row for doubt in doubts for row in doubt.evidence}.values())


def _shown(doubt: Doubt, codes: dict[int, str]) -> dict[str, Any]:
    seeds = [{"id": codes[row.query_id], "text": row.text} for row in doubt.evidence]
    return {"leaves": list(doubt.leaves), "seeds": seeds}


def _key(gist: Mapping[str, Any]) -> str:
    """Equal for proposals that ask for the same."""
    return json.dumps(dict(gist), sort_keys=True)


class _Reader:
    """Makes proposals of the entries of an answer."""

    def __init__(self, taxonomy: Taxonomy, rows: dict[str, Evidence], decided: Sequence[Mapping[str, Any]]) -> None:
        self._taxonomy, self._rows = taxonomy, rows
        self._decided = {_key(gist) for gist in decided}

    def read(self, entries: Sequence[ProposalAnswer]) -> Proposed:
        """Proposals of the entries that can be used, each once, and what is wrong with the others."""
        proposals: dict[str, Proposal] = {}
        problems = []
        for entry in entries:
            try:
                proposal = self._proposal(entry)
                proposals.setdefault(_key(proposal.gist), proposal)
            except FaultyAnswerError as error:
                problems.append(f"{entry.kind} {entry.node_id or 'at the root'}: {error}")
        return Proposed(tuple(proposals.values()), tuple(problems))

    def _proposal(self, entry: ProposalAnswer) -> Proposal:
        evidence = self._evidence(entry.evidence)
        if not evidence:
            raise FaultyAnswerError("it names no seed as evidence")
        takes = _TAKES[entry.kind]
        parts = [
            Part(check_name(part.name, ()), part.description, tuple(r.text for r in self._evidence(part.evidence)))
            for part in entry.parts
        ]
        proposal = Proposal(
            source="refine",
            kind=entry.kind,
            node_id=entry.node_id,
            base_version=self._taxonomy.version,
            reason=entry.reason.strip(),
            target=entry.target if "target" in takes else None,
            name=check_name(entry.name or "", ()) if "name" in takes else None,
            description=(entry.description or "").strip() if "description" in takes else None,
            evidence=evidence[:_SHOWN],
            rows=len(evidence),
            weight=sum(row.weight for row in evidence),
            confidence=entry.confidence,
            parts=tuple(parts) if "parts" in takes else (),
        )
        _try_out(proposal, self._taxonomy)
        if _key(proposal.gist) in self._decided:
            raise FaultyAnswerError("this was decided before")
        return proposal

    def _evidence(self, codes: Sequence[str]) -> tuple[Evidence, ...]:
        for code in codes:
            if code.strip() not in self._rows:
                raise FaultyAnswerError(f"it names {code!r} as evidence, which is no seed's id")
        return tuple(self._rows[code] for code in dict.fromkeys(code.strip() for code in codes))


def _try_out(proposal: Proposal, taxonomy: Taxonomy) -> None:
    """Raise :class:`FaultyAnswerError` where the taxonomy would not take the proposal, or would stay as it is."""
    try:
        as_it_is, changed = (apply(taxonomy, some, taxonomy.version) for some in ([], [operation_of(proposal)]))
    except CurationError as error:
        raise FaultyAnswerError(error.message) from None
    if changed == as_it_is:
        raise FaultyAnswerError("it changes nothing")


def propose_for_other(
    client: Asker,
    taxonomy: Taxonomy,
    parent_id: str | None,
    clusters: Sequence[Cluster],
    domain: Domain,
    *,
    language: Language,
    decided: Sequence[Mapping[str, Any]] = (),
    rows: int = 4,
) -> Proposed:
    """What is to be done about the clusters in the Other of a node.

    A cluster becomes a new leaf below the node, or goes from its Other to a leaf that its queries belong to (kind
    ``merge``), or is left alone.

    Args:
        client: Who asks.
        taxonomy: The version the rows were labelled with.
        parent_id: The inner node; None is the root.
        clusters: Clusters of its Other.
        domain: Its title.
        language: Of instructions, names' descriptions and reasons.
        decided: Gists of proposals that were accepted or declined before; they are not made again.
        rows: Clusters in a request at most.
    """
    prompt = load_prompt("propose", language)
    told = prompt.instructions(title=domain.title, nodes=taxonomy.nodes, parent=parent_id)
    items = [
        Item({"queries": [row.text for row in cluster.evidence[:_SHOWN]]}, told, prompt.tag) for cluster in clusters
    ]
    by_digest = {item.digest: cluster for item, cluster in zip(items, clusters, strict=True)}
    done = {_key(gist) for gist in decided}

    def check(item: Item, entry: ClusterAnswer) -> list[Proposal]:
        proposal = _for_cluster(entry, by_digest[item.digest], parent_id, taxonomy)
        return [] if proposal is None or _key(proposal.gist) in done else [proposal]

    form = Form(clusters_answer(taxonomy.leaves), "clusters", "clusters", rows)
    proposals: dict[str, Proposal] = {}
    problems = []
    for cluster, judged in zip(clusters, judge(client, items, form, check), strict=True):
        if judged.value is None:
            problems.append(f"no proposal for the cluster of {cluster.evidence[0].text!r}: {judged.error}")
        for proposal in judged.value or ():
            if _key(proposal.gist) in proposals:
                problems.append(f"the cluster of {cluster.evidence[0].text!r} got the same proposal as another")
            proposals.setdefault(_key(proposal.gist), proposal)
    return Proposed(tuple(proposals.values()), tuple(problems))


def _for_cluster(
    entry: ClusterAnswer, cluster: Cluster, parent_id: str | None, taxonomy: Taxonomy
) -> Proposal | None:
    if entry.action == "leave":
        return None
    about: dict[str, Any]
    if entry.action == "new":
        name = check_name(entry.name or "", [node.name for node in taxonomy.children(parent_id)])
        about = {"kind": "add", "node_id": parent_id, "name": name}
        about["description"] = (entry.description or "").strip()
    else:
        if entry.leaf not in taxonomy.leaf_set or taxonomy.node(entry.leaf).is_other:
            raise FaultyAnswerError(f"{entry.leaf!r} is no leaf that queries can belong to")
        other = OTHER if parent_id is None else f"{parent_id}.{OTHER}"
        about = {"kind": "merge", "node_id": other, "target": entry.leaf}
    proposal = Proposal(
        source="expand",
        base_version=taxonomy.version,
        reason=entry.reason.strip(),
        evidence=cluster.evidence[:_SHOWN],
        rows=cluster.rows,
        weight=cluster.weight,
        purity=cluster.purity,
        confidence=entry.confidence,
        trend=cluster.trend,
        **about,
    )
    _try_out(proposal, taxonomy)
    return proposal


def judge_expansion(
    client: Asker,
    taxonomy: Taxonomy,
    found: Sequence[Proposal],
    domain: Domain,
    *,
    language: Language,
    decided: Sequence[Mapping[str, Any]] = (),
) -> Proposed:
    """What an LLM makes of clusters that somebody else found and proposed something for.

    Nobody reads millions of rows with an LLM: the embedded teacher finds the clusters, this says what they are.

    Args:
        client: Who asks.
        taxonomy: The version the rows were labelled with.
        found: Proposals of kind ``add`` or ``merge`` whose evidence is a cluster.
        domain, language, decided: As for :func:`propose_for_other`.
    """
    by_parent: dict[str | None, list[Cluster]] = {}
    for proposal in found:
        parent = proposal.node_id
        if proposal.kind == "merge":
            parent = (proposal.node_id or "").rpartition(".")[0] or None
        cluster = Cluster(proposal.evidence, proposal.rows, proposal.weight, proposal.purity, proposal.trend)
        by_parent.setdefault(parent, []).append(cluster)
    parts = [
        propose_for_other(client, taxonomy, parent, clusters, domain, language=language, decided=decided)
        for parent, clusters in sorted(by_parent.items(), key=lambda item: item[0] or "")
    ]
    return Proposed(
        tuple(proposal for part in parts for proposal in part.proposals),
        tuple(problem for part in parts for problem in part.problems),
    )


def doubts_of(seeds: pl.DataFrame, ambiguous: pl.DataFrame, taxonomy: Taxonomy) -> list[Doubt]:
    """The doubts that labelling the seeds by each other leaves, the largest first within each kind.

    Args:
        seeds: ``query_id``, ``text``, ``primary``; those to be labelled, without mere proposals.
        ambiguous: ``query_id``, ``primary``, ``first``, ``second``: seeds whose two likeliest leaves are close, or
            whose likeliest is not their own.
        taxonomy: The version.
    """
    texts = dict(seeds.select("query_id", "text").iter_rows())
    pairs: dict[tuple[Literal["ambiguous", "confused"], str, str], list[Evidence]] = {}
    for query_id, primary, first, second in ambiguous.select("query_id", "primary", "first", "second").iter_rows():
        other = second if first == primary else first
        one, two = sorted((primary, other))
        kind: Literal["ambiguous", "confused"] = "ambiguous" if first == primary else "confused"
        pairs.setdefault((kind, one, two), []).append(Evidence(query_id, texts[query_id]))
    doubts = [Doubt(kind, (one, two), tuple(rows[:_SEEDS])) for (kind, one, two), rows in _largest(pairs)]
    others = [node.node_id for node in taxonomy.nodes if node.is_other]
    lost = seeds.filter(pl.col("primary").is_null() | pl.col("primary").is_in(others)).sort("query_id")
    uncovered = [Evidence(query_id, text) for query_id, text in lost.select("query_id", "text").iter_rows()]
    return doubts + ([Doubt("uncovered", (), tuple(uncovered[: _SEEDS * _PAIRS]))] if uncovered else [])


def _largest(pairs: Mapping[Any, list[Evidence]]) -> list[tuple[Any, list[Evidence]]]:
    return sorted(pairs.items(), key=lambda item: (-len(item[1]), item[0]))[:_PAIRS]
