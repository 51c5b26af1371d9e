"""The contract of `difficulty`."""

from __future__ import annotations

import dataframely as dy
import polars as pl


class Difficulty(dy.Schema):
    """A row is a query scored by execution simulation on the tools of the domain."""

    query_id = dy.UInt64(primary_key=True, description="`queries.query_id`")
    difficulty = dy.Int8(
        min=-1, max=5, description="-1 unexecutable with the tools at hand, 0 no tool needed, 1 easiest to 5 hardest"
    )
    cognitive_load = dy.Float32(
        min=0, max=5, description="how hard it is to tell which tools are needed: 1-2 explicit mapping, 4-5 implicit"
    )
    chain_depth = dy.Float32(
        min=0, max=5, description="number, kinds and dependency depth of the calls, on the same scale"
    )
    constraint_complexity = dy.Float32(
        min=0, max=5, description="density of constraints and how jointly they bind, on the same scale"
    )
    tool_plan = dy.List(
        dy.Struct(
            {
                "step": dy.Int32(description="1-based step"),
                "tool": dy.String(description="tool of the domain"),
                "depends_on": dy.List(dy.Int32(), description="steps whose answers it needs"),
            }
        ),
        description="the calls an agent would make; empty at -1 and 0, and where the domain declares no tools",
    )
    reason = dy.String(
        nullable=True,
        description="missing_tool, missing_info, no_actionable or no_tool_needed at -1 and 0; else null",
    )
    teacher = dy.String(description="who scored")

    @dy.rule()
    def reason_where_unsolvable(cls) -> pl.Expr:
        """Rows at -1 and 0, and only they, carry a reason; their plan is empty.

        A solvable row has a plan wherever the domain declares tools; a domain without any is still graded.
        """
        unsolvable = pl.col("difficulty") <= 0
        return (unsolvable == pl.col("reason").is_not_null()) & (~unsolvable | (pl.col("tool_plan").list.len() == 0))
