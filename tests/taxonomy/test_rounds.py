"""Unattended rounds: what is accepted, what is recorded, when it stops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from curation.taxonomy.review import Review
from curation.taxonomy.rounds import settle
from tests.taxonomy.desk import RECIPE, seeds, workspace
from tests.taxonomy.test_decisions import ADD, MERGE, RENAME, SPLIT, proposal

SEEDS = seeds(("play it", "music.play"), ("stop it", "music.stop"), ("rain?", "weather"))


def ready(root, *proposals, **settings):
    given = "".join(f", {name}: {value}" for name, value in settings.items())
    recipe = RECIPE + f"proposals: {{accept_above: 0.8{given}}}\n"
    return workspace(root, [replace(one, confidence=sure) for one, sure in proposals], SEEDS, recipe=recipe)


def test_without_leave_everything_waits(tmp_path):
    root = workspace(tmp_path, [replace(ADD, confidence=1.0)])
    found = settle(root)
    assert (found.state, found.waiting) == ("waiting", 1)
    assert "1 proposal for the taxonomy waits for review: curate review" in found.sentence
    assert not (root / "review" / "versions.yaml").exists()


def test_the_sure_ones_are_accepted_and_the_record_says_so(tmp_path):
    root = ready(tmp_path, (ADD, 0.9), (MERGE, 0.8), (RENAME, 0.79), (SPLIT, 0.1))
    found = settle(root)
    assert found.state == "accepted"
    assert "The run accepted 2 proposals by itself: version 2" in found.sentence
    record = Review(root).current.record
    assert record.auto and record.by == "unattended" and "0.8" in record.note
    assert record.convergence["total"] > 0
    assert [operation.op for operation in record.operations] == ["add", "merge"]


def test_of_two_that_contradict_each_other_the_surer_counts(tmp_path):
    drop = proposal("drop", "music.stop")
    root = ready(tmp_path, (MERGE, 0.9), (drop, 0.95))
    assert "1 more contradict" in settle(root).sentence
    assert [operation.op for operation in Review(root).current.record.operations] == ["drop"]


def test_l7_rounds_are_capped(tmp_path):
    root, base = tmp_path, "1"
    for number in range(5):
        again = proposal(
            "rename", "weather" if number % 2 == 0 else "sky", name="sky" if number % 2 == 0 else "weather"
        )
        ready(root, (replace(again, base_version=base), 1.0), rounds=3, converged_below=0)
        found = settle(root)
        if found.state == "accepted":
            base = Review(root).current.name
    assert found.state == "waiting"
    assert "3 versions by themselves" in found.sentence
    assert len(Review(root).history.versions) == 4


def test_rounds_stop_when_the_taxonomy_has_converged(tmp_path):
    root = ready(tmp_path, (ADD, 0.9), converged_below=0.5)
    assert settle(root).state == "accepted"
    ready(root, (replace(RENAME, base_version="2"), 0.9), converged_below=0.5)
    found = settle(root)
    assert found.state == "waiting" and "converged" in found.sentence


def test_after_a_persons_version_the_count_begins_anew(tmp_path):
    root = ready(tmp_path, (ADD, 0.9), rounds=1, converged_below=0)
    settle(root)
    (root / "review" / "decisions.yaml").write_text("- {op: drop, node: weather}\n")
    Review(root).apply("ana")
    ready(root, (replace(RENAME, base_version="3"), 0.9), rounds=1, converged_below=0)
    assert settle(root).state == "accepted"


def test_a_recipe_that_keeps_to_a_version_gets_none(tmp_path):
    root = ready(tmp_path, (ADD, 0.9))
    (root / "recipe.yaml").write_text((root / "recipe.yaml").read_text() + "taxonomy: {version: '1'}\n")
    found = settle(root)
    assert found.state == "waiting" and "keeps to a version" in found.sentence


@pytest.mark.parametrize("proposals", [[], [(replace(ADD, problem="it cannot be"), 1.0)]])
def test_nothing_to_settle(tmp_path, proposals):
    assert settle(ready(tmp_path, *proposals)).state == "settled"
