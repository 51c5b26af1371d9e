"""The page answers its own person only: token, cookie, host, origin, headers."""

import pytest
from starlette.testclient import TestClient

from curation.review_page.desk import Desk
from curation.review_page.server import make_app
from tests.review_page.given import PROPOSALS, make_workspace

PORT, TOKEN = 4567, "secret-of-the-test"
HOME = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    desk = Desk(make_workspace(tmp_path_factory.mktemp("guard"), PROPOSALS))
    yield make_app(desk, TOKEN, PORT)
    desk.close()


@pytest.fixture
def stranger(app):
    return TestClient(app, base_url=HOME, follow_redirects=False)


@pytest.fixture
def person(app):
    client = TestClient(app, base_url=HOME)
    assert client.get(f"/?token={TOKEN}").status_code == 200
    return client


@pytest.mark.parametrize(
    "path", ["/", "/main.js", "/api/state", "/api/tree", "/?token=", "/?token=wrong", "/nothing"]
)
def test_without_the_token_nothing_is_told(stranger, path):
    answer = stranger.get(path)
    assert answer.status_code == 403
    assert "w5" not in answer.text and "set-cookie" not in answer.headers


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_do_not_see(stranger):
    answer = stranger.get(f"/?token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"curation_review_{PORT}={TOKEN};")
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert stranger.get("/api/state").status_code == 200


def test_the_token_opens_the_page_only_and_not_the_api(stranger):
    assert stranger.get(f"/api/state?token={TOKEN}").status_code == 403
    assert stranger.post(f"/api/undo?token={TOKEN}", json={}, headers={"origin": HOME}).status_code == 403


@pytest.mark.parametrize("cookie", ["", "x", f"{TOKEN}x", TOKEN[:-1], "é", '"'])
def test_a_wrong_cookie_is_refused(stranger, cookie):
    header = {"cookie": f"curation_review_{PORT}={cookie}".encode()}
    assert stranger.get("/api/state", headers=header).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", ""])
def test_another_host_name_is_refused_even_with_the_cookie(person, host):
    assert person.get("/api/state", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": HOME, "content-type": "text/plain"},
        {"origin": HOME, "content-type": "application/x-www-form-urlencoded"},
    ],
)
def test_a_change_must_come_from_the_page(person, headers):
    answer = person.post("/api/undo", content="{}", headers={"content-type": "application/json"} | headers)
    assert answer.status_code == 403
    assert person.post("/api/undo", json={}, headers={"origin": HOME}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/state", "/nothing", "/api/node?id=nothing"])
def test_every_answer_forbids_foreign_scripts_frames_and_caches(person, path):
    headers = person.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_files_outside_the_page_are_not_served(person):
    for path in ("/../server.py", "/%2e%2e/server.py", "/..%2fserver.py", "/static/../../desk.py"):
        assert person.get(path).status_code == 404
