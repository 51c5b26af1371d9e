"""The families there are: A is the map log; B has other wordings, words and noise and is there to be surprised by."""

from __future__ import annotations

import math
from pathlib import Path

from logmaker import noise, noise_b
from logmaker.frames import read_frames
from logmaker.personal import personal_slots
from logmaker.sampler import Family
from logmaker.vocabulary import Vocabulary

__all__ = ["FAMILIES", "family_a", "family_b", "fresh_share"]

HERE = Path(__file__).parent
LANGUAGES_A = {
    "zh": 0.66, "en": 0.305, "ja": 0.008, "ko": 0.006, "es": 0.005, "ru": 0.004, "ar": 0.003, "fr": 0.003,
    "de": 0.002, "th": 0.001, "und": 0.003,
}  # fmt: skip
LANGUAGES_B = {"zh": 0.42, "en": 0.44, "es": 0.04, "de": 0.03, "ru": 0.03, "ja": 0.02, "hi": 0.02}
WORDING_ZIPF = 1.5
PERSONAL_VALUES = 4000
# Share of rows about what nobody else asks about, at 200,000 and at 30 million rows: a longer log has more users.
FRESH_SHARE = ((200_000, 0.01), (30_000_000, 0.58))


def fresh_share(rows: int) -> float:
    """Share of fresh rows in a log of ``rows`` rows, linear in the logarithm between the two known points."""
    (low, at_low), (high, at_high) = FRESH_SHARE
    position = (math.log(max(rows, 1)) - math.log(low)) / (math.log(high) - math.log(low))
    return at_low + (at_high - at_low) * min(max(position, 0.0), 1.0)


def family_a(rows: int, seed: int) -> Family:
    """The map log in Chinese and English, with strays."""
    folder = HERE / "family_a"
    vocabulary = Vocabulary.read(
        [folder / f"{name}.yaml" for name in ("places", "things", "stray_words")],
        personal_slots(seed, PERSONAL_VALUES),
        seed,
    )
    files = ["planning_and_decision", "discovery", "dynamic_information", "application_interaction"]
    files += ["rules_and_policies", "unsolvable", "personal_data", "strays"]
    wordings = read_frames([folder / f"{name}.yaml" for name in files], vocabulary, WORDING_ZIPF)
    return Family.build(
        wordings, vocabulary, LANGUAGES_A, noise.KINDS, noise.SHARES, noise.apply, 2, ("zh", "en"), fresh_share(rows)
    )


def family_b(rows: int, seed: int) -> Family:
    """Questions to a household assistant, with noise of another make."""
    folder = HERE / "family_b"
    vocabulary = Vocabulary.read([folder / "words.yaml"], {}, seed)
    wordings = read_frames([folder / "frames.yaml"], vocabulary, WORDING_ZIPF)
    return Family.build(
        wordings,
        vocabulary,
        LANGUAGES_B,
        noise_b.KINDS,
        noise_b.SHARES,
        noise_b.apply,
        2,
        tuple(LANGUAGES_B),
        fresh_share(rows),
    )


FAMILIES = {"A": family_a, "B": family_b}
