"""Decisions: what a person writes, what it comes to, and mistakes told with their lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import CurationError
from curation.taxonomy import operations as ops
from curation.taxonomy.decisions import Planner, operation_of, plan_of, read_decisions
from curation.taxonomy.editor import edited
from curation.taxonomy.proposal import Evidence, Part, Proposal, from_frame, to_frame
from tests.taxonomy.trees import START


def proposal(kind, node, **fields):
    return Proposal(source="refine", kind=kind, node_id=node, base_version="1", reason="It shows.", **fields)


ADD = proposal(
    "add", "music", name="pause", description="Wait.", evidence=(Evidence(1, "hold on"), Evidence(2, "wait: a #bit"))
)
MERGE = proposal("merge", "music.stop", target="music.play")
RENAME = proposal("rename", "music", name="sound")
SPLIT = proposal("split", "weather", parts=(Part("rain", "Wet."), Part("sun", "Dry.", ("is it dry",))))
ALL = {one.proposal_id: one for one in (ADD, MERGE, RENAME, SPLIT)}


def plan(tmp_path, text):
    path = tmp_path / "decisions.yaml"
    path.write_text(
        text.format(add=ADD.proposal_id, merge=MERGE.proposal_id, rename=RENAME.proposal_id, split=SPLIT.proposal_id)
    )
    return plan_of(START, path, read_decisions(path, ALL), ALL)


def test_accepted_edited_rejected_and_undecided(tmp_path):
    found = plan(
        tmp_path,
        """# mine
- proposal: "{rename}"
  decision: accept
- proposal: "{add}"
  decision: edit
  name: 等待
  examples: ["hold on"]
- proposal: "{merge}"
  decision: reject
  note: they differ
- proposal: "{split}"
  decision:
- {{op: drop, node: news.local}}
""",
    )
    assert found.operations == [
        ops.Rename(node="music", name="sound"),
        ops.Add(parent="sound", name="等待", description="Wait.", examples=("hold on",)),
        ops.Drop(node="news.local"),
    ]
    assert found.accepted == [RENAME.proposal_id, ADD.proposal_id]
    assert found.rejected == [MERGE]
    assert found.undecided == 1


def test_ids_are_those_of_the_version_before_whatever_happens_to_them():
    planner = Planner(START)
    planner.take(ops.Rename(node="music.play", name="start"))
    planner.take(ops.Rename(node="music.stop", name="play"))
    planner.take(ops.Describe(node="music.play", description="the one that was first"))
    assert planner.operations[-1].node == "music.start"
    planner.take(ops.Merge(nodes=("music.play",), into="music.stop"))
    with pytest.raises(CurationError, match=r"music\.play is taken away by another decision"):
        planner.take(ops.Drop(node="music.play"))
    planner.take(ops.Drop(node="weather"))
    made = ops.apply(START, planner.operations, "2")
    assert [node.node_id for node in made.children("music")] == ["music.play", "music.other"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('- proposal: "000000000000"\n  decision: accept\n', 1, "there is no proposal '000000000000'"),
        ('- proposal: "{add}"\n  decision: maybe\n', 2, "decision = 'maybe'"),
        ('- proposal: "{add}"\n  decison: accept\n', 2, "unknown key 'decison'\nDid you mean 'decision'"),
        ('- proposal: "{add}"\n  decision: accept\n  name: wait\n', 3, "accept takes .* this entry changes name"),
        ('- proposal: "{add}"\n  decision:\n  name: wait\n', 3, "nothing is decided, and this entry changes name"),
        ("- op: rename\n  node: music\n  name: music\n", 1, "rename: music has that name already"),
        ('- proposal: "{rename}"\n  decision: edit\n  name: music\n', 1, "rename: music has that name already"),
        ("- op: move\n  node: music.play\n  parent: music\n", 1, "move: music.play is below music already"),
        ("- op: describe\n  node: weather\n  description: All of weather.\n", 1, "is described so already"),
        ("- op: examples\n  node: weather\n", 1, "has these examples already"),
        ("- op: rename\n  node: wether\n  name: a\n", 1, "rename wether: there is no node"),
        ("- op: rename\n  node: a\n  naem: b\n", 3, "unknown key 'naem'\nDid you mean 'name'. The keys are op, "),
        ("- op: drop\n  node: a\n  why: b\n", 3, "unknown key 'why'\nThe keys are op, node"),
        ("- op: drop\n", 1, "there is no 'node'\nThe keys are op, node"),
        (
            "- op: split\n  node: weather\n  parts:\n  - {{name: a, descripton: b}}\n  - {{name: b}}\n",
            4,
            "unknown key 'descripton'\nDid you mean 'description'. The keys are name, description, examples",
        ),
        ('- proposal: "{add}"\n  decision: edit\n', 2, "edit changes nothing"),
        ('- proposal: "{add}"\n  decision: edit\n  name: a.b\n', 1, r"name = 'a\.b'"),
        ('- proposal: "{add}"\n  decision: edit\n  name: "  "\n', 1, "name = '  ': a name is made of letters"),
        ('- proposal: "{add}"\n  decision: edit\n  name: "a\\nb"\n', 1, r"name = 'a\\nb': a name is made of letters"),
        ('- proposal: "{add}"\n  decision: edit\n  name: "a\\u202eb"\n', 1, r"name = 'a\\u202eb': a name is made"),
        ("- op: rename\n  node: music\n  name: " + 10_000 * "x" + "\n", 3, "name = 'x{58}…: .* at most 100 "),
        ('- {{op: add, name: "a\\u0007", description: b}}\n', 1, r"name = 'a\\x07': a name is made of letters"),
        ('- proposal: "{add}"\n  decision: edit\n  name: play\n', 1, "music has a category 'play' already"),
        ('- proposal: "{add}"\n  decision: edit\n  target: nowhere\n', 1, "no node 'nowhere'"),
        ('- proposal: "{merge}"\n  decision: edit\n\n  name: x\n', 4, "a proposal to merge has no name"),
        ('- proposal: "{add}"\n- proposal: "{add}"\n  decision: reject\n', 2, "decided in line 1 already"),
        ("- proposal: 123456789012\n  decision: accept\n", 1, "put it in quotes"),
        ("- {{op: drop, node: music}}\n- proposal: \"{merge}\"\n  decision: accept\n", 2, "taken away by another"),
        ("- op: move\n  node: music\n  parent: music.play\n", 1, "circle"),
        ("- decision: accept\n", 1, "there is no 'proposal'"),
        ("- op: rename\n  name: x\n", 1, "there is no 'node'"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(tmp_path, text, line, said):
    with pytest.raises(CurationError, match=rf"decisions\.yaml, line {line}: .*{said}"):
        plan(tmp_path, text)


@pytest.mark.parametrize("decision", ["accept", "edit"])
def test_fields_that_say_what_the_proposal_says_change_nothing(tmp_path, decision):
    fields = f"  decision: {decision}\n  name: pause\n  description: Wait.\n"
    found = plan(tmp_path, '- proposal: "{add}"\n' + fields)
    assert found.operations == [operation_of(ADD)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('- proposal: "{add}"\n  decision：accept\n', "Line 2 has a full-width colon"),
        ('- proposal: "{add}"\n  decision:accept\n- {{op: drop, node: weather}}\n', "Line 2 needs a space after"),
        ('- proposal: "{add}"\n\tdecision: accept\n', "Line 2 is indented by a tab"),
        ("- {{op: add, parent: music，name: 夜市}}\n", "Line 1 has a full-width comma"),
        ("- op：drop\n  node: weather\n", "Line 1 has a full-width colon"),
        ("- {{op: drop, node: weather\n", "not valid YAML"),
    ],
)
def test_slips_of_the_hand_are_told_at_their_line(tmp_path, text, said):
    with pytest.raises(CurationError) as error:
        plan(tmp_path, text)
    assert said in str(error.value)


def test_a_file_of_windows_is_read_and_one_of_another_encoding_told(tmp_path):
    path = tmp_path / "decisions.yaml"
    path.write_bytes("\ufeff- op: rename\r\n  node: weather\r\n  name: 天气\r\n".encode())
    assert read_decisions(path, {})[0].what == ops.Rename(node="weather", name="天气")
    path.write_bytes("- op: rename\n  node: weather\n  name: 天气\n".encode("gbk"))
    with pytest.raises(CurationError, match="line 3: not UTF-8"):
        read_decisions(path, {})


def test_what_nobody_decided_of_a_proposal_that_is_gone_does_no_harm(tmp_path):
    found = plan(tmp_path, '- proposal: "000000000000"\n  decision:\n- proposal: "{rename}"\n  decision: accept\n')
    assert (found.stale, found.accepted, found.undecided) == (1, [RENAME.proposal_id], 3)


def test_no_file_decides_nothing(tmp_path):
    assert read_decisions(tmp_path / "none.yaml", ALL) == []


def test_entries_that_a_version_carries_out_already_are_left_out(tmp_path):
    path = tmp_path / "decisions.yaml"
    path.write_text(f'- proposal: "{ADD.proposal_id}"\n  decision: accept\n')
    assert read_decisions(path, {}, applied=[ADD.proposal_id]) == []


def test_every_kind_becomes_its_operation():
    assert operation_of(ADD).examples == ("hold on", "wait: a #bit")
    assert operation_of(MERGE, {"target": "weather"}) == ops.Merge(nodes=("music.stop",), into="weather")
    rows = proposal("merge", "other", target="music.play", evidence=(Evidence(1, "sing"),))
    assert operation_of(rows) == ops.Examples(node="music.play", add=("sing",), again=("other",))
    assert operation_of(SPLIT).parts[1].examples == ("is it dry",)
    assert operation_of(proposal("move", "weather", target=None)) == ops.Move(node="weather", parent=None)
    assert operation_of(proposal("drop", "weather")) == ops.Drop(node="weather")
    assert operation_of(proposal("describe", "weather", description="x")) == ops.Describe(
        node="weather", description="x"
    )
    with pytest.raises(CurationError, match="describe weather: description = None"):
        operation_of(proposal("describe", "weather"))


PLACES = {1: "weather", 2: "music.play", 99: "news.local"}


def test_a_new_leaf_sends_back_the_leaves_below_its_parent_that_hold_its_evidence():
    assert operation_of(ADD, None, PLACES).again == ("music.play",)
    assert operation_of(ADD, {"target": "news.sport"}, PLACES).again == ()
    assert operation_of(ADD, {"target": None}, PLACES).again == ("music.play", "weather")
    planner = Planner(START)
    planner.take(ops.Drop(node="weather"))
    planner.take(ops.Rename(node="music", name="sound"))
    planner.take(operation_of(ADD, {"target": None}, PLACES))
    assert planner.operations[-1].again == ("sound.play",)


@given(
    parent=st.sampled_from([None, *(node.node_id for node in START.nodes if not node.is_other)]),
    held=st.lists(st.sampled_from(START.leaves), min_size=2, max_size=2),
)
def test_only_rows_below_the_parent_of_a_new_leaf_are_annotated_again(parent, held):
    operation = operation_of(ADD, {"target": parent}, dict(enumerate(held, 1)))
    fates = edited(START, [operation]).carried()
    touched = {leaf for leaf, fate in fates.items() if fate.again}
    assert all(parent is None or leaf == parent or leaf.startswith(f"{parent}.") for leaf in touched)
    assert {leaf for leaf in held if parent is None or f"{leaf}.".startswith(f"{parent}.")} <= touched


def test_evidence_elsewhere_is_told_until_its_leaves_are_named(tmp_path):
    path = tmp_path / "decisions.yaml"

    def planned(more):
        path.write_text(f'- proposal: "{ADD.proposal_id}"\n{more}')
        return plan_of(START, path, read_decisions(path, ALL), ALL, PLACES)

    (told,) = planned("  decision: accept\n").elsewhere
    assert str(told) == (
        "music.pause: 1 query of the evidence shown lies outside music and keeps its label: weather (1). "
        "To have such leaves annotated again too, name them in its entry: again: [weather]."
    )
    found = planned("  decision: edit\n  again: [weather]\n")
    assert found.elsewhere == [] and found.operations[0].again == ("music.play", "weather")
    assert planned("  decision: edit\n  target: null\n").elsewhere == []
    with pytest.raises(CurationError, match=r"line 1: .*nowhere"):
        planned("  decision: edit\n  again: [nowhere]\n")
    with pytest.raises(CurationError, match="line 3: accept takes a proposal as it is, and this entry changes again"):
        planned("  decision: accept\n  again: [weather]\n")


@pytest.mark.parametrize(
    "other",
    [
        "- {{op: add, parent: music, name: pause, description: Wait.}}\n",
        '- proposal: "{add}"\n  decision: accept\n',
        "- {{op: describe, node: music.play, description: Sound.}}\n",
        "- {{op: rename, node: music.play, name: sing}}\n",
        "- {{op: move, node: weather, parent: music}}\n",
        "- {{op: merge, nodes: [weather], into: music.play}}\n",
        "- {{op: split, node: music.play, parts: [{{name: a, description: A.}}, {{name: b, description: B.}}]}}\n",
    ],
)
def test_what_another_entry_works_on_is_not_dropped_whichever_comes_first(tmp_path, other):
    drop = "- {{op: drop, node: music}}\n"
    with pytest.raises(CurationError, match=r"music is dropped, with .*another entry works on"):
        plan(tmp_path, other + drop)
    with pytest.raises(CurationError, match=r"taken away by another decision|there is no node"):
        plan(tmp_path, drop + other)


def test_what_is_moved_out_first_survives_a_drop(tmp_path):
    found = plan(tmp_path, "- {{op: move, node: music.play, parent: news}}\n- {{op: drop, node: music}}\n")
    assert [operation.op for operation in found.operations] == ["move", "drop"]


def test_the_parent_of_a_new_leaf_goes_by_either_name(tmp_path):
    for name in ("target", "parent"):
        found = plan(tmp_path, '- proposal: "{add}"\n  decision: edit\n  ' + name + ": news\n")
        assert found.operations[0].parent == "news"


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("again: true", "again = True: a list is wanted"),
        ('name: ""', r"line 1: add music: name = ''"),
        ("target: weather\n  name: a b", "add weather: name = 'a b'"),
    ],
)
def test_a_field_that_cannot_be_is_told(tmp_path, field, message):
    with pytest.raises(CurationError, match=message):
        plan(tmp_path, '- proposal: "{add}"\n  decision: edit\n  ' + field + "\n")


def test_proposals_survive_the_table_with_their_ids():
    frame = to_frame([SPLIT, ADD, ADD, MERGE])
    assert frame["proposal_id"].to_list() == sorted({ADD.proposal_id, MERGE.proposal_id, SPLIT.proposal_id})
    back = from_frame(frame)
    assert back[ADD.proposal_id] == ADD
    assert back[SPLIT.proposal_id].parts == SPLIT.parts
    assert all(one.proposal_id == key for key, one in back.items())


def test_the_id_is_of_the_content_and_the_gist_of_what_is_asked():
    other = proposal("merge", "music.stop", target="music.play", evidence=(Evidence(9, "x"),), purity=0.5)
    assert other.proposal_id != MERGE.proposal_id
    assert other.gist == MERGE.gist == {"kind": "merge", "node": "music.stop", "target": "music.play"}
