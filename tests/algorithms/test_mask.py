from __future__ import annotations

import string

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.mask import KINDS, mask, mask_one, masked_kinds, without_placeholders
from curation.algorithms.normalise import normalise_one

FOUND = [
    # phones: Chinese mobile
    ("打电话给13812345678", "打电话给<phone>"),
    ("13812345678", "<phone>"),
    ("我的号码是138-1234-5678，谢谢", "我的号码是<phone>，谢谢"),
    ("138 1234 5678", "<phone>"),
    ("１３８１２３４５６７８是谁的号", "<phone>是谁的号"),
    ("+86 138 1234 5678", "<phone>"),
    ("(+86)13812345678", "<phone>"),
    ("008613812345678", "<phone>"),
    ("Tel13812345678", "Tel<phone>"),
    ("13812345678,13912345678", "<phone>,<phone>"),
    # landline
    ("010-62345678", "<phone>"),
    ("(010)62345678怎么打不通", "<phone>怎么打不通"),
    ("（0755）8234 5678", "<phone>"),
    ("0571 87654321转801", "<phone>"),
    ("02162345678", "<phone>"),
    ("导航到电话是62345678的那家店", "导航到电话是<phone>的那家店"),
    ("call 6234 5678 for me", "call <phone> for me"),
    # international
    ("text +44 20 7946 0958 please", "text <phone> please"),
    ("+1 (415) 555-2671", "<phone>"),
    ("+4915112345678", "<phone>"),
    ("(415) 555-2671", "<phone>"),
    ("my number is 415-555-2671.", "my number is <phone>."),
    ("dial 4155552671", "dial <phone>"),
    # e-mail
    ("发到zhang.san@qq.com吧", "发到<email>吧"),
    ("mail a.b+c@mail.example.co.uk now", "mail <email> now"),
    ("ｚｈａｎｇ＠１６３．ｃｏｍ", "<email>"),
    # ID cards
    ("身份证11010519491231002X买票", "身份证<id_card>买票"),
    ("440524188001010014", "<id_card>"),
    ("110105 19491231 002x", "<id_card>"),
    ("身份证号130503670401001", "身份证号<id_card>"),
    # bank cards
    ("卡号6222600260001072444余额", "卡号<bank_card>余额"),
    ("4111 1111 1111 1111", "<bank_card>"),
    ("pay with 5500-0000-0000-0004", "pay with <bank_card>"),
    ("3782 822463 10005", "<bank_card>"),
    # plates
    ("京A12345违章查询", "<plate>违章查询"),
    ("粤B·8888K限行吗", "<plate>限行吗"),
    ("粤b8888k", "<plate>"),
    ("沪AD12345", "<plate>"),
    ("粤B12345D在哪", "<plate>在哪"),
    ("川A1234警", "<plate>"),
    ("车牌京CA1234", "车牌<plate>"),
    ("鲁Ｂ１２３４５", "<plate>"),
    # coordinates
    ("导航到39.9087,116.3975", "导航到<coordinates>"),
    ("116.397128, 39.916527", "<coordinates>"),
    ("(39.916527，116.397128)附近", "(<coordinates>)附近"),
    ("lat=-33.8688&lng=151.2093", "lat=<coordinates>"),
    ("北纬39.9087 东经116.3975", "北纬<coordinates>"),
    ("北纬39.9087°，东经116.3975°是哪", "北纬<coordinates>是哪"),
    ("40.7128° N, 74.0060° W", "<coordinates>"),
    ("39°54'27\"N 116°23'17\"E", "<coordinates>"),
    # several
    ("京A12345的车主13812345678", "<plate>的车主<phone>"),
]

KEPT = [
    # flights and trains
    "G1234次列车几点到", "CA1234航班延误吗", "去北京CA1234航班", "上海到北京MU5101", "天津G12次", "北京D1234到站时间",
    "从南京CZ3456飞广州", "flight UA 1175 to SFO", "K7815次 T110 Z38", "3U8888 9C8899",
    # prices, amounts, distances
    "1299元的酒店", "prices under $1,299.99", "预算15000000元", "人均12.345万", "500公里以内", "开13.5公里要多久",
    "123456789米", "3.1415926", "汇率7.123 多少", "1.2.3456 version",
    # dates and times
    "20260701出发", "2026-07-01 12:30:00", "2026.07.01到2026.07.08", "2026年7月1日", "call me on 2026-07-01",
    "20260701-20260708", "07:30-21:45", "07012026", "拨打时间20260701",
    # postcodes, numbers of houses, roads and places
    "邮编100080", "zip 94105-1234", "中关村大街27号1101室", "G2高速", "京G6出口", "S32申嘉湖", "京藏高速G6",
    "B0FFG9QTE1", "poi 1234567890", "POI id B000A83M61", "订单SF13812345678", "isbn 9787111128069",
    # hotlines, short numbers
    "12306电话", "dial 911 now", "10086", "拨打95588", "400-810-1234", "客服400 810 1234", "call 800-555-1234",
    "12345热线",
    # others
    "iphone 15 128gb", "地铁10号线", "windows 11", "版本 10.0.19045", "192.168.100.200", "新A股", "京东", "沪深300",
    "@小明 在哪", "c++ 11 @ home", "川菜", "苏A", "云南", "12345678", "1+1=2", "1234567890123456", "100.000 200.000",
]  # fmt: skip


@pytest.mark.parametrize(("text", "masked"), FOUND)
def test_personal_data_is_masked(text, masked):
    assert mask_one(text) == masked


@pytest.mark.parametrize("text", KEPT)
def test_other_numbers_stay(text):
    assert mask_one(text) == text


def test_the_prefilter_loses_nothing():
    texts = [text for text, _ in FOUND] + KEPT
    assert mask(pl.Series(texts)).to_list() == [mask_one(text) for text in texts]


numbers = st.lists(
    st.one_of(
        st.text("0123456789", min_size=1, max_size=11),
        st.text(string.ascii_letters + " -.,()+@°°度１２京粤·", max_size=3),
        st.sampled_from(["13812345678", "39.9087,116.3975", "电话", "a@b.cn", "京A", "12345"]),
    ),
    max_size=6,
).map("".join)


@settings(max_examples=400, deadline=None)
@given(numbers)
def test_the_prefilter_loses_nothing_of_random_texts(text):
    assert mask(pl.Series([text])).to_list() == [mask_one(text)]


@settings(deadline=None)
@given(numbers)
def test_masking_twice_changes_nothing(text):
    assert mask_one(mask_one(text)) == mask_one(text)


def test_kinds_can_be_left_out():
    text = "a@b.cn 13812345678"
    assert mask_one(text, ["email"]) == "<email> 13812345678"
    assert mask(pl.Series([text]), ()).to_list() == [text]


def test_null_stays_null():
    assert mask(pl.Series([None, "13812345678"])).to_list() == [None, "<phone>"]
    assert mask(pl.Series([], dtype=pl.String)).to_list() == []


def test_masked_kinds_are_sorted_and_distinct():
    texts = pl.Series(["<phone> a <email> <phone>", "plain", "<plate>", "<other>", None])
    assert masked_kinds(texts).to_list() == [["email", "phone"], [], ["plate"], [], []]
    assert masked_kinds(pl.Series(["x"])).to_list() == [[]]
    assert masked_kinds(pl.Series([], dtype=pl.String)).dtype == pl.List(pl.String)


def test_placeholders_can_be_taken_out():
    assert without_placeholders(pl.Series(["打<phone>给我", "x"])).to_list() == ["打 给我", "x"]


@pytest.mark.parametrize("kind", KINDS)
def test_placeholders_survive_normalisation(kind):
    assert normalise_one(f"call <{kind}> now") == f"call {kind.replace('_', ' ')} now"


def test_two_numbers_have_one_normal_form():
    first, second = (normalise_one(mask_one(text)) for text in ("打给 138-1234-5678", "打给 +86 13987654321"))
    assert first == second == "打给 phone"
