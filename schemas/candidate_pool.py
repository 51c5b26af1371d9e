"""The contract of `candidate_pool`."""

from __future__ import annotations

import dataframely as dy


class CandidatePool(dy.Schema):
    """A row is a candidate: a training query with all its labels and where it came from."""

    candidate_id = dy.UInt64(primary_key=True, description="xxh3_64 of query id, origin and removed tools")
    query_id = dy.UInt64(description="`queries.query_id`, or `synthetic.query_id`")
    text = dy.String(min_length=1, description="the query, personal data masked")
    lang = dy.String(description="ISO 639-1 code")
    level1 = dy.String(description="level-1 category of `primary`")
    primary = dy.String(description="leaf of the taxonomy")
    secondary = dy.List(dy.String(), description="further leaves")
    constraints = dy.List(
        dy.Struct(
            {
                "dimension": dy.String(),
                "value": dy.String(),
                "text": dy.String(),
                "start": dy.Int32(),
                "end": dy.Int32(),
            }
        ),
        description="as in `annotations`",
    )
    confidence = dy.Float32(min=0, max=1, description="of the annotation")
    difficulty = dy.Int8(min=-1, max=5, description="-1 unexecutable, 0 no tool needed, 1 to 5")
    cognitive_load = dy.Float32(min=0, max=5, description="as in `difficulty`")
    chain_depth = dy.Float32(min=0, max=5, description="as in `difficulty`")
    constraint_complexity = dy.Float32(min=0, max=5, description="as in `difficulty`")
    tool_plan = dy.List(
        dy.Struct({"step": dy.Int32(), "tool": dy.String(), "depends_on": dy.List(dy.Int32())}),
        description="as in `difficulty`",
    )
    reason = dy.String(nullable=True, description="why it cannot be solved or needs no tool; null for a solvable one")
    origin = dy.String(
        check=lambda c: c.is_in(["observed", "tool_removed", "synthetic"]), description="where it came from"
    )
    removed_tools = dy.List(dy.String(), description="tools the agent must do without for this candidate")
    parents = dy.List(dy.UInt64(), description="for a synthetic one, the queries it was modelled on")
    count = dy.Int64(min=0, description="raw rows with exactly this query; 0 for made ones")
    represents = dy.Int64(min=0, description="raw rows it stands for through all levels; 0 for made ones")
    bucket = dy.String(description="<primary, secondary>")
    rank = dy.Int64(min=1, nullable=True, description="`selection.rank`; null for made ones")
    split = dy.String(
        check=lambda c: c.is_in(["tiny", "main"]), description="`tiny`: the random share kept for seed fine-tuning"
    )
