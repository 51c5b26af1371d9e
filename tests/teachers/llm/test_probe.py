"""Looking whether an endpoint is there."""

from __future__ import annotations

import pytest

from curation.errors import CurationError
from curation.teachers.llm.probe import models_of
from tests.teachers.llm.server import KEY, Server


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("LOCAL_KEY", KEY)


@pytest.mark.parametrize(("served", "told"), [(["local", "other"], {"local", "other"}), ([], None)])
def test_the_models_that_are_served(monkeypatch, served, told):
    with Server() as server:
        listed = [{"id": name, "object": "model"} for name in served]
        monkeypatch.setattr(server.batches, "answer", lambda *_: (200, {"object": "list", "data": listed}))
        assert models_of(server.settings()) == told
        assert not server.sent  # nothing that costs


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_is_told_without_the_key(status):
    with Server() as server:
        server.batches.broken["GET /models"] = [status]
        with pytest.raises(CurationError, match="refuses the key in LOCAL_KEY") as error:
            models_of(server.settings())
    assert KEY not in str(error.value)


def test_an_endpoint_that_is_not_there_is_told():
    with Server() as server:
        settings = server.settings()
    with pytest.raises(CurationError, match="cannot be reached"):
        models_of(settings)


@pytest.mark.parametrize("status", [404, 500])
def test_an_endpoint_that_lists_no_models_is_no_fault(status):
    with Server() as server:
        server.batches.broken["GET /models"] = [status]
        assert models_of(server.settings()) is None
