"""Ids and seeded orders from content, the same on every machine and in every version."""

from __future__ import annotations

import numpy as np
import polars as pl

__all__ = ["candidate_ids", "hash_strings", "seeded_order"]


def hash_strings(strings: pl.Series) -> pl.Series:
    """xxh3_64 of the UTF-8 bytes of ``strings``, as UInt64; polars' own hash differs between versions."""
    import polars_hash  # noqa: F401  registers the expression namespace

    return pl.DataFrame({"s": strings}).select(pl.col("s").nchash.xxh3_64())["s"]  # type: ignore[attr-defined]


def candidate_ids(query_ids: pl.Series, origins: pl.Series, removed_tools: pl.Series) -> pl.Series:
    """Ids of candidates: xxh3_64 of ``query_id|origin|tool,tool``, since one query may be several candidates."""
    frame = pl.DataFrame({"query_id": query_ids, "origin": origins, "removed": removed_tools})
    name = pl.concat_str(
        pl.col("query_id").cast(pl.String), pl.lit("|"), "origin", pl.lit("|"), pl.col("removed").list.join(",")
    )
    return hash_strings(frame.select(name=name)["name"]).alias("candidate_id")


def seeded_order(ids: np.ndarray, seed: int) -> np.ndarray:
    """A random order of ``ids`` that only ids and ``seed`` decide: positions sorted by the hash of ``seed|id``.

    Args:
        ids: UInt64 ids, shape (n,), without repetition.
        seed: Any whole number.

    Returns:
        Positions into ``ids``, shape (n,).
    """
    hashes = hash_strings(pl.Series("s", ids, dtype=pl.UInt64).cast(pl.String).str.replace(r"^", f"{seed}|"))
    return np.lexsort((ids, hashes.to_numpy()))
