"""The lexical level: which strings are near-duplicates, and who represents them.

Two normal forms are similar when their shingle sets have a Jaccard similarity of at least ``jaccard``, they hold the
same numbers and model names, and they differ by no more than a slip or courtesy (:mod:`curation.algorithms.edit`).
Candidate pairs share a bucket: a band of their MinHash signatures, or a string one edit from both. Each candidate is
verified, none is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from curation.algorithms.buckets import drop_lonely
from curation.algorithms.cores import cores
from curation.algorithms.courtesy import COURTESY
from curation.algorithms.digits import number_hashes
from curation.algorithms.edit import EDIT_LENGTH, make_rule
from curation.algorithms.leaders import Rows, Tally, group
from curation.algorithms.minhash import choose_bands, write_band_keys
from curation.algorithms.neighbours import LONGEST, count_neighbour_keys, write_neighbour_keys
from curation.algorithms.shingles import Shingles, bitmaps, jaccard_pairs, shingles

__all__ = [
    "BYTES_PER_ROW",
    "PERMUTATIONS",
    "RECALL",
    "Allocate",
    "Groups",
    "bucket_keys",
    "default_bands",
    "lexical_groups",
]

PERMUTATIONS, RECALL = 150, 0.95
"""Bands find this share of the pairs at the threshold, with at most so many permutations, where Jaccard decides."""
LIMIT = 16
BYTES_PER_ROW = 550
"""Memory that short queries take at the peak, measured; the larger half of it can be given away by ``allocate``."""

Allocate = Callable[[int, Any], np.ndarray]
"""Gives an uninitialised array of a length and dtype."""


class Groups(NamedTuple):
    """Groups of n rows, in the order the rows came in."""

    representative: np.ndarray
    """int64: index of the kept row that stands for the row; its own when it is kept."""
    similarity: np.ndarray
    """float32: Jaccard similarity to the representative, 1 for itself."""
    bands: tuple[int, int]
    """Bands and permutations a band that candidates came from."""
    tally: Tally
    """What was looked at."""


def default_bands(jaccard: float, edits: int | None) -> tuple[int, int]:
    """Bands and permutations a band for a threshold.

    Where Jaccard similarity alone decides, as many as find RECALL of the pairs at the very threshold. Where the edit
    rule decides, bands only look for what the neighbourhoods do not find: longer texts with two edits, whose
    similarity lies some way above the threshold.
    """
    if edits is None:
        return choose_bands(jaccard, PERMUTATIONS, RECALL)
    return choose_bands(jaccard + 0.22 * (1 - jaccard), 64, RECALL)


def bucket_keys(
    rows: Rows, bands: tuple[int, int], workers: int | None = None, allocate: Allocate = np.empty
) -> tuple[np.ndarray, np.ndarray]:
    """Keys (uint32) of all buckets that more than one row may be in, and where each row's start (int64, n + 1).

    Without a rule every row gets bands. With one, texts a single edit apart meet by their neighbourhoods, so bands
    are only for rows that may differ by more, or are too long to write their neighbourhood out.
    """
    count = len(rows.numbers)
    if rows.rule is None or rows.cores is None:
        neighbours, banded = np.zeros(count, np.int64), np.ones(count, bool)
    else:
        neighbours = count_neighbour_keys(rows.cores, rows.rule)
        banded = rows.cores.sizes >= (LONGEST if rows.rule.edits < 2 else min(LONGEST, 2 * EDIT_LENGTH))
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(neighbours + banded * bands[0], out=starts[1:])
    keys = allocate(int(starts[-1]), np.uint32)
    if rows.rule is not None and rows.cores is not None:
        write_neighbour_keys(rows.cores, rows.rule, keys, starts[:-1], workers)
    places = np.where(banded, starts[:-1] + neighbours, -1)
    write_band_keys(Shingles(rows.hashes, rows.starts), *bands, keys, places, workers=workers)
    return drop_lonely(keys, starts, workers), starts


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
        bands: Bands and permutations a band; chosen by :func:`default_bands` when None.
        limit: Most kept rows that a bucket offers as candidates.
        workers: Threads, all cores when None.
        allocate: Where the two largest arrays, shingles and keys, come from.
    """
    norms = norms.cast(pa.large_string())
    if bands is None:
        bands = default_bands(jaccard, edits)
    order = np.lexsort((ids, pc.binary_length(norms).to_numpy(), -counts))
    norms = norms.take(pa.array(order))

    sets = shingles(norms, workers, allocate)
    rule = None if edits is None else make_rule(edits, digits_free=digits == "ignore")
    texts = None if rule is None else cores(norms, courtesy, workers)
    numbers = number_hashes(norms, workers) if digits == "content" else np.zeros(len(norms), np.uint32)
    rows = Rows(*sets, bitmaps(sets, workers), numbers, texts, rule)
    keys, starts = bucket_keys(rows, bands, workers, allocate)
    leaders, tally = group(rows, keys, starts, threshold=jaccard, limit=limit, connect=grouping == "components")

    representative = np.empty(len(order), np.int64)
    representative[order] = order[leaders]
    similarity = np.empty(len(order), np.float32)
    similarity[order] = jaccard_pairs(sets, np.arange(len(order)), leaders)
    return Groups(representative, similarity, bands, tally)
