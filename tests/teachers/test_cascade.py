"""The cascade: who is asked about what, what is learnt from it, and what it is measured on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from curation.domain import load_domain
from curation.stages import taxonomy
from curation.stages.annotate import AnnotateParams
from curation.teachers.base import ANNOTATIONS
from curation.teachers.cascade import CascadePlan, agreement, cascade, leaf_f1
from curation.teachers.cascaded import cascade_plan
from curation.teachers.embedded.teacher import EmbeddedTeacher
from tests.helpers import FakeContext
from tests.teachers.test_teacher import SEEDS, TREE, encode, frame, seed_table

WORDS = {
    "media.music": ["jazz", "song", "album", "chorus", "ballad", "violin", "playlist", "encore"],
    "media.radio": ["station", "radio", "news", "broadcast", "frequency", "presenter", "jingle", "antenna"],
    "weather": ["rain", "warm", "sunny", "drizzle", "breeze", "thunder", "humid", "frost"],
}
"""The first three of each stand in the seeds, the others only in the log."""


def log(rows=900):
    """Rows of a log and the true leaf of each by query id."""
    random = np.random.default_rng(5)
    texts, leaves = [], []
    for number in range(rows):
        leaf = list(WORDS)[number % 3]
        words = random.choice(WORDS[leaf], 2, replace=False)
        texts.append(f"{words[0]} the {words[1]} {number}")
        leaves.append(leaf)
    found = frame(texts)
    return found, dict(zip(found["query_id"], leaves, strict=True))


class Scripted:
    """Knows the truth 95 times of 100; fails on what it is told to fail on."""

    name = "scripted"

    def __init__(self, truth, fails=()):
        self.truth, self.fails, self.asked = truth, set(fails), []

    def annotate(self, queries, vectors):
        rows = []
        for query_id in queries["query_id"]:
            self.asked.append(query_id)
            random = np.random.default_rng(query_id)
            leaf = self.truth[query_id] if random.random() < 0.95 else str(random.choice(list(WORDS)))
            failed = query_id in self.fails
            rows.append(
                {
                    "query_id": query_id,
                    "primary": None if failed else leaf,
                    "secondary": [],
                    "constraints": [],
                    "confidence": 0.0 if failed else 1.0,
                    "teacher": self.name,
                    "taxonomy_version": "2",
                    "unsolvable": None,
                    "unsolvable_confidence": 0.0,
                    "error": "the model answered in prose" if failed else None,
                }
            )
        return pl.DataFrame(rows, schema=ANNOTATIONS)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("domain")
    (folder / "taxonomy.yaml").write_text(TREE)
    domain = load_domain(folder)
    return domain, FakeContext(taxonomy.STAGE, domain=domain).run().out("taxonomy")


@pytest.fixture
def fit(tree):
    """Fits the embedded teacher on the seeds and what was learnt; remembers what that was."""
    domain, nodes = tree
    seeds = seed_table([(text, leaf, [], None) for leaf, texts in SEEDS.items() for text in texts])

    def make(learnt):
        make.learnt.append(learnt["query_id"].to_list())
        both = pl.concat([seeds, learnt.select(seeds.columns).cast(dict(seeds.schema))])
        return EmbeddedTeacher.fit(both, nodes, domain, encode, workers=1)

    make.learnt = []
    return make


def error(labels, truth):
    return np.mean([leaf != truth[query_id] for query_id, leaf in labels.select("query_id", "primary").iter_rows()])


def test_a_teacher_that_is_mostly_right_halves_the_error_with_few_calls(fit):
    rows, truth = log()
    vectors, llm = encode(rows["text"].to_list()), Scripted(truth)
    found = cascade(rows, vectors, fit, llm, CascadePlan(audit=40, asked=60))
    before, after = fit(pl.DataFrame(schema=found_schema())), found.labeller
    wrong = [error(teacher.annotate(rows, vectors), truth) for teacher in (before, after)]
    assert wrong[1] <= wrong[0] / 2
    assert len(llm.asked) == len(set(llm.asked)) <= 100
    assert found.rounds[-1].alpha > found.rounds[0].alpha
    assert found.labelled["query_id"].to_list() == sorted(llm.asked)


def found_schema():
    columns = ("query_id", "text", "lang", "tags", "primary", "secondary", "reason", "labelled_by", "origin")
    lists = {"tags": pl.List(pl.String), "secondary": pl.List(pl.String), "query_id": pl.UInt64}
    return {name: lists.get(name, pl.String) for name in columns}


def test_the_audit_sample_is_never_learnt_from(fit):
    rows, truth = log()
    llm = Scripted(truth)
    cascade(rows, encode(rows["text"].to_list()), fit, llm, CascadePlan(audit=50, asked=60, least_gain=-1))
    audit, asked = set(llm.asked[:50]), llm.asked[50:]
    assert fit.learnt[0] == []
    assert set(fit.learnt[-1]) == set(asked) and not set(fit.learnt[-1]) & audit


def test_rounds_end_when_agreement_stops_rising_or_all_is_asked(fit):
    rows, truth = log(60)
    vectors = encode(rows["text"].to_list())
    once = cascade(rows, vectors, fit, Scripted(truth), CascadePlan(audit=10, asked=20, least_gain=9))
    assert len(once.rounds) == 2
    whole = cascade(rows, vectors, fit, Scripted(truth), CascadePlan(audit=10, asked=500, least_gain=-9))
    assert whole.rounds[-1].asked == 50
    assert [one.asked for one in whole.rounds] == sorted({one.asked for one in whole.rounds})


def test_what_the_llm_fails_on_is_not_learnt(fit):
    rows, truth = log(120)
    llm = Scripted(truth, fails=rows["query_id"].to_list())
    found = cascade(rows, encode(rows["text"].to_list()), fit, llm, CascadePlan(audit=10, asked=20))
    assert all(not learnt for learnt in fit.learnt)
    assert np.isnan(found.rounds[0].alpha) and found.f1 == {}
    assert found.labelled["error"].null_count() == 0


def test_the_same_log_asks_the_same_rows(fit):
    rows, truth = log(200)
    vectors = encode(rows["text"].to_list())
    first, second = Scripted(truth), Scripted(truth)
    for llm in (first, second):
        cascade(rows, vectors, fit, llm, CascadePlan(audit=10, asked=30))
    assert first.asked == second.asked


def labels(*pairs):
    return pl.DataFrame(
        {"primary": [primary for primary, _ in pairs], "secondary": [list(also) for _, also in pairs]},
        schema={"primary": pl.String, "secondary": pl.List(pl.String)},
    )


def test_agreement_by_hand():
    said = labels(("a", ()), ("b", ("c",)), ("a", ()), (None, ()))
    true = labels(("a", ()), ("b", ()), ("b", ()), ("a", ()))
    # Distances of the three pairs: equal 0; {b, c} against {b}: 1 - 1/2 * 2/3 = 2/3; {a} against {b}: 1.
    observed = (0 + 2 / 3 + 1) / 3
    # All ordered pairs of the six labels a, a, bc, b, a, b: a-bc 6 and a-b 12 at 1, b-bc 4 at 2/3, others at 0.
    expected = (6 + 12 + 4 * 2 / 3) / 30
    alpha, accuracy = agreement(said, true)
    assert alpha == pytest.approx(1 - observed / expected)
    assert accuracy == pytest.approx(2 / 3)


def test_f1_of_leaves_by_hand():
    said, true = labels(("a", ()), ("a", ()), ("b", ())), labels(("a", ()), ("b", ()), ("b", ()))
    assert leaf_f1(said, true) == {"a": (pytest.approx(2 / 3), 1), "b": (pytest.approx(2 / 3), 2)}


@pytest.mark.parametrize(
    ("rows", "audit", "asked"), [(0, 0, 0), (1, 0, 1), (2, 1, 1), (19, 1, 1), (100, 2, 3), (10**6, 400, 1600)]
)
def test_the_smallest_log_is_asked_about_too(rows, audit, asked):
    plan = cascade_plan(SimpleNamespace(params=AnnotateParams()), rows)
    assert (plan.audit, plan.asked) == (audit, asked)
