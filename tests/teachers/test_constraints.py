"""Constraints are found with the right dimension and value, at the exact code points."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import curation.teachers.embedded.constraints as module
from curation.domain import Dimension, Domain, LexiconEntry, Pattern, Wording, load_domain
from curation.errors import CurationError
from curation.teachers.embedded.constraints import CONSTRAINTS, Recogniser, recognise

# A text and what stands in it: dimension, value, words; the words in the order of the text.
GOLDEN: list[tuple[str, list[tuple[str, str, str]]]] = [
    ("附近有没有修手机的", [("spatial_scope", "near_me", "附近")]),
    ("方圆三公里内的游泳馆", [("spatial_scope", "<=3km", "方圆三公里内")]),
    ("离地铁口不超过500米的公寓", [("spatial_scope", "<=0.5km", "不超过500米")]),
    ("步行十分钟以内的早餐铺", [("spatial_scope", "<=10min_walk", "步行十分钟以内")]),
    ("开车一个半小时左右能到的露营地", [("spatial_scope", "<=90min_drive", "开车一个半小时左右能到的")]),
    ("西溪湿地周边的民宿", [("spatial_scope", "near:西溪湿地", "西溪湿地周边")]),
    ("帮我推荐三里屯附近的面馆", [("spatial_scope", "near:三里屯", "三里屯附近")]),
    ("在滨江区找个羽毛球馆", [("spatial_scope", "in:滨江区", "滨江区")]),
    ("离浦东图书馆最近的停车场", [("spatial_scope", "nearest:浦东图书馆", "离浦东图书馆最近的")]),
    (
        "雪梨大厦和金鹰广场中间的咖啡厅",
        [("spatial_scope", "between:雪梨大厦..金鹰广场", "雪梨大厦和金鹰广场中间")],
    ),
    (
        "往西开的服务区，不能向东",
        [("spatial_scope", "direction:west", "往西"), ("spatial_scope", "not_direction:east", "不能向东")],
    ),
    ("明天下午三点从苏州出发", [("time.departure", "tomorrow_15:00", "明天下午三点")]),
    ("后天上午十点之前到虹桥机场", [("time.arrival", "<=day_after_tomorrow_10:00", "后天上午十点之前")]),
    (
        "我要赶十四点二十的动车",
        [("time.departure", "14:20", "十四点二十"), ("transport_mode", "high_speed_train", "动车")],
    ),
    ("半小时后出发去接人", [("time.departure", "+30min", "半小时后")]),
    ("国庆去敦煌玩五天四晚", [("time.when", "national_day", "国庆"), ("time.duration", "5days", "五天四晚")]),
    ("10月1号到10月7号的酒店", [("time.when", "10-01..10-07", "10月1号到10月7号")]),
    ("2026年10月1日的票", [("time.departure", "2026-10-01", "2026年10月1日")]),
    ("这个周末带爸妈去泡温泉", [("time.when", "this_weekend", "这个周末"), ("party", "with_parents", "带爸妈")]),
    ("今晚八点半还营业的药店", [("time.opening", "open_at_today_20:30", "今晚八点半还营业")]),
    ("24小时营业的自习室", [("time.opening", "open_24h", "24小时营业")]),
    (
        "周六早上九点出发，晚上回来",
        [("time.departure", "saturday_09:00", "周六早上九点"), ("time.arrival", "evening", "晚上")],
    ),
    ("下个月初去大理住三晚", [("time.when", "next_month_early", "下个月初"), ("time.duration", "3nights", "三晚")]),
    ("大概需要两三个小时的徒步路线", [("time.duration", "120-180min", "两三个小时")]),
    ("人均100以内的烤肉", [("budget", "<=100cny_per_person", "人均100以内")]),
    ("预算不超过两千", [("budget", "<=2000cny", "预算不超过两千")]),
    ("预算两千五", [("budget", "<=2500cny", "预算两千五")]),
    (
        "每晚三百到五百元的海景房",
        [("budget", "300cny..500cny_per_night", "每晚三百到五百元"), ("preference.quality", "sea_view", "海景房")],
    ),
    ("一百五以内的头盔", [("budget", "<=150cny", "一百五以内")]),
    ("免费的博物馆", [("budget", "free", "免费的")]),
    ("不想坐地铁", [("transport_mode", "not_metro", "不想坐地铁")]),
    ("要不要坐地铁", [("transport_mode", "metro", "坐地铁")]),
    ("不坐飞机去三亚", [("transport_mode", "not_plane", "不坐飞机")]),
    ("别打车了，骑车过去", [("transport_mode", "not_taxi", "别打车"), ("transport_mode", "bike", "骑车")]),
    ("从地铁站到步行街，301路去不去火车站", []),
    ("带孩子去动物园", [("party", "with_children", "带孩子")]),
    ("我们三个人分别在不同地方", [("party", "3_people", "三个人")]),
    ("两大一小去迪士尼", [("party", "2_adults_1_children", "两大一小")]),
    ("和女朋友吃饭，要安静", [("party", "couple", "和女朋友"), ("preference.quality", "quiet", "安静")]),
    ("不辣的川菜", [("preference.taste", "not_spicy", "不辣的")]),
    (
        "能停车，有包间，可以充电",
        [
            ("preference.facility", "parking", "能停车"),
            ("preference.facility", "private_room", "有包间"),
            ("preference.facility", "charging", "可以充电"),
        ],
    ),
    (
        "人少的地方，不用排队",
        [("preference.avoid", "crowds", "人少的地方"), ("preference.avoid", "queues", "不用排队")],
    ),
    ("评分4.5以上的牙科", [("preference.quality", "rating>=4.5", "评分4.5以上")]),
    (
        "不走高速去宁波，避开收费站",
        [("route.avoid", "motorways", "不走高速"), ("route.avoid", "tolls", "避开收费站")],
    ),
    ("途经扬州去南京，中途加油", [("route.via", "via:扬州", "途经扬州"), ("route.via", "stop:加油", "中途加油")]),
    ("走最快的路，少换乘", [("route.prefer", "fastest", "最快的"), ("route.prefer", "fewest_changes", "少换乘")]),
    ("先去超市再去学校", [("route.via", "via:超市", "先去超市")]),
    ("推荐三个适合发呆的地方", [("quantity", "3", "三个"), ("preference.quality", "relaxing", "发呆")]),
    ("给我找一个停车场", []),
    ("海棠区长宁路18号到城南客运站", []),
    ("３公里以內，兩天一夜", [("spatial_scope", "<=3km", "３公里以內"), ("time.duration", "2days", "兩天一夜")]),
    (
        "😀😀附近的🍜面馆，人均50元以内",
        [("spatial_scope", "near_me", "附近"), ("budget", "<=50cny_per_person", "人均50元以内")],
    ),
    (
        "quiet cafe near me with wifi",
        [
            ("preference.quality", "quiet", "quiet"),
            ("spatial_scope", "near_me", "near me"),
            ("preference.facility", "wifi", "with wifi"),
        ],
    ),
    (
        "within 20 minutes' drive, no spicy food",
        [
            ("spatial_scope", "<=20min_drive", "within 20 minutes' drive"),
            ("preference.taste", "not_spicy", "no spicy"),
        ],
    ),
    (
        "a sushi bar in Manhattan under $50 per person",
        [("spatial_scope", "in:manhattan", "in Manhattan"), ("budget", "<=50usd_per_person", "under $50 per person")],
    ),
    ("hotels between $80 and $120 a night", [("budget", "80usd..120usd_per_night", "between $80 and $120 a night")]),
    ("under sixty quid", [("budget", "<=60gbp", "under sixty quid")]),
    (
        "NEXT FRIDAY 7PM table for six people",
        [("time.when", "next_friday_19:00", "NEXT FRIDAY 7PM"), ("party", "6_people", "six people")],
    ),
    ("leave at 8:30 tomorrow morning", [("time.departure", "tomorrow_08:30", "8:30 tomorrow morning")]),
    ("half past seven this evening", [("time.when", "today_19:30", "half past seven this evening")]),
    ("I need to arrive by 6pm on Saturday", [("time.arrival", "<=saturday_18:00", "by 6pm on Saturday")]),
    (
        "two weeks in Portugal with my parents",
        [
            ("time.duration", "14days", "two weeks"),
            ("spatial_scope", "in:portugal", "in Portugal"),
            ("party", "with_parents", "with my parents"),
        ],
    ),
    ("three-day trip in October", [("time.duration", "3days", "three-day"), ("time.when", "10-xx", "in October")]),
    ("until the 11th of March", [("time.when", "<=03-11", "until the 11th of March")]),
    ("from Monday to Wednesday", [("time.when", "monday..wednesday", "from Monday to Wednesday")]),
    (
        "avoid tolls, scenic route",
        [("route.avoid", "tolls", "avoid tolls"), ("route.prefer", "scenic", "scenic route")],
    ),
    (
        "no motorways please, via Oxford",
        [("route.avoid", "motorways", "no motorways"), ("route.via", "via:oxford", "via Oxford")],
    ),
    ("coffee on the way to work", [("spatial_scope", "along_route", "on the way")]),
    ("half an hour by bike", [("spatial_scope", "<=30min_bike", "half an hour by bike")]),
    ("a spot within five miles of here", [("spatial_scope", "<=5mi", "within five miles of here")]),
    (
        "open until midnight on Sunday",
        [("time.opening", "open_until_sunday_midnight", "open until midnight on Sunday")],
    ),
    ("recommend five museums for kids", [("quantity", "5", "five museums"), ("party", "with_children", "for kids")]),
    (
        "not crowded, no queues",
        [("preference.avoid", "crowds", "not crowded"), ("preference.avoid", "queues", "no queues")],
    ),
    ("something cheap and vegan", [("budget", "low", "cheap"), ("preference.taste", "vegan", "vegan")]),
    (
        "not by train, I'd rather fly",
        [("transport_mode", "not_train", "not by train"), ("transport_mode", "plane", "fly")],
    ),
    ("two adults and three children", [("party", "2_adults_3_children", "two adults and three children")]),
    ("halfway between Leeds and York", [("spatial_scope", "between:leeds..york", "halfway between Leeds and York")]),
    ("a scar on the card at the train station", []),
    ("去KFC不要spicy的", [("preference.taste", "not_spicy", "不要spicy")]),
    ("thanks, that is all", []),
    # A bare town says where something is wanted, not where a way begins or ends.
    ("泉州有哪些老茶馆", [("spatial_scope", "in:泉州", "泉州")]),
    ("从厦门去泉州要多久", []),
    (
        "昆明两小时车程以内的温泉",
        [("spatial_scope", "in:昆明", "昆明"), ("spatial_scope", "<=120min_drive", "两小时车程以内")],
    ),
    ("我家旁边的裁缝铺", [("spatial_scope", "near:我家", "我家旁边")]),
    # What is asked for itself is no constraint; what a place must have is one.
    ("前台有充电桩吗", []),
    (
        "带充电桩的民宿有停车场",
        [("preference.facility", "charging", "带充电桩"), ("preference.facility", "parking", "有停车场")],
    ),
    ("最好靠窗", []),
    ("动车票还有吗", [("transport_mode", "high_speed_train", "动车")]),
    ("去体育馆坐几路车", [("transport_mode", "bus", "坐几路车")]),
    ("图书馆现在人多不多", [("time.when", "now", "现在")]),
    ("厦门四天怎么玩", [("time.duration", "4days", "四天")]),
    ("川菜馆排行榜五家", [("quantity", "5", "五家")]),
    ("部门团建三十人的农家乐", [("party", "colleagues_30_people", "部门团建三十人")]),
    ("去车站换乘次数最少", [("route.prefer", "fewest_changes", "换乘次数最少")]),
    ("within an hour's walk", [("spatial_scope", "<=60min_walk", "within an hour's walk")]),
    ("a room for a team of twelve", [("party", "12_people", "team of twelve")]),
    ("how much is a taxi", [("transport_mode", "taxi", "taxi")]),
    (
        "via Oxford avoiding tolls",
        [("route.via", "via:oxford", "via Oxford"), ("route.avoid", "tolls", "avoiding tolls")],
    ),
]


@pytest.fixture(scope="module")
def domain() -> Domain:
    return load_domain("map_travel")


@pytest.fixture(scope="module")
def recogniser(domain: Domain) -> Recogniser:
    return Recogniser(domain)


def spans(text: str, expected: list[tuple[str, str, str]]) -> list[dict[str, object]]:
    """The expected constraints with their offsets, every one looked for after the one before."""
    result = []
    at = 0
    for dimension, value, words in expected:
        start = text.index(words, at)
        at = start + len(words)
        result.append({"dimension": dimension, "value": value, "text": words, "start": start, "end": at})
    return result


def test_golden_rows(recogniser: Recogniser) -> None:
    texts = [text for text, _ in GOLDEN]
    found = recogniser.recognise(texts)
    assert found.dtype == CONSTRAINTS
    wrong = [
        (text, got, want)
        for (text, expected), got in zip(GOLDEN, found.to_list(), strict=True)
        if got != (want := spans(text, expected))
    ]
    assert not wrong


def test_offsets_are_code_points_of_the_text_as_given(recogniser: Recogniser) -> None:
    (found,) = recogniser.recognise(["👨‍👩‍👧 𠮷野家 ＮＥＡＲ　ＭＥ, cheap"]).to_list()
    assert [(item["text"], item["start"], item["end"]) for item in found] == [
        ("ＮＥＡＲ　ＭＥ", 10, 17),
        ("cheap", 19, 24),
    ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.lists(
            st.sampled_from([text for text, _ in GOLDEN])
            | st.text(max_size=4)
            | st.sampled_from([" ", "，", "😀", "ﬁ", "İ"]),
            max_size=4,
        ).map("".join),
        max_size=4,
    )
)
def test_spans_are_exact_sorted_and_apart(recogniser: Recogniser, texts: list[str]) -> None:
    for text, found in zip(texts, recogniser.recognise(texts).to_list(), strict=True):
        end = 0
        for item in found:
            assert item["text"] == text[item["start"] : item["end"]] != ""
            assert item["start"] >= end
            end = item["end"]
        pairs = [(item["dimension"], item["value"]) for item in found]
        assert len(pairs) == len(set(pairs))


def test_t10_order_and_size_of_blocks_do_not_matter(recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text for text, _ in GOLDEN]
    expected = dict(zip(texts, recogniser.recognise(texts).to_list(), strict=True))
    random.Random(3).shuffle(texts)
    monkeypatch.setattr(module, "_BLOCK", 7)
    assert dict(zip(texts, recogniser.recognise(texts).to_list(), strict=True)) == expected


def test_literals_never_hide_a_match(domain: Domain, recogniser: Recogniser) -> None:
    texts = [text for text, _ in GOLDEN] + [seed.text for seed in domain.seeds[::9]]
    unfiltered = Recogniser(domain)
    unfiltered._rules = [replace(rule, required=()) for rule in unfiltered._rules]
    assert unfiltered.recognise(texts).to_list() == recogniser.recognise(texts).to_list()


def test_texts_may_be_none_empty_or_a_series(recogniser: Recogniser) -> None:
    assert recogniser.recognise([]).to_list() == []
    found = recogniser.recognise(pl.Series("query", [None, "", "cheap"]), pl.Series(["en", None, "en"]))
    assert [len(items) for items in found.to_list()] == [0, 0, 1]


def test_a_repeated_constraint_is_told_once(recogniser: Recogniser) -> None:
    (found,) = recogniser.recognise(["附近的面馆，就附近"]).to_list()
    assert [(item["value"], item["start"]) for item in found] == [("near_me", 0)]


def test_every_value_is_canonical(domain: Domain) -> None:
    for dimension in domain.dimensions.values():
        for entry in dimension.lexicon:
            assert entry.value.isascii() and " " not in entry.value, (dimension.name, entry)


def small(
    domain: Domain, *dimensions: Dimension, wording: Wording | None = None, languages: tuple[str, ...] = ()
) -> Domain:
    return replace(
        domain,
        dimensions={dimension.name: dimension for dimension in dimensions},
        wording=wording or Wording(),
        languages=languages or domain.languages,
    )


def test_a_domain_without_dimensions_gives_no_constraints(domain: Domain) -> None:
    assert recognise(["附近", "cheap"], ["zh", "en"], small(domain)).to_list() == [[], []]


def test_longest_match_wins_then_the_earlier_dimension(domain: Domain) -> None:
    first = Dimension(
        "first", "", (LexiconEntry("short", "en", "night"), LexiconEntry("same", "en", "late night bus"))
    )
    second = Dimension(
        "second", "", (LexiconEntry("long", "en", "late night"), LexiconEntry("other", "en", "late night bus"))
    )
    found = recognise(["late night", "late night bus"], None, small(domain, first, second)).to_list()
    assert [[item["value"] for item in items] for items in found] == [["long"], ["same"]]


def test_wording_of_another_language_in_the_same_script_does_not_count(domain: Domain) -> None:
    color = Dimension(
        "c",
        "",
        (
            LexiconEntry("cheap", "en", "cheap"),
            LexiconEntry("because", "fr", "car"),
            LexiconEntry("low", "zh", "便宜"),
        ),
    )
    of_three = small(domain, color, languages=("en", "fr", "zh"))
    texts = ["car cheap 便宜"] * 4
    found = recognise(texts, ["en", "fr", "zh", "und"], of_three).to_list()
    values = [[item["value"] for item in items] for items in found]
    everything = ["because", "cheap", "low"]
    assert values == [["cheap", "low"], ["because", "low"], everything, everything]


def test_a_pattern_without_any_literal_still_matches(domain: Domain) -> None:
    anything = Dimension("d", "", (), (Pattern("{w}", "en", r"(?P<w>[^ ]{9,})"),))
    assert recognise(["a gargantuan one"], None, small(domain, anything)).to_list()[0][0]["value"] == "gargantuan"


@pytest.mark.parametrize(
    ("value", "regex", "words"),
    [
        ("x", "(unclosed", "never closed"),
        ("x", r"(?P<n>\d+)(?(n)a|b)", "not supported"),
        ("{m}", r"(?P<n>\d+)", "'m'"),
        ("{n:nowhere}", r"(?P<n>\d+)", "'nowhere'"),
        ("{n*n:nowhere}", r"(?P<n>\d+)", "'nowhere'"),
    ],
)
def test_a_wrong_pattern_is_told_by_dimension(domain: Domain, value: str, regex: str, words: str) -> None:
    wrong = Dimension("weight", "", (), (Pattern(value, "en", regex),))
    with pytest.raises(CurationError, match="pattern of weight") as caught:
        Recogniser(small(domain, wrong))
    assert words in str(caught.value)
