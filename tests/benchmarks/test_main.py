"""Benchmarks are found by name, and the corpus counts what it planted."""

from __future__ import annotations

import json

from tests.benchmarks import __main__ as command
from tests.benchmarks import corpus


def test_names_are_those_of_modules_with_a_main(capsys):
    assert {"truth", "corpus"} <= command.benchmarks().keys()
    assert all(command.benchmarks().values())
    assert command.main([]) == 0
    assert "truth" in capsys.readouterr().out


def test_unknown_name_gets_a_sentence(capsys):
    assert command.main(["nonsense"]) == 2
    assert "there is no benchmark 'nonsense'" in capsys.readouterr().err


def test_corpus_is_made_once_and_counts_its_planted_duplicates(tmp_path, capsys):
    arguments = ["corpus", "--rows", "2000", "--family", "B", "--dir", str(tmp_path), "--json"]
    assert command.main(arguments) == 0
    told = {line["what"]: line["rows"] for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert told["raw rows"] == 2000
    assert told["planted removals"] == told["distinct normal forms"] - told["duplicate groups"] > 0
    written = (tmp_path / "truth.parquet").stat().st_mtime_ns
    assert corpus.make_corpus(2000, "B", directory=tmp_path).strings().height == told["distinct normal forms"]
    assert (tmp_path / "truth.parquet").stat().st_mtime_ns == written
