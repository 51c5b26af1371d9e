"""Noise of family B: of another make than family A's, for measuring a deduplicator on what it was not tuned on.

Pure functions of the text and a 64-bit number; no digit is touched.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["KINDS", "SHARES", "apply"]

KINDS = ("clean", "decoration", "tag", "keyboard", "chat", "split", "tail_cut", "stutter")
SHARES = {
    "voice": (0.62, 0.05, 0.1, 0.0, 0.03, 0.05, 0.05, 0.1),
    "typed": (0.55, 0.15, 0.05, 0.12, 0.05, 0.05, 0.03, 0.0),
    "web": (0.6, 0.2, 0.05, 0.1, 0.05, 0.0, 0.0, 0.0),
    "widget": (0.9, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}
DECORATIONS = (" 😊", "~", " ;)", "!!!", " 🙏", "…", " :)", "「」", "()", " -")
OPENERS_ZH = ("小助手", "老铁", "亲", "劳驾", "打扰了", "话说", "对了", "咨询个事")
OPENERS_EN = ("computer", "dear assistant", "quick one", "by the way", "now", "yo", "listen")
CLOSERS_ZH = ("哟", "呗", "呐", "拜托", "行不行", "急")
CLOSERS_EN = ("pretty please", "asap", "cheers", "right", "mate", "if possible")
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
BESIDE = {row[i]: row[i + 1 if i + 1 < len(row) else i - 1] for row in ROWS for i in range(len(row))}
CHAT_EN = {
    "you": "u", "are": "r", "please": "plz", "for": "fr", "how": "hw", "what": "wat", "the": "da",
    "and": "n", "with": "w/", "much": "mch", "about": "abt", "when": "wen", "would": "wud", "add": "ad",
}  # fmt: skip
CHAT_ZH = str.maketrans("怎么什谁听买歌开灯打钱说", "咋麼啥誰聽買歌開燈打錢說")


def apply(text: str, kind: str, number: int, lang: str, pieces: tuple[str, ...] = ()) -> str:
    """The variant of ``text`` that noise of ``kind`` makes from ``number``."""
    return text if kind == "clean" else _OPERATIONS[kind](text, number, lang)


def _decoration(text: str, number: int, lang: str) -> str:
    ornament = DECORATIONS[number % len(DECORATIONS)]
    if ornament in ("「」", "()"):
        return ornament[0] + text + ornament[1]
    return ornament.strip() + " " + text if number >> 8 & 3 == 0 else text + ornament


def _tag(text: str, number: int, lang: str) -> str:
    if lang not in ("zh", "en"):
        return _decoration(text, number, lang)
    zh = lang == "zh"
    blank = "" if zh else " "
    if number & 1:
        closers = CLOSERS_ZH if zh else CLOSERS_EN
        return text + blank + closers[(number >> 1) % len(closers)]
    openers = OPENERS_ZH if zh else OPENERS_EN
    return openers[(number >> 1) % len(openers)] + blank + text


def _keyboard(text: str, number: int, lang: str) -> str:
    places = [i for i in range(1, len(text)) if text[i].lower() in BESIDE and text[i - 1].isalpha()]
    if len(places) < 4 or lang != "en":
        return _split(text, number, lang)
    at = places[number % len(places)]
    extra = BESIDE[text[at].lower()]
    return text[:at] + extra + text[at + (number >> 8 & 1) :]


def _chat(text: str, number: int, lang: str) -> str:
    if lang == "zh":
        return text.translate(CHAT_ZH)
    words = text.split(" ")
    short = [CHAT_EN.get(word, word) for word in words]
    return " ".join(short) if short != words else text + " plz"


def _split(text: str, number: int, lang: str) -> str:
    places = [i for i in range(2, len(text) - 1) if text[i].isalpha() and text[i - 1].isalpha()]
    if not places:
        return text
    at = places[number % len(places)]
    return text[:at] + " " + text[at:]


def _tail_cut(text: str, number: int, lang: str) -> str:
    return text[:-1] if len(text) > 7 and text[-1].isalpha() and lang != "zh" else text + "的"[: lang == "zh"]


def _stutter(text: str, number: int, lang: str) -> str:
    if lang in ("zh", "ja"):
        at = number % min(3, len(text))
        return text if text[at].isdigit() else text[:at] + text[at] + text[at:]
    first = text.split(" ")[0]
    return text if any(c.isdigit() for c in first) else first + " " + text


_OPERATIONS: dict[str, Callable[[str, int, str], str]] = {
    "decoration": _decoration,
    "tag": _tag,
    "keyboard": _keyboard,
    "chat": _chat,
    "split": _split,
    "tail_cut": _tail_cut,
    "stutter": _stutter,
}
