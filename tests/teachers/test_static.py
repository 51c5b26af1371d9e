"""The static encoder: near to the full one, and independent of chunks."""

from __future__ import annotations

import numpy as np
import pytest

from curation.teachers.encoders import STATIC, USE, load_encoder
from curation.teachers.static import script_groups

TEXTS = [
    "find a petrol station on the way",
    "is there a gas station along the route",
    "what is the weather in Paris tomorrow",
    "will it rain in Lyon on Sunday",
    "附近有没有加油站",
    "沿途找个中石化",
    "明天上海会下雨吗",
    "后天北京天气怎么样",
    "帮我订一个三亚的酒店",
    "把导航的声音关掉",
]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(STATIC, 2)


def test_scripts_of_units():
    groups = script_groups(["1", "▁hello", "你好", "▁", "été", "Привет", "の"])
    assert groups[0] == groups[3] == 0
    assert groups[1] == groups[4] != groups[2]
    assert len(set(groups.tolist())) == 5


def test_cosines_follow_the_full_encoder(encoder):
    full, static = load_encoder(USE, 1).encode(TEXTS), encoder.encode(TEXTS)
    above = np.triu_indices(len(TEXTS), 1)
    assert np.corrcoef((full @ full.T)[above], (static @ static.T)[above])[0, 1] > 0.8
    # Not merely alike in shape: the vectors lie in the space of the full encoder.
    assert (full * static).sum(axis=1).min() > 0.6


def test_s4_a_vector_does_not_depend_on_its_company(encoder):
    whole = encoder.encode(TEXTS)
    np.testing.assert_array_equal(encoder.encode(TEXTS[3:4]), whole[3:4])
    np.testing.assert_array_equal(encoder.encode(TEXTS[::-1])[::-1], whole)
