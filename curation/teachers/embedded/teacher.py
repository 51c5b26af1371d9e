"""The embedded teacher's way to annotate: a classifier fitted on labelled seeds, constraints from the domain's words.

It needs no network and no key, is the same on every run, and says how sure it is:

* The primary leaf comes from :mod:`curation.teachers.embedded.classifier`, fitted on the seeds that have a leaf and
  on the example queries of the taxonomy.
* A query less familiar than all but a small share of the seeds (each looked at without itself) is not pressed into a
  leaf, unless that is nearly certain: it goes to the Other of the deepest category that is, else to the root's.
* A query whose vector is missing or has no direction fails with its error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from curation.algorithms.normalise import normalise, query_ids
from curation.domain.model import REASONS
from curation.errors import CurationError
from curation.teachers.embedded.classifier import Classifier, Examples, Pairs, Prediction, fit, joined
from curation.teachers.embedded.clauses import split_clauses
from curation.teachers.embedded.constraints import Recogniser
from curation.teachers.embedded.labelling import Choice, Labeller, Verdicts

if TYPE_CHECKING:
    from curation.domain import Domain

__all__ = ["Choice", "EmbeddedTeacher", "Tree"]

Encode = Callable[[list[str]], NDArray[np.float32]]

_OLDEST = pl.CompatLevel.oldest()
_BLOCK = 4096
_HINT = 0.05
_NEARLY_CERTAIN = 0.8
_PAIR_SEED = 1
_MOST_PAIRS = 3000
_JOINTS = {
    "zh": ("", "，", "再", "然后", "顺便"),
    "en": (" and ", ", ", " then ", " and also "),
    "": (", ", " "),
}
"""What may stand between two wishes in one sentence; `""` for the languages not named."""


class _Label(NamedTuple):
    leaf: str
    further: tuple[str, ...]
    reason: str | None
    text: str
    lang: str | None


class Tree:
    """The newest version in a `taxonomy` table, for looking nodes up."""

    def __init__(self, taxonomy: pl.DataFrame) -> None:
        versions = taxonomy["version"].unique().to_list()
        if not versions:
            raise CurationError("the taxonomy has no nodes", hint="Run the taxonomy stage again.")
        self.version: str = max(versions, key=_version_order)
        nodes = taxonomy.filter(pl.col("version") == self.version).sort("node_id")
        leaves = nodes.filter("is_leaf")
        self.leaves = frozenset(leaves["node_id"])
        others = nodes.filter("is_other").select(pl.col("parent_id").fill_null(""), "node_id")
        self._others: dict[str, str] = dict(others.iter_rows())
        self.examples: list[tuple[str, str]] = [
            (leaf, text) for leaf, texts in leaves.select("node_id", "examples").iter_rows() for text in texts
        ]

    def leaf(self, node_id: str) -> str:
        """``node_id`` where it is a leaf, else the nearest Other at or above its parent."""
        return node_id if node_id in self.leaves else self.other(node_id.rpartition(".")[0])

    def other(self, node_id: str) -> str:
        """The Other of an inner node (of the root for ``""``), or of the nearest node above that has one."""
        while node_id and node_id not in self._others:
            node_id = node_id.rpartition(".")[0]
        return self._others[node_id]


class EmbeddedTeacher(Labeller):
    """The teacher fitted on seeds; make one with :meth:`fit`.

    ``measures`` says how it did on its examples, each predicted without itself: name, value, unit.
    """

    name = "embedded"

    def __init__(
        self,
        classifier: Classifier,
        leaves: list[str],
        tree: Tree,
        recogniser: Recogniser,
        encode: Encode,
        choice: Choice,
        least_familiar: float,
        measures: list[tuple[str, float, str]],
        workers: int,
    ) -> None:
        super().__init__(leaves, tree.version, choice, recogniser, classifier.centres.shape[1])
        self.classifier, self.tree = classifier, tree
        self.least_familiar, self.measures = least_familiar, measures
        self._encode, self._workers = encode, max(1, workers)
        self._inner = _inner_nodes(leaves)
        self._below = [[i for i, leaf in enumerate(leaves) if leaf.startswith(f"{node}.")] for node in self._inner]

    @classmethod
    def fit(
        cls,
        seeds: pl.DataFrame,
        taxonomy: pl.DataFrame,
        domain: Domain,
        encode: Encode,
        choice: Choice | None = None,
        workers: int = 1,
    ) -> EmbeddedTeacher:
        """Fit on labelled seeds.

        Args:
            seeds: The table `seeds`; rows without a primary leaf are left out.
            taxonomy: The table `taxonomy`; its newest version counts. Seeds of a leaf it does not have any more fall
                to the nearest Other.
            domain: For the constraint dimensions.
            encode: Texts to unit vectors, as the table `embeddings` has them.
            choice: How probabilities become labels.
            workers: Threads; they do not change the result.

        Raises:
            CurationError: There is nothing to learn from.
        """
        from threadpoolctl import threadpool_limits

        tree, choice = Tree(taxonomy), choice or Choice()
        rows = _labelled(seeds, tree)
        leaves = sorted({leaf for row in rows for leaf in (row.leaf, *row.further)})
        examples = _examples(rows, leaves, encode([row.text for row in rows]))
        pairs = _pairs(rows, encode)
        with threadpool_limits(limits=1):
            classifier, left_out = fit(examples, pairs, workers)
        least = _quantile(left_out.familiarity, choice.other_share)
        measures = _measures(examples, left_out, choice)
        return cls(classifier, leaves, tree, Recogniser(domain), encode, choice, least, measures, workers)

    def _predict(
        self, pool: ThreadPoolExecutor, vectors: NDArray[np.float32], norms: pa.LargeStringArray
    ) -> Prediction:
        """Predictions of all rows, block by block."""
        starts = range(0, max(len(vectors), 1), _BLOCK)
        blocks = pool.map(
            lambda at: self.classifier.predict(vectors[at : at + _BLOCK], norms.slice(at, _BLOCK)), starts
        )
        return joined(list(blocks))

    def judge(self, rows: pl.DataFrame, vectors: NDArray[np.float32]) -> Verdicts:
        """See :meth:`Labeller.judge`."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1), ThreadPoolExecutor(self._workers) as pool:
            said = self._predict(pool, vectors, rows["norm"].to_arrow(compat_level=_OLDEST).cast(pa.large_string()))
            present = self._present(pool, said, rows["text"])
        unfamiliar = self._unfamiliar(said)
        primary = pl.Series(self.leaves, dtype=pl.String).gather(said.primary)
        if unfamiliar.any():
            primary = primary.scatter(np.flatnonzero(unfamiliar), self._others(said.leaves[unfamiliar]))
        return Verdicts(primary, said.leaves, said.confidence, present, said.unsolvable, said.reason)

    def _unfamiliar(self, said: Prediction) -> NDArray[np.bool_]:
        """Which queries get no leaf."""
        sure = said.leaves[np.arange(len(said.primary)), said.primary] >= _NEARLY_CERTAIN
        return (said.familiarity < self.least_familiar) & ~sure

    def _present(self, pool: ThreadPoolExecutor, said: Prediction, texts: pl.Series) -> NDArray[np.float32]:
        """float32[n, leaves]: probability of each leaf to be a further intent; 0 for all of an unfamiliar query.

        A leaf that the whole query hints at counts as present also when a clause of the query, read alone, is of it.
        """
        present = said.presence.copy()
        present[np.arange(len(present)), said.primary] = 0
        present[self._unfamiliar(said)] = 0
        hinted = (
            np.flatnonzero((present >= _HINT).any(axis=1)) if self.choice.most_secondary else np.empty(0, np.int64)
        )
        owner, clauses = split_clauses(texts.gather(hinted).to_list())
        if clauses:
            row = hinted[owner]
            alone = self._predict(pool, self._encode(clauses), normalise(pa.array(clauses, pa.large_string())))
            sure = np.where(present[row, alone.primary] >= _HINT, alone.leaves[np.arange(len(row)), alone.primary], 0)
            np.maximum.at(present, (row, alone.primary), sure)
        return present

    def _others(self, leaves: NDArray[np.float32]) -> pl.Series:
        """For each row of leaf probabilities the Other that an unfamiliar query goes to."""
        # Nodes stand with the deepest first, and those that are nearly certain lie on one path.
        sure = [leaves[:, below].sum(axis=1) >= _NEARLY_CERTAIN for below in self._below]
        sure.append(np.ones(len(leaves), bool))
        others = pl.Series([*map(self.tree.other, self._inner), self.tree.other("")], dtype=pl.String)
        return others.gather(np.stack(sure, axis=1).argmax(axis=1))


def _examples(rows: list[_Label], leaves: list[str], vectors: NDArray[np.float32]) -> Examples:
    place = {leaf: i for i, leaf in enumerate(leaves)}
    primary = np.array([place[row.leaf] for row in rows])
    presence = np.zeros((len(rows), len(leaves)), bool)
    for i, row in enumerate(rows):
        presence[i, [place[leaf] for leaf in (row.leaf, *row.further)]] = True
    tops = sorted({leaf.split(".")[0] for leaf in leaves})
    return Examples(
        vectors=vectors,
        norms=normalise(pa.array([row.text for row in rows], pa.large_string())),
        primary=primary,
        presence=presence,
        reasons=np.array([0 if row.reason is None else 1 + REASONS.index(row.reason) for row in rows]),
        level1=np.array([tops.index(leaf.split(".")[0]) for leaf in leaves]),
        n_reasons=len(REASONS),
    )


def _pairs(rows: list[_Label], encode: Encode) -> Pairs | None:
    """Pairs of solvable seeds of one language with a single intent each, different ones, put into one text.

    Every such seed (of more than `_MOST_PAIRS` some, evenly) is once the first of a pair; partner and joint are
    drawn. Long pairs are left out: who asks for two things at once asks shortly. None where no seed has a further
    intent.
    """
    if not any(row.further for row in rows):
        return None
    random = np.random.default_rng(_PAIR_SEED)
    by_lang: dict[str, list[int]] = {}
    for i, row in enumerate(rows):
        if row.lang and not row.further and row.reason is None:
            by_lang.setdefault(row.lang, []).append(i)
    texts, members = [], []
    for lang, same in sorted(by_lang.items()):
        joints = _JOINTS.get(lang, _JOINTS[""])
        longest = 4 * np.median([len(rows[i].text) for i in same])
        some = same[:: -(-len(rows) // _MOST_PAIRS)]
        partners, joins = random.integers(len(same), size=len(some)), random.integers(len(joints), size=len(some))
        for i, partner, join in zip(some, partners, joins, strict=True):
            first, second = rows[i], rows[same[partner]]
            if first.leaf != second.leaf and len(first.text) + len(second.text) <= longest:
                texts.append(first.text + joints[join] + second.text)
                members.append((i, same[partner]))
    if not texts:
        return None
    return Pairs(encode(texts), normalise(pa.array(texts, pa.large_string())), np.array(members))


def _labelled(seeds: pl.DataFrame, tree: Tree) -> list[_Label]:
    """Labelled seeds and the examples of the tree that are not among them, by query id, ascending."""
    rows = seeds.filter(pl.col("primary").is_not_null())
    out: dict[int, _Label] = {}
    columns = ("query_id", "primary", "secondary", "reason", "text", "lang")
    for query_id, primary, secondary, reason, text, lang in rows.select(columns).iter_rows():
        leaf = tree.leaf(primary)
        out[query_id] = _Label(leaf, tuple(sorted({tree.leaf(s) for s in secondary} - {leaf})), reason, text, lang)
    ids = query_ids(normalise(pa.array([text for _, text in tree.examples], pa.large_string())))
    for query_id, (leaf, text) in zip(ids.tolist(), tree.examples, strict=True):
        out.setdefault(query_id, _Label(leaf, (), None, text, None))
    if not out:
        raise CurationError(
            "there are no labelled seeds to learn from",
            hint="Add seeds to the domain (seeds.yaml), or name a labelled file in the recipe: seeds: {file: ...}.",
        )
    return [label for _, label in sorted(out.items())]


def _measures(examples: Examples, said: Prediction, choice: Choice) -> list[tuple[str, float, str]]:
    level1 = examples.level1
    unsolvable, found = examples.reasons > 0, said.unsolvable >= choice.unsolvable_from
    hits = int((unsolvable & found).sum())
    return [
        ("examples", len(examples.primary), "rows"),
        ("left_out_leaf_accuracy", float((said.primary == examples.primary).mean()), "share"),
        ("left_out_level1_accuracy", float((level1[said.primary] == level1[examples.primary]).mean()), "share"),
        ("left_out_confidence", float(said.confidence.mean()), "share"),
        ("left_out_unsolvable_precision", hits / max(1, int(found.sum())), "share"),
        ("left_out_unsolvable_recall", hits / max(1, int(unsolvable.sum())), "share"),
    ]


def _inner_nodes(leaves: Iterable[str]) -> list[str]:
    """Ids of the nodes above the leaves, deepest first, then by name."""
    nodes = {leaf.rsplit(".", depth)[0] for leaf in leaves for depth in range(1, leaf.count(".") + 1)}
    return sorted(nodes, key=lambda node: (-node.count("."), node))


def _version_order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Orders 2 before 10, and numbers before words."""
    parts = version.replace("-", ".").split(".")
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts)


def _quantile(values: NDArray[np.float32], share: float) -> float:
    """The value that a share of the values lies below; minus infinity for none."""
    below = int(share * len(values))
    return float(np.sort(values)[below]) if below else float("-inf")
