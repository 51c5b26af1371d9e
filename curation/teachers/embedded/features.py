"""What the plan rules ask of a query, for whole columns at once: cues, measures and constraints as a few numbers.

Rows with the same numbers have the same plan, so the rules are carried out once per distinct *signature* and not once
per row: millions of short queries have some ten thousand signatures.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import polars as pl

from curation.domain.plan_rules import BUILT_IN_MEASURES, Condition, Measure, Plans

__all__ = ["WORD", "Features"]

WORD = 63
"""Tests per UInt64 word of a signature; one bit is left so that sums never wrap."""

_MOST = 9
"""Largest value of a built-in measure."""


class Features:
    """The tests and measures of a domain's plan rules, compiled to column expressions.

    Attributes:
        tests: Cues and constraints that some condition asks for; bit ``i % WORD`` of word ``i // WORD`` tells of
            test i.
        measures: Names of all measures, the built-in ones last.
    """

    def __init__(self, plans: Plans) -> None:
        self.plans = plans
        conditions = [rule.when for rule in plans.rules] + [slot.when for slot in plans.slots.values()]
        self._atoms = [atom for condition in conditions for atom in condition.atoms()]
        tests = [atom for atom in self._atoms if atom.kind in ("cue", "dimension")]
        self.tests = tuple({test.key: test for test in tests}.values())
        self.measures = (*plans.measures, *BUILT_IN_MEASURES)

    @property
    def words(self) -> list[str]:
        """Names of the columns that hold the tests."""
        return [f"tests{number}" for number in range(max(-(-len(self.tests) // WORD), 1))]

    @property
    def values(self) -> list[str]:
        """Names of the columns that hold the measures, in the order of :attr:`measures`."""
        return [f"measure_{name}" for name in self.measures]

    @cached_property
    def _steps(self) -> dict[str, list[int]]:
        """Per measure the values that make a difference; empty where every value does (it says how often to call)."""
        times = {step.times for plan in self.plans.nodes.values() for step in plan.steps}
        times |= {step.times for rule in self.plans.rules for step in rule.add}
        times |= {value for rule in self.plans.rules for _, value in rule.repeat}
        exact = times | {self.plans.objectives}
        return {
            name: []
            if name in exact
            else sorted({a.least for a in self._atoms if a.kind == "measure" and a.name == name} | {0})
            for name in self.measures
        }

    def columns(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What decides the plan, one row per row of ``rows``, in order.

        Args:
            rows: Columns ``norm``, ``primary``, ``secondary`` (list) and ``constraints`` (list of struct with
                ``dimension``, ``value``, ``start``, ``end``).

        Returns:
            ``primary`` and ``secondary`` (joined by ``+``), the columns :attr:`words` and :attr:`values` (a measure
            is lowered to the next value that makes a difference), ``dimensions`` of the constraints (joined by
            ``+``), ``weight`` (sum of the weights of the distinct constraints) and ``stated`` (letters that state
            one).
        """
        limits = self._constraints(rows)
        cues = {f"test{i}": self._cue(test) for i, test in enumerate(self.tests) if test.kind == "cue"}
        measures = {f"measure_{name}": _measure(measure) for name, measure in self.plans.measures.items()}
        built_in = (rows["secondary"].list.len(), limits["n"])
        found = rows.select("norm").with_columns(
            **cues,
            **measures,
            **{f"measure_{name}": values for name, values in zip(BUILT_IN_MEASURES, built_in, strict=True)},
        )
        return found.with_columns(limits.select(pl.selectors.starts_with("test"))).select(
            pl.Series("primary", rows["primary"]),
            rows["secondary"].list.sort().list.join("+").alias("secondary"),
            *self._words(),
            *(self._lowered(name) for name in self.measures),
            limits["dimensions"],
            limits["weight"],
            limits["stated"],
        )

    @staticmethod
    def joined(words: list[int]) -> int:
        """The words of a row as one number, whose bit i tells of test i."""
        return sum(word << (WORD * number) for number, word in enumerate(words))

    def _cue(self, test: Condition) -> pl.Expr:
        return pl.col("norm").str.contains(_union(regex for _, regex in self.plans.cues[test.name]))

    def _words(self) -> list[pl.Expr]:
        words = []
        for number, name in enumerate(self.words):
            span = range(number * WORD, min((number + 1) * WORD, len(self.tests)))
            bits = [pl.col(f"test{i}").cast(pl.UInt64) * (1 << (i % WORD)) for i in span]
            words.append((pl.sum_horizontal(bits).cast(pl.UInt64) if bits else pl.lit(0, pl.UInt64)).alias(name))
        return words

    def _lowered(self, name: str) -> pl.Expr:
        value = pl.col(f"measure_{name}").cast(pl.UInt32)
        if name in BUILT_IN_MEASURES:
            value = value.clip(0, _MOST)
        steps = self._steps[name]
        if steps:
            lowered = pl.lit(steps[0], pl.UInt32)
            for step in steps[1:]:
                lowered = pl.when(value >= step).then(pl.lit(step, pl.UInt32)).otherwise(lowered)
            value = lowered
        return value.alias(f"measure_{name}")

    def _constraints(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Per row: ``n`` distinct constraints, their ``weight`` and ``dimensions``, letters ``stated``, and tests."""
        exploded = (
            rows.lazy()
            .select("constraints")
            .with_row_index("row")
            .filter(pl.col("constraints").list.len() > 0)
            .explode("constraints")
            .unnest("constraints")
            .select("row", "dimension", "value", letters=(pl.col("end") - pl.col("start")).cast(pl.Int64))
        )
        pairs = exploded.select("dimension", "value").unique().sort("dimension", "value").collect()
        tested = [(i, test) for i, test in enumerate(self.tests) if test.kind == "dimension"]
        pairs = pairs.with_columns(
            weight=pl.Series([self.plans.weight(*pair) for pair in pairs.iter_rows()], dtype=pl.Float64),
            **{f"test{i}": _fits(test) for i, test in tested},
        )
        by_row = (
            exploded.group_by("row", "dimension", "value")
            .agg(pl.col("letters").sum())
            .join(pairs.lazy(), on=["dimension", "value"])
            .group_by("row")
            .agg(
                pl.len().alias("n"),
                # Rounded, since the order in which a group is summed is not fixed.
                pl.col("weight").sum().round(6),
                pl.col("dimension").unique().sort().str.join("+").alias("dimensions"),
                pl.col("letters").sum().alias("stated"),
                *(pl.col(f"test{i}").any() for i, _ in tested),
            )
        )
        return (
            pl.LazyFrame({"row": pl.int_range(rows.height, dtype=pl.get_index_type(), eager=True)})
            .join(by_row, on="row", how="left", maintain_order="left")
            .with_columns(
                pl.col("n", "weight", "stated").fill_null(0),
                pl.col("dimensions").fill_null(""),
                *(pl.col(f"test{i}").fill_null(False) for i, _ in tested),
            )
            .collect()
        )


def _fits(test: Condition) -> pl.Expr:
    below = (pl.col("dimension") == test.name) | pl.col("dimension").str.starts_with(f"{test.name}.")
    return below if test.regex is None else below & pl.col("value").str.contains(test.regex)


def _union(regexes: Iterable[str]) -> str:
    r"""One regex for all. ``\b`` becomes the ASCII boundary: between ``KFC`` and a Chinese character lies one, and
    Rust's Unicode boundary is ten times slower on text that is not ASCII."""
    return "|".join(f"(?:{regex})" for regex in regexes).replace(r"\b", r"(?-u:\b)")


def _measure(measure: Measure) -> pl.Expr:
    norm = pl.col("norm")
    if measure.kind == "matches":
        value = norm.str.count_matches(_union(regex for _, regex in measure.patterns)) + measure.default
    elif measure.kind == "rest":
        taken = norm.str.replace_all(_union(regex for _, regex in measure.patterns), " ")
        value = taken.str.replace_all(r"\s+", "").str.len_chars()
    else:
        found = pl.coalesce(norm.str.extract(_union([regex]), 1) for _, regex in measure.patterns)
        number = found.cast(pl.Int64, strict=False)
        if measure.words:
            number = number.fill_null(found.replace_strict(dict(measure.words), default=None, return_dtype=pl.Int64))
        value = number.fill_null(measure.default)
    return value.clip(0, measure.most).cast(pl.UInt32)
