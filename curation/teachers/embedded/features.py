"""What the plan rules ask of a query, for whole columns at once: cues, measures and constraints as a small signature.

Rows with the same signature have the same plan, so the rules are carried out once per distinct signature and not once
per row: of millions of short queries some ten thousand signatures remain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from curation.domain.plan_rules import BUILT_IN_MEASURES, Condition, Measure, Plans

__all__ = ["SIGNATURE", "Facts", "Features"]

WORD = 63
"""Tests per UInt64 word of a signature; one bit is left so that sums never wrap."""

SIGNATURE = ("primary", "secondary", "tests", "measures", "dimensions")
"""Columns that together decide the plan."""


@dataclass(frozen=True)
class Facts:
    """A signature, taken apart: what holds for a query.

    Attributes:
        primary: Primary leaf.
        secondary: Further leaves, sorted.
        tests: Keys of the cue and constraint-value tests that hold.
        measures: Value by measure.
        dimensions: Names of the dimensions that have a constraint.
    """

    primary: str
    secondary: tuple[str, ...]
    tests: frozenset[str]
    measures: dict[str, int]
    dimensions: tuple[str, ...]

    def holds(self, condition: Condition) -> bool:
        """Whether a condition is true of the query."""
        match condition.kind:
            case "all":
                return all(self.holds(part) for part in condition.parts)
            case "any":
                return any(self.holds(part) for part in condition.parts)
            case "not":
                return not self.holds(condition.parts[0])
            case "secondary":
                return any(_within(leaf, condition.name) for leaf in self.secondary)
            case "measure":
                return self.measures[condition.name] >= condition.least
            case "dimension" if condition.regex is None:
                return any(_within(name, condition.name) for name in self.dimensions)
            case _:
                return condition.key in self.tests


class Features:
    """The tests of a domain's plan rules, compiled to column expressions."""

    def __init__(self, plans: Plans) -> None:
        self.plans = plans
        conditions = [rule.when for rule in plans.rules] + [slot.when for slot in plans.slots.values()]
        atoms = [atom for condition in conditions for atom in condition.atoms()]
        tests = [a for a in atoms if a.kind == "cue" or (a.kind == "dimension" and a.regex is not None)]
        self.tests = tuple({test.key: test for test in tests}.values())
        self.measures = tuple(plans.measures.values())

    def signatures(self, rows: pl.DataFrame) -> pl.DataFrame:
        """What decides the plan, one row per row of ``rows``, in order.

        Args:
            rows: Columns ``norm``, ``primary``, ``secondary`` (list) and ``constraints`` (list of struct with
                ``dimension``, ``value``, ``start``, ``end``).

        Returns:
            The columns :data:`SIGNATURE`, and ``weight`` (sum of the weights of the distinct constraints) and
            ``stated`` (letters that state a constraint).
        """
        texts = rows.select("norm").with_columns(
            **{f"test{i}": self._cue(test) for i, test in enumerate(self.tests) if test.kind == "cue"},
            **{f"measure{i}": _measure(measure) for i, measure in enumerate(self.measures)},
        )
        limits = self._constraints(rows)
        built_in = {
            "secondaries": rows["secondary"].list.len().cast(pl.UInt32).clip(0, 9),
            "constraints": limits["n"].cast(pl.UInt32).clip(0, 9),
        }
        found = texts.with_columns(limits.select(pl.selectors.starts_with("test")))
        measures = [pl.col(f"measure{i}") for i in range(len(self.measures))]
        return found.with_columns(**built_in).select(
            pl.Series("primary", rows["primary"]),
            pl.Series("secondary", rows["secondary"].list.sort().list.join("+")),
            pl.concat_list(self._words()).alias("tests"),
            pl.concat_list([m.cast(pl.UInt32) for m in (*measures, *map(pl.col, BUILT_IN_MEASURES))]).alias(
                "measures"
            ),
            limits["dimensions"],
            limits["weight"],
            limits["stated"],
        )

    def facts(self, signature: dict[str, object]) -> Facts:
        """Take one row of :meth:`signatures` (as a dictionary of its SIGNATURE columns) apart."""
        words: list[int] = signature["tests"]  # type: ignore[assignment]
        tests = [test.key for i, test in enumerate(self.tests) if words[i // WORD] >> (i % WORD) & 1]
        values: list[int] = signature["measures"]  # type: ignore[assignment]
        names = (*(measure.name for measure in self.measures), *BUILT_IN_MEASURES)
        secondary, dimensions = str(signature["secondary"]), str(signature["dimensions"])
        return Facts(
            str(signature["primary"]),
            tuple(secondary.split("+")) if secondary else (),
            frozenset(tests),
            dict(zip(names, values, strict=True)),
            tuple(dimensions.split("+")) if dimensions else (),
        )

    def _cue(self, test: Condition) -> pl.Expr:
        return pl.col("norm").str.contains(_union(regex for _, regex in self.plans.cues[test.name]))

    def _words(self) -> list[pl.Expr]:
        words = []
        for start in range(0, max(len(self.tests), 1), WORD):
            bits = [
                pl.col(f"test{i}").cast(pl.UInt64) * (1 << (i - start))
                for i in range(start, min(start + WORD, len(self.tests)))
            ]
            words.append(pl.sum_horizontal(bits).cast(pl.UInt64) if bits else pl.lit(0, pl.UInt64))
        return words

    def _constraints(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Per row: ``n`` distinct constraints, their ``weight``, their ``dimensions``, letters ``stated``, tests."""
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
            **{f"test{i}": _below(test.name) & pl.col("value").str.contains(test.regex or "") for i, test in tested},
        )
        by_row = (
            exploded.group_by("row", "dimension", "value")
            .agg(pl.col("letters").sum())
            .join(pairs.lazy(), on=["dimension", "value"])
            .group_by("row")
            .agg(
                pl.len().alias("n"),
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


def _within(name: str, top: str) -> bool:
    return name == top or name.startswith(f"{top}.")


def _below(top: str) -> pl.Expr:
    return (pl.col("dimension") == top) | pl.col("dimension").str.starts_with(f"{top}.")


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
