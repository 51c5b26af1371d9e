"""Writing systems and the languages written in them: tables only, cheap to import."""

from __future__ import annotations

__all__ = ["DEFAULT_LANGUAGES", "LANGUAGES", "SCRIPTS", "languages_of"]

SCRIPTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Latn": (
        "Latin",
        ("en", "es", "fr", "de", "pt", "it", "nl", "id", "vi", "tr", "pl", "sv", "da", "no", "fi", "cs", "sk", "hu",
         "ro", "hr", "sl", "et", "lv", "lt", "ca", "gl", "eu", "ms", "tl", "sw", "af", "sq", "is", "ga", "cy", "mt",
         "az", "uz", "eo", "la"),
    ),
    "Hani": ("Han", ("zh",)),
    "Hira": ("Hiragana", ("ja",)),
    "Kana": ("Katakana", ("ja",)),
    "Hang": ("Hangul", ("ko",)),
    "Bopo": ("Bopomofo", ("zh",)),
    "Cyrl": ("Cyrillic", ("ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg", "tt")),
    "Arab": ("Arabic", ("ar", "fa", "ur", "ps", "ug", "ku")),
    "Deva": ("Devanagari", ("hi", "mr", "ne", "sa")),
    "Beng": ("Bengali", ("bn", "as")),
    "Hebr": ("Hebrew", ("he",)),
    "Grek": ("Greek", ("el",)),
    "Thai": ("Thai", ("th",)),
    "Laoo": ("Lao", ("lo",)),
    "Khmr": ("Khmer", ("km",)),
    "Mymr": ("Myanmar", ("my",)),
    "Tibt": ("Tibetan", ("bo",)),
    "Mong": ("Mongolian", ("mn",)),
    "Taml": ("Tamil", ("ta",)),
    "Telu": ("Telugu", ("te",)),
    "Knda": ("Kannada", ("kn",)),
    "Mlym": ("Malayalam", ("ml",)),
    "Gujr": ("Gujarati", ("gu",)),
    "Guru": ("Gurmukhi", ("pa",)),
    "Orya": ("Oriya", ("or",)),
    "Sinh": ("Sinhala", ("si",)),
    "Geor": ("Georgian", ("ka",)),
    "Armn": ("Armenian", ("hy",)),
    "Ethi": ("Ethiopic", ("am",)),
}  # fmt: skip
"""ISO 15924 code to its name in Unicode and its languages (ISO 639-1), the likeliest first."""

LANGUAGES = frozenset(language for _, languages in SCRIPTS.values() for language in languages)
"""Every language there is a name for."""

DEFAULT_LANGUAGES = (
    "zh", "en", "ja", "ko", "es", "fr", "de", "pt", "it", "nl", "id", "vi", "tr", "pl", "ru", "ar", "hi", "th",
)  # fmt: skip
"""Languages told apart unless the recipe says otherwise."""


def languages_of(script: str, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """The languages of ``wanted`` that are written in ``script``, in that order; else the script's likeliest.

    For Latin, which says nothing by itself, there is no likeliest: the answer may be empty.

    >>> languages_of("Cyrl", ("en", "uk", "ru")), languages_of("Thai", ("en",)), languages_of("Latn", ("zh",))
    (('uk', 'ru'), ('th',), ())
    """
    known = SCRIPTS[script][1]
    fitting = tuple(language for language in wanted if language in known)
    return fitting or (() if script == "Latn" else known[:1])
