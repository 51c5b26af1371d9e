"""The decisions file edited as text: what a YAML reader makes of it is what was decided, the rest keeps its bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from curation.review_page.decisions_text import blank_known, edit_decisions, entry_text

IDS = [f"{i:012d}" for i in range(3)] + ["12e456789012", "abcdef012345", "000000000017"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.fixed_dictionaries(
    {"decision": st.sampled_from(["accept", "reject", "edit"])},
    optional={
        "name": TEXTS,
        "description": TEXTS | st.sampled_from(["yes", "null", "- x", "a: b", "# no comment", "北京\n\t\"'\\"]),
        "target": st.none() | TEXTS,
        "examples": st.lists(TEXTS, max_size=3),
        "by": TEXTS,
        "parts": st.lists(
            st.fixed_dictionaries({"name": TEXTS, "examples": st.lists(TEXTS, max_size=2)}), max_size=2
        ),
    },
)
CHANGES = st.dictionaries(st.sampled_from(IDS), st.none() | VALUES, min_size=1, max_size=3)


def parsed(text):
    """The file as a YAML reader sees it, by proposal."""
    rows = YAML(typ="safe", pure=True).load(text) or []
    found = {row.pop("proposal"): row for row in rows}
    assert len(found) == len(rows)
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(CHANGES, min_size=1, max_size=8))
def test_after_any_edits_a_yaml_reader_reads_what_was_decided(steps):
    text, values = "", {}
    for changes in steps:
        values = {key: value for key, value in (values | changes).items() if value is not None}
        text = edit_decisions(text, changes)
        assert parsed(text) == values
        rest, same = blank_known(text, values)
        assert same == set(values)
        assert parsed(rest) == {}
        assert rest.count("\n") == text.count("\n")


HAND = """\
# My review
- proposal: 000000000017  # told by ann
  decision: accept

# this one is odd
- decision: reject
  proposal: 'abcdef012345'
  note: >-
    folded
    text
# the end
"""


def test_comments_order_and_the_writing_of_other_entries_stay():
    values = {"000000000017": {"decision": "reject"}, "abcdef012345": {"decision": "reject", "note": "folded text"}}
    text = edit_decisions(HAND, {"000000000017": values["000000000017"]})
    assert text == HAND.replace(
        "- proposal: 000000000017  # told by ann\n  decision: accept\n",
        '- proposal: "000000000017"\n  decision: reject\n',
    )
    gone = edit_decisions(text, {"abcdef012345": None})
    assert gone.endswith("# this one is odd\n# the end\n")
    assert set(parsed(gone)) == {"000000000017"}


@pytest.mark.parametrize(
    "text", ['[{proposal: "000000000017", decision: accept}]\n', '  - proposal: "000000000017"\n']
)
def test_a_file_laid_out_in_another_way_is_refused_and_not_written_over(text):
    with pytest.raises(ValueError, match="margin"):
        edit_decisions(text, {"abcdef012345": {"decision": "reject"}})
    assert blank_known(text, {"000000000017": {}}) == (text, set())


def test_only_entries_that_were_edited_by_hand_are_left_to_read_at_their_lines():
    values = {key: {"decision": "accept"} for key in IDS}
    text = edit_decisions("", values)
    edited = text.replace(entry_text(IDS[3], values[IDS[3]]), f'- proposal: "{IDS[3]}"\n  decision: reject\n')
    rest, same = blank_known(edited, values)
    assert same == set(IDS) - {IDS[3]}
    assert parsed(rest) == {IDS[3]: {"decision": "reject"}}
    assert rest.split("\n").index("  decision: reject") == edited.split("\n").index("  decision: reject")


OWN = """\
- op: rename
  node: discovery.area_summaries
  name: profiles
- {op: drop, node: rules}
- proposal: "000000000017"
  # Add camping under the root: 42 rows
  #   周末去哪里露营
  decision:
"""


def test_operations_of_ones_own_and_what_is_said_of_a_proposal_stay():
    accept = {"000000000017": {"decision": "accept"}}
    text = edit_decisions(OWN, accept)
    assert text == OWN.replace("  decision:\n", "  decision: accept\n")
    back = edit_decisions(text, {"000000000017": None})
    assert back == OWN
    assert edit_decisions(back, accept) == text
    assert blank_known(text, accept)[1] == set()
