"""The classifier: learns, leaves out, and says the same whatever the threads, blocks and company."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from curation.algorithms.normalise import normalise
from curation.teachers.embedded import classifier
from curation.teachers.embedded.classifier import Examples, Pairs, fit, joined, nearest_mean

WORDS = ("alpha", "beta", "gamma", "delta")


def examples(per=30, d=16, seed=0, reasons=True):
    """Four leaves of two level-1 categories, each a cloud of vectors with a word of its own."""
    random = np.random.default_rng(seed)
    primary = np.repeat(np.arange(4), per)
    vectors = random.normal(size=(4, d))[primary] + random.normal(size=(4 * per, d)) * 0.8
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    presence = np.eye(4, dtype=bool)[primary]
    presence[::10, 3] = True
    texts = [f"{WORDS[leaf]} {i % 7} words {'zulu' if i % 10 == 0 else ''}" for i, leaf in enumerate(primary)]
    return Examples(
        vectors=vectors.astype(np.float32),
        norms=normalise(pa.array(texts, pa.large_string())),
        primary=primary,
        presence=presence,
        reasons=(np.arange(4 * per) % 5 == 0) * (1 + primary % 2) if reasons else np.zeros(4 * per, int),
        level1=np.array([0, 0, 1, 1]),
        n_reasons=4,
    )


def test_clouds_are_told_apart_and_without_themselves_too():
    given = examples()
    fitted, left_out = fit(given)
    said = fitted.predict(given.vectors, given.norms)
    assert (said.primary == given.primary).mean() > 0.95
    assert (left_out.primary == given.primary).mean() > 0.85
    np.testing.assert_allclose(said.leaves.sum(axis=1), 1, atol=1e-5)
    assert ((said.unsolvable >= 0) & (said.unsolvable <= 1)).all()
    # Without itself an example is less sure, on the whole.
    assert left_out.leaves.max(axis=1).mean() < said.leaves.max(axis=1).mean() < 1


def test_t10_threads_blocks_and_company_change_no_bit():
    given = examples()
    one, _ = fit(given, workers=1)
    two, _ = fit(given, workers=3)
    whole = one.predict(given.vectors, given.norms)
    other = two.predict(given.vectors, given.norms)
    for at in (0, 5, 119):
        alone = two.predict(given.vectors[at : at + 1], given.norms.slice(at, 1))
        for name in ("leaves", "primary", "confidence", "presence", "unsolvable", "reason", "familiarity"):
            np.testing.assert_array_equal(getattr(whole, name), getattr(other, name))
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(whole, name)[at])


def test_the_leaf_is_of_the_likeliest_category():
    leaves = np.array([[0.3, 0.3, 0.4, 0.0], [0.1, 0.2, 0.3, 0.4]], np.float32)
    assert classifier.best_leaf(leaves, np.array([0, 0, 1, 1])).tolist() == [0, 3]


def test_familiarity_is_high_near_the_examples_and_low_far_away():
    given = examples()
    fitted, left_out = fit(given)
    near = fitted.predict(given.vectors, given.norms).familiarity
    far = fitted.predict(-given.vectors.mean(axis=0, keepdims=True), given.norms.slice(0, 1)).familiarity
    assert near.min() > far.max()
    assert (left_out.familiarity < near).all()


def test_without_unsolvable_or_second_intents_nothing_is_said_of_them():
    given = examples(reasons=False)
    given.presence[:] = np.eye(4, dtype=bool)[given.primary]
    fitted, left_out = fit(given)
    assert fitted.unsolvable is None and fitted.presence is None
    assert (left_out.unsolvable == 0).all() and (left_out.presence == 0).all()
    said = fitted.predict(given.vectors, given.norms)
    assert (said.unsolvable == 0).all() and (said.presence == 0).all()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_handful_of_examples_is_enough_to_go_on(count):
    given = examples(per=30)
    few = Examples(
        given.vectors[:count],
        given.norms.slice(0, count),
        given.primary[:count],
        given.presence[:count],
        np.zeros(count, int),
        given.level1,
        4,
    )
    fitted, _ = fit(few)
    said = fitted.predict(given.vectors, given.norms)
    assert np.isfinite(said.leaves).all()
    assert (said.primary[:count] == 0).all()


def test_many_examples_are_spanned_by_some_of_every_leaf(monkeypatch):
    given = examples()
    monkeypatch.setattr(classifier, "MOST_CENTRES", 60)
    fitted, left_out = fit(given)
    assert len(fitted.centres) == 60
    assert (fitted.predict(given.vectors, given.norms).primary == given.primary).mean() > 0.9
    assert (left_out.primary == given.primary).mean() > 0.8


def blend(given, members):
    """Pairs whose vectors and words are those of both members."""
    first, second = np.array(members).T
    vectors = given.vectors[first] + given.vectors[second]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    texts = given.norms.to_pylist()
    norms = [f"{texts[a]} {texts[b]}" for a, b in members]
    return Pairs(vectors, normalise(pa.array(norms, pa.large_string())), np.array(members))


def test_two_intents_in_one_text_are_told():
    given = examples()
    random = np.random.default_rng(0)
    drawn = [
        (int(i), int(j)) for i, j in random.integers(0, 120, size=(300, 2)) if given.primary[i] != given.primary[j]
    ]
    seen, unseen = blend(given, drawn[:150]), blend(given, drawn[150:])
    fitted, _ = fit(given, seen)
    said = fitted.predict(unseen.vectors, unseen.norms)
    two = np.sort(np.argsort(-said.presence, axis=1)[:, :2], axis=1)
    assert np.mean((two == np.sort(given.primary[unseen.members], axis=1)).all(axis=1)) > 0.85


def test_an_example_is_left_out_with_its_pairs():
    given = examples()
    # Thirty pairs say that the first example has leaf 3 in it, which nothing else does.
    strange = blend(given, [(0, i) for i in range(90, 120)])
    _, left_out = fit(given, strange)
    plain = fit(given)[1]
    assert left_out.presence[0, 3] < 0.5
    np.testing.assert_array_equal(left_out.leaves, plain.leaves)


def test_familiarity_is_the_mean_of_the_largest_five():
    rows = np.random.default_rng(0).normal(size=(7, 30)).astype(np.float32)
    np.testing.assert_allclose(nearest_mean(rows), np.sort(rows, axis=1)[:, -5:].mean(axis=1), rtol=1e-5)
    np.testing.assert_allclose(nearest_mean(rows[:, :3]), rows[:, :3].mean(axis=1), rtol=1e-5)
    assert nearest_mean(np.ones((2, 8), np.float32)).tolist() == [1, 1]


def test_predictions_are_joined_in_order():
    given = examples()
    fitted, _ = fit(given)
    parts = [fitted.predict(given.vectors[a:b], given.norms.slice(a, b - a)) for a, b in ((0, 50), (50, 120))]
    whole = fitted.predict(given.vectors, given.norms)
    np.testing.assert_array_equal(joined(parts).leaves, whole.leaves)
    np.testing.assert_array_equal(joined(parts).primary, whole.primary)


def test_no_rows_give_no_labels():
    given = examples()
    fitted, _ = fit(given)
    said = fitted.predict(given.vectors[:0], given.norms.slice(0, 0))
    assert said.leaves.shape == (0, 4) and len(said.primary) == 0


def test_confidence_is_as_high_as_the_share_that_is_right():
    given = examples(per=60)
    # Every seventh label is wrong.
    wrong = np.where(np.arange(240) % 7 == 0, (given.primary + 1) % 4, given.primary)
    presence = np.eye(4, dtype=bool)[wrong]
    fitted, left_out = fit(replace(given, primary=wrong, presence=presence))
    given = replace(given, primary=wrong)
    right = (left_out.primary == given.primary).mean()
    assert abs(left_out.confidence.mean() - right) < 0.02
    # The order of two predictions stays that of their probabilities.
    top = left_out.leaves[np.arange(240), left_out.primary]
    assert (np.diff(left_out.confidence[np.argsort(top, kind="stable")]) >= -1e-6).all()
    assert fitted.certainty is not None
