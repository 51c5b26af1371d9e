"""A domain directory loads; every mistake is told with file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from curation.domain import domain_fingerprint, load_domain, load_seeds, load_taxonomy
from curation.errors import CurationError

TAXONOMY = """\
title: Songs and lights
languages: [en, de]
version: "1"
taxonomy:
  music:
    description: Anything heard.
    children:
      play: Starts a song.
      stop: Ends a song.
  lights: Anything seen.
"""
SEEDS = """\
seeds:
  music.play:
    en:
      - play something
      - {text: play and dim, secondary: [lights]}
    de: [spiel etwas]
  lights:
    en: [lights on]
negatives:
  - reason: missing_info
    primary: music.other
    en: [the other one]
"""


def write(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
    return directory


def failure(directory: Path) -> CurationError:
    with pytest.raises(CurationError) as caught:
        load_domain(directory)
    return caught.value


def test_the_shipped_domain_is_that_of_the_reference() -> None:
    domain = load_domain("map_travel")
    nodes = [node for node in domain.taxonomy.nodes if not node.is_other]
    assert sum(node.level == 1 for node in nodes) == 5
    assert sum(node.level == 2 for node in nodes) == 16
    assert sum(node.is_leaf for node in nodes) == 30
    assert {node.level for node in nodes if node.is_leaf} == {2, 3}
    assert all(len(node.examples) == 6 for node in nodes)
    assert len({example for node in nodes for example in node.examples}) == 6 * len(nodes)
    assert (domain.name, domain.title, domain.languages) == ("map_travel", "Map and travel", ("zh", "en"))


def test_the_shipped_tools_require_what_the_reference_requires() -> None:
    required = {name: tool.required for name, tool in load_domain("map_travel").tools.items()}
    assert required == {
        "map_search_places": ("query",),
        "map_compute_routes": ("origin", "destination"),
        "map_search_along_route": ("query", "origin", "destination"),
        "map_search_central_places": ("query", "origins"),
        "map_search_ranking_list": ("query", "region"),
        "travel_search_flights": ("origin", "destination", "date"),
        "travel_search_trains": ("origin", "destination", "date"),
        "weather_current_conditions": ("location",),
        "weather_forecast_days": ("location", "date"),
        "web_search": ("query",),
    }


def test_the_shipped_tools_are_plain_json_schema() -> None:
    import json

    tools = load_domain("map_travel").tools
    assert len({tool.group for tool in tools.values()}) == 4
    for tool in tools.values():
        assert json.loads(json.dumps(tool.parameters)) == tool.parameters
        for argument in tool.parameters["properties"].values():
            assert argument["description"] and type(argument["type"]) is str


def test_a_domain_of_taxonomy_and_seeds_alone_loads(tmp_path: Path) -> None:
    domain = load_domain(write(tmp_path, taxonomy=TAXONOMY, seeds=SEEDS))
    assert (domain.name, domain.title, domain.languages) == (tmp_path.name, "Songs and lights", ("en", "de"))
    assert not domain.tools and not domain.dimensions and not domain.plans and not domain.grammar
    assert [(seed.text, seed.lang, seed.primary, seed.secondary, seed.reason) for seed in domain.seeds] == [
        ("play something", "en", "music.play", (), None),
        ("play and dim", "en", "music.play", ("lights",), None),
        ("spiel etwas", "de", "music.play", (), None),
        ("lights on", "en", "lights", (), None),
        ("the other one", "en", "music.other", (), "missing_info"),
    ]


def test_title_and_languages_may_be_left_out(tmp_path: Path) -> None:
    short = 'version: "1"\ntaxonomy: {a: x, b: y}\n'
    domain = load_domain(write(tmp_path, taxonomy=short, seeds="seeds: {b: {fr: [salut]}}\n"))
    assert (domain.title, domain.languages, domain.taxonomy.leaves) == (tmp_path.name, ("fr",), ("a", "b", "other"))


def test_names_alone_make_a_taxonomy(tmp_path: Path) -> None:
    write(tmp_path, taxonomy='version: "1"\ntaxonomy: [play_music, set_alarm]\n')
    nodes = load_taxonomy(tmp_path / "taxonomy.yaml").nodes
    assert [(node.node_id, node.description) for node in nodes[:2]] == [
        ("play_music", "play music"),
        ("set_alarm", "set alarm"),
    ]


def test_taxonomies_may_be_deep_and_ragged(tmp_path: Path) -> None:
    text = 'version: "1"\ntaxonomy:\n  a: x\n'
    for level, name in enumerate("bcdefg", start=1):
        indent = "  " * (2 * level - 1)
        text += f"{indent}{name}:\n{indent}  description: x\n{indent}  children:\n{indent}    leaf{level}: x\n"
    write(tmp_path, taxonomy=text)
    taxonomy = load_taxonomy(tmp_path / "taxonomy.yaml")
    assert taxonomy.node("b.c.d.e.f.g.leaf6").level == 7
    assert taxonomy.node("b.leaf1").is_leaf
    assert taxonomy.other_of("b.c.d.gone") == "b.c.d.other"


def test_the_same_bytes_have_the_same_fingerprint(tmp_path: Path) -> None:
    directory = write(tmp_path, taxonomy=TAXONOMY, seeds=SEEDS)
    before = domain_fingerprint(directory)
    (directory / "notes.txt").write_text("not a part of the domain", encoding="utf-8")
    assert load_domain(directory).fingerprint == domain_fingerprint(directory) == before
    write(directory, seeds=SEEDS + "# a comment\n")
    assert load_domain(directory).fingerprint == domain_fingerprint(directory) != before


TOOLS = """\
tools:
  g:
    t:
      description: x
      parameters:
        type: object
        properties: {a: {type: string}}
        required: [a]
"""
DIMENSIONS = """\
fragments:
  en: {n: '[0-9]+'}
dimensions:
  d:
    description: x
    lexicon:
      en:
        v: [w]
    patterns:
      en:
        - {value: '{n}', regex: '(?P<n><<n>>)'}
"""


def test_fragments_take_their_place_in_patterns(tmp_path: Path) -> None:
    domain = load_domain(write(tmp_path, taxonomy=TAXONOMY, tools=TOOLS, dimensions=DIMENSIONS))
    assert domain.dimensions["d"].patterns[0].regex == "(?P<n>(?:[0-9]+))"
    assert domain.tools["t"].required == ("a",)


@pytest.mark.parametrize(
    ("file", "old", "new", "line", "words"),
    [
        ("seeds", "play something", '""', 4, "is empty"),
        ("seeds", "play something", "12306", 4, "does not read as text"),
        ("seeds", "play something", "lights  ON", 8, "already a seed, in line 4"),
        ("seeds", "  music.play:", "  music.plya:", 2, "Did you mean music.play?"),
        ("seeds", "  music.play:", "  music:", 2, "has children"),
        ("seeds", "[lights]", "[light]", 5, "unknown leaf 'light'"),
        ("seeds", "[lights]", "[music.play]", 5, "given twice"),
        ("seeds", "secondary", "secondry", 5, "unknown key 'secondry'"),
        ("seeds", "    de:", "    fr:", 6, "unknown language 'fr'"),
        ("seeds", "missing_info", "missing", 10, "unknown reason 'missing'"),
        ("seeds", "    primary: music.other\n", "", 10, "no 'primary'"),
        ("seeds", "negatives:", "negative:", 9, "unknown key 'negative'"),
        ("seeds", "lights on]", "lights on", 9, "not valid YAML"),
        ("taxonomy", '"1"', "1.0", 3, "Put it in quotes"),
        ("taxonomy", 'version: "1"\n', "", None, "no 'version'"),
        ("taxonomy", "play: Starts", "other: Starts", 8, "never written"),
        ("taxonomy", "play: Starts", "play.now: Starts", 8, "not a name"),
        ("taxonomy", "stop: Ends", "play: Ends", 9, "duplicate key"),
        ("taxonomy", "    description: Anything heard.\n", "", 6, "no 'description'"),
        ("taxonomy", "description: Anything heard.", "descripton: x", 6, "unknown key 'descripton'"),
        ("taxonomy", "[en, de]", "[en, english]", 2, "not a language code"),
        ("tools", "required: [a]", "required: [b]", 8, "requires 'b'"),
        ("tools", "type: object", "type: array", 5, "type: object"),
        ("tools", "    t:", "    my tool:", 3, "not a name for a tool"),
        ("dimensions", "<<n>>", "<<m>>", 11, "<<m>>"),
        ("dimensions", "v: [w]", "v: w", 8, "must be a list"),
        ("dimensions", "regex:", "regexp:", 11, "unknown key 'regexp'"),
        ("dimensions", "    description: x", "    description: x\n    negatable: 3", 6, "true or false"),
    ],
)
def test_mistakes_are_told_with_file_and_line(
    tmp_path: Path, file: str, old: str, new: str, line: int | None, words: str
) -> None:
    files = {"taxonomy": TAXONOMY, "seeds": SEEDS, "tools": TOOLS, "dimensions": DIMENSIONS}
    assert old in files[file]
    files[file] = files[file].replace(old, new, 1)
    error = failure(write(tmp_path, **files))
    place = re.escape(str(tmp_path / f"{file}.yaml")) + ("" if line is None else f", line {line}:")
    assert re.match(place, error.message), error
    assert words in str(error)


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(CurationError, match="no domain 'nowhere'"):
        load_domain("nowhere")
    assert "no taxonomy.yaml" in failure(tmp_path).message
    write(tmp_path, taxonomy=TAXONOMY)
    (tmp_path / "seeds.yml").write_text(SEEDS, encoding="utf-8")
    assert "Rename it to seeds.yaml" in str(failure(tmp_path))


def test_bytes_that_are_not_utf8_are_told(tmp_path: Path) -> None:
    write(tmp_path, taxonomy=TAXONOMY)
    (tmp_path / "seeds.yaml").write_bytes("seeds: {lights: {en: [caf\xe9]}}".encode("latin-1"))
    assert "not UTF-8" in failure(tmp_path).message


def test_a_seeds_file_of_the_user_is_read_by_itself(tmp_path: Path) -> None:
    write(tmp_path, taxonomy=TAXONOMY, mine="seeds: {lights: {it: [luce]}}\n")
    taxonomy = load_taxonomy(tmp_path / "taxonomy.yaml")
    assert [seed.lang for seed in load_seeds(tmp_path / "mine.yaml", taxonomy)] == ["it"]
    with pytest.raises(CurationError, match="unknown language"):
        load_seeds(tmp_path / "mine.yaml", taxonomy, ("en",))
    assert load_seeds(write(tmp_path, none="negatives: []\n") / "none.yaml", taxonomy) == ()
