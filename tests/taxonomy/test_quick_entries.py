"""Entries read line by line are those that a YAML library reads, at the same lines."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from curation.domain.document import plain
from curation.taxonomy.quick_entries import load_entries

PIECES = [
    '- proposal: "aaaaaaaaaaaa"\n  # said\n  decision:\n  # name: "x"\n',
    "- proposal: 'bbbbbbbbbbbb'   # hand\n  decision: accept\n",
    "- {op: drop, node: x}\n",
    '- op: add\n  name: "北京"\n  description: >\n    folded\n    text\n  examples:\n    - "a"\n    - {"n": ["1"]}\n',
    '- proposal: "cccccccccccc"\n  decision: edit\n  target: null\n  examples: []\n\n# between\n\n',
    "- proposal: 123456789012\n  decision: yes\n  note: no\n  by: off\n",
    '- decision: reject\n  proposal: "dddddddddddd"\n  note: |\n    - not an entry\n    # text\n',
    "- a:\n    - b\n    - c: d\n  e: [x, y]\n",
    '-   proposal: "eeeeeeeeeeee"\n    decision: accept\n',
]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=6), st.sampled_from(["", "# head\n\n"]))
def test_any_mixture_of_layouts_is_read_as_the_library_reads_it(pieces, head):
    text = head + "".join(pieces)
    quick, slow = load_entries(text), YAML(typ="rt", pure=True).load(text)
    assert plain(quick) == plain(slow)
    for index, entry in enumerate(slow or []):
        assert quick.lc.data[index][0] == slow.lc.data[index][0]
        for key in entry:
            assert quick[index].lc.data[key][0] == entry.lc.data[key][0]


@pytest.mark.parametrize("text", ["- a: [\n", "- a: b\n  a: c\n", "- a: *b\n", "- a\n b: c: d\n"])
def test_a_mistake_is_told_as_the_library_tells_it(text):
    with pytest.raises(YAMLError) as slow:
        YAML(typ="rt", pure=True).load(text)
    with pytest.raises(YAMLError) as quick:
        load_entries(text)
    assert str(quick.value) == str(slow.value)


def test_50000_entries_take_seconds():
    text = "".join(f'- proposal: "{n:012x}"\n  decision: reject\n  by: "ann"\n' for n in range(50_000))
    start = time.process_time()
    assert len(load_entries(text)) == 50_000
    assert time.process_time() - start < 15  # the library needs about 40
