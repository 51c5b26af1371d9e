"""The server: JSON in, JSON out, sentences for what is wrong; Ctrl-C ends it with all decisions kept."""

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import polars as pl
import pytest
from starlette.testclient import TestClient

from curation.errors import CurationError
from curation.review_page.desk import Desk
from curation.review_page.server import make_app, serve
from curation.taxonomy.proposal import to_frame
from tests.review_page.given import HOSTILE, PROPOSALS, make_workspace, publish

HOME = "http://127.0.0.1:4567"


@pytest.fixture
def client(tmp_path):
    desk = Desk(make_workspace(tmp_path, PROPOSALS))
    client = TestClient(make_app(desk, "t", 4567), base_url=HOME, headers={"origin": HOME})
    client.get("/?token=t")
    yield client
    desk.close()


def test_list_row_detail_decide_undo(client):
    ids = client.get("/api/proposals", params={"sort": "weight"}).json()
    assert len(ids) == len(PROPOSALS)
    row = client.get("/api/rows", params={"ids": ids[0]}).json()[0]
    assert (row["name"], row["weight"], row["status"]) == ("camping", 420, "waiting")
    detail = client.get("/api/proposal", params={"id": ids[0]}).json()
    assert detail["evidence"][2]["text"] == HOSTILE
    assert detail["evidence"][0]["query_id"].isdigit()
    answer = client.post("/api/decide", json={"ids": ids[:1], "decision": "accept"}).json()
    assert answer["proposals"] == ids[:1]
    assert answer["state"]["proposals"]["accepted"] == 1
    assert client.post("/api/undo", json={}).json()["state"]["proposals"]["accepted"] == 0


@pytest.mark.parametrize(
    ("call", "status", "words"),
    [
        (lambda c: c.get("/api/node?id=no.such"), 404, "no.such"),
        (lambda c: c.get("/api/proposal?id=ffffffffffff"), 404, "ffffffffffff"),
        (lambda c: c.get("/api/proposal"), 404, "id"),
        (lambda c: c.get("/api/node?id=discovery&offset=-1"), 422, "no number"),
        (lambda c: c.get("/api/node?id=discovery&order=best"), 422, "frequent"),
        (lambda c: c.get("/api/proposals?status=done"), 422, "waiting"),
        (lambda c: c.get("/api/proposals?sort=random"), 404, "random"),
        (lambda c: c.post("/api/decide", json={"ids": ["ffffffffffff"], "decision": "accept"}), 404, "ffff"),
        (lambda c: c.post("/api/decide", json={"ids": "x", "decision": "accept"}), 422, "list"),
        (lambda c: c.post("/api/decide", json={"ids": [], "decision": "perhaps"}), 422, "perhaps"),
        (lambda c: c.post("/api/decide", json=[]), 422, "JSON object"),
        (lambda c: c.post("/api/undo", content="[" * 100_000), 422, "JSON object"),
        (lambda c: c.post("/api/label", json={"query_id": "1"}), 404, "1"),
    ],
)  # fmt: skip
def test_nonsense_gets_a_sentence(client, call, status, words):
    headers = client.headers
    headers["content-type"] = "application/json"
    answer = call(client)
    assert answer.status_code == status
    assert words in answer.json()["message"]


def test_a_table_of_another_release_or_gone_is_a_sentence(client, tmp_path):
    old = pl.DataFrame({"version": ["1"], "node_id": ["discovery"]})
    publish(tmp_path, {"taxonomy": old, "proposals": to_frame(PROPOSALS)}, run="2")
    answer = client.get("/api/state")
    assert answer.status_code == 422
    assert "is_current" in answer.json()["message"] and "curate run" in answer.json()["hint"]
    make_workspace(tmp_path, PROPOSALS)
    assert client.get("/api/state").status_code == 200
    shutil.rmtree(tmp_path / "objects")
    assert client.get("/api/node", params={"id": "discovery"}).status_code == 422


def test_a_body_without_end_is_refused(client):
    body = json.dumps({"ids": ["x" * (9 << 20)], "decision": "accept"})
    answer = client.post("/api/decide", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_a_port_that_is_taken_is_a_sentence(tmp_path):
    import socket

    make_workspace(tmp_path, PROPOSALS)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(CurationError, match="cannot be used"):
        serve(tmp_path, port=taken.getsockname()[1], open_browser=False)
    with pytest.raises(CurationError, match="cannot be used"):
        serve(tmp_path, port=99_999, open_browser=False)


def test_ctrl_c_ends_it_with_all_decisions_in_the_file(tmp_path):
    make_workspace(tmp_path, PROPOSALS)
    script = "import pathlib, sys; from curation.review_page import serve; "
    script += "serve(pathlib.Path(sys.argv[1]), open_browser=False)"
    process = subprocess.Popen(
        [sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline()
        home, token = re.search(r"(http://127\.0\.0\.1:\d+)/\?token=(\S{40,})", line).groups()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"{home}/api/state")
        port = home.rpartition(":")[2]
        headers = {"cookie": f"curation_review_{port}={token}", "origin": home, "content-type": "application/json"}
        found = urllib.request.Request(f"{home}/api/proposals", headers=headers)
        with urllib.request.urlopen(found) as answer:
            ids = json.load(answer)
        body = json.dumps({"ids": ids[:1], "decision": "reject"}).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{home}/api/decide", body, headers)) as answer:
            assert answer.status == 200
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert errors == ""
    assert f'- proposal: "{ids[0]}"\n  decision: reject\n' in (tmp_path / "review" / "decisions.yaml").read_text()
