"""Weights are checked against what they were installed with, or against the recipe."""

from __future__ import annotations

import base64
import hashlib

import pytest

from curation.errors import CurationError
from curation.stages import embed
from curation.teachers.use import resources
from curation.teachers.weights import check_directory, check_installed, directory_digest


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package with one file of weights."""
    site = tmp_path / "site"
    (site / "tinymodel").mkdir(parents=True)
    weights = site / "tinymodel" / "weights.bin"
    weights.write_bytes(b"some numbers")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"some numbers").digest()).rstrip(b"=").decode()
    info = site / "tiny_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"tinymodel/weights.bin,sha256={digest},12\ntiny_model-1.0.dist-info/RECORD,,\n")
    (info / "top_level.txt").write_text("tinymodel\n")
    monkeypatch.syspath_prepend(str(site))
    return weights


def test_weights_as_installed_pass_and_damaged_ones_are_named(package):
    check_installed([package])
    package.write_bytes(b"some numberz")
    with pytest.raises(CurationError, match=r"weights\.bin are damaged") as caught:
        check_installed([package])
    assert "--force-reinstall --no-deps tiny-model" in caught.value.hint


def test_the_encoder_that_comes_with_the_product_is_whole():
    check_installed([resources() / "weights.npz", resources() / "sp.model"])


def test_files_of_no_package_are_left_alone(tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"1")
    check_installed([tmp_path / "weights.bin"])


def test_a_directory_is_compared_with_the_digest_of_the_recipe(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "modules.json").write_text("[]")
    # By hand: name, a zero byte, the digest of the content.
    content = hashlib.sha256(b"[]").digest()
    assert directory_digest(model) == hashlib.sha256(b"modules.json\0" + content).hexdigest()
    right = directory_digest(model)
    params = {"encoder_directory": str(model), "encoder_sha256": right}
    embed.check(embed.EmbedParams(**params), None)
    check_directory(model, right.upper())
    (model / "modules.json").write_text("{}")
    with pytest.raises(CurationError, match="not the one that the recipe means"):
        embed.check(embed.EmbedParams(**params), None)
