"""An LLM as writer of queries that need a chain of tools, and as the reader that verifies what was written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from curation.algorithms.chains import Chain
from curation.teachers.embedded.writer import Example, Order, Written
from curation.teachers.llm.answers import QueryAnswer, VerdictAnswer, queries_answer, verdicts_answer
from curation.teachers.llm.outcome import Request
from curation.teachers.llm.prompts import conversation, load_prompt, prompt_language
from curation.teachers.llm.rows import Asker, FaultyAnswerError, Form, Item, Judged, judge, requests_of

if TYPE_CHECKING:
    from curation.domain import Domain
    from curation.domain.model import Taxonomy
    from curation.teachers.prompts import Language

__all__ = ["LlmVerifier", "LlmWriter", "LlmWritten", "possible_chains"]

_AT_ONCE = 8
"""Queries asked for in one request."""
_MODELS = 8
"""Observed queries shown in one request."""
_SHOWN_AGAIN = 40
"""Queries written before that are shown, so that they are not written again."""


def possible_chains(observed: Iterable[Chain]) -> list[Chain]:
    """Chains to write for where a domain has no grammar: those observed, and each two of them one after the other."""
    seen = sorted(set(observed))
    joined = {tuple(dict.fromkeys((*one, *other))) for one in seen for other in seen}
    return sorted({*seen, *joined})


@dataclass(frozen=True)
class LlmWritten(Written):
    """A written query with the leaf it was meant for."""

    leaf: str = ""


@dataclass(frozen=True)
class _Asked:
    """What a request was for: which order, which language, how many queries, modelled on which."""

    order: int
    lang: str
    count: int
    parents: tuple[int, ...]


class LlmWriter:
    """A :class:`curation.teachers.base.Writer` behind an endpoint.

    It remembers what it wrote for each chain and shows it when it is asked for more, so that a later request is never
    an earlier one again. The same orders in the same sequence make the same requests.

    Args:
        client: Who asks.
        model: The model's name, which stands in ``synthetic.teacher``.
        taxonomy: Its leaves are what queries are meant for.
        domain: Tools, title, languages.
        chains: Chains it may be asked to write for.
    """

    def __init__(
        self, client: Asker, model: str, taxonomy: Taxonomy, domain: Domain, chains: Iterable[Chain]
    ) -> None:
        self.name = model
        self._client, self._taxonomy, self._domain = client, taxonomy, domain
        self._chains = sorted(set(chains))
        self._before: dict[tuple[Chain, str], list[str]] = {}

    def chains(self) -> list[Chain]:
        """Every chain it can be asked for, sorted."""
        return self._chains

    def meant(self, written: LlmWritten) -> set[str]:
        """The leaves a query was written for."""
        return {written.leaf}

    def write(self, orders: Sequence[Order]) -> list[list[LlmWritten]]:
        """For each order up to ``count`` different queries; fewer where the model answers with fewer or fails."""
        asked = {request.request_id: (request, what) for request, what in self._asked(orders)}
        written: list[list[LlmWritten]] = [[] for _ in orders]
        for outcome in self._client.ask([request for request, _ in asked.values()]) if asked else ():
            one = asked[outcome.request_id][1]
            queries = getattr(outcome.value, "queries", ())
            written[one.order] += self._kept(queries, one, orders[one.order].chain)
        return written

    def requests(self, orders: Sequence[Order]) -> list[Request]:
        """The requests that :meth:`write` would make, for estimates."""
        return [request for request, _ in self._asked(orders)]

    def _asked(self, orders: Sequence[Order]) -> Iterator[tuple[Request, _Asked]]:
        for number, order in enumerate(orders):
            for place, (lang, count, examples) in enumerate(self._shares(order)):
                request = self._request(f"{number}.{place}", order.chain, lang, count, examples)
                yield request, _Asked(number, lang, count, tuple(one.query_id for one in examples))

    def _kept(self, queries: Sequence[QueryAnswer], asked: _Asked, chain: Chain) -> list[LlmWritten]:
        """As many as were asked for of the queries that are new and meant for a leaf."""
        before = self._before.setdefault((chain, asked.lang), [])
        kept: list[LlmWritten] = []
        for query in queries:
            text = " ".join(query.text.split())
            new = text and text not in before and query.primary in self._taxonomy.leaf_set
            if new and len(kept) < asked.count:
                before.append(text)
                kept.append(LlmWritten(text, asked.lang, chain, (), asked.parents, query.primary))
        return kept

    def _shares(self, order: Order) -> Iterable[tuple[str, int, list[Example]]]:
        """Requests of an order: language, queries, examples to show. Languages have the share of the examples.

        Examples are shown in turn: those after the ones that ``first`` and the requests before this one took.
        """
        langs = Counter(example.lang for example in order.examples if example.lang in self._domain.languages)
        counts = _portions(langs or Counter(self._domain.languages[:1]), order.count)
        for lang, count in counts.items():
            models = [example for example in order.examples if example.lang == lang]
            for start in range(0, count, _AT_ONCE):
                at = order.first + start
                shown = {models[(at + turn) % len(models)]: None for turn in range(_MODELS)} if models else {}
                yield lang, min(_AT_ONCE, count - start), list(shown)

    def _request(self, name: str, chain: Chain, lang: str, count: int, examples: list[Example]) -> Request:
        prompt = load_prompt("synthesise", prompt_language(lang))
        told = prompt.instructions(
            title=self._domain.title,
            tools=list(self._domain.tools.values()),
            nodes=self._taxonomy.nodes,
            chain=chain,
            count=count,
        )
        before = self._before.get((chain, lang), [])[-_SHOWN_AGAIN:]
        data = {"examples": [example.text for example in examples], "written": before}
        return Request(f"{prompt.tag}/{name}", conversation(told, data), queries_answer(self._taxonomy.leaves))


def _portions(weights: Counter[str], total: int) -> dict[str, int]:
    """``total`` in whole portions by weight; what is left over goes to the largest remainders, then by name."""
    of = weights.total()
    portions = {name: total * weight // of for name, weight in sorted(weights.items())}
    ahead = sorted(portions, key=lambda name: (-(total * weights[name] % of), name))
    for name in ahead[: total - sum(portions.values())]:
        portions[name] += 1
    return portions


class LlmVerifier:
    """A :class:`curation.teachers.base.Verifier` behind an endpoint.

    It reads written queries without knowing what they were meant to be.

    Args:
        client: Who asks.
        domain: Tools and title.
        rows: Queries in a request at most.
    """

    def __init__(self, client: Asker, domain: Domain, *, rows: int = 8) -> None:
        self._client, self._domain, self._rows = client, domain, rows
        self._told = cache(self._instructions)

    def verify(self, written: Sequence[Written]) -> list[str | None]:
        """What is wrong with each query; None for one that is natural, solvable and needs the tools of its chain.

        A query that the model did not judge does not pass.
        """
        items = self._items([(query.text, query.lang) for query in written])
        judged: list[Judged[VerdictAnswer]] = judge(self._client, items, self._form, self._checked)
        return [_fault(query, one) for query, one in zip(written, judged, strict=True)]

    def requests(self, queries: Sequence[tuple[str, str]]) -> list[Request]:
        """The requests that :meth:`verify` begins with for queries of (text, language), for estimates."""
        return requests_of(self._items(queries), self._form)

    def _items(self, queries: Sequence[tuple[str, str]]) -> list[Item]:
        items = []
        for text, lang in queries:
            language = prompt_language(lang)
            items.append(Item({"text": text}, self._told(language), load_prompt("verify", language).tag))
        return items

    @cached_property
    def _form(self) -> Form:
        return Form(verdicts_answer(tuple(self._domain.tools)), "verdicts", "queries", self._rows)

    def _instructions(self, language: Language) -> str:
        tools = list(self._domain.tools.values())
        return load_prompt("verify", language).instructions(title=self._domain.title, tools=tools)

    def _checked(self, item: Item, verdict: VerdictAnswer) -> VerdictAnswer:
        for tool in verdict.tools:
            if tool not in self._domain.tools:
                raise FaultyAnswerError(f"there is no tool {tool!r}")
        return verdict


def _fault(query: Written, judged: Judged[VerdictAnswer]) -> str | None:
    said = judged.value
    if said is None:
        return f"could not be verified: {judged.error}"
    if not said.natural:
        return f"not natural: {said.detail or 'no detail given'}"
    if not said.solvable:
        return f"not solvable: {said.detail or 'no detail given'}"
    if set(said.tools) != set(query.chain):
        return f"needs {', '.join(dict.fromkeys(said.tools)) or 'no tool'}"
    return None
