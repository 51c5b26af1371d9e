from __future__ import annotations

from tests.benchmarks.lexical import exact_pairs, pair_recall, removals_without_reason, rule_recall
from tests.benchmarks.peer_worker import TOOLS, grams

TEXTS = [
    f"{place} {what}" for place in ("hotels in berlin", "hotels in berln", "北京天气") for what in ("now", "nw", "")
]
NORMS = [text.strip() for text in TEXTS]


def test_the_exact_join_is_that_of_all_pairs() -> None:
    def shingles(text: str) -> set[str]:
        length = 2 if 2 * sum("\u4e00" <= char <= "\u9fff" for char in text) >= len(text) else 3
        padded = f"\x02{text}\x03"
        return {padded[at : at + length] for at in range(len(padded) - length + 1)}

    sets = [shingles(norm) for norm in NORMS]
    expected = {(a, b): len(sets[a] & sets[b]) / len(sets[a] | sets[b]) for b in range(len(NORMS)) for a in range(b)}
    left, right, similarity = exact_pairs(NORMS, 0.5)
    found = dict(zip(zip(left.tolist(), right.tolist(), strict=True), similarity.tolist(), strict=True))
    assert found == {pair: value for pair, value in expected.items() if value >= 0.5}
    assert len(found) > 3


def test_recall_is_a_share_of_the_joined_pairs() -> None:
    assert pair_recall(NORMS, 0.5, (64, 1))[0] == 1.0
    assert pair_recall(NORMS, 0.5, (1, 40))[0] < 0.5
    share, pairs = rule_recall(NORMS, 0.5)
    assert share == 1.0 and 0 < pairs < pair_recall(NORMS, 0.5)[1]


def test_no_removal_is_without_reason() -> None:
    assert removals_without_reason(NORMS, 0.6) == 0


def test_peers_get_distinct_grams_and_ours_both_tasks() -> None:
    assert grams("abcab") == ["abc", "bca", "cab"] and grams("ab") == ["ab"]
    both = [TOOLS[name](NORMS).tolist() for name in ("curation", "curation-jaccard")]
    assert both[0] != both[1] and all(any(removed) and not removed[0] for removed in both)
