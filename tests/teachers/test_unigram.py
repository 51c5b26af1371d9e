"""The compiled tokeniser: against the library's, against a search of all segmentations, and by hand."""

from __future__ import annotations

import struct
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curation.teachers.pieces import BEGIN, END, MAX_UNITS, SPACE, UNKNOWN, replacements
from curation.teachers.unigram import DOUBTFUL, KNOWN_CODES, SLOT, Unigram, _build, joins
from curation.teachers.use import load_model, resources

PLAIN = [
    "find a quiet café near the station, open after 10 pm",
    "导航到人民广场，不走高速！",
    "明天 下午３点  去机场",
    "ＡＢＣ ｶﾀｶﾅ ①②㈱ ½ ﷺ",
    "近くの静かなカフェを探して",
    "가까운 카페를 찾아줘",
    "ร้านอาหารใกล้ฉัน",
    "नमस्ते दुनिया",
    "أين أقرب مطعم",
    "где ближайшее кафе?",
    "勐泐大道的饭馆 a勐b",
    "🙂 😀😀 ❤",
    "2026年11月30日 3.5km 50%",
    "<s> a</s> <unk>b extra_token_id_1",
    " \u00a0\u3000leading, inner\t\u2003 and trailing\n ",
    "   ",
    "▁ already▁marked ▁",
    "nul\0\x01 and controls\x7f",
    "\ufeffzero\u200bwidth",
]
DOUBTFUL_TEXTS = [
    "cafe\u0301",
    "ª\u0301 a\u0308b",
    "two\r\nlines",
    "©\ufe0f",
    "a\u200db",
    "\u0600ª",
    "مُحَمَّد",
    "vertical\x0btab",
    "next\x85line",
    "plane \U000f0000",
]
ALPHABETS = [
    st.sampled_from("abcdefgh ABCXYZ 0123456789.,!?'-"),
    st.sampled_from("去火车站导航到人民广场的，。？勐泐"),
    st.sampled_from(" \t\n\r\x0b\x0c\x1c\x85\u00a0\u1680\u2003\u200b\u2028\u202f\u3000▁"),
    st.sampled_from("ªº²½¨´éŁøß\u0301\u0308\u0327\u0345\u0600\u0605\u0640\u064b\u05b0"),
    st.sampled_from("かがカガｶﾞﾟ\u3099\u309a가각\u1100\u1161\u11a8นำ\u0e33\u0eb3क्\u094dषि"),
    st.sampled_from("🙂👩💻❤©®\u200d\u200c\ufe0f\u20e3🏽🇨🇳\U000e0067\U000e007f"),
    st.characters(exclude_categories=["Cs"]),
]
BREAKING = {0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF}
"""Format characters of the class Control in Unicode annex 29."""
MIXED = st.lists(st.sampled_from(range(len(ALPHABETS))), min_size=1, max_size=3).flatmap(
    lambda chosen: st.text(st.one_of([ALPHABETS[i] for i in chosen]), max_size=40)
)


@cache
def unigram() -> Unigram:
    return Unigram((resources() / "sp.model").read_bytes())


def split(flat: np.ndarray, starts: np.ndarray) -> list[list[int]]:
    return [row.tolist() for row in np.split(flat, starts[1:-1])] if len(starts) > 1 else []


def assert_as_defined(texts: list[str]) -> None:
    flat, starts = unigram().tokenise(texts)
    assert flat.dtype == starts.dtype == np.int64 and starts[0] == 0 and starts[-1] == len(flat)
    assert split(flat, starts) == [[BEGIN, *row, END] for row in unigram().definition.rows(texts)]


@pytest.mark.parametrize("text", PLAIN + DOUBTFUL_TEXTS, ids=ascii)
def test_units_are_those_of_the_library(text):
    assert_as_defined([text])


@settings(max_examples=400, deadline=None)
@given(st.lists(MIXED, min_size=1, max_size=8))
@example(["\u00aa\u0301"])
@example(["<unk>\0<unk>", "", " "])
def test_units_of_any_texts_are_those_of_the_library(texts):
    assert_as_defined(texts)


def test_units_by_hand():
    ids = {piece: i for i, (piece, _) in enumerate(unigram().pieces)}
    flat, starts = unigram().tokenise(["the  the", "", "勐勐", " ① ", "<unk>"])
    assert split(flat, starts) == [
        [BEGIN, ids["▁the"], ids["▁the"], END],
        [BEGIN, UNKNOWN, END],
        [BEGIN, ids["▁"], UNKNOWN, UNKNOWN, END],
        [BEGIN, ids["▁1"], END],
        [BEGIN, ids["▁"], *[UNKNOWN] * len("<unk>"), END],
    ]


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("去火车站人民广场trains eo勐"), min_size=1, max_size=9))
def test_no_segmentation_is_more_probable(text):
    scores = dict(unigram().pieces)
    unknown = min(scores.values()) - 10
    marked = "".join(SPACE + word for word in text.split())

    @cache
    def best(rest: str) -> float:
        if not rest:
            return 0.0
        ways = [scores[rest[:k]] + best(rest[k:]) for k in range(1, len(rest) + 1) if rest[:k] in scores]
        return max([*ways, unknown + best(rest[1:])])

    flat, _ = unigram().tokenise([text])
    got = sum(unknown if unit == UNKNOWN else unigram().pieces[unit][1] for unit in flat[1:-1])
    assert got == pytest.approx(best(marked) if marked else unknown)


def message(*fields: tuple[int, bytes | float]) -> bytes:
    """A protobuf message of byte strings (wire type 2) and floats (5)."""
    out = b""
    for number, value in fields:
        if isinstance(value, float):
            out += bytes([number << 3 | 5]) + struct.pack("<f", value)
        else:
            length, size = b"", len(value)
            while size >= 0x80:
                length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
            out += bytes([number << 3 | 2]) + length + bytes([size]) + value
    return out


def small_model(pieces: dict[str, float]) -> Unigram:
    """A tokeniser with these units and the replacements of the encoder's model file."""
    units = {"<unk>": 0.0, "<s>": 0.0, "</s>": 0.0, **pieces}
    file = message(*((1, message((1, piece.encode()), (2, score))) for piece, score in units.items()))
    with pytest.MonkeyPatch.context() as patch:
        # Made once for all small models.
        patch.setattr("curation.teachers.unigram.replacements", lambda _: unigram().definition._replaced)
        patch.setattr("curation.teachers.unigram._characters", lambda _: unigram()._characters)
        return Unigram(file)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.text(st.sampled_from("ab▁去"), min_size=1, max_size=4),
        st.integers(-9, -1).map(float),
        min_size=1,
        max_size=25,
    ),
    st.lists(st.text(st.sampled_from("aab c去"), max_size=12), min_size=1, max_size=6),
)
@example({"ab": -1.0, "a": -3.0}, ["b", "ab", "bb", "abb"])
@example({"▁": -1.0, "a": -1.0, "aa": -2.0, "aaa": -3.0}, ["aaaaa"])
def test_gaps_and_ties_of_a_small_model_are_resolved_as_in_the_library(pieces, texts):
    """Units whose first character is no unit, units less probable than an unknown character, equal scores."""
    small = small_model(pieces)
    assert split(*small.tokenise(texts)) == [[BEGIN, *row, END] for row in small.definition.rows(texts)]


@pytest.mark.parametrize(("score", "units"), [(9.5, [3, 5]), (10.5, [3, 4, UNKNOWN])])
def test_an_unknown_character_scores_ten_less_than_the_least_probable_unit(score, units):
    flat, _ = small_model({"▁": -1.0, "a": score, "ab": -3.0}).tokenise(["ab"])
    assert flat.tolist() == [BEGIN, *units, END]


def test_ordinary_texts_are_not_left_to_the_library_and_texts_with_short_clusters_are():
    assert not unigram().doubtful(PLAIN).any()
    assert unigram().doubtful(DOUBTFUL_TEXTS).all()


def test_characters_that_join_no_neighbour_are_replaced_alone():
    """Beside a letter of two bytes with a replacement, and of one byte, so that clusters with them are short."""
    replaced = replacements((resources() / "sp.model").read_bytes()).normalize_str
    table = unigram()._characters[0]
    free = [chr(c) for c in range(KNOWN_CODES) if not table[c] & DOUBTFUL and not joins(chr(c))]
    assert len(free) > 60_000
    wrong = [
        char
        for char in free
        if replaced(f"ª{char}") != "a" + replaced(char)
        or replaced(f"{char}a") != replaced(char) + "a"
        or replaced(f"{char}ª") != replaced(char) + "a"
    ]
    assert wrong == []


def test_marks_and_formats_may_join_a_neighbour():
    for code in range(KNOWN_CODES):
        if unicodedata.category(chr(code)) in ("Mn", "Mc", "Me", "Cf", "Cn") and code not in BREAKING:
            assert joins(chr(code)), hex(code)
    assert all(joins(char) for char in "\r\u0e33\uff9e\u1100\u1161\ud7b0🏽🇨\u0d4e")
    assert not any(joins(char) for char in "a é\n\0去かガ가ก\u0915٣🙂❤①")


def test_a_text_does_not_depend_on_its_company():
    texts = PLAIN + DOUBTFUL_TEXTS + ["", *PLAIN[::-1]]
    flat, starts = unigram().tokenise(texts)
    assert split(flat, starts) == [unigram().tokenise([text])[0].tolist() for text in texts]


def test_threads_share_one_tokeniser():
    texts = (PLAIN + DOUBTFUL_TEXTS) * 20
    fresh = Unigram((resources() / "sp.model").read_bytes())
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(fresh.tokenise, [texts] * 8))
    expected = unigram().tokenise(texts)
    for answer in answers:
        np.testing.assert_array_equal(answer[0], expected[0])
        np.testing.assert_array_equal(answer[1], expected[1])


@pytest.mark.parametrize(
    "text", ["去火车站 " * 20_000, "勐" * 3000, "ﷺ" * 500, " " * 9000, "e\u0301" * 2000, "a" * 9000]
)
def test_long_texts_are_cut_as_the_library_cuts_them(text):
    assert_as_defined(["before", text, "after"])
    _, starts = unigram().tokenise([text])
    assert starts[-1] == (3 if text.isspace() else MAX_UNITS + 2)


def test_no_texts_have_no_units():
    flat, starts = unigram().tokenise([])
    assert flat.tolist() == [] and starts.tolist() == [0]


def test_half_a_character_is_refused_as_by_the_library():
    for tokenise in (unigram().tokenise, unigram().definition.rows):
        with pytest.raises(TypeError):
            tokenise(["fine", "broken \ud83d"])


def test_a_trie_that_is_too_small_says_so():
    codes, starts = np.array([97, 98, 97, 99], np.uint32), np.array([0, 2, 4])
    scores = np.array([-1.0, -2.0])
    assert not _build(codes, starts, scores, np.zeros(4, SLOT))
    trie = np.zeros(8, SLOT)
    assert _build(codes, starts, scores, trie)
    assert sorted(trie["unit"][trie["key"] != 0].tolist()) == [-1, 0, 1]


def test_the_encoder_uses_it():
    flat, starts = load_model().tokenise(PLAIN)
    expected = unigram().tokenise(PLAIN)
    np.testing.assert_array_equal(flat, expected[0])
    np.testing.assert_array_equal(starts, expected[1])
