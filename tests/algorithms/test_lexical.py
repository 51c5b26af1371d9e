from __future__ import annotations

import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.algorithms.edit import alike_texts, make_rule
from curation.algorithms.lexical import Groups, default_bands, lexical_groups, priority
from curation.algorithms.minhash import band_keys
from curation.algorithms.normalise import normalise, normalise_one, query_ids
from curation.algorithms.shingles import jaccard_pairs, shingles
from curation.algorithms.texts import read_texts


def run(texts: list[str], counts: list[int] | None = None, **options: Any) -> Groups:
    norms = pa.array(texts, pa.large_string())
    weights = np.array(counts if counts is not None else [1] * len(texts), np.int64)
    return lexical_groups(norms, weights, query_ids(norms), **options)


def merged(texts: list[str], counts: list[int] | None = None, **options: Any) -> dict[str, str]:
    """Dropped text to the one that represents it."""
    found = run(texts, counts, **options).representative.tolist()
    return {texts[row]: texts[leader] for row, leader in enumerate(found) if row != leader}


def noisy_log(seed: int, size: int) -> list[str]:
    """Distinct normal forms of made-up queries with slips, courtesy and particles."""
    rng = random.Random(seed)
    places = ["harbour", "old bridge", "city museum", "market hall", "north gate", "botanic garden", "opera house"]
    streets = [f"{name} {kind}" for name in ("maple", "juniper", "chestnut", "willow") for kind in ("street", "lane")]
    spots = [
        a + b for a in ("春江", "金沙", "石桥", "云台", "望湖", "青藤") for b in ("公园", "商场", "医院", "车站")
    ]
    english = ["how do i get to the {}", "opening hours of the {}", "parking next to {}", "is the {} crowded today"]
    chinese = ["{}怎么走", "{}附近有停车场吗", "从{}打车要多久", "{}今天几点关门"]
    texts: set[str] = set()
    while len(texts) < size:
        if rng.random() < 0.4:
            text = rng.choice(chinese).format(rng.choice(spots))
            if rng.random() < 0.5:
                at = rng.randrange(len(text))
                text = rng.choice(
                    [text[:at] + "的" + text[at:], "请问" + text, text + "呢", text[:at] + text[at + 1 :]]
                )
        else:
            text = rng.choice(english).format(rng.choice(places + streets)) + rng.choice(["", f" {rng.randrange(9)}"])
            for _ in range(rng.choice([0, 1, 1, 2])):
                at, letter = rng.randrange(len(text)), rng.choice("aeiourstln")
                text = rng.choice([text[:at] + letter + text[at:], text[:at] + text[at + 1 :], "please " + text])
        texts.add(normalise_one(text))
    return sorted(texts)


def test_t1_short_texts_survive() -> None:
    assert merged(["a", "关灯", "play"]) == {}


def test_t3_one_word_queries_are_all_kept() -> None:
    words = "weather hotel hotels train rain route music alarm taxi bus map news stock email call photo game movie"
    words += " plane plan cafe bar bank park parking museum metro flight light night timer time tide salt malt list"
    words += " test text next news8 play stop book pizza sushi 关灯 开灯 导航 天气 明天"
    assert len(set(words.split())) == 50
    assert merged(words.split()) == {}


def test_t5_short_chinese_queries_are_all_kept() -> None:
    texts = [
        "打开空调",
        "关闭空调",
        "打开车窗",
        "关闭车窗",
        "回家",
        "去公司",
        "北京天气",
        "南京天气",
        "东站怎么走",
        "西站怎么走",
    ]
    assert merged(texts) == {}


@pytest.mark.parametrize("options", [{}, {"edits": None, "jaccard": 0.5}])
def test_t6_other_numbers_and_models_are_never_merged(options: dict[str, Any]) -> None:
    texts = [
        "iphone 14",
        "iphone 15",
        "alarm 7 am",
        "alarm 8 am",
        "g2 高速",
        "g3 高速",
        "地铁一号线怎么坐",
        "地铁二号线怎么坐",
    ]
    assert merged(texts, **options) == {}


def test_stutters_are_near_duplicates() -> None:
    pairs = {
        "who who was": "who was",
        "navigate to to the airport": "navigate to the airport",
        "打开打开空调": "打开空调",
        "鲁迅迅": "鲁迅",
    }
    assert merged([*pairs, *pairs.values()]) == pairs


@pytest.mark.parametrize("options", [{}, {"digits": "ignore"}])
def test_t6_digits_and_words_of_their_own_do_not_stutter(options: dict[str, Any]) -> None:
    texts = [
        "11",
        "1",
        "g2 g2",
        "g2",
        "17 17",
        "17",
        "2 2",
        "2",
        "看看",
        "看",
        "妈妈",
        "妈",
        "天天",
        "天",
        "慢慢",
        "慢",
    ]
    assert merged(texts, **options) == {}


def test_t6_digits_may_be_ignored_on_request() -> None:
    texts = ["open the door of room 14", "open the door of room 15"]
    assert merged(texts) == {}
    assert len(merged(texts, digits="ignore")) == len(merged(texts, digits="ignore", edits=None)) == 1


def test_t7_scripts_and_symbols_are_kept_apart() -> None:
    texts = ["مطعم قريب", "ร้านอาหาร", "रेस्टोरेंट", "🍕", "🍔", "??", "?", "рестаран", "음식점", "レストラン"]
    norms = normalise(pa.array(texts, pa.large_string())).to_pylist()
    assert merged(norms) == {}


def test_the_frequent_represents_the_rare_then_the_shorter_then_the_smaller_id() -> None:
    texts = ["hotels in berlin", "hotells in berlin", "hotels in berlinn"]
    assert set(merged(texts, [1, 5, 1]).values()) == {"hotells in berlin"}
    assert set(merged(texts, [3, 3, 3]).values()) == {"hotels in berlin"}
    twins = ["hotels in breman", "hotels in bremen"]
    ids = query_ids(pa.array(twins, pa.large_string()))
    assert list(merged(twins, [2, 2]).values()) == [twins[int(ids[1] < ids[0])]]


def similarity_table(texts: list[str]) -> np.ndarray:
    n = len(texts)
    left, right = np.divmod(np.arange(n * n), n)
    return jaccard_pairs(shingles(pa.array(texts, pa.large_string())), left, right).reshape(n, n)


def test_t9_every_dropped_row_is_similar_to_its_kept_representative() -> None:
    texts = noisy_log(3, 800)
    rule = make_rule(2)
    found = run(texts)
    table = similarity_table(texts)
    dropped = np.flatnonzero(found.representative != np.arange(len(texts)))
    assert len(dropped) > 100
    for row in dropped.tolist():
        leader = int(found.representative[row])
        assert found.representative[leader] == leader
        assert table[row, leader] >= 0.55
        assert found.similarity[row] == np.float32(table[row, leader])
        assert alike_texts(texts[row], texts[leader], rule)
    assert (found.similarity[found.representative == np.arange(len(texts))] == 1).all()


def test_t9_a_chain_is_one_group_only_as_a_component() -> None:
    texts = [
        "hotels in berlin mitte",
        "hotels in berlin mittte",
        "hotells in berlin mittte",
        "hotellss in berlin mittte",
    ]
    leaders = merged(texts, [9, 3, 2, 1], edits=1)
    assert leaders == {texts[1]: texts[0], texts[3]: texts[2]}
    assert set(merged(texts, [9, 3, 2, 1], edits=1, grouping="components").values()) == {texts[0]}


def test_t10_order_and_threads_change_nothing() -> None:
    texts = noisy_log(5, 2500)
    counts = [1 + number % 7 for number in range(len(texts))]
    expected = merged(texts, counts, workers=1)
    order = np.random.default_rng(2).permutation(len(texts)).tolist()
    assert merged([texts[row] for row in order], [counts[row] for row in order], workers=3) == expected
    assert len(expected) > 200


@pytest.mark.parametrize("options", [{}, {"edits": None, "jaccard": 0.6}])
def test_t10_arrays_in_files_change_nothing(options: dict[str, Any], tmp_path: Path) -> None:
    texts = noisy_log(6, 1000)
    files: list[Path] = []

    def in_files(length: int, dtype: Any) -> np.ndarray:
        files.append(tmp_path / str(len(files)))
        return np.memmap(files[-1], dtype, "w+", shape=(length,))

    found, again = run(texts, **options), run(texts, allocate=in_files, **options)
    assert files and np.array_equal(found.representative, again.representative)
    assert np.array_equal(found.similarity, again.similarity)


PRIORITIES = st.lists(st.tuples(st.sampled_from([1, 2, 511, 512, 9**9]), st.sampled_from([1, 7, 255, 256, 9999])))


@given(PRIORITIES)
@settings(max_examples=100, deadline=None)
def test_priority_is_that_of_count_length_and_id(rows: list[tuple[int, int]]) -> None:
    ids = [number << 3 if number % 2 else number << 50 for number in range(len(rows))]
    counts, lengths = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.int64)
    found = priority(counts, lengths, np.array(ids, np.uint64))
    assert found.tolist() == sorted(range(len(rows)), key=lambda row: (-rows[row][0], rows[row][1], ids[row]))


def test_bands_belong_to_jaccard_alone() -> None:
    assert run(["hotels in berlin"], edits=None, bands=(3, 2)).bands == (3, 2)
    assert run(["hotels in berlin"]).bands == (0, 0)
    with pytest.raises(ValueError, match="bands are for edits=None"):
        run(["hotels in berlin"], bands=(3, 2))


@pytest.mark.parametrize("options", [{}, {"edits": None, "jaccard": 0.6}, {"grouping": "components"}])
def test_t11_candidates_grow_with_the_rows(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(1)

    def candidates(rows: int) -> int:
        texts = {f"turn on the light in the {''.join(rng.choice(list('abcdefgh'), 6))} room" for _ in range(rows)}
        return run(sorted(texts), **options).tally.candidates

    assert candidates(6000) < 3 * candidates(3000) < 3 * 3000 * 16 * 40


def test_t12_candidates_are_verified() -> None:
    texts = ["cheap hotels near the station", "cheap hostel near the station"]
    similarity = similarity_table(texts)[0, 1]
    one_bucket: dict[str, Any] = {"edits": None, "bands": (64, 1)}
    assert merged(texts, jaccard=similarity + 0.01, **one_bucket) == {}
    assert run(texts, jaccard=similarity + 0.01, **one_bucket).tally.candidates > 0
    assert len(merged(texts, jaccard=similarity - 0.01, **one_bucket)) == 1


@pytest.mark.parametrize("options", [{}, {"edits": None, "jaccard": 0.6}, {"limit": 1}, {"edits": 3}])
@pytest.mark.parametrize("seed", [1, 2])
def test_t13_survivors_are_all_kept_by_a_second_run(seed: int, options: dict[str, Any]) -> None:
    texts = noisy_log(seed, 2000)
    counts = [1 + number % 3 for number in range(len(texts))]
    found = run(texts, counts, **options)
    kept = np.flatnonzero(found.representative == np.arange(len(texts))).tolist()
    assert len(kept) < len(texts)
    assert merged([texts[row] for row in kept], [counts[row] for row in kept], **options) == {}


SHORT = st.lists(
    st.lists(
        st.sampled_from(["hotel", "hotels", "berlin", "berlni", "in", "7", "北京", "天气", "的"]),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=12,
)


@given(SHORT)
@settings(max_examples=150, deadline=None)
def test_short_texts_are_grouped_as_by_comparing_all_pairs(rows: list[list[str]]) -> None:
    texts = sorted({" ".join(row) for row in rows})
    texts = [text for text in texts if len(text) < 16]  # one edit at most: neighbourhoods miss none
    if not texts:
        return
    found = run(texts).representative.tolist()
    ids = query_ids(pa.array(texts, pa.large_string())).tolist()
    rule, table = make_rule(2), similarity_table(texts)
    order = sorted(range(len(texts)), key=lambda row: (len(texts[row].encode()), ids[row]))
    leaders: dict[int, int] = {}
    for row in order:
        near = [
            other
            for other in order[: order.index(row)]
            if leaders[other] == other
            and table[row, other] >= 0.55 - 1e-9
            and [part for part in texts[row].split() if part == "7"] == [p for p in texts[other].split() if p == "7"]
            and alike_texts(texts[row], texts[other], rule)
        ]
        leaders[row] = max(near, key=lambda other: (table[row, other], -order.index(other)), default=row)
    assert found == [leaders[row] for row in range(len(texts))]


@pytest.mark.parametrize("threshold", [0.55, 0.7, 0.8])
def test_bands_find_the_pairs_of_an_exact_join(threshold: float) -> None:
    texts = noisy_log(7, 1500)
    left, right = np.nonzero(np.triu(similarity_table(texts) >= threshold, 1))
    keys = band_keys(shingles(pa.array(texts, pa.large_string())), *default_bands(threshold))
    assert len(left) > 500
    assert (keys[left] == keys[right]).any(axis=1).mean() >= 0.97


def test_edit_keys_find_the_pairs_that_an_exact_join_finds_alike() -> None:
    texts = noisy_log(7, 1500)
    rule = make_rule(2)
    _, keys, starts = read_texts(pa.array(texts, pa.large_string()), rule)
    sets = [set(keys[a:b].tolist()) for a, b in pairwise(starts.tolist())]
    left, right = (side.tolist() for side in np.nonzero(np.triu(similarity_table(texts) >= 0.55, 1)))
    alike = [
        bool(sets[a] & sets[b])
        for a, b in zip(left, right, strict=True)
        if re.findall("[0-9]", texts[a]) == re.findall("[0-9]", texts[b]) and alike_texts(texts[a], texts[b], rule)
    ]
    assert len(alike) > 300
    assert np.mean(alike) >= 0.99


@pytest.mark.parametrize("options", [{}, {"edits": None, "jaccard": 0.7}])
def test_as_many_rows_go_as_by_comparing_all_pairs(options: dict[str, Any]) -> None:
    texts = noisy_log(11, 1500)
    table, rule = similarity_table(texts), make_rule(2)
    threshold = options.get("jaccard", 0.55)
    ids = query_ids(pa.array(texts, pa.large_string()))
    lengths = np.array([len(text.encode()) for text in texts])
    kept: list[int] = []
    for row in np.lexsort((ids, lengths)).tolist():
        digits = [char for char in texts[row] if char.isdigit()]
        if not any(
            table[row, other] >= threshold
            and digits == [char for char in texts[other] if char.isdigit()]
            and ("edits" in options or alike_texts(texts[row], texts[other], rule))
            for other in kept
        ):
            kept.append(row)
    found = run(texts, **options)
    removed = int((found.representative != np.arange(len(texts))).sum())
    assert removed >= 0.97 * (len(texts) - len(kept)) > 100


def test_nothing_and_one() -> None:
    assert len(run([]).representative) == 0
    only = run(["北京天气"])
    assert only.representative.tolist() == [0] and only.similarity.tolist() == [1]


def test_other_string_layouts_are_taken() -> None:
    texts = pa.array(["hotels in berlin", "hotls in berlin"], pa.string())
    found = lexical_groups(texts, np.ones(2, np.int64), query_ids(texts))
    assert len(set(found.representative.tolist())) == 1
