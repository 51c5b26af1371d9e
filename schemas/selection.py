"""The contract of `selection`."""

from __future__ import annotations

import dataframely as dy


class Selection(dy.Schema):
    """A row is a pick of the geometric level."""

    query_id = dy.UInt64(primary_key=True, description="`queries.query_id`")
    bucket = dy.String(description="`semantic_groups.bucket`")
    difficulty = dy.Int8(min=-1, max=5, description="`difficulty.difficulty`")
    rank = dy.Int64(
        min=1, unique=True, description="1-based order of picking over the whole selection, widest radius first"
    )
    radius = dy.Float32(
        min=0, description="distance to the nearest earlier pick of its cell when it was picked; 2 for the first"
    )
