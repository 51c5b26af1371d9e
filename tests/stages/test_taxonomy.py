"""Taxonomy: the domain's tree as tables."""

from __future__ import annotations

import polars as pl

from curation.domain import load_domain
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


def run(tmp_path):
    (tmp_path / "taxonomy.yaml").write_text(TREE)
    return FakeContext(taxonomy.STAGE, domain=load_domain(tmp_path)).run()


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
    assert set(changes["change"]) == {"added"}
    assert changes["from_version"].null_count() == changes.height == ctx.out("taxonomy").height
    (account,) = ctx.accounts
    assert account.rows_in == account.kept == changes.height
