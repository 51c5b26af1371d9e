"""The review of a workspace: decisions applied whole or not at all, put away, returned from."""

from __future__ import annotations

import polars as pl
import pytest

from curation.domain.load import load_taxonomy
from curation.errors import CurationError
from curation.taxonomy.consequences import Dropped
from curation.taxonomy.document import taxonomy_text
from curation.taxonomy.entries import review_lock
from curation.taxonomy.review import Review
from tests.taxonomy.desk import annotations, seeds, workspace
from tests.taxonomy.test_decisions import ADD, MERGE, RENAME, SPLIT
from tests.taxonomy.trees import START, history


@pytest.fixture
def root(tmp_path):
    return workspace(
        tmp_path,
        [ADD, MERGE, RENAME, SPLIT],
        seeds(("play it", "music.play"), ("stop it", "music.stop"), ("rain?", "weather"), ("hm", None)),
        annotations("music.play", "music.other", "music.stop", "weather", "other"),
    )


def decide(root, **decisions):
    known = {"add": ADD, "merge": MERGE, "rename": RENAME, "split": SPLIT}
    lines = [f'- proposal: "{known[name].proposal_id}"\n  decision: {said}\n' for name, said in decisions.items()]
    (root / "review").mkdir(exist_ok=True)
    (root / "review" / "decisions.yaml").write_text("".join(lines))


def test_accepted_proposals_become_a_version_and_the_file_is_put_away(root):
    decide(root, add="accept", split="reject")
    seen = Review(root).preview()
    assert seen.again == 3
    assert [(one.change, one.node_id) for one in seen.changes] == [("added", "music.pause")]
    done = Review(root).apply("ana", seal=seen.seal)
    assert done.version.name == "2"
    after = Review(root)
    assert after.current.taxonomy.node("music.pause").examples == ("hold on", "wait: a #bit")
    record = after.current.record
    assert (record.by, record.auto, record.accepted) == ("ana", False, (ADD.proposal_id,))
    assert record.declined == (SPLIT.gist,)
    assert record.convergence == {"seeds_changed": 0.0, "tree_distance": 0.037, "total": 0.037}  # 1 of 13 + 14
    assert after.is_behind and after.proposals == {}
    assert not after.decisions_file.exists()
    (put_away,) = (root / "review" / "decided").iterdir()
    assert ADD.proposal_id in put_away.read_text()


def test_convergence_counts_seeds_whose_node_changed(root):
    decide(root, merge="accept", rename="accept")
    Review(root).apply()
    assert Review(root).current.record.convergence["seeds_changed"] == pytest.approx(1 / 3, abs=1e-4)


def test_a_crash_between_version_and_file_is_mended(root, monkeypatch):
    decide(root, add="accept")
    monkeypatch.setattr(Review, "put_away", lambda self: None)
    Review(root).apply()
    again = Review(root)
    assert again.plan().operations == [] and again.carried_out.version == "2"
    with pytest.raises(CurationError, match="was carried out already"):
        again.apply()
    monkeypatch.undo()
    assert again.finish().version == "2" and not again.decisions_file.exists()
    assert Review(root).finish() is None
    assert len(Review(root).history.versions) == 2


def test_the_same_words_mean_something_again_when_a_version_was_returned_from(root):
    (root / "review").mkdir()
    file = root / "review" / "decisions.yaml"
    for _ in range(2):
        file.write_text("- {op: drop, node: weather}\n")
        Review(root).apply()
        Review(root).return_to("1")
    assert list(Review(root).history.versions) == ["1", "2", "3", "4", "5"]


def test_rows_of_what_is_dropped_are_told(root):
    (root / "review").mkdir()
    file = root / "review" / "decisions.yaml"
    file.write_text(
        "- {op: drop, node: music.play}\n- {op: drop, node: music}\n"
        "- {op: drop, node: news.sport.ball}\n- {op: drop, node: news.sport.ski}\n"
    )
    found = Review(root).preview().dropped
    assert found == [
        Dropped("music.play", ("music.play",), 1, "other"),
        Dropped("music", ("music.stop",), 2, "other"),  # one of them in its Other
        Dropped("news.sport.ball", ("news.sport.ball",), 0, "news.sport"),
        Dropped("news.sport.ski", ("news.sport.ski",), 0, "news.sport"),
    ]
    assert str(found[0]) == "music.play is dropped: 1 row falls to other and will not be annotated again."


def test_what_each_node_named_under_again_does_is_told(tmp_path):
    places = {"hold on": "weather", "wait: a #bit": "music.play"}  # texts of ADD's evidence, ids 1 and 2
    rows = annotations("other", *places.values(), "weather", "news.local", "music.play").with_columns(
        secondary=pl.when(pl.col("query_id") == 4).then(pl.lit(["weather"])).otherwise(pl.col("secondary"))
    )
    root = workspace(tmp_path, [ADD, RENAME], rows=rows)
    (root / "review").mkdir()
    (root / "review" / "decisions.yaml").write_text(
        "- {op: drop, node: news.local}\n"
        f'- proposal: "{ADD.proposal_id}"\n  decision: edit\n'
        "  again: [weather, music.play, news.sport, news.local, other]\n"
        "- {op: examples, node: music.stop, add: [quiet], again: [weather, other, news.sport.ball]}\n"
    )
    seen = Review(root).preview()
    assert [(one.named.node_id, one.rows, one.of) for one in seen.named] == [
        ("weather", 3, 3),  # one of them for its secondary label
        ("music.play", 0, 2),
        ("news.sport", 0, 0),
        ("news.local", 1, 1),
        ("other", 1, 1),
        ("weather", 3, 3),
        ("other", 1, 1),
        ("news.sport.ball", 0, 0),
    ]
    assert [str(one) for one in seen.named] == [
        "music.pause: again: weather: 3 rows more are annotated again; 1 of the evidence shown.",
        "music.pause: again: music.play does nothing: all rows there are annotated again in any case.",
        "music.pause: again: news.sport does nothing: no annotated row has a label there.",
        "music.pause: again: news.local does nothing: another decision takes news.local away.",
        "music.pause: again: other: 1 row more is annotated again, but none of the evidence shown is there.",
        "music.stop: again: weather: 3 rows more are annotated again.",
        "music.stop: again: other: 1 row more is annotated again.",
        "music.stop: again: news.sport.ball does nothing: no annotated row has a label there.",
    ]
    assert seen.again == 6
    assert seen.notes[-8:] == [str(one) for one in seen.named]


def test_a_node_under_again_that_is_none_is_told_with_its_line(root):
    (root / "review").mkdir()
    (root / "review" / "decisions.yaml").write_text(
        f'# mine\n- proposal: "{ADD.proposal_id}"\n  decision: edit\n  again: [wether]\n'
    )
    with pytest.raises(
        CurationError, match=r"line 2: add music\.pause: there is no node 'wether'\nDid you mean weather"
    ):
        Review(root).preview()


def test_rejections_alone_make_no_version(root):
    decide(root, merge="reject")
    assert Review(root).apply("ana").version is None
    after = Review(root)
    assert after.current.name == "1" and after.history.declined == [MERGE.gist]


def test_decisions_that_changed_since_they_were_shown_are_refused(root):
    decide(root, add="accept")
    seal = Review(root).preview().seal
    decide(root, add="accept", merge="accept")
    with pytest.raises(CurationError, match="changed since they were shown"):
        Review(root).apply(seal=seal)
    assert len(Review(root).history.versions) == 1


def test_a_wrong_entry_changes_nothing(root):
    decide(root, add="accept", merge="acept")
    with pytest.raises(CurationError, match=r"decisions\.yaml, line 4: decision = 'acept'"):
        Review(root).apply()
    assert not (root / "review" / "versions.yaml").exists()


def test_returning_gives_tree_back(root):
    decide(root, split="accept", rename="accept")
    Review(root).apply()
    assert Review(root).return_to("1", "ana").version == "3"
    after = Review(root)
    assert after.current.taxonomy.nodes == START.nodes
    assert [version.name for version in after.history.lineage("3")] == ["1", "3"]
    with pytest.raises(CurationError, match="no version '9'"):
        after.return_to("9")
    with pytest.raises(CurationError, match="is the current one"):
        after.return_to("3")
    with pytest.raises(CurationError, match="version '3' has tree and labels of version '1' already"):
        after.return_to("1")


def test_a_version_follows_on_the_one_the_recipe_keeps_to(root):
    decide(root, rename="accept")
    Review(root).apply()
    (root / "recipe.yaml").write_text("log: {path: log}\ndomain: domain\ntaxonomy: {version: '1'}\n")
    decide(root, add="accept")
    Review(root).apply()
    after = Review(root)
    assert after.current.name == "1"
    assert after.history.get("3").labels_from == "1"
    assert "music.pause" in after.history.get("3").taxonomy.by_id


def test_two_reviews_do_not_write_at_once(root):
    decide(root, add="accept")
    with review_lock(root / "review"), pytest.raises(CurationError, match="another process"):
        Review(root).apply()


def test_labelled_queries_wait_no_more(root):
    assert Review(root).unlabelled["text"].to_list() == ["hm"]
    (root / "review").mkdir(exist_ok=True)
    (root / "review" / "seeds.csv").write_text("text,primary\nhm,\n")
    assert Review(root).unlabelled.height == 1
    (root / "review" / "seeds.csv").write_text("text,primary\nHM!,weather\n")
    assert Review(root).unlabelled.is_empty()


@pytest.mark.parametrize("seed", range(5))
def test_a_version_as_yaml_reads_back(tmp_path, seed):
    from curation.taxonomy import operations as ops

    tree = ops.apply(START, history(seed, 60), "7")
    path = tmp_path / "taxonomy.yaml"
    path.write_text(taxonomy_text(tree), encoding="utf-8")
    assert load_taxonomy(path) == tree
