"""What may happen to a query between the head of a person and the log, family A.

Every operation is a pure function of the text and a 64-bit number, so the same variant of a query is always the same
string. No operation touches a digit: a query with other digits is another query.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["KINDS", "SHARES", "apply"]

# Kinds of noise in the order of their numbers. `surface` keeps the normal form, the others change it.
KINDS = ("clean", "surface", "filler", "hesitation", "repeat", "mishearing", "typo", "spacing", "spoken")
# Probability of each kind by source.
SHARES = {
    "voice": (0.76, 0.065, 0.08, 0.02, 0.015, 0.035, 0.0, 0.0, 0.025),
    "typed": (0.735, 0.19, 0.01, 0.0, 0.0, 0.01, 0.04, 0.015, 0.0),
    "web": (0.73, 0.22, 0.0, 0.0, 0.0, 0.0, 0.03, 0.02, 0.0),
    "widget": (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
}

HEAD_ZH = (
    "嗯", "呃", "啊", "那个", "请问", "你好", "帮我查一下", "麻烦你", "我想问一下", "请帮我", "喂", "哎", "那什么",
    "就是", "帮忙看下", "嗯那个", "我想问问", "你帮我",
)  # fmt: skip
TAIL_ZH = ("吧", "啊", "呢", "谢谢", "一下", "好吗", "哈", "呀", "谢谢你", "可以吗", "嘛", "哦")
INSIDE_ZH = ("呃", "嗯", "那个", "就是", "啊")
HEAD_EN = ("um", "uh", "hey", "please", "ok so", "hi", "can you", "could you please", "er", "so", "well", "hey map")
TAIL_EN = ("please", "thanks", "thank you", "okay", "for me", "will you")
INSIDE_EN = ("um", "uh", "er", "like", "you know")
END_ZH = ("？", "。", "?", "！", "～", "...", "??", "。。", " ", "、", "!")
END_EN = ("?", ".", "!", "??", "...", " ", " ?", ",")
# Characters that sound alike: each is misheard as the next of its group.
SOUND_GROUPS_ZH = (
    "的得 在再 坐做座作 到道 近进 站战 哪那 里理李 走揍 家加 路录 店点 天添 气汽 么吗 附付 找照 公工 "
    "园圆 院愿 查茶 去趣 有又 要药 想像 帮邦 机鸡 场厂 医衣 停亭 车彻 馆管 酒久 便变 高糕 铁贴 油由 "
    "电店 充冲 桩装 湖胡 山衫 海害 州洲 京经 城成 桥乔 东冬 南男 西希 北背 中忠 安按 宁凝 苏素 杭航 "
    "重众 庆请 广光 深身 圳镇 都嘟 汉汗 区屈 号好 怎早 导倒 航行 多夺 少绍 远院 钱前 票飘 订定 餐参 "
    "厅听 吃迟 好号 玩完 旅吕 游由 景井 点典 周洲 末沫 明名 后候 今金 晚碗 早找 情晴 况矿 堵赌 限线 "
    "行形 评平 价架 推退 荐见 适是 合河 带戴 孩害 "
)
SOUND_ALIKE_ZH = {
    group[i]: group[(i + 1) % len(group)] for group in SOUND_GROUPS_ZH.split() for i in range(len(group))
}
DROPPABLE_ZH = set("的了吗呢我请下个有是去在要到")
STRAY_ZH = ("de", "g", "j", "'", "的", "了", "d", "a", "n", "h")
SOUND_ALIKE_EN = {
    "weather": "whether", "there": "their", "where": "wear", "route": "root", "near": "neer", "by": "buy",
    "station": "stayshun", "right": "write", "restaurant": "restaraunt", "hotel": "hotell", "pharmacy": "farmacy",
    "airport": "air port", "train": "trane", "directions": "direction", "navigate": "navigated", "quiet": "quite",
    "cheap": "cheep", "beach": "beech", "bus": "buss", "way": "weigh", "traffic": "trafic", "nearest": "nearist",
    "museum": "musem", "itinerary": "itinery", "in": "inn", "plan": "plane", "weekend": "week end",
    "tomorrow": "tomorow", "tonight": "to night",
}  # fmt: skip
NEIGHBOURS = dict(zip("qwertyuiopasdfghjklzxcvbnm", "wqrtyuiopisdfghjklkxcvbnmn", strict=True))
WORD = re.compile(r"(?<![\w@.])[A-Za-z']{4,}(?![\w@]|\.\w)")
FULL_WIDTH = {ord(c): ord(c) + 0xFEE0 for c in "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"}


def apply(text: str, kind: str, number: int, lang: str, pieces: tuple[str, ...] = ()) -> str:
    """The variant of ``text`` that noise of ``kind`` makes from ``number``; the text itself where it has no hold.

    Args:
        text: The query as it was meant.
        kind: One of :data:`KINDS`.
        number: 64 random bits that decide where and how.
        lang: Language of the text.
        pieces: The text in its parts, for noise that falls between them.
    """
    return text if kind == "clean" else _OPERATIONS[kind](text, number, lang == "zh", pieces)


def _surface(text: str, number: int, zh: bool, pieces: tuple[str, ...]) -> str:
    way, number = number % 20, number // 20
    if way < 11:
        ends = END_ZH if zh else END_EN
        return text + ends[number % len(ends)]
    if way < 13:
        return " " + text if number % 2 else text + "\n"
    if way == 13:
        return text.translate(FULL_WIDTH)
    if way == 14:
        return "\u200b" + text if number % 2 else "\ufeff" + text
    if zh:
        return ("“" + text + "”", text + "？？？", "【" + text + "】", "，" + text, text + "……")[way - 15]
    return (text.upper(), text.title(), text.lower(), text.capitalize(), text.replace(" ", "  "))[way - 15]


def _filler(text: str, number: int, zh: bool, pieces: tuple[str, ...]) -> str:
    head, tail, blank = (HEAD_ZH, TAIL_ZH, "") if zh else (HEAD_EN, TAIL_EN, " ")
    way, number = number % 10, number // 10
    if way < 5:
        return head[number % len(head)] + blank + text
    if way < 8:
        return text + blank + tail[number % len(tail)]
    return head[number % len(head)] + blank + text + blank + tail[(number >> 8) % len(tail)]


def _hesitation(text: str, number: int, zh: bool, pieces: tuple[str, ...]) -> str:
    words = INSIDE_ZH if zh else INSIDE_EN
    word = words[number % len(words)]
    parts = _parts(text, pieces)
    if len(parts) < 2:
        return _filler(text, number, zh, pieces)
    at = 1 + (number >> 8) % (len(parts) - 1)
    head, tail = "".join(parts[:at]), "".join(parts[at:])
    return head + word + tail if zh else f"{head.rstrip()} {word} {tail.lstrip()}"


def _repeat(text: str, number: int, zh: bool, pieces: tuple[str, ...]) -> str:
    way, number = number % 10, number // 10
    if way < 4 or len(text) < 4:
        return text + ("" if zh else " ") + text
    if zh:
        length = 2 + number % min(3, len(text) - 2)
        head = text[:length]
        return text if any(c.isascii() for c in head) else head + text
    first = text.split(" ")[: 1 + number % 2]
    return " ".join(first) + " " + text


def _mishearing(text: str, number: int, zh: bool, pieces: tuple[str, ...]) -> str:
    if not zh:
        words = text.split(" ")
        found = [i for i, word in enumerate(words) if SOUND_ALIKE_EN.get(word.lower(), word) != word]
        if not found:
            return _typo(text, number, zh, pieces)
        at = found[number % len(found)]
        words[at] = SOUND_ALIKE_EN[words[at].lower()]
        return " ".join(words)
    places = [i for i, c in enumerate(text) if c in SOUND_ALIKE_ZH]
    if len(text) < 4 or not places:
        return _filler(text, number, zh, pieces)
    at = places[number % len(places)]
    out = text[:at] + SOUND_ALIKE_ZH[text[at]] + text[at + 1 :]
    if len(text) > 9 and (number >> 16) % 3 == 0:
        at = places[(number >> 20) % len(places)]
        out = out[:at] + SOUND_ALIKE_ZH[text[at]] + out[at + 1 :]
    return out


def _typo(text: str, number: int, zh: bool, pieces: tuple[str, ...]) -> str:
    if zh:
        return _typo_zh(text, number)
    words = list(WORD.finditer(text))
    if not words:
        return text
    match = words[number % len(words)]
    word, way, number = match[0], (number >> 8) % 4, number >> 10
    at = 1 + number % (len(word) - 2)
    if way == 0:
        word = word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    elif way == 1:
        word = word[:at] + word[at + 1 :]
    elif way == 2:
        word = word[:at] + word[at] + word[at:]
    else:
        word = word[:at] + NEIGHBOURS.get(word[at], "e") + word[at + 1 :]
    return text[: match.start()] + word + text[match.end() :]


def _typo_zh(text: str, number: int) -> str:
    way, number = number % 3, number // 3
    if len(text) < 4:
        return text + STRAY_ZH[number % len(STRAY_ZH)]
    if way == 0:
        places = [i for i, c in enumerate(text) if c in DROPPABLE_ZH]
        if places:
            at = places[number % len(places)]
            return text[:at] + text[at + 1 :]
    places = [i for i in range(1, len(text)) if not text[i].isascii() and not text[i - 1].isascii()]
    if not places:
        return text
    at = places[number % len(places)]
    if way == 1:
        return text[:at] + text[at] + text[at:]
    return text[:at] + STRAY_ZH[(number >> 12) % len(STRAY_ZH)] + text[at:]


def _spacing(text: str, number: int, zh: bool, pieces: tuple[str, ...]) -> str:
    if zh:
        parts = _parts(text, pieces)
        return " ".join(part.strip() for part in parts) if len(parts) > 1 else text[:2] + " " + text[2:]
    blanks = [i for i, c in enumerate(text) if c == " " and text[i - 1].isalpha() and text[i + 1 : i + 2].isalpha()]
    if not blanks:
        return text
    at = blanks[number % len(blanks)]
    return text[:at] + ("" if (number >> 8) % 3 else "-") + text[at + 1 :]


def _spoken(text: str, number: int, zh: bool, pieces: tuple[str, ...]) -> str:
    """Two or three slips of speech at once."""
    first: tuple[Callable[..., str], ...] = (_mishearing, _hesitation, _repeat)
    out = first[number % 3](text, number >> 4, zh, pieces)
    return _filler(out, number >> 24, zh, ())


def _parts(text: str, pieces: tuple[str, ...]) -> tuple[str, ...]:
    if pieces and "".join(pieces) == text:
        return tuple(piece for piece in pieces if piece.strip())
    return (text,)


_OPERATIONS: dict[str, Callable[[str, int, bool, tuple[str, ...]], str]] = {
    "surface": _surface,
    "filler": _filler,
    "hesitation": _hesitation,
    "repeat": _repeat,
    "mishearing": _mishearing,
    "typo": _typo,
    "spacing": _spacing,
    "spoken": _spoken,
}
