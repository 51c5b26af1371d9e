from __future__ import annotations

import polars as pl
import pytest

from curation.engine.shelf import Shelf

FRAME = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "关灯"]})


def test_tables_come_back_whole_by_column_and_by_section(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.put(0, {"groups": FRAME, "rows": FRAME}, {"rows": 3}, {"groups": [2, 0, 1]})
    assert shelf.take(0, "groups").equals(FRAME)
    assert shelf.take(0, "rows", ["b"]).equals(FRAME.select("b"))
    sections = [shelf.take(0, "groups", ["b", "a"], [section]) for section in range(3)]
    assert [len(section) for section in sections] == [2, 0, 1]
    assert pl.concat(sections).select("a", "b").equals(FRAME)
    assert shelf.take(0, "groups", sections=range(3)).equals(FRAME)


def test_an_empty_table_keeps_its_columns(tmp_path):
    shelf = Shelf(tmp_path)
    shelf.put(0, {"rows": FRAME.clear()}, None, {"rows": [0, 0]})
    assert shelf.take(0, "rows").schema == FRAME.schema
    assert shelf.take(0, "rows", sections=[1]).schema == FRAME.schema


def test_a_new_shelf_takes_up_what_is_whole_and_drops_the_rest(tmp_path):
    first = Shelf(tmp_path)
    for number in (0, 1, 3):
        first.put(number, {"rows": FRAME}, {"number": number}, {})
    (tmp_path / "000002.rows").write_bytes(b"half")
    (tmp_path / ".000002.rows").write_bytes(b"half")
    first.put_note("other", [1])
    second = Shelf(tmp_path)
    assert second.notes == {0: {"number": 0}, 1: {"number": 1}}
    assert second.note("other") == [1] and second.note("none") is None
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "000000.json", "000000.rows", "000001.json", "000001.rows", "other.json"
    ]  # fmt: skip


def test_the_note_is_written_last(tmp_path, monkeypatch):
    shelf = Shelf(tmp_path)
    monkeypatch.setattr(Shelf, "_write", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        shelf.put(0, {"rows": FRAME}, {}, {})
    assert Shelf(tmp_path).notes == {}
