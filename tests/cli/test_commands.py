"""The `curate` command as a person types it: exit codes, sentences, no traceback."""

from __future__ import annotations

import shutil
import subprocess
import sys

import duckdb
import polars as pl
import pytest
from typer.testing import CliRunner

from curation.cli.app import app
from curation.engine.workspace import Workspace
from curation.pipeline import STAGES
from tests.small_log import RECIPE, write_log, write_workspace


def curate(*arguments, cwd=None):
    """Run the command in a process of its own."""
    command = [sys.executable, "-c", "from curation.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=600)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace built by the command."""
    directory = write_workspace(tmp_path_factory.mktemp("commands"))
    done = curate("run", directory)
    assert done.returncode == 0, done.stderr
    assert "60 candidates" in done.stdout
    return directory


def fails(result, *words):
    assert result.returncode == 2, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
    text = " ".join(result.stderr.split())
    for word in words:
        assert word in text, text


def test_running_again_does_nothing_and_says_so(workspace):
    again = curate("run", workspace)
    assert again.returncode == 0
    assert "Nothing to do" in again.stdout


def test_plan_and_why_name_the_changed_parameter(workspace, tmp_path):
    shutil.copytree(workspace, tmp_path / "w", symlinks=True)
    recipe = tmp_path / "w" / "recipe.yaml"
    recipe.write_text(RECIPE + "semantic: {threshold: 0.9}\n")
    plan = curate("plan", tmp_path / "w").stdout
    assert "recipe semantic.threshold" in plan
    assert "embed" in plan and "fresh" in plan
    assert "recipe semantic.threshold" in curate("why", "semantic_groups", tmp_path / "w").stdout


def test_why_of_a_fresh_table_says_why_it_was_built(workspace):
    assert "never built" in curate("why", "candidate_pool", workspace).stdout


def test_show_filters_and_reports_mistakes(workspace):
    assert curate("show", "candidate_pool", workspace, "--where", "difficulty >= 1", "--limit", "3").returncode == 0
    fails(curate("show", "candidate_pool", workspace, "--where", "nonsense ="), "does not work")
    fails(curate("show", "candidate_pol", workspace), "is not a table")
    fails(curate("show", "queries", workspace, "--columns", "texxt"), "no column 'texxt'")


def test_trace_goes_both_ways(workspace):
    pool = Workspace(workspace).table("candidate_pool").filter(pl.col("origin") == "observed").head(1).collect()
    back = curate("trace", pool["candidate_id"].item(), workspace)
    assert "raw rows:" in back.stdout
    place = next(line.strip() for line in back.stdout.splitlines() if line.strip().startswith("part-"))
    forward = curate("trace", place, workspace)
    assert "candidate" in forward.stdout
    fails(curate("trace", 123, workspace), "no query or candidate has the id 123")
    fails(curate("trace", "part-0.parquet:99999999", workspace), "has no row 99999999")


def test_duckdb_reads_every_table_and_one_command_mends_a_moved_folder(workspace, tmp_path):
    moved = tmp_path / "moved"
    shutil.copytree(workspace, moved, symlinks=True)
    done = curate("catalogue", moved)
    assert done.returncode == 0, done.stderr
    shutil.move(moved, tmp_path / "again")
    assert curate("catalogue", tmp_path / "again").returncode == 0
    with duckdb.connect(str(tmp_path / "again" / "catalogue.duckdb"), read_only=True) as connection:
        views = [
            name
            for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        ]
        assert set(views) == set(Workspace(workspace).tables())
        for name in views:
            count = connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            assert count == Workspace(workspace).rows(name)
        plan = "SELECT count(*) FROM candidate_pool WHERE len(tool_plan) > 0 AND difficulty > 0"
        assert connection.execute(plan).fetchone()[0] > 0


def test_report_is_one_file_that_fetches_nothing(workspace):
    assert curate("report", workspace).returncode == 0
    page = (workspace / "report.html").read_text()
    assert "<svg" in page and "http://" not in page and "https://" not in page


def test_report_escapes_what_people_typed(tmp_path):
    write_log(tmp_path / "log")
    frame = pl.DataFrame({"query": ["<script>alert(1)</script> near the old harbour"] * 5000})
    frame.write_parquet(tmp_path / "log" / "odd.parquet")
    (tmp_path / "recipe.yaml").write_text("log: {path: log, text: query}\npool: {size: 30}\n")
    assert curate("run", tmp_path, "-q").returncode == 0
    assert curate("report", tmp_path).returncode == 0
    assert "<script>alert" not in (tmp_path / "report.html").read_text()


def test_init_on_ones_own_log_guesses_the_column(tmp_path):
    log = write_log(tmp_path / "mine")
    done = curate("init", tmp_path / "w", "--log", log)
    assert done.returncode == 0, done.stderr
    assert "text in column 'query'" in done.stdout
    assert f"{len(STAGES)} of {len(STAGES)} stages to build" in curate("plan", tmp_path / "w").stdout
    fails(curate("init", tmp_path / "w", "--log", log), "is there already")


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_not_the_current_directory(tmp_path, name):
    fails(curate("init", name, cwd=tmp_path), "the name of the new workspace is empty", "`.` is the current one")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--log", "nowhere"], ["nowhere"]),
        (["--log", "mine", "--text-column", "utterance"], ["utterance", "query"]),
        (["--domain", "no_such"], ["no_such"]),
    ],
)
def test_init_with_a_mistake(tmp_path, arguments, words):
    write_log(tmp_path / "mine")
    fails(curate("init", "w", *arguments, cwd=tmp_path), *words)
    assert not (tmp_path / "w" / "recipe.yaml").exists()


def test_e4_a_truncated_file_is_named_before_any_work(tmp_path):
    write_workspace(tmp_path)
    file = tmp_path / "log" / "part-1.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    fails(curate("run", tmp_path), "part-1.parquet")
    assert not (tmp_path / "objects").exists() or not any((tmp_path / "objects").iterdir())


def test_e5_an_unknown_recipe_key_is_named_with_its_line(tmp_path):
    write_workspace(tmp_path, RECIPE + "lexical:\n  jacard: 0.5\n")
    fails(curate("run", tmp_path), "line 5", "lexical.jacard", "jaccard")


def test_e6_a_wrong_column_names_what_is_there(tmp_path):
    write_workspace(tmp_path, "log: {path: log, text: utterance}\n")
    fails(curate("run", tmp_path), "utterance", "query", "log.text")


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of 300 kB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root; tests/engine covers the errors themselves")
    yield place
    subprocess.run(["umount", place], check=True)


def test_e7_a_workspace_on_a_full_disk(tmp_path, small_disk):
    write_log(tmp_path / "log")
    (small_disk / "recipe.yaml").write_text(f"log: {{path: {tmp_path / 'log'}, text: query}}\n")
    fails(curate("run", small_disk), "full")
    assert not (small_disk / "latest").exists()


def test_no_workspace_no_recipe(tmp_path):
    fails(curate("run", tmp_path / "nowhere"), "no recipe")
    fails(curate("status", tmp_path), "no finished run")
    fails(curate("show", "queries", tmp_path / "nowhere"), "no workspace")


def test_doctor_and_status_and_describe(workspace):
    assert "All is well" in curate("doctor", workspace).stdout
    assert "candidate_pool" in curate("status", workspace).stdout
    assert "represents" in CliRunner().invoke(app, ["describe", "candidate_pool"]).stdout


def test_diff_of_a_run_with_itself(workspace):
    run = Workspace(workspace).run()["id"]
    assert "same tables" in curate("diff", run, "latest", workspace).stdout


def test_help_lists_every_command():
    shown = CliRunner().invoke(app, ["--help"]).stdout
    for command in ("init", "run", "plan", "status", "why", "diff", "show", "review", "report", "trace", "doctor"):
        assert command in shown


def test_what_people_typed_is_never_markup(tmp_path):
    write_log(tmp_path / "log")
    odd = ["[/red] hotel near me", "[bold]restaurant[/bold] near the [link=x]station"]
    pl.DataFrame({"query": odd}).write_parquet(tmp_path / "log" / "odd.parquet")
    (tmp_path / "recipe.yaml").write_text("log: {path: log, text: query}\n")
    assert curate("run", tmp_path, "-s", "ingest", "-q").returncode == 0
    shown = curate("show", "queries", tmp_path, "--where", "text LIKE '[%'", "--columns", "text").stdout
    assert all(text in shown for text in odd)
    assert odd[1] in curate("trace", "odd.parquet:1", tmp_path).stdout


def test_a_log_that_takes_in_the_workspace_is_refused(tmp_path):
    write_log(tmp_path)
    (tmp_path / "recipe.yaml").write_text("log: {path: ., text: query, format: parquet}\n")
    assert curate("run", tmp_path, "-s", "ingest", "-q").returncode == 0
    fails(curate("run", tmp_path, "-s", "ingest"), "the workspace's own tables", "a directory of its own")


def test_odd_arguments_get_sentences(workspace, tmp_path):
    fails(curate("trace", "²", workspace), "neither an id nor FILE:ROW")
    fails(curate("trace", "part-0.parquet:²", workspace), "neither an id nor FILE:ROW")
    fails(curate("show", "queries", workspace, "--run", "../../x"), "no run")
    fails(curate("show", "queries", workspace, "--columns", "text,text"), "asked for twice")
    fails(curate("doctor", tmp_path / "nowhere"), "no directory")
    assert curate("run", workspace, "--workers", "-3").returncode == 2


def test_mistakes_in_late_stages_are_told_before_any_work(tmp_path):
    write_workspace(tmp_path, RECIPE.replace("propose: 10", "propose: 10, file: labels.csv"))
    (tmp_path / "labels.csv").write_text("text,primary\nhello,no.such.leaf\n")
    fails(curate("plan", tmp_path), "line 2", "no.such.leaf")
    (tmp_path / "recipe.yaml").write_text(RECIPE + "embed: {encoder: gpt-5}\n")
    fails(curate("plan", tmp_path), "gpt-5")


def test_a_domain_may_be_flat(tmp_path):
    domain = tmp_path / "cooking"
    domain.mkdir()
    leaves = {"recipes": "how is {} cooked", "shopping": "buy {} for me", "timers": "boil the {} for five minutes"}
    taxonomy = "".join(f"  {leaf}: what belongs to {leaf}\n" for leaf in leaves)
    (domain / "taxonomy.yaml").write_text(f"version: '1'\ntaxonomy:\n{taxonomy}")
    foods = ["rice", "eggs", "beans", "a cake", "soup", "noodles"]
    seeds = "".join(
        f"  {leaf}:\n    en: [{', '.join(text.format(food) for food in foods)}]\n" for leaf, text in leaves.items()
    )
    (domain / "seeds.yaml").write_text(f"seeds:\n{seeds}")
    write_workspace(tmp_path, RECIPE + f"domain: {domain}\n")
    done = curate("run", tmp_path, "-s", "+taxonomy", "-s", "+seeds")
    assert done.returncode == 0, done.stderr
    assert Workspace(tmp_path).rows("taxonomy") == 4  # three leaves and Other


@pytest.fixture
def read_only(workspace, tmp_path):
    """The workspace on a file system that cannot be written."""
    place = tmp_path / "fixed"
    place.mkdir()
    bound = subprocess.run(["mount", "--bind", workspace, place], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip("mounting read-only needs root")
    subprocess.run(["mount", "-o", "remount,ro,bind", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_an_interrupt_says_how_to_go_on():
    code = """
from curation.cli import main
from curation.cli.app import app

@app.command()
def stop():
    raise KeyboardInterrupt

main()
"""
    done = subprocess.run([sys.executable, "-c", code, "stop"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert "run again to go on" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["report", "catalogue", "run"])
def test_a_workspace_that_cannot_be_written(read_only, command):
    fails(curate(command, read_only), "cannot")
