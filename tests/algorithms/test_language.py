from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.language import _identifier, detect
from curation.algorithms.scripts import DEFAULT_LANGUAGES, LANGUAGES, SCRIPTS, languages_of


def told(*texts: str, languages: tuple[str, ...] = DEFAULT_LANGUAGES) -> list[tuple[str, str]]:
    return list(zip(*detect(pl.Series(texts), languages), strict=True))


@pytest.mark.parametrize(
    "text",
    ["hi", "ok", "nope", "thanks", "weather", "KFC", "sushi close by", "gas station", "Las Vegas",
     "hotels in Paris", "play", "open the tv", "Show hostels.", "coffee", "alarm 7 am", "iphone 15",
     "PLEASE TAKE ME HOME", "Got that."],
)  # fmt: skip
def test_short_english_is_english(text):
    assert told(text) == [("en", "Latn")]


@pytest.mark.parametrize(
    ("text", "language", "script"),
    [
        ("关灯", "zh", "Hans"),
        ("导航到KFC", "zh", "Hans"),
        ("wifi密码", "zh", "Hans"),
        ("查詢附近的餐廳", "zh", "Hant"),
        ("鲜の每日", "zh", "Hans"),
        ("東京の天気", "ja", "Jpan"),
        ("ラーメン", "ja", "Jpan"),
        ("渋谷駅から新宿駅まで", "ja", "Jpan"),
        ("서울역 KTX 시간", "ko", "Kore"),
        ("weather in 北京", "en", "Latn"),
        ("أين المحطة", "ar", "Arab"),
        ("สถานีรถไฟอยู่ที่ไหน", "th", "Thai"),
        ("где вокзал", "ru", "Cyrl"),
        ("मेरे पास रेस्तरां", "hi", "Deva"),
        ("איפה התחנה", "he", "Hebr"),
        ("πού είναι ο σταθμός", "el", "Grek"),
        ("dove si trova la stazione più vicina", "it", "Latn"),
        ("wie komme ich zum Flughafen", "de", "Latn"),
        ("cómo llegar al aeropuerto", "es", "Latn"),
        ("itinéraire sans péage", "fr", "Latn"),
        ("nhà hàng gần đây", "vi", "Latn"),
        ("QUIERO IR A LA PLAYA MAÑANA", "es", "Latn"),
        ("𠀀𠀁", "zh", "Hans"),
    ],
)
def test_language_and_script(text, language, script):
    assert told(text) == [(language, script)]


@pytest.mark.parametrize("text", ["？？", "😀😀", "12:30", "", " ", "٣٤"])
def test_text_without_letters_is_undetermined(text):
    assert told(text) == [("und", "Zyyy")]


def test_a_single_latin_letter_says_nothing():
    assert told("G1234") == [("und", "Latn")]


def test_candidates_limit_what_is_said():
    assert told("wie komme ich zum Flughafen", languages=("zh", "en")) == [("en", "Latn")]
    assert told("wie komme ich zum Flughafen", languages=("zh",)) == [("und", "Latn")]
    assert told("погода на завтра у Києві", languages=("uk", "ru")) == [("uk", "Cyrl")]
    assert told("погода на завтра у Києві", languages=("en",)) == [("ru", "Cyrl")]


def test_every_language_of_a_script_with_several_is_known_to_the_model():
    known = set(_identifier().nb_classes)
    for _, languages in SCRIPTS.values():
        assert len(languages) == 1 or known.issuperset(languages)
    assert LANGUAGES.issuperset(DEFAULT_LANGUAGES)


def test_languages_of_keeps_the_order_asked_for():
    assert languages_of("Latn", ("zh", "fr", "en")) == ("fr", "en")


def test_nothing_in_nothing_out():
    languages, scripts = detect(pl.Series([], dtype=pl.String), DEFAULT_LANGUAGES)
    assert languages.dtype == scripts.dtype == pl.String
    assert len(languages) == len(scripts) == 0


texts = st.text(st.sampled_from("abz ÉñЖ京の한ا1？😀𠀀"), max_size=300)


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=5))
def test_a_text_is_judged_by_itself(rows):
    """Neither its neighbours nor the number of threads matter."""
    assert told(*rows) == [told(row)[0] for row in rows]
    for workers in (1, 3):
        assert list(zip(*detect(pl.Series(rows), DEFAULT_LANGUAGES, workers), strict=True)) == told(*rows)
