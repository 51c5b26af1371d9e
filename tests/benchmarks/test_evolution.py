"""The parts of the benchmark that its figures rest on."""

from __future__ import annotations

import yaml

from tests.benchmarks.evolution import TAGS, Noise, noisy_tags, one_to_one


def test_no_tag_is_a_gold_name():
    words = yaml.safe_load(TAGS.read_text("utf-8"))
    names = {name for kind in words.values() for name in kind}
    tags = [tag for kind in words.values() for ways in kind.values() for tag in ways]
    assert not names & {tag.replace(" ", "_").replace("-", "_") for tag in tags}
    assert len(words["intents"]) == 150
    assert len(words["domains"]) == 10


def test_noise():
    intents, domains = ["alarm"] * 4000, ["utility"] * 4000
    tags = list(noisy_tags(intents, domains, Noise(untagged=0.25, intent=1, domain=0, wrong=0, general=0)))
    assert tags == list(noisy_tags(intents, domains, Noise(0.25, 1, 0, 0.7, 0, 0)))
    assert 0.22 < sum(not own for own in tags) / 4000 < 0.28
    assert {tag for own in tags for tag in own} == {"wake me", "wake up time", "morning bell"}
    wrong = list(noisy_tags(intents, domains, Noise(untagged=0, intent=1, domain=0, wrong=0.5, general=0)))
    right = sum(own[0] in ("wake me", "wake up time", "morning bell") for own in wrong)
    assert 0.45 < right / 4000 < 0.55


def test_one_to_one():
    assert one_to_one(["a", "a", "b", "b"], ["x", "x", "y", "y"]) == 1
    # Both found categories are mostly a, and only one may stand for it.
    assert one_to_one(["a", "a", "a", "b"], ["x", "x", "y", "y"]) == 0.75
    assert one_to_one(["a", "a"], ["x", "y"]) == 0.5
