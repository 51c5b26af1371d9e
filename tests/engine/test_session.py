"""The engine as its users see it: what is stale, what survives a kill, what is published together."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from curation.engine.store import Store
from curation.engine.workspace import Workspace
from curation.errors import CurationError
from tests.engine import toy_session as toy

ROOT = Path(__file__).resolve().parents[2]


def run(root, select=(), **sections):
    with toy.session(root, select, **sections) as session:
        return session.run()


def statuses(root, **sections):
    return {step.stage.name: step.status for step in toy.session(root, **sections).plan()}


def files(root):
    """Table and file to content hash of the published run."""
    store = Store(Path(root))
    document = store.run()
    return {
        f"{table}/{name}": entry["sha256"]
        for table, (stage, key) in document["tables"].items()
        for name, entry in store.manifest(stage, key)["tables"].get(table, {}).items()
    }


def spawn(root, sections, **environment):
    command = [sys.executable, "-m", "tests.engine.toy_session", str(root), json.dumps(sections)]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stderr=subprocess.PIPE)


def test_second_run_does_nothing(tmp_path):
    assert run(tmp_path)["published"] is True
    assert run(tmp_path)["published"] is False
    assert len(Store(tmp_path).runs()) == 1


def test_e2_change_of_a_late_parameter_leaves_earlier_stages_fresh(tmp_path):
    run(tmp_path)
    assert statuses(tmp_path, lexical={"modulus": 4}) == {"ingest": "fresh", "lexical": "stale"}
    plan = toy.session(tmp_path, lexical={"modulus": 4}).plan()
    assert plan[1].why == ["recipe lexical.modulus: 2 -> 4"]


def test_e3_parameters_that_do_not_count_make_nothing_stale(tmp_path):
    run(tmp_path)
    sections = {"ingest": {"chunk": 99}, "run": {"workers": 1, "log_level": "debug", "memory_gb": 1}}
    assert set(statuses(tmp_path, **sections).values()) == {"fresh"}


def test_reverting_a_parameter_restores_the_object(tmp_path):
    run(tmp_path)
    before = files(tmp_path)
    run(tmp_path, lexical={"modulus": 4})
    assert statuses(tmp_path)["lexical"] == "restored"
    run(tmp_path)
    assert files(tmp_path) == before


def test_changed_content_of_an_input_file_makes_its_stage_stale(tmp_path):
    named = tmp_path / "seeds.csv"
    named.write_text("a")
    run(tmp_path, lexical={"file": "seeds.csv"})
    os.utime(named)
    assert statuses(tmp_path, lexical={"file": "seeds.csv"})["lexical"] == "fresh"
    named.write_text("b")
    assert statuses(tmp_path, lexical={"file": "seeds.csv"})["lexical"] == "stale"


def test_selection_leaves_later_stages_out_and_keeps_tables_consistent(tmp_path):
    run(tmp_path)
    document = run(tmp_path, select=["ingest"], ingest={"rows": 80})
    assert "lexical_groups" not in document["tables"]
    assert Workspace(tmp_path).rows("queries") == 80


def test_selecting_a_stage_without_its_stale_input_is_a_sentence(tmp_path):
    with pytest.raises(CurationError, match="stale and not selected"):
        run(tmp_path, select=["lexical"])


def test_e1_finished_parts_are_not_redone_after_kill(tmp_path):
    process = spawn(tmp_path, {}, TOY_KILL_AFTER="2")
    assert process.wait() == -signal.SIGKILL
    assert not (tmp_path / "latest").exists()
    (build,) = (tmp_path / "parts" / "ingest").iterdir()
    # The part in work when the kill came has no marker; the two before it have.
    kept = {path: path.stat().st_mtime_ns for path in (build / "data" / "queries").glob("000[01].parquet")}
    assert len(kept) == 2
    run(tmp_path)
    (done,) = (tmp_path / "objects" / "ingest").iterdir()
    for path, modified in kept.items():
        assert (done / "data" / "queries" / path.name).stat().st_mtime_ns == modified


def test_e1_kill_at_any_moment_then_the_same_bytes_as_a_clean_run(tmp_path):
    random.seed(5)
    sections = {"ingest": {"slow": 0.3, "rows": 400}}
    root = tmp_path / "killed"
    root.mkdir()
    killed = 0
    for _ in range(6):
        process = spawn(root, sections)
        time.sleep(random.uniform(0.2, 1.2))
        process.kill()
        killed += process.wait() == -signal.SIGKILL
        assert Store(root).verify() == []
        for manifest in root.glob("objects/*/*"):
            assert (manifest / "manifest.json").exists()
    assert killed
    clean = tmp_path / "clean"
    clean.mkdir()
    run(root, **sections)
    run(clean, **sections)
    assert files(root) == files(clean)
    assert list((root / "_tmp").iterdir()) == []


def test_a_second_run_at_the_same_time_is_refused_with_the_process_id(tmp_path):
    with toy.session(tmp_path), pytest.raises(CurationError, match=f"process {os.getpid()}"):
        run(tmp_path)


def test_lost_rows_stop_the_stage_and_nothing_is_published(tmp_path):
    with pytest.raises(CurationError, match="lexical lost rows: 40 in, 39 accounted for"):
        run(tmp_path, lexical={"lose": 1})
    assert not (tmp_path / "latest").exists()
    assert not list((tmp_path / "parts" / "lexical").iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_e7_full_disk_is_a_sentence_and_old_tables_stay(tmp_path, monkeypatch, number):
    run(tmp_path)
    before = files(tmp_path)

    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(pl.DataFrame, "write_parquet", refuse)
    with pytest.raises(CurationError, match="is full"):
        run(tmp_path, lexical={"modulus": 4})
    monkeypatch.undo()
    assert files(tmp_path) == before
    assert Store(tmp_path).verify() == []


def test_verify_names_missing_changed_and_unlisted_files(tmp_path):
    run(tmp_path)
    first, second = sorted((tmp_path / "latest" / "queries").glob("*.parquet"))[:2]
    (first.parent / "stray.parquet").write_bytes(second.read_bytes())
    first.unlink()
    second.write_bytes(b"x")
    faults = " ".join(Store(tmp_path).verify())
    assert "is missing" in faults and "has changed" in faults and "is not in the manifest" in faults


def test_ledger_is_a_published_table_that_balances(tmp_path):
    run(tmp_path)
    ledger = Workspace(tmp_path).table("ledger").collect()
    assert ledger["stage"].to_list() == ["ingest", "lexical"]
    assert ledger.row(1, named=True)["merged"] == 20
    assert Workspace(tmp_path).table("metrics").collect().height == 4


def test_observer_hears_of_every_stage(tmp_path):
    heard = []

    class Observer:
        def started(self, step):
            heard.append(("started", step.stage.name))

        def progress(self, stage, done, total, note):
            pass

        def finished(self, step, manifest):
            heard.append((step.status, step.stage.name))

    with toy.session(tmp_path, observer=Observer()) as session:
        session.run()
    with toy.session(tmp_path, observer=Observer()) as session:
        session.run()
    assert heard == [
        ("started", "ingest"),
        ("stale", "ingest"),
        ("started", "lexical"),
        ("stale", "lexical"),
        ("fresh", "ingest"),
        ("fresh", "lexical"),
    ]


def test_a_lost_or_cut_file_is_built_again(tmp_path):
    run(tmp_path)
    before = files(tmp_path)
    (lost, cut, *_) = sorted((tmp_path / "latest" / "queries").glob("*.parquet"))
    lost.unlink()
    cut.write_bytes(b"x")
    plan = toy.session(tmp_path).plan()
    assert (plan[0].status, plan[0].why) == ("stale", ["its files are gone or damaged"])
    run(tmp_path)
    assert files(tmp_path) == before
    assert Store(tmp_path).verify() == []


@pytest.mark.parametrize("content", ["", "[]", "{"])
@pytest.mark.parametrize("name", ["objects/ingest/*/manifest.json", "latest/run.json", "sources.json"])
def test_a_damaged_small_file_costs_work_not_a_traceback(tmp_path, name, content):
    run(tmp_path)
    before = files(tmp_path)
    (tmp_path / "sources.json").touch()
    (damaged,) = tmp_path.glob(name)
    damaged.write_text(content)
    run(tmp_path)
    assert files(tmp_path) == before


def test_a_workspace_path_may_hold_glob_characters(tmp_path):
    (tmp_path / "w1").mkdir()
    odd = tmp_path / "w[1]*?"
    odd.mkdir()
    run(tmp_path / "w1", ingest={"rows": 80})
    run(odd)
    assert Workspace(odd).table("queries").collect().height == 40


def test_a_stage_may_refuse_its_parameters_before_any_work(tmp_path, monkeypatch):
    def refuse(params, domain):
        raise CurationError("no")

    monkeypatch.setitem(toy.STAGES, "lexical", dataclasses.replace(toy.STAGES["lexical"], check=refuse))
    with pytest.raises(CurationError, match="no"):
        run(tmp_path)
    assert not (tmp_path / "objects" / "ingest").exists()


@pytest.mark.parametrize("change", ["rewrite", "delete"])
def test_a_log_that_changes_while_it_is_read_is_not_stored(tmp_path, change):
    from curation.engine.recipe import Recipe
    from curation.engine.session import Session
    from curation.stages.ingest import STAGE
    from tests.small_log import write_log

    log = write_log(tmp_path / "log")
    file = log / "part-1.parquet"

    class Meddler:
        def started(self, step):
            if change == "delete":
                file.unlink()
            else:
                pl.DataFrame({"query": ["another log"]}).write_parquet(file)

        def progress(self, stage, done, total, note):
            pass

        def finished(self, step, manifest):
            pass

    stages = {"ingest": STAGE}
    recipe = Recipe.from_dict({"log": {"path": str(log), "text": "query"}}, root=tmp_path, stages=stages)
    with (
        pytest.raises(CurationError, match=r"part-1\.parquet"),
        Session(recipe, tmp_path / "w", stages=stages, observer=Meddler()) as session,
    ):
        session.run()
    assert not (tmp_path / "w" / "objects" / "ingest").exists()
