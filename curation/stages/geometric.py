"""Geometric: pick the observed rows of the pool so that no survivor is far from a pick, with quotas per bucket.

How many rows are picked, and how many of each difficulty, follows from the pool's section of the recipe and from what
synthesis and tool removal contribute (:func:`curation.algorithms.apportion.pool_sizes`). Quotas are filled by
K-Center-Greedy inside every cell <bucket, difficulty>; every survivor is then covered by the nearest pick of its
bucket. Where there are more buckets than rows to pick, buckets are taken together by primary leaf, then by level-1
category; a row whose bucket has no pick is covered by the nearest one of the unit that its bucket belongs to.

Metrics: `asked`, observed rows that the pool has places for, and `shortfall`, places of the whole pool that stay
empty; `cells` with a quota; `coarsened`: 0 with quotas per bucket, 1 per primary leaf, 2 per level-1 category, 3 for
all together. `radius_max` and `radius_mean` are Euclidean distances of unit vectors from each survivor to the pick
that covers it. To compare with chance, `selected_radius_*`, `random_radius_*` and `stratified_radius_*` are distances
of a seeded sample of up to 4,096 survivors to the nearest pick of any bucket: of this selection, of as many random
rows, and of random rows under the same quotas.

Where the recipe names an earlier workspace, its selection counts as picked: a row near a pick of that day, in the
same cell, is picked late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from pydantic import Field

from curation.engine.stage import Account, Context, Params, Part, Stage
from curation.errors import CurationError

__all__ = ["STAGE", "GeometricParams"]

_SAMPLE = 4096
_SMALL = 20_000  # up to here a unit is worth one thread; larger ones get them all
_BLOCK = 65_536
_WRITE = 1_000_000
_ALL = 3  # the coarsest level


class GeometricParams(Params):
    """How rows are picked; how many of what kind is asked for in the section of the pool."""

    exact_rows: int = Field(
        200_000, ge=1, description="rows of a <bucket, difficulty> up to which picking is exact; beyond, by cells"
    )


@dataclass(frozen=True)
class _Survivors:
    """Survivors by query id, and what becomes of them (the last three are filled in)."""

    frame: pl.DataFrame
    levels: tuple[np.ndarray, ...]
    """int64[n] each: the row's bucket, primary leaf, level-1 category, and 0 for all."""
    radius: np.ndarray
    """float32[n]: distance to earlier picks when the row was picked; -1 where it was not."""
    representative: np.ndarray
    similarity: np.ndarray

    @cached_property
    def ids(self) -> np.ndarray:
        """Query ids, rising."""
        return self.frame["query_id"].to_numpy()

    @cached_property
    def weight(self) -> np.ndarray:
        """Raw rows behind each survivor."""
        return self.frame["weight"].to_numpy()

    def unit_name(self, level: int, row: int) -> str:
        """What the unit of a row is called."""
        return str(self.frame[row : row + 1].select(_unit_names()[level]).item())

    @cached_property
    def column(self) -> np.ndarray:
        """Difficulty as a column of a quota matrix."""
        return self.frame["difficulty"].to_numpy().astype(np.int64) + 1


@dataclass(frozen=True)
class _Plan:
    """Quotas per unit of ``level`` and difficulty; units of ``cover_level`` (the same or coarser) all have picks."""

    level: int
    cover_level: int
    quota: np.ndarray


def _unit_names() -> tuple[pl.Expr, ...]:
    """What a row's unit is called on each level: its bucket, its primary leaf, its level-1 category, all."""
    primary = pl.col("bucket").str.split("|").list.first()
    return pl.col("bucket"), primary, primary.str.split(".").list.first(), pl.col("bucket").str.slice(0, 0)


def _survivors(ctx: Context) -> _Survivors:
    kept = (
        ctx.scan("semantic_groups", ["query_id", "representative_id", "group_count", "bucket"])
        .filter(pl.col("query_id") == pl.col("representative_id"))
        .select("query_id", "bucket", weight="group_count")
    )
    scored = ctx.scan("difficulty", ["query_id", "difficulty"])
    frame = scored.join(kept, on="query_id", how="left").sort("query_id").collect()
    if strays := frame["bucket"].null_count():
        raise CurationError(
            f"{strays:,} rows of difficulty are not representatives of semantic_groups",
            "Run the difficulty stage again.",
        )
    levels = [(name.rank("dense").cast(pl.Int64) - 1).alias(f"{i}") for i, name in enumerate(_unit_names())]
    n = frame.height
    return _Survivors(
        frame=frame,
        levels=tuple(column.to_numpy() for column in frame.select(levels)),
        radius=np.full(n, -1.0, dtype=np.float32),
        representative=np.arange(n),
        similarity=np.ones(n, dtype=np.float32),
    )


def _asked(ctx: Context, rows: _Survivors) -> tuple[tuple[int, int, int], np.ndarray | None]:
    """Sizes of the pool by origin, and the weights of the difficulties among the observed rows."""
    from curation.algorithms.apportion import difficulty_weights, pool_sizes

    pool = ctx.shared["pool"]
    verified = ctx.scan("synthetic", ["verdict", "difficulty"]).filter(pl.col("verdict") == "verified").collect()
    removable = ctx.scan("difficulty", ["difficulty", "tool_plan"]).filter(
        (pl.col("difficulty") >= 1) & (pl.col("tool_plan").list.len() > 0)
    )
    n_removable = removable.select(pl.len()).collect().item()
    n = rows.frame.height
    sizes = pool_sizes(pool.size, pool.tool_removed_share, verified.height, n_removable, n)
    if n and sizes[0] == 0:
        raise CurationError(
            f"a pool of {pool.size:,} rows has no place for observed queries next to {sizes[2]:,} synthetic ones",
            "Raise pool.size in the recipe.",
        )
    if pool.difficulty is None:
        return sizes, None
    made = dict(verified.group_by("difficulty").len().iter_rows())
    try:
        return sizes, difficulty_weights(pool.difficulty, sizes, made, np.bincount(rows.column, minlength=7))
    except ValueError as error:
        raise CurationError(f"pool.difficulty of the recipe cannot be met: {error}") from error


def _plan(ctx: Context, rows: _Survivors, total: int, difficulty: np.ndarray | None) -> _Plan:
    """Quotas at the finest level at which every unit can have its minimum."""
    from curation.algorithms.apportion import quotas

    pool = ctx.shared["pool"]
    units = [int(level.max(initial=-1)) + 1 for level in rows.levels]
    level = next(i for i, count in enumerate(units) if i == _ALL or count * pool.min_per_bucket <= total)
    counts = np.zeros((units[level], 7), dtype=np.int64)
    np.add.at(counts, (rows.levels[level], rows.column), 1)
    quota = quotas(
        counts,
        _parents(rows.levels[level], rows.levels[max(level, 2)]),
        total,
        bucket_shares=pool.bucket_shares,
        difficulty=difficulty,
        minimum=pool.min_per_bucket,
    )
    cover = level
    while cover < _ALL:
        above = _parents(rows.levels[level], rows.levels[cover])
        if (np.bincount(above, weights=quota.sum(axis=1)) > 0).all():
            break
        cover += 1
    return _Plan(level, cover, quota)


def _parents(units: np.ndarray, coarser: np.ndarray) -> np.ndarray:
    """The coarser unit of each unit, given those of every row."""
    above = np.zeros(int(units.max(initial=-1)) + 1, dtype=np.int64)
    above[units] = coarser
    return above


class _Earlier:
    """Picks of the earlier workspace, by unit of the plan's level and difficulty."""

    def __init__(self, ctx: Context, level: int) -> None:
        self._vectors = np.empty((0, 0), dtype=np.float32)
        self._rows: dict[tuple[str, int], np.ndarray] = {}
        selection = ctx.earlier("selection", ["query_id", "bucket", "difficulty"])
        vectors = ctx.earlier("embeddings")
        if selection is None or vectors is None:
            return
        # Only the picks' vectors may stay in memory.
        found = vectors.join(selection.select("query_id"), on="query_id", how="semi").collect(engine="streaming")
        picks = selection.collect().join(found, on="query_id").sort("query_id")
        self._vectors = picks["vector"].to_numpy()
        names = picks.select(_unit_names()[level].alias("unit"), "difficulty").with_row_index("row")
        for (unit, difficulty), rows in names.group_by("unit", "difficulty", maintain_order=True):
            self._rows[str(unit), int(difficulty)] = rows["row"].to_numpy()  # type: ignore[call-overload]

    def __call__(self, unit: str, difficulty: int, width: int) -> np.ndarray:
        """float32[m, width]: the vectors of a cell; none where their width is another."""
        rows = self._rows.get((unit, difficulty))
        if rows is None or self._vectors.shape[1] != width:
            return np.empty((0, width), dtype=np.float32)
        return self._vectors[rows]


def _runs(codes: np.ndarray) -> list[tuple[int, int]]:
    """Half-open ranges of equal neighbours."""
    if len(codes) == 0:
        return []
    ends = [*(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _pick(
    rows: _Survivors,
    plan: _Plan,
    earlier: _Earlier,
    members: np.ndarray,
    vectors: np.ndarray,
    ctx: Context,
    workers: int,
) -> None:
    """Fill the quotas of all cells of one unit, then cover its rows, own bucket first."""
    from curation.algorithms.coverage import nearest
    from curation.algorithms.partition import partitioned_kcenter

    unit, column, weight = rows.levels[plan.level][members], rows.column[members], rows.weight[members]
    width = vectors.shape[1]
    # Rows of a cell by id, since ties go to the earlier row.
    order = np.lexsort((members, column, unit))
    for first, last in _runs(unit[order] * 7 + column[order]):
        cell = order[first:last]
        wanted = int(plan.quota[unit[cell[0]], column[cell[0]]])
        if wanted:
            picks, radius = partitioned_kcenter(
                vectors[cell],
                wanted,
                weights=weight[cell],
                centres=earlier(rows.unit_name(plan.level, members[cell[0]]), int(column[cell[0]]) - 1, width),
                seed=ctx.seed,
                workers=workers,
                exact_rows=ctx.params.exact_rows,
            )
            rows.radius[members[cell[picks]]] = radius
    picked = rows.radius[members] >= 0
    open_ = ~picked
    for level in rows.levels[: plan.cover_level + 1]:
        code = level[members]
        order = np.lexsort((members, code))
        for first, last in _runs(code[order]):
            group = order[first:last]
            picks, others = group[picked[group]], group[open_[group]]
            if len(picks) == 0:
                continue
            for at in range(0, len(others), _BLOCK):
                block = others[at : at + _BLOCK]
                choice, cosine = nearest(vectors[block], vectors[picks], workers=workers)
                rows.representative[members[block]] = members[picks[choice]]
                rows.similarity[members[block]] = np.clip(cosine, 0.0, 1.0)
            open_[others] = False


class _Comparison:
    """Nearest picks of a seeded sample, for this selection and for two random ones of the same size."""

    def __init__(self, rows: _Survivors, plan: _Plan, total: int, seed: int) -> None:
        from curation.algorithms.identity import seeded_order

        n = rows.frame.height
        self._rows = rows
        self._sample = np.sort(seeded_order(rows.ids, seed)[:_SAMPLE])
        self._vectors: list[np.ndarray] = []
        self._random = np.zeros(n, dtype=bool)
        self._random[seeded_order(rows.ids, seed + 1)[:total]] = True
        rank = np.empty(n, dtype=np.int64)
        rank[seeded_order(rows.ids, seed + 2)] = np.arange(n)
        cell = rows.levels[plan.level] * 7 + rows.column
        order = np.lexsort((rank, cell))
        start = np.searchsorted(cell[order], cell[order])
        self._stratified = np.zeros(n, dtype=bool)
        self._stratified[order] = np.arange(n) - start < plan.quota.ravel()[cell[order]]
        self._best = {name: np.full(len(self._sample), -1.0) for name in ("selected", "random", "stratified")}

    def watch(self, batches: Iterable[tuple[np.ndarray, np.ndarray]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pass on batches of the embeddings, keeping the vectors of the sample."""
        wanted = self._rows.ids[self._sample]
        for ids, vectors in batches:
            hit = np.isin(ids, wanted)
            if hit.any():
                self._vectors.append(vectors[hit])
            yield ids, vectors

    def add(self, members: np.ndarray, vectors: np.ndarray, workers: int) -> None:
        """Take the picks among the rows of a partition into account."""
        from curation.algorithms.coverage import nearness

        sample = np.concatenate(self._vectors)
        chosen = {"selected": self._rows.radius >= 0, "random": self._random, "stratified": self._stratified}
        for name, best in self._best.items():
            at = np.flatnonzero(chosen[name][members])
            if len(at):
                np.maximum(best, nearness(sample, vectors[at], workers=workers), out=best)
            best[chosen[name][self._sample]] = 1.0  # on the grid a row is only nearly as close to itself

    def report(self, part: Part) -> None:
        """Write the metrics."""
        from curation.algorithms.coverage import radii

        for name, best in self._best.items():
            distance = radii(best)
            part.metric(f"{name}_radius_max", float(distance.max(initial=0.0)), "distance")
            part.metric(f"{name}_radius_mean", float(distance.mean()) if len(distance) else 0.0, "distance")


def _select(ctx: Context, rows: _Survivors, plan: _Plan, comparison: _Comparison) -> None:
    """Pick and cover, one partition of units after the other."""
    from curation.algorithms.parallel import run_chunks
    from curation.algorithms.vectors import blas_threads
    from curation.spill import plan_partitions, regroup, vector_batches

    files = ctx.files("embeddings")
    width = next((vectors.shape[1] for _, vectors in vector_batches(files)), 1)
    # A partition is in memory twice (read and reordered), a cell of it once more, on the grid.
    most = max(1, ctx.memory // 5 // (4 * width))
    cover = rows.levels[plan.cover_level]
    earlier = _Earlier(ctx, plan.level)
    partition = plan_partitions(np.bincount(cover), most)[cover]
    parts = regroup(comparison.watch(vector_batches(files)), rows.ids, partition, ctx.scratch)
    done = 0
    for number in range(int(partition.max()) + 1):
        members = np.flatnonzero(partition == number)
        order = np.lexsort((members, rows.levels[plan.level][members], cover[members]))
        members = members[order]
        vectors = parts.load(number, order, most)

        def pick(
            first: int, last: int, workers: int, members: np.ndarray = members, of: np.ndarray = vectors
        ) -> None:
            _pick(rows, plan, earlier, members[first:last], of[first:last], ctx, workers)

        units = _runs(cover[members])
        with blas_threads(1, 0):
            run_chunks(pick, [(*unit, 1) for unit in units if unit[1] - unit[0] <= _SMALL], ctx.workers)
        for first, last in units:
            if last - first > _SMALL:
                pick(first, last, ctx.workers)
        comparison.add(members, vectors, ctx.workers)
        done += len(members)
        ctx.progress(done, len(partition), "picking")


def run(ctx: Context) -> None:
    """Pick, cover, write the selection and the groups."""
    rows = _survivors(ctx)
    n = rows.frame.height
    sizes, difficulty = _asked(ctx, rows)
    plan = _plan(ctx, rows, sizes[0], difficulty)
    comparison = _Comparison(rows, plan, sizes[0], ctx.seed)
    if n:
        _select(ctx, rows, plan, comparison)
    with ctx.part() as part:
        _write(part, rows)
        _report(part, rows, ctx.shared["pool"].size, sizes, plan)
        comparison.report(part)


def _write(part: Part, rows: _Survivors) -> None:
    picks = np.flatnonzero(rows.radius >= 0)
    picks = picks[np.lexsort((rows.ids[picks], -rows.weight[picks], -rows.radius[picks]))]
    selection = rows.frame[picks].select(
        "query_id",
        "bucket",
        "difficulty",
        rank=pl.int_range(1, len(picks) + 1, dtype=pl.Int64),
        radius=pl.Series(rows.radius[picks], dtype=pl.Float32),
    )
    counts = np.zeros(len(rows.ids), dtype=np.int64)
    np.add.at(counts, rows.representative, rows.weight)
    groups = rows.frame.select(
        "query_id",
        representative_id=pl.Series(rows.ids[rows.representative], dtype=pl.UInt64),
        similarity=pl.Series(rows.similarity, dtype=pl.Float32),
        group_count=pl.Series(counts[rows.representative], dtype=pl.Int64),
    )
    for table, frame in (("selection", selection), ("geometric_groups", groups)):
        for first in range(0, max(frame.height, 1), _WRITE):
            part.write(table, frame.slice(first, _WRITE))


def _report(part: Part, rows: _Survivors, size: int, sizes: tuple[int, int, int], plan: _Plan) -> None:
    from curation.algorithms.coverage import radii

    n, kept, weight = rows.frame.height, int((rows.radius >= 0).sum()), int(rows.weight.sum())
    part.account(Account(rows_in=n, kept=kept, merged=n - kept, weight_in=weight, weight_out=weight))
    part.metric("asked", size - sizes[1] - sizes[2], "rows")
    part.metric("shortfall", size - sum(sizes), "rows")
    part.metric("cells", int((plan.quota > 0).sum()), "cells")
    part.metric("coarsened", plan.level, "level")
    distance = radii(rows.similarity)
    part.metric("radius_max", float(distance.max(initial=0.0)), "distance")
    part.metric("radius_mean", float(distance.mean()) if n else 0.0, "distance")


STAGE = Stage(
    name="geometric",
    run=run,
    params=GeometricParams,
    reads=("semantic_groups", "embeddings", "difficulty", "synthetic"),
    makes=("selection", "geometric_groups"),
    earlier=("selection", "embeddings"),
    title="Pick the rows that cover the rest",
    after="difficulty",
    shared=("pool",),
    libraries=("polars-hash",),
)
