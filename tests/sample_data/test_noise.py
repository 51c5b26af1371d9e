"""Noise: pure, never a digit, never an empty text; and the groups that truth makes of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logmaker import noise, noise_b
from logmaker.truth import Span, locate, skeleton

TEXTS = st.sampled_from(
    [
        "附近的加油站", "导航到G2高速", "人均100以内的火锅", "回家", "从北京南站到人民路12号怎么走", "你好",
        "find a quiet cafe near 68 Cedar Lane", "weather in Beijing tomorrow", "hi", "go home",
        "flight MU5137 delayed",
    ]
)  # fmt: skip
NUMBERS = st.integers(0, 2**64 - 1)


@pytest.mark.parametrize("family", [noise, noise_b])
@given(text=TEXTS, number=NUMBERS, data=st.data())
def test_t6_noise_is_pure_and_leaves_digits_and_something_to_read(family, text, number, data):
    kind = data.draw(st.sampled_from(family.KINDS))
    lang = "zh" if any(ord(c) > 0x3000 for c in text) else "en"
    out = family.apply(text, kind, number, lang, (text[:2], text[2:]))
    assert out == family.apply(text, kind, number, lang, (text[:2], text[2:]))
    assert out.strip()
    digits = [c for c in text if c.isdigit()]
    after = [chr(ord(c) - 0xFEE0) if ord(c) > 0xFF00 else c for c in out if c.isdigit()]
    assert after in (digits, digits + digits)


@pytest.mark.parametrize("family", [noise, noise_b])
def test_every_kind_has_a_share_and_shares_are_whole(family):
    for shares in family.SHARES.values():
        assert len(shares) == len(family.KINDS)
        assert sum(shares) == pytest.approx(1)


def test_surface_noise_keeps_letters_and_their_order():
    for number in range(400):
        out = noise.apply("find Cafe 7", "surface", number, "en")
        folded = "".join(chr(ord(c) - 0xFEE0) if 0xFF00 < ord(c) < 0xFF5F else c for c in out).lower()
        assert [c for c in folded if c.isalnum()] == list("findcafe7")


@pytest.mark.parametrize(
    ("one", "other", "lang", "same"),
    [
        ("附近的加油站", "请问附近加油站", "zh", True),
        ("找附近的药店", "附近药店", "zh", True),
        ("我要去西湖", "去西湖吧", "zh", True),
        ("Find the Bund, please", "find bund", "en", True),
        ("附近的加油站", "附近的充电站", "zh", False),
        ("alarm 7 am", "alarm 8 am", "en", False),
        ("谢谢", "谢谢你", "zh", False),
    ],
)
def test_skeleton_tells_the_same_words(one, other, lang, same):
    assert (skeleton(one, lang) == skeleton(other, lang)) == same


def test_skeleton_of_visible_text_is_never_empty():
    assert all(skeleton(text, lang) for text in ("？？", "的", "the", "👍", "请", "...") for lang in ("zh", "en"))


def test_locate_follows_the_order_and_tells_what_noise_broke():
    spans = [Span("time", "明天", "明天"), Span("spatial_scope", "附近", "附近")]
    found = locate(spans, "嗯明天附近附近的店")
    assert [(s.start, s.end) for s in found] == [(1, 3), (3, 5)]
    assert [(s.start, s.end) for s in locate(spans, "明添附近")] == [(None, None), (2, 4)]
    assert locate([Span("budget", "100", "100")], "人均１００以内")[0].text == "１００"
