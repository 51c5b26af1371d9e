from __future__ import annotations

import faiss
import numpy as np
import pytest

from curation.algorithms.survivors_index import SurvivorsIndex
from curation.errors import CurationError
from tests.algorithms.clouds import clouds, unit

KINDS = {"flat": {"flat_rows": 5000}, "lists": {"flat_rows": 0}}


def some(n: int = 1500, d: int = 24, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Ids over all 64 bits, the largest and smallest among them, and vectors."""
    ids = np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)
    ids[0], ids[1] = 2**64 - 1, 0
    return ids, clouds(n, d, seed=seed)


def by_definition(ids, vectors, asked, k=None, threshold=-2.0):
    """For each vector asked for, ids and cosines of all survivors, best first, ties by id."""
    found = []
    for cosines in unit(asked) @ unit(vectors).T:
        order = [i for i in np.lexsort((ids, -cosines)) if cosines[i] >= threshold]
        found.append((ids[order][:k], cosines[order][:k]))
    return found


def split(neighbours):
    """(ids, similarities) vector by vector."""
    ends = neighbours.starts[1:-1]
    return list(zip(np.split(neighbours.ids, ends), np.split(neighbours.similarity, ends), strict=True))


@pytest.mark.parametrize("limits", [{"k": 7}, {"threshold": 0.9}, {"k": 3, "threshold": 0.9}])
def test_the_flat_index_finds_what_the_definition_finds(limits):
    ids, vectors = some()
    asked = vectors[:40] * np.float32(3)
    found = SurvivorsIndex.build(ids, vectors).query(asked, **limits)
    for (names, cosines), (expected, exact) in zip(
        split(found), by_definition(ids, vectors, asked, **limits), strict=True
    ):
        assert np.allclose(cosines, exact, atol=1e-6)
        assert (cosines[:-1] >= cosines[1:]).all()
        assert set(names.tolist()) == set(expected.tolist())


def test_ids_keep_all_their_64_bits_through_a_file(tmp_path):
    ids, vectors = some()
    for name, kind in KINDS.items():
        SurvivorsIndex.build(ids, vectors, **kind).save(tmp_path / name)
        index = SurvivorsIndex.load(tmp_path / name)
        assert len(index) == len(ids) and index.dimensions == 24
        found = index.query(vectors, k=1)
        assert (found.similarity > 0.999999).all()
        for i in (0, 1, 2):
            assert ids[i] in index.query(vectors[i : i + 1], threshold=0.9999).ids


def test_lists_find_nearly_all_of_what_is_close(tmp_path):
    ids, vectors = some(6000)
    exact = SurvivorsIndex.build(ids, vectors).query(vectors[:500], threshold=0.92)
    SurvivorsIndex.build(ids, vectors, **KINDS["lists"]).save(tmp_path / "index")
    found = SurvivorsIndex.load(tmp_path / "index").query(vectors[:500], threshold=0.92)
    assert len(exact.ids) > 1000
    assert 0.97 * len(exact.ids) < len(found.ids) <= len(exact.ids)


@pytest.mark.parametrize("kind", KINDS)
def test_t10_bytes_depend_neither_on_threads_nor_on_the_order_of_rows(tmp_path, kind):
    ids, vectors = some(3000)
    before = faiss.omp_get_max_threads()
    try:
        for threads in (1, 4):
            faiss.omp_set_num_threads(threads)
            shuffle = np.random.default_rng(threads).permutation(len(ids))
            SurvivorsIndex.build(ids[shuffle], vectors[shuffle], **KINDS[kind]).save(tmp_path / str(threads))
            assert faiss.omp_get_max_threads() == threads
    finally:
        faiss.omp_set_num_threads(before)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "4").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "4"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_opens_with_plain_faiss_as_the_module_says(tmp_path, kind):
    ids, vectors = some()
    SurvivorsIndex.build(ids, vectors, **KINDS[kind]).save(tmp_path / "survivors.faiss")
    index = faiss.read_index(str(tmp_path / "survivors.faiss"), faiss.IO_FLAG_MMAP)
    similarity, labels = index.search((vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[:20], 3)
    ours = SurvivorsIndex.load(tmp_path / "survivors.faiss").query(vectors[:20], k=3)
    found = similarity > -3e38  # the lists looked at may hold fewer than three
    assert found.mean() > 0.9
    assert np.allclose(similarity[found], ours.similarity, atol=1e-6)
    assert set(labels.view(np.uint64)[found].tolist()) == set(ours.ids.tolist())


@pytest.mark.parametrize("n", [0, 1, 2])
def test_s2_fewer_survivors_than_asked_for(tmp_path, n):
    ids, vectors = some(5)
    SurvivorsIndex.build(ids[:n], vectors[:n]).save(tmp_path / "index")
    index = SurvivorsIndex.load(tmp_path / "index")
    for limits in ({"k": 10}, {"threshold": -1.0}):
        found = index.query(vectors[:3], **limits)
        assert found.starts.tolist() == [0, n, 2 * n, 3 * n]
        assert set(found.ids.tolist()) == set(ids[:n].tolist())
    assert index.query(vectors[:0], k=1).starts.tolist() == [0]


def test_a_threshold_is_inclusive():
    index = SurvivorsIndex.build(np.array([5], np.uint64), np.array([[1, 0]], np.float32))
    assert index.query(np.array([[1, 0]], np.float32), threshold=1.0).ids.tolist() == [5]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", ["empty", "cut", "head", "text"])
def test_a_damaged_file_gets_a_sentence(tmp_path, kind, damage):
    path = tmp_path / "survivors.faiss"
    SurvivorsIndex.build(*some(400), **KINDS[kind]).save(path)
    whole = path.read_bytes()
    path.write_bytes(
        {"empty": b"", "cut": whole[: len(whole) * 2 // 3], "head": whole[:40], "text": b"no index at all " * 50}[
            damage
        ]
    )
    with pytest.raises(CurationError, match=r"survivors\.faiss is damaged, or no Faiss index\n.*semantic stage"):
        SurvivorsIndex.load(path)


def test_a_missing_file_and_an_index_of_another_kind_get_a_sentence(tmp_path):
    with pytest.raises(CurationError, match="there is no index of survivors at"):
        SurvivorsIndex.load(tmp_path / "none")
    faiss.write_index(faiss.IndexFlatL2(3), str(tmp_path / "other"))
    with pytest.raises(CurationError, match="IndexFlatL2 and not of survivors"):
        SurvivorsIndex.load(tmp_path / "other")


def test_a_place_that_cannot_be_written_gets_a_sentence_and_keeps_what_was_there(tmp_path):
    index = SurvivorsIndex.build(*some(10))
    with pytest.raises(CurationError, match="cannot write the index of survivors"):
        index.save(tmp_path / "no_such_folder" / "index")
    (tmp_path / "folder").mkdir()
    with pytest.raises(CurationError, match="cannot write the index of survivors"):
        index.save(tmp_path / "folder")  # the name of a folder cannot be replaced by a file
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_makes_no_sense_is_refused():
    ids, vectors = some(10)
    with pytest.raises(ValueError, match="query 7 occurs more than once"):
        SurvivorsIndex.build(np.array([7, 3, 7], np.uint64), vectors[:3])
    with pytest.raises(ValueError, match="10 ids, but 9 vectors"):
        SurvivorsIndex.build(ids, vectors[:9])
    index = SurvivorsIndex.build(ids, vectors)
    with pytest.raises(ValueError, match="how many neighbours"):
        index.query(vectors)
    with pytest.raises(ValueError, match="k must be 1 or more"):
        index.query(vectors, k=0)
    with pytest.raises(ValueError, match="24 dimensions"):
        index.query(vectors[:, :5], k=1)
    with pytest.raises(ValueError, match="row 0 is the zero vector"):
        index.query(np.zeros((1, 24), np.float32), k=1)


@pytest.mark.parametrize("flat_rows", [1000, 10])
def test_contents_give_back_what_was_indexed(tmp_path, flat_rows):
    ids, vectors = some(400)
    SurvivorsIndex.build(ids, vectors, flat_rows=flat_rows).save(tmp_path / "index")
    found, units = SurvivorsIndex.load(tmp_path / "index").contents()
    order = np.argsort(ids)
    assert found.tolist() == ids[order].tolist()
    expected = vectors[order] / np.linalg.norm(vectors[order], axis=1, keepdims=True)
    np.testing.assert_allclose(units, expected, atol=1e-6)


def in_parts(ids, vectors, size=700):
    return lambda: ((ids[at : at + size], vectors[at : at + size]) for at in range(0, len(ids), size))


def test_the_lean_index_finds_nearly_what_the_exact_one_does_at_half_the_size(tmp_path):
    ids, vectors = some(6000)
    SurvivorsIndex.build(ids, vectors, flat_rows=0).save(tmp_path / "whole")
    SurvivorsIndex.build_lean(in_parts(ids, vectors * np.float32(3)), len(ids)).save(tmp_path / "lean")
    codes = [4 * 24 * 6000, 2 * 24 * 6000]  # bytes of the numbers alone
    sizes = [(tmp_path / name).stat().st_size for name in ("whole", "lean")]
    assert sizes[0] - sizes[1] == pytest.approx(codes[0] - codes[1], rel=0.05)
    exact = SurvivorsIndex.build(ids, vectors).query(vectors[:500], threshold=0.92)
    found = SurvivorsIndex.load(tmp_path / "lean").query(vectors[:500], threshold=0.92)
    assert 0.97 * len(exact.ids) < len(found.ids) < 1.01 * len(exact.ids)
    same = SurvivorsIndex.load(tmp_path / "lean").query(vectors, k=1)
    np.testing.assert_allclose(same.similarity, 1, atol=5e-4)


def test_the_lean_index_gives_back_what_it_holds_and_is_the_same_for_any_parts_and_threads(tmp_path):
    ids, vectors = some(3000)
    before = faiss.omp_get_max_threads()
    try:
        for threads, size in ((1, 700), (4, 250)):
            faiss.omp_set_num_threads(threads)
            SurvivorsIndex.build_lean(in_parts(ids, vectors, size), 3000, seed=5).save(tmp_path / str(threads))
    finally:
        faiss.omp_set_num_threads(before)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "4").read_bytes()
    found, units = SurvivorsIndex.load(tmp_path / "1").contents()
    order = np.argsort(ids)
    assert found.tolist() == ids[order].tolist()
    np.testing.assert_allclose(np.linalg.norm(units, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(units, unit(vectors[order]), atol=5e-4)


def test_the_lean_index_counts_what_it_is_given():
    ids, vectors = some(300)
    with pytest.raises(ValueError, match="300 vectors, not 301"):
        SurvivorsIndex.build_lean(in_parts(ids, vectors), 301)
