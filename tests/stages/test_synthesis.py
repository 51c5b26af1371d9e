"""Synthesis on a small domain of its own: rare chains, every check, sizes, determinism."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import curation.stages.synthesis as module
from curation.algorithms.normalise import normalise_one, query_ids
from curation.domain import load_domain
from curation.domain.model import Domain
from curation.stages.difficulty import DifficultyParams
from curation.stages.pool import PoolParams
from curation.stages.synthesis import STAGE
from curation.teachers.embedded.scorer import PlanScorer
from tests.helpers import FakeContext
from tests.taxonomy.given import first_version

FILES = {
    "taxonomy.yaml": "version: '1'\nlanguages: [en]\ntaxonomy:\n  - read\n  - lend\n  - print\n",
    "tools.yaml": """
tools:
  library:
    find_book: {description: find a book, parameters: {type: object}}
    lend_book: {description: lend a book, parameters: {type: object}}
    print_page: {description: print pages, parameters: {type: object}}
""",
    "plans.yaml": """
feeds: {find_book: [lend_book, print_page]}
cues:
  printing: {en: [print]}
nodes:
  read: {load: 1, steps: [find_book]}
  lend: {load: 2, steps: [find_book, lend_book]}
  print: {load: 2, steps: [print_page]}
  other: {load: 3, steps: [find_book]}
rules:
  - {name: printing too, nodes: [read, lend], when: {cue: printing}, add: [print_page]}
""",
    "grammar.yaml": """
slots:
  book:
    en: [Emma, Dracula, Ulysses, Middlemarch, Persuasion, Kidnapped, Ivanhoe, Beloved, Rebecca, Silas Marner]
    harvest: {en: ['read ([A-Z][a-z]+) ']}
    like: {en: '[A-Z][a-z]+'}
  person: {en: [Ada, Ben, Carla, Dan, Edith, Fred, Gina, Hugo, Iris, Jonas, Kira, Liam, Mona, Nils, Olga, Pia]}
  place: {en: [the hall, the north room, the old wing, the reading room, the cellar, the garden house]}
joins:
  en: ['{0} and {1}', '{0}, then {1}', '{0}. After that {1}']
needs:
  read:
    leaf: read
    first: {en: ['read {book} to {person} in {place}', '{person} wants to read {book} while in {place}']}
    then: [print]
  lend:
    leaf: lend
    first: {en: ['lend {book} to {person} at {place}', '{person} would borrow {book} over in {place}']}
    then: [print]
  print:
    leaf: print
    first: {en: ['print a page for {person} in {place}']}
    next: {en: ['print a page of it', 'print the first chapter', 'print two copies of the cover']}
""",
}
TEXTS = {
    "read": "read Waverley tonight number {}",
    "lend": "lend me the atlas number {}",
    "print": "print my essay number {}",
}


@pytest.fixture(scope="module")
def domain(tmp_path_factory: pytest.TempPathFactory) -> Domain:
    directory = tmp_path_factory.mktemp("library")
    for name, text in FILES.items():
        (directory / name).write_text(text, encoding="utf-8")
    return load_domain(directory)


def label(text: str) -> str:
    words = text.casefold()
    return "lend" if "lend" in words or "borrow" in words else "read" if "read " in words else "print"


def annotate(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        "query_id",
        primary=pl.Series([label(text) for text in frame["text"]], dtype=pl.String),
        secondary=pl.lit([], pl.List(pl.String)),
        constraints=pl.Series(
            [[]] * frame.height,
            dtype=pl.List(
                pl.Struct(
                    {
                        "dimension": pl.String,
                        "value": pl.String,
                        "text": pl.String,
                        "start": pl.Int32,
                        "end": pl.Int32,
                    }
                )
            ),
        ),
        confidence=pl.lit(0.9, pl.Float32),
        unsolvable=pl.lit(None, pl.String),
        unsolvable_confidence=pl.lit(0.05, pl.Float32),
        error=pl.lit(None, pl.String),
    )


def encode(texts: list[str]) -> np.ndarray:
    """A direction of its own for each text, the same wherever it stands."""
    seeds = query_ids(pa.array([normalise_one(text) for text in texts], pa.large_string()))
    rows = np.array([np.random.default_rng(int(seed)).normal(size=32) for seed in seeds], dtype=np.float32)
    rows = rows.reshape(len(texts), 32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


SCALE = DifficultyParams()


def tables(
    domain: Domain, counts: dict[str, int] | None = None, extra: tuple[str, ...] = ()
) -> dict[str, pl.DataFrame]:
    """Observed queries by leaf, labelled, scored and grouped as the stages before would."""
    counts = {"read": 60, "lend": 40, "print": 20} if counts is None else counts
    texts = [TEXTS[leaf].format(number) for leaf, count in counts.items() for number in range(count)] + list(extra)
    norms = [normalise_one(text) for text in texts]
    ids = pl.Series("query_id", query_ids(pa.array(norms, pa.large_string())), dtype=pl.UInt64)
    queries = pl.DataFrame(
        {"query_id": ids, "text": texts, "norm": norms, "lang": ["en"] * len(texts)},
        schema_overrides={"text": pl.String, "norm": pl.String, "lang": pl.String},
    ).sort("query_id")
    labels = annotate(queries)
    rows = queries.join(labels, on="query_id")
    groups = queries.select(
        "query_id", representative_id="query_id", group_count=pl.lit(3, pl.Int64), kept=pl.lit(True)
    )
    bucket = pl.concat_str(pl.col("primary"), pl.lit("|"))
    vectors = encode(queries["text"].to_list())
    return {
        "queries": queries,
        "annotations": labels,
        "difficulty": PlanScorer(domain, SCALE.scale).score(rows),
        "lexical_groups": groups,
        "semantic_groups": groups.with_columns(labels.select(bucket=bucket)["bucket"]),
        "embeddings": queries.select("query_id").with_columns(
            vector=pl.Series(vectors, dtype=pl.Array(pl.Float32, 32))
        ),
        "seeds": pl.DataFrame(),
        **first_version(domain.taxonomy),
    }


class Labeller:
    """A teacher that labels by a function."""

    name = "test"

    def __init__(self, label_rows: Any) -> None:
        self._label_rows = label_rows

    def annotate(self, queries: pl.DataFrame, vectors: np.ndarray) -> pl.DataFrame:
        assert len(vectors) == queries.height
        return self._label_rows(queries)


def run(
    domain: Domain,
    scratch: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    inputs: dict[str, pl.DataFrame] | None = None,
    size: int = 100,
    share: float = 0.2,
    params: dict[str, Any] | None = None,
    seed: int = 7,
    workers: int = 2,
    teacher: tuple[Any, Any] = (annotate, encode),
) -> FakeContext:
    monkeypatch.setattr(module, "_annotator", lambda ctx, client: (Labeller(teacher[0]), teacher[1]))
    shared = {
        "pool": PoolParams(size=size, synthetic_share=share),
        "difficulty": SCALE,
        "semantic": SimpleNamespace(threshold=0.92),
        "annotate": SimpleNamespace(teacher="embedded"),
    }
    context = FakeContext(
        STAGE,
        tables(domain) if inputs is None else inputs,
        params={"rare_share": 0.05, **(params or {})},
        domain=domain,
        shared=shared,
        scratch=scratch,
        seed=seed,
        workers=workers,
    )
    return context.run()


def failed(out: pl.DataFrame) -> Counter:
    return Counter(row["checks"][-1]["check"] for row in out.to_dicts() if row["verdict"] == "rejected")


def test_verified_queries_use_exactly_the_rare_chain_and_are_as_many_as_asked(domain, tmp_path, monkeypatch) -> None:
    context = run(domain, tmp_path, monkeypatch)
    out = context.out("synthetic")
    verified = out.filter(pl.col("verdict") == "verified")
    assert verified.height == 20
    # reading, lending and printing are common; what no query of the log asks for is printing next to one of them
    assert set(verified["tool_chain"].list.sort().list.join("+")) == {
        "find_book+print_page",
        "find_book+lend_book+print_page",
    }
    for row in verified.iter_rows(named=True):
        assert {call["tool"] for call in row["tool_plan"]} == set(row["tool_chain"])
        assert row["chain_count"] == 0
        assert [check["check"] for check in row["checks"]] == [
            "well_formed",
            "lexical_duplicate",
            "semantic_duplicate",
            "annotation",
            "executable",
        ]
        assert all(check["passed"] for check in row["checks"])
        assert row["difficulty"] >= 1
        assert row["primary"] in ("read", "lend")


def test_accounts_rejects_and_ids(domain, tmp_path, monkeypatch) -> None:
    context = run(domain, tmp_path, monkeypatch)
    out = context.out("synthetic")
    (account,) = context.accounts
    assert (account.rows_in, account.kept) == (out.height, 20)
    rejects = pl.concat(context.rejects)
    assert rejects.height == out.height - 20
    assert set(rejects["weight"]) <= {0}
    assert out["query_id"].to_list() == query_ids(out["norm"].to_arrow().cast(pa.large_string())).tolist()
    assert out["query_id"].is_unique().all()


def test_t10_the_same_whatever_the_workers_and_another_with_another_seed(domain, tmp_path, monkeypatch) -> None:
    first = run(domain, tmp_path, monkeypatch).out("synthetic")
    assert run(domain, tmp_path, monkeypatch, workers=1).out("synthetic").equals(first)
    backwards = {name: frame.reverse() if name != "embeddings" else frame for name, frame in tables(domain).items()}
    assert run(domain, tmp_path, monkeypatch, inputs=backwards).out("synthetic").equals(first)
    assert not run(domain, tmp_path, monkeypatch, seed=8).out("synthetic").equals(first)


def test_parents_are_observed_and_lend_their_names(domain, tmp_path, monkeypatch) -> None:
    inputs = tables(domain)
    verified = (
        run(domain, tmp_path, monkeypatch, inputs=inputs).out("synthetic").filter(pl.col("verdict") == "verified")
    )
    observed = set(inputs["queries"]["query_id"])
    assert all(parents and set(parents) <= observed for parents in verified["parents"].to_list())
    assert verified["text"].str.contains("Waverley").any()


def test_a_query_of_the_log_is_not_written_again(domain, tmp_path, monkeypatch) -> None:
    texts = run(domain, tmp_path, monkeypatch).out("synthetic").filter(pl.col("verdict") == "verified")["text"]
    again = tables(domain, extra=tuple(texts[:3]) + tuple(f"{text} s" for text in texts[3:6]))
    for name in ("difficulty", "semantic_groups"):  # they are no survivors, so their chains stay rare
        again[name] = again[name].filter(pl.col("query_id").is_in(tables(domain)["queries"]["query_id"].implode()))
    out = run(domain, tmp_path, monkeypatch, inputs=again).out("synthetic")
    rejected = out.filter(pl.col("text").is_in(texts[:6].implode()))
    assert rejected.height == 6
    details = {row["text"]: row["checks"][-1] for row in rejected.iter_rows(named=True)}
    assert all(details[text]["check"] == "lexical_duplicate" for text in texts[:6])
    assert all(details[text]["detail"] == "is an observed query" for text in texts[:3])
    assert all("to an observed query" in details[text]["detail"] for text in texts[3:6])


def test_what_means_the_same_as_an_observed_query_of_its_bucket_is_rejected(domain, tmp_path, monkeypatch) -> None:
    def flat(texts: list[str]) -> np.ndarray:
        return np.tile(np.float32([[1, 0]]), (len(texts), 1))

    inputs = tables(domain)
    vectors = flat(inputs["queries"]["text"].to_list())
    inputs["embeddings"] = inputs["embeddings"].with_columns(vector=pl.Series(vectors, dtype=pl.Array(pl.Float32, 2)))
    out = run(domain, tmp_path, monkeypatch, inputs=inputs, teacher=(annotate, flat)).out("synthetic")
    assert {"semantic_duplicate"} <= set(failed(out)) <= {"semantic_duplicate", "lexical_duplicate"}
    assert set(out["verdict"]) == {"rejected"}


def test_of_written_queries_that_mean_the_same_one_is_kept(domain, tmp_path, monkeypatch) -> None:
    def flat(texts: list[str]) -> np.ndarray:
        return np.tile(np.float32([[0, 1]]), (len(texts), 1))

    inputs = tables(domain)
    vectors = np.tile(np.float32([[1, 0]]), (inputs["queries"].height, 1))
    inputs["embeddings"] = inputs["embeddings"].with_columns(vector=pl.Series(vectors, dtype=pl.Array(pl.Float32, 2)))
    out = run(domain, tmp_path, monkeypatch, inputs=inputs, teacher=(annotate, flat)).out("synthetic")
    verified = out.filter(pl.col("verdict") == "verified")
    assert sorted(verified["primary"]) == ["lend", "read"]  # one a bucket


def test_labels_that_have_nothing_to_do_with_the_chain_are_rejected(domain, tmp_path, monkeypatch) -> None:
    def wrong(frame: pl.DataFrame) -> pl.DataFrame:
        return annotate(frame).with_columns(primary=pl.lit("somewhere.else"))

    out = run(domain, tmp_path, monkeypatch, teacher=(wrong, encode), params={"attempts": 1}).out("synthetic")
    assert set(failed(out)) <= {"executable", "lexical_duplicate"}  # `other` finds books, which is part of the chains
    failing = out.filter(pl.col("checks").list.last().struct.field("check") == "executable")
    assert failing["checks"].list.last().struct.field("detail").to_list() == ["needs find_book"] * failing.height


def test_a_query_that_cannot_be_labelled_is_rejected_with_the_reason(domain, tmp_path, monkeypatch) -> None:
    def mute(frame: pl.DataFrame) -> pl.DataFrame:
        return annotate(frame).with_columns(primary=pl.lit(None, pl.String), error=pl.lit("prose"))

    out = run(domain, tmp_path, monkeypatch, teacher=(mute, encode), params={"attempts": 1}).out("synthetic")
    failing = out.filter(pl.col("checks").list.last().struct.field("check") == "annotation")
    assert failing.height
    assert failing["checks"].list.last().struct.field("detail")[0] == "could not be labelled: prose"
    assert failing["primary"].null_count() == failing.height


def test_an_unsolvable_query_is_rejected(domain, tmp_path, monkeypatch) -> None:
    def doubtful(frame: pl.DataFrame) -> pl.DataFrame:
        sure = pl.lit(0.99, pl.Float32)
        return annotate(frame).with_columns(unsolvable=pl.lit("missing_tool"), unsolvable_confidence=sure)

    out = run(domain, tmp_path, monkeypatch, teacher=(doubtful, encode), params={"attempts": 1}).out("synthetic")
    details = out["checks"].list.last().struct.field("detail").drop_nulls().to_list()
    assert "unsolvable: missing_tool" in details


def test_the_budget_of_attempts_is_kept(domain, tmp_path, monkeypatch) -> None:
    def mute(frame: pl.DataFrame) -> pl.DataFrame:
        return annotate(frame).with_columns(primary=pl.lit(None, pl.String), error=pl.lit("prose"))

    out = run(domain, tmp_path, monkeypatch, teacher=(mute, encode), params={"attempts": 2.5}).out("synthetic")
    assert out.height <= 50


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_nothing_to_do(domain, tmp_path, monkeypatch, share: float) -> None:
    if share:
        import dataclasses

        domain = dataclasses.replace(domain, grammar=type(domain.grammar)())
    context = run(domain, tmp_path, monkeypatch, share=share)
    assert context.out("synthetic").height == 0
    assert context.metrics["asked"] == 0


def test_common_chains_are_left_alone(domain, tmp_path, monkeypatch) -> None:
    context = run(domain, tmp_path, monkeypatch, params={"rare_share": 0.0, "min_tools": 4})
    assert context.out("synthetic").height == 0
    assert context.metrics["rare_chains"] == 0
