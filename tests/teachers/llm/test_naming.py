"""Names of clusters: legal, free, told once what is wrong."""

from __future__ import annotations

import pytest

from curation.errors import CurationError
from curation.teachers.llm.naming import Named, check_name, name_cluster
from curation.teachers.llm.rows import FaultyAnswerError
from tests.teachers.llm.fake import FakeClient


@pytest.mark.parametrize("name", ["poi_search", "a", "top10", " spaced "])
def test_good_names(name):
    assert check_name(name, ("poi",)) == name.strip()


@pytest.mark.parametrize(
    "name", ["", "POI", "poi search", "poi-search", "_poi", "poi__search", "1a", "搜索", "other", "x" * 49]
)
def test_bad_names(name):
    with pytest.raises(FaultyAnswerError):
        check_name(name, ())


def answer(name, description="About it.", contrast=""):
    return {"name": name, "description": description, "contrast": contrast}


def test_a_cluster_gets_a_name():
    client = FakeClient(lambda data: answer("parking_lots", contrast=" Not fuel. "))
    named = name_cluster(client, ["where to park"], ["petrol"], title="T", language="en", taken=["x"])
    assert named == Named("parking_lots", "About it.", "Not fuel.")
    assert client.data == [{"queries": ["where to park"], "others": ["petrol"]}]
    assert "none of these: x" in client.requests[0].messages[0]["content"]


def test_a_name_that_is_taken_is_asked_for_again():
    client = FakeClient(lambda data: answer("second" if "fault" in data else "first"))
    assert name_cluster(client, ["a"], [], title="T", language="zh", taken=["first"]).name == "second"
    assert client.data[1]["fault"] == "the name 'first' is taken"


@pytest.mark.parametrize("said", [answer("first"), answer("good", description=" "), "prose"])
def test_no_usable_name_is_a_sentence(said):
    with pytest.raises(CurationError, match="no name to 1 queries such as 'a'"):
        name_cluster(FakeClient(lambda data: said), ["a"], [], title="T", language="en", taken=["first"])
