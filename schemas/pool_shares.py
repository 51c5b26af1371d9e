"""The contract of `pool_shares`."""

from __future__ import annotations

import dataframely as dy


class PoolShares(dy.Schema):
    """A row is one share of the candidate pool next to its target."""

    share_of = dy.String(
        primary_key=True,
        check=lambda c: c.is_in(["difficulty", "bucket", "origin", "level1", "split"]),
        description="what is shared out",
    )
    name = dy.String(primary_key=True, description="the difficulty, bucket, origin, level-1 category or split")
    rows = dy.Int64(min=0, description="candidates in the pool")
    share = dy.Float64(min=0, max=1, description="of the pool's rows")
    target = dy.Float64(
        min=0, max=1, nullable=True, description="share the recipe asks for; null where it asks for none"
    )
    available = dy.Int64(min=0, nullable=True, description="rows that could have been chosen")
