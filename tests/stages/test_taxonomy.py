"""Taxonomy: the domain's tree as tables."""

from __future__ import annotations

import polars as pl
import pytest

from curation.domain import load_domain
from curation.errors import CurationError
from curation.stages import taxonomy
from tests.helpers import FakeContext

TREE = """
title: Tiny
languages: [en]
version: "3"
taxonomy:
  music:
    description: What to play.
    children:
      play: {description: Start a song., examples: {en: [play some jazz]}}
      stop: {description: End it.}
  weather: {description: Rain and sun.}
"""


def run(tmp_path, **params):
    (tmp_path / "taxonomy.yaml").write_text(TREE)
    return FakeContext(taxonomy.STAGE, domain=load_domain(tmp_path), params=params).run()


VERSIONS = """
- version: "4"
  from: "3"
  operations:
  - {op: rename, node: music.stop, name: halt}
  - {op: drop, node: weather}
- {version: "5", from: "4", return_to: "3"}
"""


def test_every_node_and_every_other_is_a_row(tmp_path):
    out = run(tmp_path).out("taxonomy")
    assert set(out["node_id"]) == {"music", "music.play", "music.stop", "music.other", "weather", "other"}
    assert set(out["version"]) == {"3"}
    play = out.filter(pl.col("node_id") == "music.play").row(0, named=True)
    assert (play["parent_id"], play["level"], play["is_leaf"], play["examples"]) == (
        "music",
        2,
        True,
        ["play some jazz"],
    )
    assert out.filter("is_other")["node_id"].sort().to_list() == ["music.other", "other"]


def test_a_first_version_is_all_additions(tmp_path):
    ctx = run(tmp_path)
    changes = ctx.out("taxonomy_changes")
    assert ctx.out("taxonomy_migrations").is_empty()
    assert set(changes["change"]) == {"added"}
    assert changes["from_version"].null_count() == changes.height == ctx.out("taxonomy").height
    (account,) = ctx.accounts
    assert account.rows_in == account.kept == changes.height


def with_versions(tmp_path, **params):
    (tmp_path / "versions.yaml").write_text(VERSIONS)
    return run(tmp_path, versions=str(tmp_path / "versions.yaml"), **params)


def test_the_newest_version_counts_or_the_one_the_recipe_names(tmp_path):
    ctx = with_versions(tmp_path)
    out = ctx.out("taxonomy")
    assert out["version"].unique().sort().to_list() == ["3", "4", "5"]
    assert out.filter("is_current")["version"].unique().to_list() == ["5"]
    assert ctx.metrics["versions"] == 3
    earlier = with_versions(tmp_path, version="4").out("taxonomy").filter("is_current")
    assert set(earlier["node_id"]) == {"music", "music.play", "music.halt", "music.other", "other"}
    with pytest.raises(CurationError, match="no version '7'"):
        taxonomy.check(ctx.params.model_copy(update={"version": "7"}), ctx.domain)


def test_labels_of_a_dropped_leaf_fall_to_other_and_those_of_a_renamed_one_go_with_it(tmp_path):
    out = with_versions(tmp_path).out("taxonomy_migrations")
    four = out.filter((pl.col("version") == "4") & (pl.col("leaf") != pl.col("becomes")))
    assert four.select("leaf", "becomes", "again").rows() == [
        ("music.stop", "music.halt", False),
        ("weather", "other", False),
    ]
    five = out.filter(pl.col("version") == "5")
    assert set(five["from_version"]) == {"3"}
    assert (five["leaf"] == five["becomes"]).all() and not five["again"].any()


def test_the_first_version_may_be_a_file(tmp_path):
    (tmp_path / "mine.yaml").write_text("version: one\ntaxonomy: [a, b]\n")
    assert set(run(tmp_path, base=str(tmp_path / "mine.yaml")).out("taxonomy")["node_id"]) == {"a", "b", "other"}


def test_a_tree_is_induced_from_tagged_seeds_and_named_by_its_content(tmp_path, monkeypatch):
    from types import SimpleNamespace

    import numpy as np

    from curation.teachers import fitting

    words = {"jazz": [1, 0, 0, 0], "rock": [0.9, 0.1, 0, 0], "rain": [0, 0, 1, 0], "snow": [0, 0, 0.9, 0.1]}

    def encode(texts):
        rows = np.array([words[text.split()[0]] for text in texts], np.float32)
        rows += np.random.default_rng(1).normal(scale=0.01, size=rows.shape).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    monkeypatch.setattr(fitting, "encoder_of_run", lambda ctx: encode)
    file = tmp_path / "seeds.csv"
    tags = {"jazz": "music;play", "rock": "music;song", "rain": "weather;forecast", "snow": "weather;cold"}
    rows = [f"{word} number {n},{tags[word]}" for word in words for n in range(6)]
    file.write_text("text,tags\n" + "\n".join(rows) + "\nnothing said,\n")
    (tmp_path / "taxonomy.yaml").write_text(TREE)

    def run(**params):
        shared = {"seeds": SimpleNamespace(file=str(file)), "embed": None}
        return FakeContext(
            taxonomy.STAGE, domain=load_domain(tmp_path), shared=shared, params={"induce": True, **params}
        ).run()

    ctx = run()
    out = ctx.out("taxonomy")
    (version,) = out["version"].unique()
    assert version.startswith("induced-") and run().out("taxonomy").equals(out)
    tops = set(out.filter((pl.col("level") == 1) & ~pl.col("is_other"))["name"])
    assert len(tops) == 2 and tops <= {"music", "weather"}
    leaves = out.filter("is_leaf", ~pl.col("is_other"))
    assert sum(map(len, leaves["examples"])) == 24
    assert 0 <= ctx.metrics["overlap"] <= 1
    file.write_text("text,tags\n" + "\n".join(rows[:-1]) + "\n")
    assert run().out("taxonomy")["version"][0] != version
    file.write_text("text,tags\nnothing said,\n")
    with pytest.raises(CurationError, match=r"no row of .* has tags"):
        run()
