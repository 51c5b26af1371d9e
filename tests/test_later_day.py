"""Two days in two workspaces: the second goes to the representatives of the first, and nothing is lost."""

from __future__ import annotations

import polars as pl
import pytest
from typer.testing import CliRunner

from curation.cli.app import app
from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.workspace import Workspace
from curation.errors import CurationError
from tests.engine.test_session import files
from tests.small_log import RECIPE, rows, write_workspace

FRESH = ["a bakery on Elm Road that sells rye bread", "榆树路上卖黑麦面包的店", "NAVIGATE to the old harbour!!"]


def build(directory):
    with Session(Recipe.load(directory)) as session:
        session.run()
    return Workspace(directory)


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    place = tmp_path_factory.mktemp("days")
    first = build(write_workspace(place / "monday"))
    write_workspace(place / "tuesday", RECIPE + "earlier: ../monday\n")
    log = place / "tuesday" / "log"
    for file in log.iterdir():
        file.unlink()
    then = rows()
    some = then.filter(pl.int_range(pl.len()) % 3 == 0)
    new = some.head(len(FRESH)).with_columns(query=pl.Series(FRESH))
    pl.concat([some, new]).write_parquet(log / "tuesday.parquet")
    return first, build(place / "tuesday")


def test_t14_rows_of_the_later_day_name_representatives_of_the_earlier(days):
    first, second = days
    known = set(first.table("lexical_groups").collect()["query_id"])
    groups = second.table("lexical_groups").collect()
    repeated = groups.filter(pl.col("query_id").is_in(list(known)))
    assert repeated.height > 50 and not repeated["kept"].any()
    kept = set(first.table("lexical_groups").filter("kept").collect()["query_id"])
    assert set(repeated["representative_id"]) <= kept


def test_nothing_is_lost_between_the_days(days):
    _, second = days
    ledger = {row["stage"]: row for row in second.table("ledger").collect().to_dicts()}
    earlier = sum(row["weight_earlier"] for row in ledger.values())
    assert earlier > 0
    rejected = second.table("rejects").filter(pl.col("query_id").is_not_null(), pl.col("stage") != "synthesis")
    lost = rejected.select(pl.col("weight").sum()).collect().item()
    represented = second.table("candidate_pool").select(pl.col("represents").sum()).collect().item()
    assert represented + lost + earlier == second.rows("occurrences")


def test_only_what_is_new_reaches_the_pool(days):
    _, second = days
    texts = second.table("candidate_pool").filter(pl.col("origin") == "observed").collect()["text"].to_list()
    assert set(texts) & set(FRESH[:2])
    assert not [text for text in texts if "harbour" in text]


def test_the_index_grows_and_a_repeated_run_changes_nothing(days):
    first, second = days
    then, now = (day.table("survivors").collect() for day in days)
    assert now["earlier"].sum() == then.height < now.height
    before = files(second.root)
    build(second.root)
    assert files(second.root) == before
    assert (first.root / "latest" / "survivors" / "survivors.faiss").is_file()


def test_a_trace_tells_of_a_representative_of_the_earlier_day(days):
    _, second = days
    groups = second.table("lexical_groups").collect()
    gone = groups.filter(~pl.col("kept"), pl.col("query_id") == pl.col("representative_id"))["query_id"][0]
    told = CliRunner().invoke(app, ["trace", str(gone), str(second.root)])
    assert told.exit_code == 0 and f"of the earlier workspace: `curate trace {gone} " in told.output


@pytest.mark.parametrize("line", ["earlier: ../nowhere", "earlier: ."])
def test_an_earlier_workspace_that_is_none_is_a_sentence_with_its_line(tmp_path, line):
    write_workspace(tmp_path, RECIPE + line + "\n")
    with pytest.raises(CurationError, match=r"recipe.yaml, line 4: .*workspace"):
        Recipe.load(tmp_path)


def test_an_earlier_workspace_that_is_not_built_is_named_with_what_to_type(tmp_path):
    write_workspace(tmp_path / "monday")
    write_workspace(tmp_path / "tuesday", RECIPE + "earlier: ../monday\n")
    with pytest.raises(CurationError, match="monday is not built as a whole") as caught:
        build(tmp_path / "tuesday")
    assert f"curate run {tmp_path / 'monday'}" in caught.value.hint


def test_two_earlier_workspaces_are_a_sentence(tmp_path):
    write_workspace(tmp_path, RECIPE + "earlier: [a, b]\n")
    with pytest.raises(CurationError, match=r"line 4: earlier = .* is the path of one workspace"):
        Recipe.load(tmp_path)


def test_earlier_workspaces_that_go_round_in_a_circle_are_a_sentence(tmp_path):
    for day, before in (("monday", "../wednesday"), ("tuesday", "../monday"), ("wednesday", "../tuesday")):
        write_workspace(tmp_path / day, RECIPE + f"earlier: {before}\n")
    with pytest.raises(
        CurationError, match=r"line 4: the earlier workspaces go round in a circle: .*monday"
    ) as caught:
        Recipe.load(tmp_path / "monday")
    assert "Take the line" in caught.value.hint


def test_an_earlier_workspace_whose_recipe_is_damaged_ends_the_chain(tmp_path):
    write_workspace(tmp_path / "monday", "log: [\n")
    root = write_workspace(tmp_path / "tuesday", RECIPE + "earlier: ../monday\n")
    assert Recipe.load(root).earlier == tmp_path / "monday"
