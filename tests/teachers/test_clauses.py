"""Where a second wish may begin."""

from __future__ import annotations

import pytest

from curation.teachers.embedded.clauses import MOST, split_clauses


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("帮我找家俄餐厅然后导航过去", ["帮我找家俄餐厅", "导航过去"]),
        ("今天天气怎么样，路上堵不堵？", ["今天天气怎么样", "路上堵不堵"]),
        ("查一下航班再导航去机场", ["查一下航班", "导航去机场"]),
        ("好的再见了朋友们", []),
        ("will it rain tomorrow and then take me home", ["will it rain tomorrow", "take me home"]),
        ("salt and pepper", []),
        ("a sandy beach", []),
        ("嗯，导航去车站", []),
        ("", []),
    ],
)
def test_clauses_of_a_text(text, clauses):
    owner, found = split_clauses([text])
    assert found == clauses
    assert owner.tolist() == [0] * len(clauses)


def test_clauses_know_their_text_and_of_many_the_first_are_given():
    owner, found = split_clauses(["one thing", "第一件事情，第二件事情", "，".join(["又一件事情"] * 9)])
    assert owner.tolist() == [1, 1] + [2] * MOST
    assert found[:2] == ["第一件事情", "第二件事情"]
