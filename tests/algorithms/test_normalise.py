from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.normalise import normalise, normalise_one, query_ids


def norms(*texts: str | None, workers: int | None = None) -> list[str | None]:
    return normalise(pa.array(texts, pa.large_string()), workers).to_pylist()


GOLDEN = {
    "Hotels  in\tParis?!": "hotels in paris",
    "STRASSE": "strasse",
    "straße": "strasse",
    "c++": "c++",
    "C# vs. Java": "c# vs java",
    "c#.net": "c# net",
    "node.js": "node.js",
    "1+1=2": "1+1 2",
    "18+ movies": "18+ movies",
    "hotels+in+paris": "hotels in paris",
    "北京+上海": "北京 上海",
    "c++编程": "c++编程",
    "wow!!!+++": "wow",
    "hello####": "hello",
    "#1 hotel": "1 hotel",
    "version 3.5.": "version 3.5",
    "today.tomorrow": "today.tomorrow",
    "今天.明天": "今天 明天",
    "٣.٥": "٣.٥",
    "...and": "and",
    "at&t": "at&t",
    "bed & breakfast": "bed breakfast",
    "50% off": "50% off",
    "100 %": "100",
    "under $100": "under $100",
    "€20": "€20",
    "30℃": "30°c",
    "7:30-9:00": "7 30 9 00",
    "3-day trip": "3 day trip",
    "G2高速": "g2高速",
    "ｉＰｈｏｎｅ　１５": "iphone 15",
    "½ price": "1 2 price",
    "ﷺ": "صلى الله عليه وسلم",
    "ho\u200btel\u00ad s": "hotel s",
    "\u1112\u1161\u11ab": "한",
    "ᄒ\u115f\u1161": "하",
    "नमस्ते दुनिया": "नमस्ते दुनिया",
    "สวัสดี ชาวโลก": "สวัสดี ชาวโลก",
    "play 🎵 now": "play now",
}


@pytest.mark.parametrize(("text", "norm"), GOLDEN.items())
def test_rules_by_hand(text: str, norm: str) -> None:
    assert normalise_one(text) == unicodedata.normalize("NFC", norm)
    assert norms(text) == [normalise_one(text)]


def test_t8_spellings_of_one_text_are_one() -> None:
    assert len(set(norms("café", "cafe\u0301", "CAFÉ"))) == 1
    assert len(set(norms("ＡＢＣ", "abc"))) == 1


def test_t7_visible_text_is_never_empty_and_stays_distinct() -> None:
    texts = [
        "مطعم قريب",
        "ร้านอาหาร",
        "रेस्टोरेंट",
        "🍕",
        "🍔🍔",
        "？？",
        "?!",
        "...",
        "+",
        "#",
        "°",
        "%",
        "€",
        "&",
        "⠓⠑",
        "🇨🇳",
        "🇯🇵",
    ]
    out = norms(*texts)
    assert all(out)
    assert len(set(out)) == len(texts)


def test_invisible_text_is_empty() -> None:
    assert norms("", " ", "\u3000\n", "\u200b\u200d", "\ufeff", "\x00\x07", "\u2800", "\u3164", "\ufe0f") == [""] * 9


def test_null_stays_null_and_slices_count_from_their_offset() -> None:
    array = pa.array(["drop", "A", None, "e\u0301", "B?"], pa.large_string())[1:]
    assert normalise(array).to_pylist() == ["a", None, "é", "b"]
    assert normalise(array[:0]).to_pylist() == []


def test_expansion_beyond_twice_the_input_fits() -> None:
    assert norms("\ufdfa" * 500) == [("صلى الله عليه وسلم" * 500)]


def test_very_long_rows_are_like_short_ones() -> None:
    text = "Weather, in Paris! " * 10_000
    assert norms(text) == [normalise_one(text)]


def test_every_code_point_equals_the_reference_alone_and_between_letters() -> None:
    chars = [chr(code) for code in [*range(0xD800), *range(0xE000, 0x18000), *range(0x1F000, 0x20000, 3), 0xE0041]]
    texts = [f"a{char}1" for char in chars]
    assert norms(*texts) == [normalise_one(text) for text in texts]


ODD = st.sampled_from(
    "ͅͺᾳΐßİẞşﬁ가각ᄀ\u1161\u11a8ㅏﾡ\u0301\u0323\u0316\u05b0\u05c1\u093c\u094d\u0e38\u0e48\u200d\ufe0f+#.&%°€1a京 -?！😀"  # noqa: E501
)
TEXTS = st.text(ODD | st.characters(codec="utf-8"), max_size=24)


@given(st.lists(TEXTS, max_size=8))
@settings(max_examples=300, deadline=None)
def test_the_kernel_equals_the_reference(texts: list[str]) -> None:
    assert norms(*texts) == [normalise_one(text) for text in texts]


@given(TEXTS)
@settings(max_examples=500, deadline=None)
def test_a_normal_form_is_its_own_normal_form(text: str) -> None:
    norm = normalise_one(text)
    assert normalise_one(norm) == norm
    assert norm == norm.strip() and "  " not in norm
    assert unicodedata.is_normalized("NFKC", norm)


def test_t10_threads_and_row_order_change_nothing() -> None:
    rng = np.random.default_rng(5)
    alphabet = list("ab C.+#1京、e\u0301ด้\u200d?")
    texts = ["".join(rng.choice(alphabet, rng.integers(0, 9))) for _ in range(70_000)]
    one = norms(*texts, workers=1)
    assert norms(*texts, workers=3) == one
    order = rng.permutation(len(texts))
    assert norms(*[texts[row] for row in order]) == [one[row] for row in order]


def test_query_ids_are_xxh3_64_of_the_bytes() -> None:
    # Reference values of XXH3 (seed 0): the empty input, from the xxHash project's specification.
    ids = query_ids(pa.array(["", "关灯", "关灯", "play"], pa.large_string()))
    assert ids.dtype == np.uint64
    assert int(ids[0]) == 0x2D06800538D394C2
    assert ids[1] == ids[2] and len(set(ids.tolist())) == 3
