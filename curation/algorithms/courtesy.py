"""Words that ask or thank and do not change what is asked for.

In the languages of the shipped domain and some more. They do not count at the ends of a text when near-duplicates are
judged; a recipe may give its own list.
"""

from __future__ import annotations

__all__ = ["COURTESY"]

COURTESY: tuple[str, ...] = (
    *("please", "pls", "plz", "hey", "hi", "hello", "ok google", "hey google", "hey siri", "alexa", "can you"),
    *("could you", "would you", "i want", "i want to", "i want to know", "i would like to", "i need", "i need to"),
    *("help me", "show me", "tell me", "give me", "find me", "find", "for me", "thanks", "thank you"),
    *("por favor", "bitte", "s il vous plaît", "svp", "per favore", "пожалуйста", "من فضلك", "कृपया"),
    *("请", "请问", "帮我", "帮忙", "帮我查", "帮我找", "查一下", "查查", "麻烦", "麻烦你", "你好", "您好"),
    *("我想", "我要", "我想要", "我想知道", "想知道", "能不能", "可以吗", "好吗", "谢谢", "谢谢你", "一下"),
    *("吧", "啊", "呀", "呢", "哦", "吗", "嘛", "了", "教えて", "ください", "お願いします", "알려줘", "주세요"),
)
