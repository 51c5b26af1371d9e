"""Required literals: no match without one of each set, no match that begins elsewhere."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.domain import load_domain
from curation.teachers.embedded.literals import LiteralsError, literals


@pytest.mark.parametrize(
    ("regex", "required", "first"),
    [
        ("abc", [{"abc"}], {"a"}),
        ("ab?c", [{"abc", "ac"}], {"a"}),
        ("(?:foo|bar)+x", [{"foox", "barx"}, {"foo", "bar"}], {"f", "b"}),
        (r"\d+\s*(?:km|miles)", [{"km", "miles"}, set("0123456789")], set("0123456789")),
        (r"(?<!x)a(?=b)", [{"a"}], {"a"}),
        (r".*", [], None),
        (r"(?P<n>公里|米)以?内", [{"公里内", "公里以内", "米内", "米以内"}], {"公", "米"}),
        ("[^a]b", [{"b"}], None),
        ("(?:a|)", [], None),
        (r"x{2}y{1,}", [{"xxy"}], {"x"}),
    ],
)
def test_analysis(regex: str, required: list[set[str]], first: set[str] | None) -> None:
    found = literals(regex)
    assert [set(strings) for strings in found.required] == required
    assert (None if found.first is None else set(found.first)) == first


def test_nothing_is_required_of_what_matches_anything() -> None:
    assert literals(".*").required == ()
    assert literals("(?:abc)?").required == ()


@pytest.mark.parametrize("regex", ["(", ")", "[a", r"\1", "(?(1)a)", "(?P=x)", "[a-\\d]"])
def test_syntax_outside_the_subset_is_refused(regex: str) -> None:
    with pytest.raises(LiteralsError):
        literals(regex)


PIECES = st.recursive(
    st.sampled_from(["a", "b", "公", "里", "[ab]", "[^a]", r"\d", r"\s", ".", r"\b", "(?=a)", "(?<!b)"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda options: f"(?:{'|'.join(options)})"),
        st.tuples(inner, st.sampled_from(["?", "*", "+", "{2}", "{1,2}", "+?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(PIECES, st.text("ab公里 12", max_size=8))
def test_every_match_holds_and_begins_as_said(regex: str, text: str) -> None:
    found = literals(regex)
    for match in re.finditer(regex, text, re.ASCII):
        for strings in found.required:
            assert any(string in match[0] for string in strings)
        if found.first is not None:
            assert match[0][0] in found.first


def test_every_shipped_pattern_can_be_looked_for_by_its_literals() -> None:
    domain = load_domain("map_travel")
    dimensions = [*domain.dimensions.values(), domain.wording.ignore]
    assert [pattern for each in dimensions for pattern in each.patterns if not literals(pattern.regex).required] == []
