"""Seeds files: what a person edits comes back, and every slip is told with its line."""

from __future__ import annotations

import json

import pytest

from curation.domain.load import load_taxonomy
from curation.errors import CurationError
from curation.teachers.seeds_file import delimiter_of, other_columns, read_seeds_file

TREE = """
title: Tiny
languages: [en, zh]
version: "1"
taxonomy:
  music:
    description: Music.
    children:
      play: {description: Start.}
      stop: {description: End.}
  weather: {description: Rain and sun.}
"""


@pytest.fixture
def taxonomy(tmp_path):
    (tmp_path / "taxonomy.yaml").write_text(TREE)
    return load_taxonomy(tmp_path / "taxonomy.yaml")


@pytest.fixture
def read(tmp_path, taxonomy):
    def reader(content, name="mine.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_seeds_file(path, taxonomy)

    return reader


def test_csv_with_lists_quotes_and_a_byte_order_mark(read):
    out = read(
        "\ufefftext,lang,tags,primary,secondary,reason,labelled_by\n"
        '"play ""Jolene"", then stop",en,music; artist ,music.play,music.stop|weather,,ana\n'
        "\n"
        "会下雨吗,,天气；雨,,,,\n"
    )
    assert out.drop("query_id", "version", "place").rows(named=True) == [
        {
            "text": 'play "Jolene", then stop',
            "lang": "en",
            "tags": ["music", "artist"],
            "primary": "music.play",
            "secondary": ["music.stop", "weather"],
            "reason": None,
            "labelled_by": "ana",
        },
        {
            "text": "会下雨吗",
            "lang": None,
            "tags": ["天气", "雨"],
            "primary": None,
            "secondary": [],
            "reason": None,
            "labelled_by": None,
        },
    ]


def test_jsonl_takes_lists_as_they_are(read):
    record = {"text": "rain?", "primary": "weather", "secondary": ["music.play"], "reason": "missing_info"}
    out = read(json.dumps(record) + "\n\n" + json.dumps({"text": "stop", "tags": "end"}), "mine.jsonl")
    assert out["secondary"].to_list() == [["music.play"], []]
    assert out["reason"].to_list() == ["missing_info", None]
    assert out["tags"].to_list() == [[], ["end"]]


def test_yaml_is_the_format_of_a_domain(read):
    out = read("seeds: {weather: {en: [will it rain]}}\n", "mine.yaml")
    assert out.select("text", "lang", "primary").rows() == [("will it rain", "en", "weather")]


def test_equal_rows_count_once_and_different_labels_are_a_mistake(read):
    assert read("text,primary\nRain?,weather\nrain,weather\n").height == 1
    with pytest.raises(CurationError, match=r"line 3: the same query as in line 2, with other labels"):
        read("text,primary\nrain,weather\nRain!,music.play\n")


@pytest.mark.parametrize(
    ("content", "message", "hint"),
    [
        ("text,primary\n\nrain,wether\n", "line 3: 'wether' is no leaf", "weather"),
        ("text,primary\nsing,play\n", "line 2: 'play' is no leaf", "Did you mean music.play?"),
        ("text,primary\nsing,music\n", "line 2: 'music' is no leaf", "music"),
        ("text,secondary\nsing,weather\n", "line 2: secondary leaves and reasons need a primary", "primary"),
        ("text,primary,reason\nsing,weather,no idea\n", "line 2: 'no idea' is no reason", "missing_tool"),
        ("text,lang\nsing,English\n", "line 2: 'English' is no language", "ISO 639-1"),
        ("text,primry\nsing,weather\n", "line 1: unknown column 'primry'", "Did you mean 'primary'?"),
        ("text;Primary\nsing;weather\n", "line 1: unknown column 'Primary'", "Did you mean 'primary'?"),
        ("query,primary\nsing,weather\n", "line 1: there is no column `text`", "text, lang"),
        ("primary\nweather\n", "line 1: there is no column `text`", "text, lang"),
        ("text,text\na,b\n", "line 1: the column name 'text' stands twice", ""),
        ("text,primary\nsing,weather,twice\n", "line 2: 3 fields under 2", "with commas into double quotes"),
        ("text;primary\na;b;weather\n", "line 2: 3 fields under 2", "with semicolons into double quotes"),
        ('text,primary\n"two\nlines",weather\n,weather\n', "line 4: the row has no text", ""),
        ("text\n\u200b\n", "nothing visible", ""),
        ('text\n"sing\n', "not valid CSV", ""),
        ("", "is empty", "text, lang"),
        (b"text\ncaf\xe9\n", "line 2: not UTF-8", "UTF-8"),
        ("text,primary\n你好,weather\n".encode("utf-16"), "line 1: not UTF-8", "CSV UTF-8"),
    ],
)
def test_slips_in_csv_are_told_with_their_line(read, content, message, hint):
    with pytest.raises(CurationError) as error:
        read(content)
    assert message in error.value.message
    assert hint in (error.value.hint or "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"text": }\n', "line 2: not valid JSON"),
        ('["text"]\n', "line 1: not a JSON object"),
        ('{"text": 3}\n', "line 1: text must be a text, not 3"),
        ('{"text": "a", "tags": [1]}\n', "line 1: tags must be a list of texts"),
        ('{"text": "a", "tags": "[broken"}\n', "line 1: tags begins like a JSON list"),
    ],
)
def test_slips_in_jsonl_are_told_with_their_line(read, content, message):
    with pytest.raises(CurationError) as error:
        read(content, "mine.jsonl")
    assert message in error.value.message


def test_a_file_that_is_not_there_or_of_another_kind(read, tmp_path, taxonomy):
    with pytest.raises(CurationError, match="no seeds file"):
        read_seeds_file(tmp_path / "nowhere.csv", taxonomy)
    with pytest.raises(CurationError, match=r"ends in \.csv, \.jsonl or \.yaml"):
        read("text\n", "mine.xlsx")


def test_two_labellers_may_differ_in_rows_of_their_own(read):
    out = read("text,primary,labelled_by\nplay it,music.play,ana\nPLAY IT,music.stop,ben\nplay it,music.play,ana\n")
    assert out.select("primary", "labelled_by").rows() == [("music.play", "ana"), ("music.stop", "ben")]
    assert out["query_id"].n_unique() == 1
    with pytest.raises(CurationError, match=r"line 3: the same query as in line 2"):
        read("text,primary,labelled_by\nplay it,music.play,ana\nplay it,music.stop,ana\n")


def test_a_directory_is_all_its_files_by_whom_they_are_named_after(tmp_path, taxonomy):
    folder = tmp_path / "labels"
    folder.mkdir()
    with pytest.raises(CurationError, match="has no seeds file"):
        read_seeds_file(folder, taxonomy)
    (folder / "ben.jsonl").write_text('{"text": "play it", "primary": "music.stop"}\n')
    (folder / "ana.csv").write_text("text,primary,labelled_by\nplay it,music.play,\nrain?,weather,eve\n")
    (folder / "notes.txt").write_text("not seeds")
    out = read_seeds_file(folder, taxonomy)
    assert out.select("text", "labelled_by").rows() == [("play it", "ana"), ("rain?", "eve"), ("play it", "ben")]


def test_labels_speak_of_the_first_version_that_has_their_leaves(tmp_path, taxonomy):
    (tmp_path / "taxonomy.yaml").write_text(TREE.replace('"1"', '"2"').replace("stop:", "halt:"))
    newer = load_taxonomy(tmp_path / "taxonomy.yaml")
    path = tmp_path / "mine.csv"
    path.write_text("text,primary\nplay,music.play\nstop,music.stop\nhalt,music.halt\n")
    assert read_seeds_file(path, [newer, taxonomy])["version"].to_list() == ["2", "1", "2"]
    path.write_text("text,primary,secondary\nboth,music.stop,music.halt\n")
    with pytest.raises(CurationError, match=r"line 2: 'music.stop' is no leaf"):
        read_seeds_file(path, [newer, taxonomy])
    old = tmp_path / "mine.yaml"
    old.write_text("seeds: {music.stop: {en: [stop it]}}")
    assert read_seeds_file(old, [newer, taxonomy])["version"].to_list() == ["1"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_what_a_spreadsheet_saves_is_read_alike(read, tmp_path, taxonomy, delimiter, mark, end):
    import csv
    import io

    rows = [["备注", "text", "tags", "primary", ""], ["hm; so", "a, b; c\td", "x;y", "weather", ""], [""] * 5]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows(rows)
    found = read(mark + out.getvalue())
    assert found.select("text", "tags", "primary", "place").rows() == [
        ("a, b; c\td", ["x", "y"], "weather", "line 2")
    ]
    assert other_columns(tmp_path / "mine.csv") == ["备注"]


def test_the_first_line_says_what_parts_fields():
    assert delimiter_of('"a;b",text\n') == ","
    assert delimiter_of("text;note, too\n") == ";"
    assert delimiter_of("text\na;b\n") == ","
    assert delimiter_of("query;primary;note\n") == ";"  # so that the error is about the column


def test_places_name_their_file_in_a_directory(tmp_path, taxonomy):
    (tmp_path / "ana.csv").write_text("text,primary\n\nplay it,music.play\n")
    (tmp_path / "ben.csv").write_text("text,primary\nrain?,weather\n")
    (tmp_path / "taxonomy.yaml").unlink()
    assert read_seeds_file(tmp_path, taxonomy)["place"].to_list() == ["ana.csv, line 3", "ben.csv, line 2"]
