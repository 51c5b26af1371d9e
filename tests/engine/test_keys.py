from __future__ import annotations

import sys

import pytest

from curation.engine import keys
from tests.engine.toy import STAGES


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A first-party module that can be edited."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(keys, "_FIRST_PARTY", ("firstparty",))

    def write(**modules):
        root = tmp_path / "firstparty"
        root.mkdir(exist_ok=True)
        (root / "__init__.py").write_text("")
        for name, text in modules.items():
            (root / f"{name}.py").write_text(text)
        keys._read_module.cache_clear()
        for name in [m for m in sys.modules if m.startswith("firstparty")]:
            del sys.modules[name]
        return keys.code_hashes("firstparty.stage")

    yield write
    keys._read_module.cache_clear()


def test_comments_docstrings_and_layout_do_not_count(package):
    before = package(stage='"""Doc."""\ndef f(x):\n    """What."""\n    return x+1\n')
    after = package(stage="# why\ndef f( x ):\n\n    return x + 1\n")
    assert before == after


def test_code_counts(package):
    assert package(stage="def f(x): return x + 1") != package(stage="def f(x): return x + 2")


def test_a_helper_imported_in_a_function_counts(package):
    stage = "def f():\n    from firstparty.helper import g\n    return g()"
    before = package(stage=stage, helper="def g(): return 1")
    after = package(stage=stage, helper="def g(): return 2")
    assert before["firstparty.stage"] == after["firstparty.stage"]
    assert before["firstparty.helper"] != after["firstparty.helper"]


def test_relative_imports_and_circles_are_followed(package):
    found = package(stage="from . import a", a="from .b import x", b="from .a import y\nx = 1")
    assert set(found) >= {"firstparty.stage", "firstparty.a", "firstparty.b"}


def test_templates_beside_a_package_count_with_it(package, tmp_path):
    folder = tmp_path / "firstparty" / "words"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    stage = "def f():\n    from firstparty import words"

    def hashes(template):
        (folder / "ask.j2").write_text(template)
        return package(stage=stage)

    before, same, after = hashes("Ask."), hashes("Ask."), hashes("Ask politely.")
    assert before == same
    assert {name for name in before if before[name] != after[name]} == {"firstparty.words"}


def document(**changes):
    base = {"params": {}, "shared": {}, "seed": 1, "inputs": {}, "sources": {}}
    return keys.key_document(STAGES["lexical"], **(base | changes))


def test_key_is_stable_and_follows_every_field():
    assert keys.key_of(document()) == keys.key_of(document())
    others = [
        document(params={"a": 1}),
        document(shared={"pool": {"size": 1}}),
        document(seed=2),
        document(inputs={"queries": "x"}),
        document(sources={"log": "x"}),
    ]
    assert len({keys.key_of(d) for d in [document(), *others]}) == 6


def test_differences_are_told_field_by_field():
    old = document(params={"jaccard": 0.7}, inputs={"queries": "a"}, sources={"log": "a"})
    new = document(params={"jaccard": 0.8}, inputs={"queries": "b"}, sources={"log": "b"}, seed=2)
    assert keys.differences(old, new) == [
        "input table queries changed",
        "recipe lexical.jaccard: 0.7 -> 0.8",
        "seed: 1 -> 2",
        "the log changed",
    ]
    assert keys.differences(None, new) == ["never built"]
    assert keys.differences(new, new) == []


def test_canonical_ignores_the_order_of_keys():
    assert keys.canonical({"b": 1, "a": "é"}) == keys.canonical({"a": "é", "b": 1})
