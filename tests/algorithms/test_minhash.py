from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash, MinHashLSH

from curation.algorithms.minhash import band_keys, choose_bands, collision_probability, signatures
from curation.algorithms.shingles import shingle_hash, shingles

TEXTS = [
    "a",
    "关灯",
    "hotels in berlin",
    "北京明天天气怎么样",
    "weather in san jose tomorrow",
    "погода в москве",
    "é",
]


def cut(text: str) -> list[str]:
    length = 2 if 2 * sum("\u2e80" <= char <= "\u9fff" for char in text) >= len(text) else 3
    padded = f"\x02{text}\x03"
    return [padded[at : at + length] for at in range(max(1, len(padded) - length + 1))]


def test_signatures_are_those_of_datasketch_bit_for_bit() -> None:
    ours = signatures(shingles(pa.array(TEXTS, pa.large_string())), 128)
    for text, signature in zip(TEXTS, ours, strict=True):
        theirs = MinHash(num_perm=128, seed=1, scheme="affine32", hashfunc=shingle_hash)
        theirs.update_batch(cut(text))
        assert np.array_equal(theirs.hashvalues, signature)


def test_rows_share_a_key_exactly_when_they_share_a_band() -> None:
    texts = [f"hotels in {city} {word}" for city in ("paris", "parma", "rome") for word in ("now", "near", "")]
    sets = shingles(pa.array([text.strip() for text in texts], pa.large_string()))
    bands, rows = 12, 4
    parts = signatures(sets, bands * rows).reshape(len(texts), bands, rows)
    keys = band_keys(sets, bands, rows, workers=2).T
    same_band = (parts[:, None] == parts[None]).all(axis=3).transpose(2, 0, 1)
    assert np.array_equal(keys[:, :, None] == keys[:, None], same_band)
    assert same_band.any(axis=0).sum() > len(texts)
    assert len(set(keys[:, 0].tolist())) == bands


def test_rows_of_different_salt_share_no_key() -> None:
    sets = shingles(pa.array(["hotels in berlin"] * 3, pa.large_string()))
    keys = band_keys(sets, 12, 4, salts=np.array([1, 2, 1], np.uint32))
    assert not set(keys[0].tolist()) & set(keys[1].tolist())
    assert np.array_equal(keys[0], keys[2])


@pytest.mark.parametrize("threshold", [0.4, 0.55, 0.7, 0.9])
def test_chosen_bands_reach_the_recall_with_the_longest_bands(threshold: float) -> None:
    bands, rows = choose_bands(threshold, 150, 0.95)
    assert bands * rows <= 150
    assert collision_probability(threshold, bands, rows) >= 0.95
    assert collision_probability(threshold, 150 // (rows + 1), rows + 1) < 0.95


def test_bands_out_of_reach_fall_back_to_single_rows() -> None:
    assert choose_bands(0.01, 8, 0.99) == (8, 1)


def test_recall_weighted_datasketch_agrees_on_the_length_of_bands() -> None:
    # Its optimiser weighs integrals of both errors; ours bounds the misses at the threshold. They come out alike.
    theirs = MinHashLSH(threshold=0.7, num_perm=150, weights=(0.05, 0.95))
    assert theirs.r == choose_bands(0.7, 150, 0.95)[1] == 6
