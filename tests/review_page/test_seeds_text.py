"""The seeds file edited as text: read back it gives the labels, other rows and columns stay."""

import csv
import io
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.domain import load_domain
from curation.review_page.seeds_text import edit_seeds, label_of, seed_key
from curation.teachers.seeds_file import read_seeds_file
from tests.review_page.given import ids_of

TEXTS = ["充电桩在哪里", 'a "quoted", text', "=1+1", "two; parts"]
IDS = [str(i) for i in ids_of(TEXTS)]
PROPOSED = {key: {"text": text, "lang": "zh"} for key, text in zip(IDS[:3], TEXTS[:3], strict=True)}
TREE = load_domain("map_travel").taxonomy


def label(text, primary=None, tags=()):
    return {"text": text, "tags": list(tags), "primary": primary, "secondary": [], "reason": None}


def read(text, path):
    path.write_text(text, encoding="utf-8")
    rows = read_seeds_file(path, TREE).to_dicts()
    return {
        seed_key(row["query_id"], row["labelled_by"] or ""): label_of(row)
        for row in rows
        if row["primary"] is not None or row["tags"]
    }


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_after_any_edits_the_file_reads_as_what_was_labelled(tmp_path_factory, seed):
    random, path = Random(seed), tmp_path_factory.mktemp("seeds") / "seeds.csv"
    text, values = "", {}
    for _ in range(12):
        changes = {}
        for _ in range(random.randint(1, 4)):
            at = random.randrange(4)
            tags = random.sample(["a;b", "[c", "d|e", "｜", '"f"', "g\nh", "；"], random.randint(0, 3))
            new = label(TEXTS[at], random.choice([None, "other"]), tags)
            key = seed_key(IDS[at], random.choice(["", "ann", "李, 雷"]))
            changes[key] = new if new["primary"] or tags else None
        values = {key: value for key, value in (values | changes).items() if value is not None}
        text = edit_seeds(text, changes, PROPOSED)
        assert read(text, path) == values
        assert {row["text"] for row in csv.DictReader(io.StringIO(text[1:], newline=""))} >= set(TEXTS[:3])


def test_rows_and_columns_that_are_not_touched_stay_in_place():
    text = "primary,text\nother,=1+1\n,充电桩在哪里\n"
    edited = edit_seeds(text, {seed_key(IDS[0], "ann"): label(TEXTS[0], "other")}, PROPOSED)
    assert edited == (
        "primary,text,lang,tags,secondary,reason,labelled_by\nother,=1+1,,,,,\nother,充电桩在哪里,,,,,ann\n"
    )


def test_a_row_that_waits_for_one_labeller_is_not_given_to_another(tmp_path):
    text = f"text,labelled_by\n{TEXTS[0]},ann\n{TEXTS[0]},bob\n"
    edited = edit_seeds(text, {seed_key(IDS[0], "ann"): label(TEXTS[0], "other")}, PROPOSED)
    edited = edit_seeds(edited, {seed_key(IDS[0], ""): label(TEXTS[0], tags=["x"])}, PROPOSED)
    assert read(edited, tmp_path / "seeds.csv").keys() == {seed_key(IDS[0], "ann"), seed_key(IDS[0], "")}
    assert edited.count(TEXTS[0]) == 3


@pytest.mark.parametrize("labeller", ["", "ann"])
def test_taking_away_a_label_that_is_not_there_changes_no_row(labeller):
    text = edit_seeds("", {seed_key(IDS[0], "bob"): label(TEXTS[0], "other")}, PROPOSED)
    assert edit_seeds(text, {seed_key(IDS[0], labeller): None, seed_key(IDS[3], labeller): None}, PROPOSED) == text


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_notes_parted_as_the_file_parts_them_stay(tmp_path, mark):
    text = f"{mark}note;text;primary;;note\nask 李;{TEXTS[0]};;x;y\n;{TEXTS[1].replace(chr(34), '')};other;;\n"
    edited = edit_seeds(text, {seed_key(IDS[0], "ann"): label(TEXTS[0], "other", ["a"])}, PROPOSED)
    head, row, *_ = edited.split("\n")
    assert head == f"{mark}note;text;primary;;note;lang;tags;secondary;reason;labelled_by"
    assert row == f"ask 李;{TEXTS[0]};other;x;y;;a;;;ann"
    assert seed_key(IDS[0], "ann") in read(edited, tmp_path / "seeds.csv")
    assert (
        edit_seeds(edited, {seed_key(IDS[0], "ann"): None}, PROPOSED).split("\n")[1] == f"ask 李;{TEXTS[0]};;x;y;;;;;"
    )


def test_a_row_with_notes_stays_when_its_label_goes():
    text = f"text,primary,labelled_by,note\n{TEXTS[0]},other,ann,hm\n{TEXTS[0]},other,bob,\n"
    assert edit_seeds(text, {seed_key(IDS[0], name): None for name in ("ann", "bob")}, PROPOSED).count(TEXTS[0]) >= 1
    assert f"{TEXTS[0]},,,hm" in edit_seeds(text, {seed_key(IDS[0], "ann"): None}, PROPOSED)
