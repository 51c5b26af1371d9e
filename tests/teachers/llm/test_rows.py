"""Rows judged a few at a time: joined by id, asked again alone, never by position (L1, L3, L5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.teachers.llm.answers import VerdictAnswer, verdicts_answer
from curation.teachers.llm.client import open_client
from curation.teachers.llm.prompts import data_of
from curation.teachers.llm.rows import FaultyAnswerError, Form, Item, judge, requests_of
from tests.teachers.llm.answering import answering
from tests.teachers.llm.fake import FakeClient, UnansweredError

FORM = Form(verdicts_answer(("f",)), "verdicts", "queries", 4)


def items(texts, told="Judge."):
    return [Item({"text": text}, told, "verify.en.1") for text in texts]


def verdict(row, **changes):
    """The right verdict says the row's own text."""
    return {"id": row["id"], "natural": True, "solvable": True, "tools": ["f"], "detail": row["text"]} | changes


def right(data):
    return {"verdicts": [verdict(row) for row in data["queries"]]}


def said(item: Item, entry: VerdictAnswer) -> str:
    if entry.detail == "wrong":
        raise FaultyAnswerError("the detail is wrong")
    return str(entry.detail)


def run(answer, texts):
    client = FakeClient(answer)
    return client, judge(client, items(texts), FORM, said)


TEXTS = [f"query {number}" for number in range(23)]


def test_every_row_gets_its_own_judgement():
    client, judged = run(right, TEXTS)
    assert [one.value for one in judged] == TEXTS
    sizes = [len(data["queries"]) for data in client.data]
    assert sum(sizes) == 23 and max(sizes) <= 4 and min(sizes[:-1]) >= 2


@pytest.mark.parametrize("turn", [lambda rows: rows[::-1], lambda rows: rows[1:] + rows[:1]])
def test_l1_shuffled_answers_are_joined_by_id(turn):
    client, judged = run(lambda data: {"verdicts": turn(right(data)["verdicts"])}, TEXTS)
    assert [one.value for one in judged] == TEXTS
    assert all("again" not in request.request_id for request in client.requests)


def spoil(change):
    """Answers that are spoilt the first time and right when a row is asked again alone."""

    def answer(data):
        entries = right(data)["verdicts"]
        return {"verdicts": entries if "fault" in data["queries"][0] else change(entries)}

    return answer


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda entries: entries[1:], "the answer left it out"),
        (lambda entries: [*entries, entries[0] | {"detail": "other"}], "the answer has two entries for this id"),
        (lambda entries: [entries[0] | {"id": "nobody"}, *entries[1:]], "the answer left it out"),
        (lambda entries: [entries[0] | {"detail": "wrong"}, *entries[1:]], "the detail is wrong"),
    ],
)
def test_l1_missing_doubled_unknown_and_faulty_ones_are_asked_again_alone(change, fault):
    client, judged = run(spoil(change), TEXTS)
    assert [one.value for one in judged] == TEXTS
    again = [data["queries"] for data in client.data if "fault" in data["queries"][0]]
    assert again and all(len(rows) == 1 and rows[0]["fault"] == fault for rows in again)
    assert len(again) == len(client.requests) - len(again)  # one of each request


def test_l1_numbers_of_the_model_s_own_never_join_by_position():
    """A model that ignores the ids and counts would give every row its neighbour's judgement."""

    def counting(data):
        entries = right(data)["verdicts"][1:]
        return {"verdicts": [entry | {"id": str(at)} for at, entry in enumerate(entries)]}

    _, judged = run(counting, TEXTS)
    assert all(one.value is None and "left it out" in one.error for one in judged)


def test_the_same_entry_twice_is_one_entry():
    client, judged = run(lambda data: {"verdicts": right(data)["verdicts"] * 2}, TEXTS[:3])
    assert [one.value for one in judged] == TEXTS[:3] and len(client.requests) <= 2


def test_l3_a_failed_request_is_taken_apart_so_that_one_row_does_not_fail_its_neighbours():
    def answer(data):
        return "Sure! Here it is" if any(row["text"] == "query 5" for row in data["queries"]) else right(data)

    _, judged = run(answer, TEXTS)
    assert [one.value for one in judged] == [None if text == "query 5" else text for text in TEXTS]
    assert judged[5].error == "the answer cannot be used; the answer: Sure! Here it is"


def test_l3_one_row_in_thirty_that_breaks_the_form_fails_no_neighbour_and_stops_no_run(monkeypatch, tmp_path):
    """Each spoils a request of eight: counted by requests too many would fail, by rows few do."""
    texts = [f"query {number}" for number in range(120)]
    form = Form(FORM.answer, FORM.entries, FORM.rows, 8)

    def answer(data):
        entries = [verdict(row, tools=["f" if int(row["text"].split()[1]) % 30 else "g"]) for row in data["queries"]]
        if data["queries"][0]["text"] == "query 30" and "fault" in data["queries"][0]:
            entries = right(data)["verdicts"]
        return {"verdicts": entries}

    server = answering(monkeypatch, verdicts=answer)
    with server, open_client(server.settings(), tmp_path, "test") as client:
        judged = judge(client, items(texts), form, said)
        outcomes = client.calls()["outcome"].value_counts(sort=True).rows()
    lost = [text for text, one in zip(texts, judged, strict=True) if one.value is None]
    assert lost == ["query 0", "query 60", "query 90"]  # and 30, told of its fault, was mended
    assert all("tools.0: Input should be 'f'" in one.error for one in judged if one.error)
    assert dict(outcomes)["failed"] == 3 and dict(outcomes)["repaired"] >= 3
    again = [data_of(sent.body["messages"])["queries"] for sent in server.sent if not sent.repair]
    told = {row["text"]: row["fault"] for rows in again for row in rows if "fault" in row}
    assert told == dict.fromkeys([*lost, "query 30"], "tools.0: Input should be 'f'")


def test_what_fails_again_is_failed_with_its_raw_answer():
    _, judged = run(lambda data: {"verdicts": [verdict(row, detail="wrong") for row in data["queries"]]}, TEXTS[:2])
    assert all(one.value is None for one in judged)
    assert judged[0].error.startswith('the detail is wrong; the answer: {"id":"')


def test_a_row_that_failed_alone_is_not_asked_again():
    def answer(data):
        raise UnansweredError("the endpoint refused to answer")

    client, (judged,) = run(answer, TEXTS[:1])
    assert len(client.requests) == 1
    assert judged.error == "the endpoint refused to answer; there was no answer"


def test_l5_equal_rows_are_asked_once():
    client, judged = run(right, ["a", "b", "a", "a"])
    assert [one.value for one in judged] == ["a", "b", "a", "a"]
    assert sum(len(data["queries"]) for data in client.data) == 2


def test_no_rows_no_call():
    client, judged = run(right, [])
    assert judged == [] and client.requests == []


def test_rows_under_other_instructions_do_not_share_a_request():
    client = FakeClient(right)
    judge(client, items(["a", "b"]) + items(["c"], "判断。"), FORM, said)
    assert sorted(len(data["queries"]) for data in client.data) == [1, 2]


@given(st.permutations(TEXTS))
def test_t10_the_order_of_rows_changes_no_request(texts):
    assert rendered(texts) == rendered(TEXTS)


def rendered(texts):
    return {str(request.messages) for request in requests_of(items(texts), FORM)}


def test_rows_that_come_leave_most_requests_as_they_were():
    """So a grown log is answered from the cache but for what is new."""
    texts = [f"query {number}" for number in range(4000)]
    before, after = rendered(texts), rendered([*texts, *(f"new {number}" for number in range(40))])
    # 40 new rows change the requests they fall into, and now and then the one after; cuts by number would change all.
    assert len(before - after) <= 3 * 40 < len(before) / 10


def test_codes_are_longer_where_they_would_clash(monkeypatch):
    import curation.teachers.llm.rows as module

    monkeypatch.setattr(module, "_CODE", 1)
    for request in requests_of(items([f"q{number}" for number in range(400)]), FORM):
        codes = [row["id"] for row in data_of(request.messages)["queries"]]
        assert len(set(codes)) == len(codes)
