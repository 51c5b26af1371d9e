from __future__ import annotations

import math

import faiss
import numpy as np
import pytest

from curation.algorithms import faiss_search, products
from curation.algorithms.faiss_search import search_groups
from curation.algorithms.vectors import FIXED, to_fixed
from tests.algorithms.clouds import clouds

LEAST = math.ceil((0.92 - 1e-5) * FIXED * FIXED)


@pytest.mark.parametrize("block", [4096, 100])
def test_exact_search_is_exact_in_blocks_of_any_size(monkeypatch, block):
    monkeypatch.setattr(faiss_search, "_ROWS", block)
    rows = to_fixed(clouds(1500, 24, seed=1))
    kept, choice = search_groups(rows, LEAST, inverted=False, seed=0, workers=2)
    assert np.array_equal(kept, products.kept_rows(rows, LEAST))
    expected = products.nearest_kept(rows, LEAST, np.flatnonzero(kept), np.flatnonzero(~kept))
    assert np.array_equal(choice, expected)


def test_inverted_lists_find_nearly_all_and_do_not_depend_on_threads():
    rows = to_fixed(clouds(6000, 24, seed=2))
    exact = products.kept_rows(rows, LEAST)
    kept, choice = search_groups(rows, LEAST, inverted=True, seed=5, workers=1)
    again, choice_again = search_groups(rows, LEAST, inverted=True, seed=5, workers=2)
    assert np.array_equal(kept, again) and np.array_equal(choice, choice_again)
    assert (~kept & ~exact).sum() / (~exact).sum() > 0.97


def test_the_number_of_threads_of_faiss_is_put_back():
    before = faiss.omp_get_max_threads()
    search_groups(to_fixed(clouds(50, 8)), LEAST, inverted=False, seed=0, workers=before + 3)
    assert faiss.omp_get_max_threads() == before
