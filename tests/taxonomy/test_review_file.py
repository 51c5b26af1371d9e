"""The files for editing: what waits is added, what is there stays byte for byte."""

from __future__ import annotations

import csv
import io

import polars as pl
import pytest

from curation.taxonomy.decisions import plan_of, read_decisions
from curation.taxonomy.proposal import Evidence
from curation.taxonomy.review_file import decisions_text, seeds_text, summary
from tests.taxonomy.test_decisions import ADD, ALL, MERGE, RENAME, SPLIT, proposal
from tests.taxonomy.trees import START


def test_every_proposal_has_an_entry_that_decides_nothing_yet(tmp_path):
    path = tmp_path / "decisions.yaml"
    path.write_text(decisions_text("", "1", ALL), encoding="utf-8")
    given = read_decisions(path, ALL)
    assert [entry.what.proposal for entry in given] == list(ALL)
    found = plan_of(START, path, given, ALL)
    assert (found.operations, found.undecided) == ([], len(ALL))


def test_the_fields_of_an_entry_count_when_their_mark_is_taken_away(tmp_path):
    path = tmp_path / "decisions.yaml"
    text = decisions_text("", "1", {ADD.proposal_id: ADD})
    edited = text.replace("  decision:", "  decision: edit").replace('  # name: "pause"', '  name: "等待"')
    assert edited != text
    path.write_text(edited, encoding="utf-8")
    (operation,) = plan_of(START, path, read_decisions(path, ALL), ALL).operations
    assert operation.name == "等待"


@pytest.mark.parametrize(
    "text", ["a\nb: c", "# no", "\x85next\u2028line", "- dash", "\x00\x07", "\ud7ff\ufffe", "'\"{["]
)
def test_text_of_the_log_cannot_leave_its_comment(tmp_path, text):
    wild = proposal("add", "music", name="pause", description=text.strip() or "x", evidence=(Evidence(1, text),))
    path = tmp_path / "decisions.yaml"
    path.write_text(decisions_text("", "1", {wild.proposal_id: wild}), encoding="utf-8")
    (entry,) = read_decisions(path, {wild.proposal_id: wild})
    assert entry.what.decision is None and not entry.what.edits


def test_what_is_there_stays_and_only_the_new_is_added():
    one = decisions_text("", "1", {ADD.proposal_id: ADD}).replace("decision:", "decision: accept  # mine")
    both = decisions_text(one, "1", {MERGE.proposal_id: MERGE, ADD.proposal_id: ADD})
    assert both.startswith(one)
    assert both.count("- proposal:") == 2
    assert decisions_text(both, "1", {MERGE.proposal_id: MERGE}) == both


def test_a_trend_of_nearly_nothing_has_no_minus():
    flat = proposal("add", "music", name="pause", description="x", trend=-0.001)
    assert ", trend +0.00\n" in decisions_text("", "1", {flat.proposal_id: flat})


@pytest.mark.parametrize(
    ("kind", "node", "texts", "said"),
    [
        (
            "add",
            "music",
            40,
            ["... and 35 more queries (curate review --web shows them)", "all 40 become examples of x"],
        ),
        ("add", "music", 5, ["accepted, all 5 become examples of x"]),
        ("add", "music", 1, ["accepted, this query becomes an example of x"]),
        ("merge", "other", 6, ["... and 1 more", "all 6 become examples of music.play"]),
        ("merge", "music.stop", 6, ["... and 1 more"]),
        ("rename", "music", 5, []),
    ],
)
def test_evidence_that_is_not_shown_and_what_becomes_of_it_is_said(tmp_path, kind, node, texts, said):
    rows = tuple(Evidence(n, f"query {n}") for n in range(texts))
    target = "music.play" if kind == "merge" else None
    one = proposal(kind, node, name="x", description="y", target=target, evidence=rows)
    text = decisions_text("", "1", {one.proposal_id: one})
    tail = [line for line in text.split("\n") if line.startswith("  #   ") and "  #   query" not in line]
    assert len(tail) == len(said) and all(words in line for words, line in zip(said, tail, strict=True))
    path = tmp_path / "decisions.yaml"
    path.write_text(text.replace("  decision:", "  decision: accept"), encoding="utf-8")
    (operation,) = plan_of(
        START, path, read_decisions(path, {one.proposal_id: one}), {one.proposal_id: one}
    ).operations
    taken = getattr(operation, "examples", getattr(operation, "add", ()))
    assert len(taken) == (texts if any("example" in line for line in said) else 0)


def test_summaries_say_what_is_asked():
    assert summary(ADD) == "add pause to music"
    assert summary(MERGE) == "merge music.stop into music.play"
    assert summary(SPLIT) == "split weather into rain, sun"
    assert summary(RENAME) == "rename music to sound"
    assert summary(proposal("merge", "a.other", target="a.b")) == "let a.b take in rows of a.other"
    assert summary(proposal("move", "weather")) == "move weather to level 1"


def queries(*texts):
    return pl.DataFrame({"text": texts, "lang": ["en"] * len(texts)}, schema={"text": pl.String, "lang": pl.String})


def test_seeds_are_added_under_the_columns_that_are_there():
    new = seeds_text("", queries("hello, you", 'say "hi"', "两\n行"))
    assert new.startswith("\ufeff")  # else Excel takes Chinese for something else
    rows = list(csv.DictReader(io.StringIO(new[1:])))
    assert [row["text"] for row in rows] == ["hello, you", 'say "hi"', "两\n行"]
    assert set(rows[0]) == {"text", "lang", "tags", "primary", "secondary", "reason", "labelled_by"}
    mine = "primary,text\nweather,rain?"
    more = seeds_text(mine, queries("rain?", "sun?"))
    assert more == "primary,text\nweather,rain?\n,sun?\n"
    assert seeds_text(more, queries("rain?", "sun?")) == more
    assert seeds_text("note\ttext\n\train?\n", queries("rain?", "a;b")) == "note\ttext\n\train?\n\ta;b\n"


def test_the_operations_that_the_head_shows_are_read_as_they_stand(tmp_path):
    shown = [line[1:].strip() for line in decisions_text("", "1", {}).splitlines() if "{op:" in line]
    path = tmp_path / "decisions.yaml"
    path.write_text("\n".join(shown) + "\n", encoding="utf-8")
    kinds = [entry.what.op for entry in read_decisions(path, {})]
    assert sorted(kinds) == sorted(["add", "rename", "describe", "examples", "move", "merge", "split", "drop"])
