"""The LLM teachers of a run, as stages need them: made from the recipe, the tables and the domain of a context."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import schemas
from curation.engine.stage import Ask, Context
from curation.errors import CurationError
from curation.taxonomy.lineage import Lineage
from curation.taxonomy.seeds import carried
from curation.teachers.base import CONSTRAINTS
from curation.teachers.llm.annotator import LlmAnnotator
from curation.teachers.llm.ask import shorten
from curation.teachers.llm.cost import estimate
from curation.teachers.llm.few_shot import FewShot
from curation.teachers.llm.outcome import Outcome, Request
from curation.teachers.llm.rows import Asker
from curation.teachers.llm.scorer import LlmScorer
from curation.teachers.llm.writer import LlmVerifier

if TYPE_CHECKING:
    from curation.domain.model import Taxonomy
    from curation.teachers.embedded.scorer import Scale
    from curation.teachers.fitting import Encode

__all__ = [
    "Nobody",
    "annotator_of_run",
    "ask_for_written",
    "ask_of_run",
    "check_failed",
    "current_lineage",
    "current_taxonomy",
    "scorer_of_run",
]

Progress = Callable[[int, int], None]

_SAMPLE = 400
"""Rows whose requests are made for an estimate."""


def current_lineage(ctx: Context) -> Lineage:
    """The current version alone; ``ctx`` reads `taxonomy`."""
    now = ctx.read("taxonomy").filter("is_current")
    return Lineage(now, schemas.load("taxonomy_migrations").schema.create_empty())


def current_taxonomy(ctx: Context) -> Taxonomy:
    """The tree that rows are labelled with; ``ctx`` reads `taxonomy`."""
    lineage = current_lineage(ctx)
    return lineage.taxonomy(lineage.current)


def annotator_of_run(
    ctx: Context,
    client: Asker,
    encode: Encode,
    lineage: Lineage,
    version: str | None = None,
    *,
    on_progress: Progress | None = None,
) -> LlmAnnotator:
    """The annotator that the section `annotate` asks for, with the run's labelled seeds as examples.

    ``ctx`` reads `seeds`, shares the section `llm`, and is of the stage `annotate` or shares its section.

    Args:
        ctx: The context of a stage.
        client: Who asks.
        encode: Makes the vectors of the seeds, as those of the queries were made.
        lineage: The versions of the taxonomy.
        version: Label with this version; the current one when not given.
        on_progress: Told the queries done and their number.
    """
    section = ctx.shared.get("annotate", ctx.params)
    version = version or lineage.current
    taxonomy, seeds = lineage.taxonomy(version), ctx.read("seeds")
    if version != lineage.current:
        seeds = carried(seeds, lineage, version)
    seeds = seeds.filter(pl.col("primary").is_not_null())
    vectors = encode(seeds["text"].to_list()) if section.nearest_examples and seeds.height else None
    return LlmAnnotator(
        client,
        ctx.shared["llm"].model,
        taxonomy,
        ctx.domain,
        FewShot(seeds, taxonomy.leaf_set, vectors),
        per_leaf=section.examples_per_leaf,
        nearest=section.nearest_examples,
        rows=section.rows_per_request,
        most_secondary=section.most_secondary,
        on_progress=on_progress,
    )


def scorer_of_run(ctx: Context, client: Asker, scale: Scale, on_progress: Progress | None = None) -> LlmScorer:
    """The scorer that the section `difficulty` asks for.

    ``ctx`` shares the section `llm`, and is of the stage `difficulty` or shares its section.
    """
    section = ctx.shared.get("difficulty", ctx.params)
    model = ctx.shared["llm"].model
    return LlmScorer(client, model, ctx.domain, scale, rows=section.rows_per_request, on_progress=on_progress)


def check_failed(ctx: Context, labels: pl.DataFrame) -> None:
    """Stop where an LLM could not label more of the rows than the recipe bears; its answers are kept.

    Raises:
        CurationError: With the commonest reason.
    """
    settings, reasons = ctx.shared["llm"], labels["error"].drop_nulls()
    if len(reasons) <= max(3, settings.max_failed_share * labels.height):
        return
    commonest = reasons.value_counts().sort(["count", "error"], descending=[True, False]).row(0)[0]
    raise CurationError(
        f"{settings.model} could not label {len(reasons):,} of {labels.height:,} queries; mostly: "
        f"{shorten(commonest)}",
        "Its answers are kept, so that a further run pays for none twice. To go on with what there is, raise "
        f"llm.max_failed_share; to ask again, change the settings of llm, or remove {ctx.cache / 'llm.sqlite'}.",
    )


class Nobody:
    """A client for teachers that only make requests, as estimates need them."""

    def ask(self, requests: Sequence[Request], on_progress: Progress | None = None) -> list[Outcome]:
        """Refuse."""
        raise AssertionError("an estimate asks nobody")


def ask_of_run(ctx: Any, rows: pl.DataFrame, requests: Callable[[pl.DataFrame], list[Request]]) -> Ask:
    """What asking about ``rows`` will cost, from the requests for some of them.

    The rows with the smallest ids are taken: the requests of a run begin with them too, so that those which the
    request cache answers are known.

    Args:
        ctx: What the ``estimate`` of a stage is given; shares the section `llm`.
        rows: All rows, with ``query_id``.
        requests: Makes the requests for some rows.
    """
    some = rows.sort("query_id").head(_SAMPLE)
    sample = requests(some) if some.height else []
    return _ask(ctx, rows.height, round(len(sample) * rows.height / max(some.height, 1)), sample)


def _ask(ctx: Any, rows: int, number: int, sample: list[Request]) -> Ask:
    settings = ctx.shared["llm"]
    found = estimate(settings, number, sample, ctx.cache)
    tokens = found.prompt_tokens + found.completion_tokens
    return Ask(rows, found.calls, tokens, found.money, settings.currency, found.seconds)


def ask_for_written(ctx: Any, count: int, writing: list[Request], examples: pl.DataFrame) -> Ask:
    """What writing ``count`` queries and checking them will cost.

    Args:
        ctx: What the ``estimate`` of the stage `synthesis` is given.
        count: Queries to be written.
        writing: The requests that write them; none where no LLM writes.
        examples: Observed queries that stand in for written ones: ``query_id``, ``text``, ``lang``.
    """
    some = examples.unique("query_id").sort("query_id").head(_SAMPLE)
    asks = [_ask(ctx, count, len(writing), writing)] if writing else []
    checking = list(_checking(ctx, some)) if some.height else []
    asks += [_ask(ctx, count, -(-len(sample) * count // some.height), sample) for sample in checking]
    money = None if any(ask.money is None for ask in asks) else sum(ask.money or 0.0 for ask in asks)
    calls, tokens, seconds = (sum(getattr(ask, name) for ask in asks) for name in ("calls", "tokens", "seconds"))
    return Ask(count, calls, tokens, money, ctx.shared["llm"].currency, seconds)


def _alike(texts: list[str]) -> NDArray[np.float32]:
    """Vectors for estimates: which examples a query is shown hardly changes the length of a request."""
    return np.ones((len(texts), 1), np.float32)


def _checking(ctx: Any, some: pl.DataFrame) -> Iterator[list[Request]]:
    """Requests that label, score and verify some queries, as far as an LLM does it."""
    if ctx.shared["annotate"].teacher == "llm":
        annotator = annotator_of_run(ctx, Nobody(), _alike, current_lineage(ctx))
        yield annotator.requests(some.with_columns(norm="text"), _alike(some["text"].to_list()))
    if ctx.shared["difficulty"].teacher == "llm":
        labels = {"primary": pl.lit("some.leaf"), "secondary": pl.lit([], pl.List(pl.String))}
        labelled = some.with_columns(constraints=pl.lit([], CONSTRAINTS), **labels)
        yield scorer_of_run(ctx, Nobody(), ctx.shared["difficulty"].scale).requests(labelled)
    if ctx.params.teacher == "llm":
        yield LlmVerifier(Nobody(), ctx.domain).requests(list(some.select("text", "lang").iter_rows()))
