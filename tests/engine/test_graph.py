from __future__ import annotations

import pytest

from curation.engine.graph import Graph
from curation.engine.stage import Params, Stage
from curation.errors import CurationError


def stage(name, reads=(), makes=None):
    return Stage(name, lambda ctx: None, Params, reads=reads, makes=makes or (f"t_{name}",))


def graph(*stages):
    return Graph({s.name: s for s in stages})


def test_order_follows_reads_not_declaration():
    found = graph(stage("c", ("t_b",)), stage("a"), stage("b", ("t_a",)))
    assert found.order == ["a", "b", "c"]


def test_e5_a_table_nobody_makes_is_named():
    with pytest.raises(CurationError, match="stage b reads the table t_x, which no stage makes"):
        graph(stage("b", ("t_x",)))


def test_e5_a_cycle_is_named():
    with pytest.raises(CurationError, match="in a circle"):
        graph(stage("a", ("t_b",)), stage("b", ("t_a",)), stage("c", ("t_b",)))


def test_two_makers_of_one_table_are_named():
    with pytest.raises(CurationError, match="both make"):
        graph(stage("a", makes=("t",)), stage("b", makes=("t",)))


DIAMOND = graph(stage("a"), stage("b", ("t_a",)), stage("c", ("t_a",)), stage("d", ("t_b", "t_c")), stage("e"))


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("", ["a", "b", "c", "d", "e"]),
        ("b", ["b"]),
        ("t_b", ["b"]),
        ("+t_d", ["a", "b", "c", "d"]),
        ("c+", ["c", "d"]),
        ("+b+", ["a", "b", "d"]),
        ("b, e", ["b", "e"]),
    ],
)
def test_selection(expression, chosen):
    assert DIAMOND.select([expression]) == chosen


def test_unknown_selection_suggests():
    with pytest.raises(CurationError, match="no stage or table 't_dd'") as caught:
        DIAMOND.select(["+t_dd"])
    assert "t_d" in caught.value.hint


def test_the_products_stages_form_a_graph():
    from curation.pipeline import STAGES

    order = Graph(STAGES).order
    assert order.index("ingest") < order.index("lexical") < order.index("annotate") < order.index("pool")
