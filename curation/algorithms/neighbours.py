"""Bucket keys that texts one edit apart share without fail, where locality-sensitive hashing is weak.

An edit in a text of ten characters breaks a third of its shingles, so that bands miss one such pair in six. But two
texts within one insertion, deletion, substitution or swap of neighbours always share a string that is one of them, or
one of them with one character left out. So a row gets as keys the hashes of its core and of its core without each of
the characters that the rule lets change. Texts with the same words in another order share a further key.

Source: Bocek, Hunt, Stiller, "Fast similarity search in large dictionaries" (2007), deletion neighbourhoods.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from curation.algorithms.cores import Cores, decode_all
from curation.algorithms.edit import CJK, DIGIT, LETTER, PARTICLE, SHORT_CJK, SPACE, Rule, char_class
from curation.algorithms.parallel import run_chunks, spans
from curation.algorithms.shingles import mix64

__all__ = ["LONGEST", "count_neighbour_keys", "write_neighbour_keys"]

LONGEST = 20
"""Characters of a core up to which its neighbourhood is written out; longer texts one edit apart share bands."""
ROWS_PER_CHUNK = 16_384
BASE = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xC4CEB9FE1A85EC53)
MOVED = np.uint64(0xD6E8FEB86659FD93)


@njit(nogil=True, cache=True)
def _changes(text, place, size, classes, free):
    """Whether an edit may drop or alter ``text[place]``, as far as the character itself tells."""
    if place and text[place] == text[place - 1]:
        return False  # the same string as without the character before
    kind = char_class(text[place], classes)
    if kind == CJK:
        return size > SHORT_CJK
    return kind in (LETTER, PARTICLE, SPACE) or (kind == DIGIT and free)


@njit(nogil=True, cache=True)
def _key(value):
    # The value is a hash already; a product brings its lower bits into the upper ones.
    return max(np.uint32(value * MIX >> np.uint64(32)), np.uint32(1))


@njit(nogil=True, cache=True)
def _neighbour_row(text, size, edits, classes, free, prefixes, out, at):
    """Write the keys of one core to ``out`` from ``at``; returns the place after them."""
    value, words, word, moved = np.uint64(0), 0, np.uint64(0), MOVED
    for place in range(size):
        prefixes[place] = value
        value = value * BASE + np.uint64(text[place])
        if text[place] == 32:
            moved += mix64(word)
            words += 1
            word = np.uint64(0)
        else:
            word = word * BASE + np.uint64(text[place])
    prefixes[size] = value
    out[at] = _key(value)
    at += 1
    if words >= 2:
        out[at] = _key(moved + mix64(word))
        at += 1
    if edits == 0 or size > LONGEST:
        return at
    power = np.uint64(1)
    for place in range(size - 1, -1, -1):
        if _changes(text, place, size, classes, free):
            # The polynomial of the text without this character, from those of what lies before and after it.
            out[at] = _key(value + (prefixes[place] - prefixes[place + 1]) * power)
            at += 1
        power *= BASE
    return at


@njit(nogil=True, cache=True)
def _neighbour_rows(data, begins, ends, first, last, longest, edits, classes, free, out, places, counts):
    text, prefixes = np.empty(longest, np.int32), np.empty(longest + 1, np.uint64)
    for row in range(first, last):
        size = decode_all(data, begins[row], ends[row], text)
        end = _neighbour_row(text, size, edits, classes, free, prefixes, out, places[row])
        out[end : places[row] + counts[row]] = 0


def count_neighbour_keys(cores: Cores, rule: Rule) -> np.ndarray:
    """int64: room for the keys of each row."""
    return np.where((cores.sizes <= LONGEST) & (rule.edits > 0), cores.sizes + 2, 2).astype(np.int64)


def write_neighbour_keys(
    cores: Cores, rule: Rule, out: np.ndarray, places: np.ndarray, workers: int | None = None
) -> None:
    """Write the keys of row i to ``out[places[i]:]`` (uint32), and 0, which is no key, to the rest of its room.

    Two rows that ``rule`` finds alike by at most one edit or by a moved word, neither longer than :data:`LONGEST`,
    share a key. Rows that share one need not be alike.
    """
    counts = count_neighbour_keys(cores, rule)

    def work(first: int, last: int) -> None:
        longest = int(cores.sizes[first:last].max())
        texts = cores.data, cores.begins, cores.ends
        _neighbour_rows(*texts, first, last, longest, rule.edits, rule.classes, rule.digits_free, out, places, counts)

    run_chunks(work, spans(len(counts), ROWS_PER_CHUNK), workers)
