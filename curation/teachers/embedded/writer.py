"""Queries that need a given tool chain, written from the domain's own phrase grammar.

The writer renders sequences of needs and keeps what, by the labels it meant and the domain's plan rules, needs
exactly the tools asked for. Whether a reader without its intentions sees the same is for the later checks. Every
choice hangs on a hash of the seed and of what is chosen, so a query does not depend on what was written before it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from curation.algorithms.chains import Chain
from curation.domain.grammar import Grammar, Need, slots_of
from curation.teachers.embedded.scorer import PlanScorer

if TYPE_CHECKING:
    from curation.domain.model import Domain

__all__ = ["Example", "GrammarWriter", "Order", "Written", "chain_of", "well_formed"]

PROBES = 4
"""Renderings of a sequence of needs that tell which chains it can need."""

TRIES = 6
"""Renderings for each query wanted."""

EXAMPLES = 3
"""Observed queries a written one is modelled on."""

HARVESTED_OF_TEN = 7
"""Of ten slots for which the examples offer a filler, how many take it."""

_LONGEST = 220
_LONGEST_HAN = 110
_REPEATED = re.compile(r"(\w{2,}?)\1{1,}")
_CONSTRAINTS = pl.List(
    pl.Struct({"dimension": pl.String, "value": pl.String, "text": pl.String, "start": pl.Int32, "end": pl.Int32})
)


class Example(NamedTuple):
    """An observed query to model on."""

    query_id: int
    text: str
    lang: str


@dataclass(frozen=True)
class Order:
    """Queries wanted for a chain.

    Attributes:
        chain: The tools; their order does not matter.
        count: Queries wanted.
        examples: Observed queries to model on; their place names and the like fill slots.
        first: Number of the first try; go on from an earlier order by passing ``first + TRIES * count`` of it.
    """

    chain: Chain
    count: int
    examples: Sequence[Example] = ()
    first: int = 0


@dataclass(frozen=True)
class Written:
    """A query as it was meant: its chain, the needs it states, and the ids of its examples."""

    text: str
    lang: str
    chain: Chain
    needs: tuple[str, ...]
    parents: tuple[int, ...]


def chain_of(tool_plan: pl.Expr) -> pl.Expr:
    """The different tools of a plan in the order of their first call."""
    return tool_plan.list.eval(pl.element().struct.field("tool")).list.unique(maintain_order=True)


def well_formed(text: str, norm: str, lang: str) -> str | None:
    """What is wrong with a written query as text; None for a good one."""
    if "{" in text or "}" in text:
        return "a slot was left open"
    has_han = any("\u4e00" <= char <= "\u9fff" for char in norm)
    if not 4 <= len(norm) <= (_LONGEST_HAN if has_han else _LONGEST):
        return f"{len(norm)} characters"
    if (lang in ("zh", "ja")) != has_han:
        return f"not written like {lang}"
    repeated = _REPEATED.search(norm) if has_han else re.search(r"\b(\w+) \1\b", norm)
    return f"{repeated[1]!r} is repeated" if repeated else None


class GrammarWriter:
    """Writes queries for a tool chain.

    Args:
        domain: Its grammar, plan rules and leaves.
        scorer: Carries the plan rules out.
        seed: Decides every choice.
    """

    name = "embedded"

    def __init__(self, domain: Domain, scorer: PlanScorer, seed: int) -> None:
        self.domain = domain
        self.grammar: Grammar = domain.grammar
        self._scorer = scorer
        self._seed = seed

    def chains(self) -> list[Chain]:
        """Every chain that some sequence of needs can need, sorted."""
        return sorted({chain for chains in self._chains.values() for chain in chains})

    def write(self, orders: Sequence[Order]) -> list[list[Written]]:
        """For each order up to ``count`` different queries that need exactly the tools of its chain."""
        drafts: list[Written] = []
        owners: list[int] = []
        for number, order in enumerate(orders):
            found = self._drafts(order)
            drafts += found
            owners += [number] * len(found)
        norms = _normal_forms(drafts)
        good = [well_formed(draft.text, norm, draft.lang) is None for draft, norm in zip(drafts, norms, strict=True)]
        written: list[list[Written]] = [[] for _ in orders]
        for number, draft, form, tools in zip(owners, drafts, good, self._meant_chains(drafts, norms), strict=True):
            if form and set(tools) == set(draft.chain) and len(written[number]) < orders[number].count:
                written[number].append(draft)
        return written

    def _drafts(self, order: Order) -> list[Written]:
        """Different renderings of sequences of needs that can need the chain."""
        variants = self._variants.get(frozenset(order.chain), [])
        by_lang: dict[str, list[Example]] = {}
        for example in order.examples:
            by_lang.setdefault(example.lang, []).append(example)
        drafts: dict[str, Written] = {}
        for number in range(order.first, order.first + TRIES * order.count) if variants else ():
            key = f"{'+'.join(sorted(order.chain))}|{number}"
            lang, needs = variants[self._pick(len(variants), key, "variant")]
            models = self._models(by_lang.get(lang, []), key)
            text = self._render(lang, needs, key, self._harvest(lang, models))
            parents = tuple(sorted(model.query_id for model in models))
            drafts.setdefault(text, Written(text, lang, order.chain, needs, parents))
        return list(drafts.values())

    @cached_property
    def _chains(self) -> dict[tuple[str, tuple[str, ...]], tuple[Chain, ...]]:
        """Chains by language and sequence of needs."""
        probes = [
            (lang, needs, Written(self._render(lang, needs, f"probe|{number}", {}), lang, (), needs, ()))
            for lang in self.grammar.languages
            for needs in self.grammar.sequences(lang)
            for number in range(PROBES)
        ]
        found: dict[tuple[str, tuple[str, ...]], dict[Chain, None]] = {}
        drafts = [draft for _, _, draft in probes]
        chains = self._meant_chains(drafts, _normal_forms(drafts))
        for (lang, needs, _), chain in zip(probes, chains, strict=True):
            if chain:
                found.setdefault((lang, needs), {})[chain] = None
        return {variant: tuple(chains) for variant, chains in found.items()}

    @cached_property
    def _variants(self) -> dict[frozenset[str], list[tuple[str, tuple[str, ...]]]]:
        """Language and sequence of needs, by combination of tools."""
        variants: dict[frozenset[str], list[tuple[str, tuple[str, ...]]]] = {}
        for variant, chains in self._chains.items():
            for tools in {frozenset(chain): None for chain in chains}:
                variants.setdefault(tools, []).append(variant)
        return variants

    def _meant_chains(self, drafts: list[Written], norms: list[str]) -> list[Chain]:
        """The chain of each draft under the labels it was written for; empty where it would be unsolvable."""
        needs = [[self.grammar.needs[name] for name in draft.needs] for draft in drafts]
        rows = pl.DataFrame(
            {
                "query_id": pl.Series(range(len(drafts)), dtype=pl.UInt64),
                "text": pl.Series([draft.text for draft in drafts], dtype=pl.String),
                "norm": pl.Series(norms, dtype=pl.String),
                "primary": pl.Series([meant[0].leaf for meant in needs], dtype=pl.String),
                "secondary": pl.Series([_further_leaves(meant) for meant in needs], dtype=pl.List(pl.String)),
                "constraints": pl.Series([[]] * len(drafts), dtype=_CONSTRAINTS),
                "confidence": pl.Series([1.0] * len(drafts), dtype=pl.Float32),
                "unsolvable": pl.Series([None] * len(drafts), dtype=pl.String),
                "unsolvable_confidence": pl.Series([0.0] * len(drafts), dtype=pl.Float32),
            }
        )
        scored = self._scorer.score(rows).select(chain=chain_of(pl.col("tool_plan")))
        return [tuple(chain) for chain in scored["chain"].to_list()]

    def _models(self, examples: list[Example], key: str) -> list[Example]:
        """Up to :data:`EXAMPLES` different examples."""
        if not examples:
            return []
        picked = {self._pick(len(examples), key, f"example{turn}"): None for turn in range(EXAMPLES)}
        return [examples[index] for index in picked]

    def _harvest(self, lang: str, models: list[Example]) -> dict[str, list[str]]:
        """Fillers by slot that the texts of ``models`` offer."""
        offers: dict[str, list[str]] = {}
        for name, slot in self.grammar.slots.items():
            like = slot.like.get(lang)
            for regex in slot.harvest.get(lang, ()):
                for model in models:
                    found = re.search(regex, model.text)
                    if found and (like is None or re.fullmatch(like, found[1])):
                        offers.setdefault(name, []).append(found[1])
        return offers

    def _render(self, lang: str, needs: tuple[str, ...], key: str, offers: Mapping[str, list[str]]) -> str:
        """One wording of a sequence of needs."""
        phrases = []
        for place, name in enumerate(needs):
            need = self.grammar.needs[name]
            options = (need.next if place else need.first)[lang]
            phrases.append(options[self._pick(len(options), key, lang, *needs, f"phrase{place}")])
        text = phrases[0]
        if len(phrases) > 1:
            joins = self.grammar.joins[lang][len(phrases)]
            text = joins[self._pick(len(joins), key, lang, *needs, "join")]
            for place, phrase in enumerate(phrases):
                text = text.replace(f"{{{place}}}", phrase)
        for slot, filler in self._fillers(lang, slots_of(text), f"{key}|{'+'.join(needs)}", offers).items():
            text = text.replace(f"{{{slot}}}", filler)
        return text

    def _fillers(
        self, lang: str, slots: tuple[str, ...], key: str, offers: Mapping[str, list[str]]
    ) -> dict[str, str]:
        """A filler for each slot, no two alike as far as the fillers reach."""
        chosen: dict[str, str] = {}
        for slot in slots:
            options = list(self.grammar.slots[slot].fillers[lang])
            harvested = [offer for offer in offers.get(slot, []) if offer not in chosen.values()]
            if harvested and self._pick(10, key, slot, "source") < HARVESTED_OF_TEN:
                options = harvested
            options = [option for option in options if option not in chosen.values()] or options
            chosen[slot] = options[self._pick(len(options), key, slot)]
        return chosen

    def _pick(self, count: int, *key: str) -> int:
        """A number below ``count`` that only seed and key decide."""
        digest = hashlib.blake2b("|".join((str(self._seed), *key)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % count


def _normal_forms(drafts: list[Written]) -> list[str]:
    import pyarrow as pa

    from curation.algorithms.normalise import normalise

    return normalise(pa.array([draft.text for draft in drafts], pa.large_string())).to_pylist()


def _further_leaves(needs: list[Need]) -> list[str]:
    return sorted({need.leaf for need in needs[1:]} - {needs[0].leaf})
