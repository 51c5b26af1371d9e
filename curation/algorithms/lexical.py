"""The lexical level: which strings are near-duplicates, and who represents them.

Two normal forms are similar when their shingle sets have a Jaccard similarity of at least ``jaccard``, they hold the
same numbers and model names, and they differ by no more than a slip, courtesy or stutter
(:mod:`curation.algorithms.edit`).
Candidate pairs share a key: what a few edits leave of both (:mod:`curation.algorithms.neighbours`) or, where Jaccard
similarity alone decides, a band of their MinHash signatures. Each candidate is verified, none is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.algorithms.buckets import drop_lonely
from curation.algorithms.courtesy import COURTESY
from curation.algorithms.digits import number_hashes
from curation.algorithms.edit import make_rule
from curation.algorithms.leaders import Sets, Tally, group, make_sets
from curation.algorithms.minhash import band_keys, choose_bands
from curation.algorithms.shingles import jaccard_pairs, shingles
from curation.algorithms.texts import Texts, read_texts

__all__ = ["BYTES_PER_ROW", "PERMUTATIONS", "RECALL", "Allocate", "Groups", "default_bands", "lexical_groups"]

PERMUTATIONS, RECALL = 128, 0.95
"""Bands find this share of the pairs at the threshold, with at most so many permutations."""
LIMIT = 16
COUNT_BITS, LENGTH_BITS = 9, 8
COUNTS, LENGTHS = (1 << COUNT_BITS) - 1, (1 << LENGTH_BITS) - 1
BYTES_PER_ROW = 600
"""Memory that short queries take at the peak where Jaccard similarity alone decides, measured; a third of it with the
edit rule. The larger half of it can be given away by ``allocate``."""

Allocate = Callable[[int, Any], np.ndarray]
"""Gives an uninitialised array of a length and dtype."""


class Groups(NamedTuple):
    """Groups of n rows, in the order the rows came in."""

    representative: np.ndarray
    """int64: index of the kept row that stands for the row; its own when it is kept."""
    similarity: np.ndarray
    """float32: Jaccard similarity to the representative, 1 for itself."""
    bands: tuple[int, int]
    """Bands and permutations a band that candidates came from; 0 where they came from edits."""
    tally: Tally
    """What was looked at."""


def priority(counts: np.ndarray, lengths: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """int64: rows by count (int64) descending, then length ascending, then id (uint64, distinct) ascending.

    As much of the three as fits is sorted as one number, with the row below it, and the few ties are sorted out.
    """
    row_bits = max(1, len(ids) - 1).bit_length()
    # Where a number is cut off, what comes after it is left out, so that such rows are tied.
    frequent = counts >= COUNTS
    keys = np.where(frequent, 0, np.minimum(lengths, LENGTHS)).astype(np.uint64)
    keys |= (COUNTS - np.minimum(counts, COUNTS)).astype(np.uint64) << np.uint64(LENGTH_BITS)
    keys <<= np.uint64(64 - COUNT_BITS - LENGTH_BITS)
    ends = np.where(frequent | (lengths >= LENGTHS), 0, ids >> np.uint64(COUNT_BITS + LENGTH_BITS + row_bits))
    keys |= ends << np.uint64(row_bits)
    keys |= np.arange(len(ids), dtype=np.uint64)
    keys.sort()
    order = (keys & np.uint64((1 << row_bits) - 1)).astype(np.int64)
    same = np.diff(keys >> np.uint64(row_bits)) == 0
    tied = np.zeros(len(ids), bool)
    tied[1:] |= same
    tied[:-1] |= same
    rows = order[tied]
    order[tied] = rows[np.lexsort((ids[rows], lengths[rows], -counts[rows]))]
    return order


def default_bands(jaccard: float) -> tuple[int, int]:
    """Bands and permutations a band that find RECALL of the pairs whose similarity is just ``jaccard``."""
    return choose_bands(jaccard, PERMUTATIONS, RECALL)


def lexical_groups(
    norms: pa.LargeStringArray,
    counts: np.ndarray,
    ids: np.ndarray,
    *,
    jaccard: float = 0.55,
    edits: int | None = 2,
    digits: Literal["content", "ignore"] = "content",
    courtesy: tuple[str, ...] = COURTESY,
    grouping: Literal["leaders", "components"] = "leaders",
    bands: tuple[int, int] | None = None,
    limit: int = LIMIT,
    workers: int | None = None,
    allocate: Allocate = np.empty,
) -> Groups:
    """Group near-duplicate strings; the result does not depend on the order of the rows nor on ``workers``.

    Args:
        norms: Distinct normal forms, without nulls, none empty.
        counts: int64: raw rows each stands for; the frequent represent the rare.
        ids: uint64: distinct; the last word in every choice. Priority is count descending, then bytes of the normal
            form ascending, then id.
        jaccard: Least Jaccard similarity of the shingle sets, above 0.
        edits: Most edits between similar texts (0 to 3, see :mod:`curation.algorithms.edit`); None lets Jaccard
            similarity alone decide.
        digits: ``content``: texts whose numbers or model names differ are never similar; ``ignore``: digits may
            change.
        courtesy: Words that do not count at either end of a text.
        grouping: ``leaders``: a row goes only if it is itself similar to a kept one. ``components``: everything
            that a chain of similar rows connects is one group.
        bands: Bands and permutations a band where Jaccard similarity alone decides; chosen by
            :func:`default_bands` when None.
        limit: Most kept rows that a bucket offers as candidates.
        workers: Threads, all cores when None.
        allocate: Where the largest arrays, facts, keys and shingles, come from.
    """
    if edits is not None and bands is not None:
        raise ValueError("bands are for edits=None: with the edit rule, candidates come from edits")
    norms = norms.cast(pa.large_string())
    order = priority(counts, pc.binary_length(norms).to_numpy(), ids)
    norms = norms.take(pa.array(order))
    rows: Texts | Sets
    rule = None if edits is None else make_rule(edits, digits_free=digits == "ignore")
    if rule is None:
        bands = bands or default_bands(jaccard)
        numbers = number_hashes(norms, workers) if digits == "content" else np.zeros(len(norms), np.uint32)
        sets = shingles(norms, workers, allocate)
        rows = make_sets(sets, numbers, workers, allocate)
        keys = band_keys(sets, *bands, salts=numbers, workers=workers, allocate=allocate).reshape(-1)
        starts = np.arange(len(order) + 1) * bands[0]
    else:
        rows, keys, starts = read_texts(
            norms, rule, digits=digits, courtesy=courtesy, workers=workers, allocate=allocate
        )
    keys = drop_lonely(keys, starts, workers)
    connect = grouping == "components"
    found = group(rows, keys, starts, threshold=jaccard, limit=limit, rule=rule, connect=connect)
    similarities = found.similarities
    if connect:
        sets = shingles(norms, workers)
        similarities = jaccard_pairs(sets, np.arange(len(order)), found.leaders)

    representative = np.empty(len(order), np.int64)
    representative[order] = order[found.leaders]
    similarity = np.empty(len(order), np.float32)
    similarity[order] = similarities
    return Groups(representative, similarity, bands or (0, 0), found.tally)
