"""The contract of `irrelevance`."""

from __future__ import annotations

import dataframely as dy


class Irrelevance(dy.Schema):
    """A row is a negative sample: a query that the agent must refuse or answer without a tool."""

    candidate_id = dy.UInt64(primary_key=True, description="xxh3_64 of query id, origin and removed tools")
    query_id = dy.UInt64(description="`queries.query_id`")
    difficulty = dy.Int8(check=lambda c: c.is_in([-1, 0]), description="-1 unexecutable, 0 no tool needed")
    reason = dy.String(
        check=lambda c: c.is_in(["missing_tool", "missing_info", "no_actionable", "no_tool_needed"]),
        description="why",
    )
    origin = dy.String(
        check=lambda c: c.is_in(["observed", "tool_removed"]),
        description="seen as such, or made by taking a tool away",
    )
    removed_tools = dy.List(
        dy.String(), description="tools taken away to make it unexecutable; empty for observed ones"
    )
    level1 = dy.String(description="level-1 category of the primary leaf: what the set is balanced over")
