"""The LLM writer and verifier: counts, languages, parents, no request twice, verdicts by query."""

from __future__ import annotations

import itertools

import pytest

from curation.domain import load_domain
from curation.teachers.embedded.writer import Example, Order, Written
from curation.teachers.llm.writer import LlmVerifier, LlmWriter, possible_chains
from tests.teachers.llm.fake import FakeClient, UnansweredError

DOMAIN = load_domain("map_travel")
CHAIN = ("map_search_places", "weather_forecast_days")
LEAF = "discovery.poi_search.constrained_poi_search"
EXAMPLES = [Example(at, f"text {at}", "en") for at in range(6)] + [
    Example(at, f"文本{at}", "zh") for at in range(6, 9)
]


def novelist():
    """A client that answers with eight queries, never the same ones."""
    numbers = itertools.count(1)
    return FakeClient(
        lambda data: {"queries": [{"text": f"query  number {next(numbers)}", "primary": LEAF} for _ in range(8)]}
    )


def writer(client, chains=(CHAIN,)):
    return LlmWriter(client, "some-model", DOMAIN.taxonomy, DOMAIN, chains)


def test_orders_get_the_queries_they_asked_for():
    one, other = writer(novelist()).write([Order(CHAIN, 5, EXAMPLES[:6]), Order(CHAIN[::-1], 11, EXAMPLES[:6])])
    assert (len(one), len(other)) == (5, 11)
    assert {query.chain for query in one} == {CHAIN}
    assert one[0].text == "query number 1"  # white space is one space
    assert one[0].parents == (0, 1, 2, 3, 4, 5)
    assert writer(novelist()).meant(one[0]) == {LEAF}
    assert len({query.text for query in one + other}) == 16


def test_languages_have_the_share_of_the_examples():
    (written,) = writer(novelist()).write([Order(CHAIN, 9, EXAMPLES)])
    langs = [query.lang for query in written]
    assert (langs.count("en"), langs.count("zh")) == (6, 3)
    assert {parent for query in written if query.lang == "zh" for parent in query.parents} == {6, 7, 8}


def test_without_examples_it_writes_in_the_first_language_of_the_domain():
    (written,) = writer(novelist()).write([Order(CHAIN, 2)])
    assert [query.lang for query in written] == ["zh", "zh"]


def test_what_was_written_is_shown_and_not_kept_again():
    client = FakeClient(
        lambda data: {"queries": [{"text": text, "primary": LEAF} for text in ("same", "same", "new")]}
    )
    model = writer(client)
    first = model.write([Order(CHAIN, 3, EXAMPLES[:6])])
    second = model.write([Order(CHAIN, 3, EXAMPLES[:6], first=18)])
    assert [query.text for query in first[0]] == ["same", "new"]
    assert second == [[]]
    assert client.data[0]["written"] == [] and client.data[1]["written"] == ["same", "new"]
    assert client.requests[0].messages != client.requests[1].messages


def test_the_same_orders_make_the_same_requests():
    clients = [novelist(), novelist()]
    for client in clients:
        model = writer(client)
        model.write([Order(CHAIN, 5, EXAMPLES)])
        model.write([Order(CHAIN, 5, EXAMPLES, first=30)])
    assert [request.messages for request in clients[0].requests] == [
        request.messages for request in clients[1].requests
    ]


def test_a_failed_request_writes_nothing():
    def answer(data):
        raise UnansweredError("no")

    assert writer(FakeClient(answer)).write([Order(CHAIN, 3, EXAMPLES)]) == [[]]
    assert writer(FakeClient(answer)).write([]) == []


def test_instructions_name_the_chain_in_order_and_the_count():
    client = novelist()
    writer(client).write([Order(CHAIN, 3, EXAMPLES[:6])])
    told = client.requests[0].messages[0]["content"]
    assert "Write 3 different queries" in told
    assert "1. map_search_places\n2. weather_forecast_days\n" in told
    assert client.requests[0].request_id.startswith("synthesise.en.1/")


def test_possible_chains_are_those_observed_and_two_of_them_in_a_row():
    assert possible_chains([("a",), ("b", "a")]) == [("a",), ("a", "b"), ("b", "a")]
    assert possible_chains([]) == []


def written(*texts):
    return [Written(text, "en", CHAIN, (), ()) for text in texts]


def verdicts(by_text):
    def answer(data):
        good = {"natural": True, "solvable": True, "tools": list(CHAIN), "detail": None}
        return {
            "verdicts": [good | {"id": row["id"]} | by_text.get(row["text"], {}) for row in data["queries"][::-1]]
        }

    return answer


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ({}, None),
        ({"tools": [*CHAIN[::-1], CHAIN[0]]}, None),
        ({"natural": False, "detail": "a list of commands"}, "not natural: a list of commands"),
        ({"solvable": False}, "not solvable: no detail given"),
        ({"tools": ["web_search"]}, "needs web_search"),
        ({"tools": []}, "needs no tool"),
        ({"tools": [*CHAIN, "web_search"]}, f"needs {', '.join((*CHAIN, 'web_search'))}"),
    ],
)
def test_verdicts(said, fault):
    client = FakeClient(verdicts({"b": said}))
    found = LlmVerifier(client, DOMAIN).verify(written("a", "b", "c"))
    assert found == [None, fault, None]


def test_the_reader_is_not_told_what_was_meant():
    client = FakeClient(verdicts({}))
    LlmVerifier(client, DOMAIN).verify(written("a"))
    assert set(client.data[0]["queries"][0]) == {"id", "text"}


def test_what_was_not_judged_is_not_passed():
    (fault,) = LlmVerifier(FakeClient(lambda data: "prose"), DOMAIN).verify(written("a"))
    assert fault == "could not be verified: the answer cannot be used; the answer: prose"
