"""The deployment for real: a Prefect server, a worker, `prefect deployment run`, and the bytes of `curate run`."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from curation.engine.recipe import Recipe
from curation.engine.session import Session
from curation.engine.workspace import Workspace
from tests.engine.test_session import files
from tests.small_log import RECIPE, write_workspace

ROOT = Path(__file__).resolve().parents[2]
PREFECT = Path(sys.executable).parent / "prefect"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def prefect(tmp_path_factory):
    """Environment of a running server on loopback with its own home."""
    home, port = tmp_path_factory.mktemp("prefect"), free_port()
    environment = os.environ | {
        "PREFECT_HOME": str(home),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_WORKER_QUERY_SECONDS": "1",
        "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
        "PREFECT_CLI_COLORS": "false",
    }
    log = (home / "server.log").open("w")
    command = [PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(port), "--no-ui"]
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(900):
            assert server.poll() is None, (home / "server.log").read_text()
            try:
                urllib.request.urlopen(environment["PREFECT_API_URL"] + "/health", timeout=1)
                break
            except OSError:
                time.sleep(0.2)
        yield environment
    finally:
        server.terminate()
        server.wait(60)
        log.close()


def call(environment, *arguments):
    return subprocess.run(
        [PREFECT, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600
    )


def test_deployment_run_ends_in_the_bytes_of_curate_run(prefect, tmp_path):
    # A log of 99 queries proposes something only if little is asked of a proposal.
    recipe = RECIPE + "proposals: {least_rows: 3, least_weight: 3}\n"
    by_flow = write_workspace(tmp_path / "flow", recipe)
    by_command = write_workspace(tmp_path / "command", recipe)
    assert call(prefect, "--no-prompt", "work-pool", "create", "local", "--type", "process").returncode == 0
    deployed = call(prefect, "--no-prompt", "deploy", "--all")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    worker = subprocess.Popen(
        [PREFECT, "worker", "start", "--pool", "local"],
        env=prefect,
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        run = ("deployment", "run", "curate/full", "--watch", "--watch-timeout", "500", "-p")
        good = call(prefect, *run, f"recipe={by_flow}")
        assert good.returncode == 0, good.stdout + good.stderr
        bad = call(prefect, *run, f"recipe={tmp_path / 'nowhere'}")
        assert bad.returncode == 1
        with Session(Recipe.load(by_command)) as session:
            session.run()
        assert files(by_flow) == files(by_command)
        found = re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", good.stdout)
        assert found
        tasks = call(prefect, "flow-run", "logs", found[0])
        for stage in ("ingest", "annotate", "pool"):
            assert f"{stage}: " in tasks.stdout
        waits_for_a_person_and_goes_on(prefect, by_flow, found[0])
    finally:
        worker.terminate()
        worker.wait(60)


def waits_for_a_person_and_goes_on(prefect, workspace, flow_run):
    """The run says what waits, and ended all the same; what is decided then becomes a version by another run."""
    state = ask(prefect, f"flow_runs/{flow_run}")["state"]
    assert (state["type"], state["name"]) == ("COMPLETED", "Awaiting review")
    assert "for the taxonomy wait" in state["message"]
    (page,) = ask(prefect, "artifacts/filter", {"artifacts": {"key": {"any_": ["review"]}}})
    decisions = workspace / "review" / "decisions.yaml"
    assert str(decisions) in page["data"] and "apply-review/apply" in page["data"]
    go_on = (
        "deployment",
        "run",
        "apply-review/apply",
        "--watch",
        "--watch-timeout",
        "500",
        "-p",
        f"recipe={workspace}",
    )
    undecided = call(prefect, *go_on)
    assert undecided.returncode == 1
    assert not (workspace / "review" / "versions.yaml").exists()
    leaf = "rules_and_policies.travel_policies"
    decisions.write_text(decisions.read_text() + f"- {{op: rename, node: {leaf}, name: policies}}\n")
    applied = call(prefect, *go_on, "-p", "by=ana")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    nodes = Workspace(workspace).table("taxonomy").filter("is_current").collect()
    assert set(nodes["version"]) == {"2"} and "rules_and_policies.policies" in nodes["node_id"]
    assert set(Workspace(workspace).table("annotations").collect()["taxonomy_version"]) == {"2"}


def ask(environment, path, body=None):
    """The answer of the server's API."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{environment['PREFECT_API_URL']}/{path}", data, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)
