"""`curate review` as a person types it: from what waits to a new version and back."""

from __future__ import annotations

import polars as pl
import pytest
from typer.testing import CliRunner

from curation.cli.app import app
from curation.domain.load import load_taxonomy
from curation.errors import CurationError
from curation.taxonomy.review import Review
from tests.taxonomy.desk import annotations, seeds, workspace
from tests.taxonomy.test_decisions import ADD, MERGE, RENAME, SPLIT, proposal

RENAME_ANOTHER = proposal("rename", "weather", name="sky")


@pytest.fixture
def root(tmp_path):
    return workspace(
        tmp_path,
        [ADD, MERGE, RENAME, SPLIT, proposal("add", "music", name="[red]x", description="x")],
        seeds(("play it", "music.play"), ("what is [b] this", None)),
        annotations("music.play", "music.other", "weather"),
    )


def review(root, *arguments):
    """What the command says; a mistake is raised."""
    done = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["review", str(root), *arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0
    return done.stdout


def test_it_lists_what_waits(root):
    said = review(root)
    assert "Taxonomy version 1: 3 level-1 categories, 6 leaves." in said
    for what in ("add pause to music", "merge music.stop into music.play", "split weather into rain, sun", "[red]x"):
        assert what in said
    assert "1 query waits for a label." in said


def test_nothing_waits(tmp_path):
    root = workspace(tmp_path)
    assert "Nothing waits for review" in review(root)
    assert "Nothing waits for review" in review(root, "--file")


def test_from_the_file_to_a_version_and_back(root):
    written = review(root, "--file")
    assert "decisions.yaml holds 5 proposals." in written and "seeds.csv holds 1 query to label" in written
    decisions = root / "review" / "decisions.yaml"
    untouched = decisions.read_text()
    review(root, "--file")
    assert decisions.read_text() == untouched
    lines = untouched.splitlines()
    at = next(i for i, line in enumerate(lines) if ADD.proposal_id in line)
    place = next(i for i, line in enumerate(lines) if i > at and line.strip() == "decision:")
    lines[place] = "  decision: accept"
    decisions.write_text("\n".join(lines) + "\n- {op: rename, node: weather, name: 天气}\n")
    checked = review(root, "--check")
    assert "1 proposal accepted, 0 rejected, 4 left for later; 2 operations on version 1." in checked
    assert "music.pause" in checked and "天气" in checked
    assert "2 rows will be annotated again" in checked  # those in music; evidence in weather is told, and stays
    assert "music.pause: 1 query of the evidence shown lies outside music and keeps its label: weather (1)" in checked
    assert not (root / "review" / "versions.yaml").exists()
    assert "Version 2 is in" in review(root, "--apply", "--by", "ana")
    said = review(root)
    assert "Taxonomy version 2" in said and "The tables are of another version than 2: curate run" in said
    assert "ana" in review(root, "--versions")
    assert "weather" in review(root, "--compare", "1", "2")
    (root / "shown.yaml").write_text(review(root, "--show", "2"))
    assert load_taxonomy(root / "shown.yaml") == Review(root).current.taxonomy
    assert "Version 3 has tree and labels of version 1" in review(root, "--return-to", "1")
    assert "Versions 1 and 3 are equal." in review(root, "--compare", "1", "3")
    decisions.write_text(untouched)
    assert "decisions.yaml belongs to version 3: move it away" in review(root, "--return-to", "2")


def test_a_version_keeps_waiting_for_the_recipe_that_names_another(root):
    (root / "recipe.yaml").write_text("log: {path: log}\ndomain: domain\ntaxonomy: {version: '1'}\n")
    (root / "review").mkdir()
    (root / "review" / "decisions.yaml").write_text("- {op: drop, node: weather}\n")
    assert "take `taxonomy.version` out" in review(root, "--apply")


def test_queries_to_label_come_once_and_labels_are_checked(root):
    review(root, "--file")
    file = root / "review" / "seeds.csv"
    labels = pl.read_csv(file, infer_schema=False)
    assert labels["text"].to_list() == ["what is [b] this"]
    one = labels.with_columns(primary=pl.lit("weather"), labelled_by=pl.lit("ana"))
    other = one.with_columns(labelled_by=pl.lit("ben"), primary=pl.lit("other"))
    pl.concat([one, other]).write_csv(file)
    said = review(root, "--check")
    assert "1 query, 0 with a primary leaf" in said
    assert "Labelled by ana 1, ben 1; 1 disputed. Agreement on 1 query: Krippendorff's alpha 0.00" in said
    assert "what is [b] this: no label counts\n    line 2, ana: weather\n    line 3, ben: other\n" in said
    one.with_columns(primary=pl.lit("no.such.leaf")).write_csv(file)
    with pytest.raises(CurationError, match=r"seeds\.csv, line 2: 'no\.such\.leaf' is no leaf"):
        review(root, "--check")


def test_notes_and_texts_that_are_not_in_the_log_are_told(tmp_path):
    root = workspace(tmp_path, seed_rows=seeds(("hm", None)), queries=["hm"])
    (root / "review").mkdir()
    (root / "review" / "seeds.csv").write_text("text;primary;备注\nhm;weather;?\n新的;weather;\nopen;;\n")
    said = review(root, "--check")
    assert "There are no decisions" in said and "--file writes it" in said
    assert "Columns that are left out: 备注." in said
    assert "1 text is no query of this log; labels count as examples all the same:\n  line 3: 新的\n" in said


def test_what_goes_with_a_dropped_node_is_told(root):
    (root / "review").mkdir()
    (root / "review" / "decisions.yaml").write_text("- {op: drop, node: music}\n- {op: drop, node: news.local}\n")
    said = review(root, "--check")
    assert (
        "music is dropped with all below it, 2 leaves: 2 rows fall to other and will not be annotated again." in said
    )
    assert "news.local is dropped: 0 rows fall to news.other and will not be annotated again." in said
    assert "0 rows will be annotated again." in said


def test_versions_that_are_gone_from_the_file_are_told(root):
    workspace(root, recipe="log: {path: log}\ndomain: domain\n")
    (root / "review").mkdir(exist_ok=True)
    (root / "review" / "decisions.yaml").write_text("- {op: drop, node: weather}\n")
    review(root, "--apply")
    workspace(root, versions="review/versions.yaml")
    (root / "review" / "versions.yaml").write_text("")
    assert "They know of 2 too, which is not in" in review(root)


def test_proposals_of_an_earlier_run_make_room_unless_something_is_decided(root):
    review(root, "--file")
    decisions = root / "review" / "decisions.yaml"
    first = decisions.read_text()
    workspace(root, [MERGE, SPLIT])
    review(root, "--file")
    assert decisions.read_text() == first  # those that wait are in it
    assert "3 entries are about proposals of an earlier run" in review(root, "--check")
    workspace(root, [RENAME_ANOTHER])
    review(root, "--file")
    assert decisions.read_text().count("- proposal:") == 1
    assert [file.read_text() for file in (root / "review" / "decided").iterdir()] == [first]
    mine = first + "- {op: drop, node: weather}\n"
    decisions.write_text(mine)
    review(root, "--file")
    assert decisions.read_text().startswith(mine)


def test_applying_again_says_what_is_next(root):
    with pytest.raises(CurationError, match=r"there is no .*decisions\.yaml\nType: curate review .* --file"):
        review(root, "--apply")
    (root / "review").mkdir(exist_ok=True)
    (root / "review" / "decisions.yaml").write_text("- {op: drop, node: weather}\n")
    review(root, "--apply")
    with pytest.raises(CurationError, match="nothing is decided since version 2 was made\nNow: curate run"):
        review(root, "--apply")
    assert "The tables are of another version than 2: curate run" in review(root, "--file")


def test_an_apply_that_was_stopped_is_finished(root, monkeypatch):
    review(root, "--file")
    decisions = root / "review" / "decisions.yaml"
    text = decisions.read_text() + "- {op: rename, node: weather, name: 天气}\n"
    at = text.index("decision:", text.index(MERGE.proposal_id))
    decisions.write_text(text[:at] + "decision: reject" + text[at + len("decision:") :])
    with monkeypatch.context() as stopped:
        stopped.setattr(Review, "put_away", lambda self: None)
        review(root, "--apply")
    assert decisions.exists()
    assert "These decisions are version 2 already" in review(root, "--check")
    assert "These decisions are version 2 already" in review(root, "--apply")
    assert not decisions.exists()
    assert list(Review(root).history.versions) == ["1", "2"]


def test_mistakes_are_sentences(root):
    with pytest.raises(CurationError, match="--file and --apply cannot be asked for together"):
        review(root, "--file", "--apply")
    with pytest.raises(CurationError, match="nothing is decided"):
        review(root, "--apply")
    with pytest.raises(CurationError, match="no version '7'"):
        review(root, "--show", "7")
    with pytest.raises(CurationError, match="there is no recipe"):
        review(root / "nowhere")
    (root / "review").mkdir(exist_ok=True)
    (root / "review" / "decisions.yaml").write_text("- {op: drop, node: wether}\n")
    with pytest.raises(CurationError, match=r"decisions\.yaml, line 1: drop wether: there is no node"):
        review(root, "--check")
