"""The contract of `synthetic`."""

from __future__ import annotations

import dataframely as dy


class Synthetic(dy.Schema):
    """A row is a synthesised query with the verdict of every check it went through."""

    query_id = dy.UInt64(primary_key=True, description="id of the normal form of `text`")
    text = dy.String(min_length=1, description="the written query")
    norm = dy.String(min_length=1, description="its normal form")
    lang = dy.String(description="ISO 639-1 code")
    tool_chain = dy.List(dy.String(), min_length=1, description="tools the query was written to need, in order")
    chain_count = dy.Int64(min=0, description="observed queries with that chain: how rare it is")
    parents = dy.List(dy.UInt64(), description="`queries.query_id` of the pool queries it was modelled on")
    verdict = dy.String(check=lambda c: c.is_in(["verified", "rejected"]), description="verified rows go to the pool")
    checks = dy.List(
        dy.Struct(
            {
                "check": dy.String(
                    description="well_formed, lexical_duplicate, semantic_duplicate, annotation, executable, "
                    "verification"
                ),
                "passed": dy.Bool(),
                "detail": dy.String(nullable=True),
            }
        ),
        description="the checks in the order they were made; the first failed one ends them",
    )
    primary = dy.String(nullable=True, description="leaf given by the annotation check")
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
    confidence = dy.Float32(min=0, max=1, nullable=True, description="of the annotation check")
    difficulty = dy.Int8(min=-1, max=5, nullable=True, description="given by the executability check")
    cognitive_load = dy.Float32(nullable=True, description="as in `difficulty`")
    chain_depth = dy.Float32(nullable=True, description="as in `difficulty`")
    constraint_complexity = dy.Float32(nullable=True, description="as in `difficulty`")
    tool_plan = dy.List(
        dy.Struct({"step": dy.Int32(), "tool": dy.String(), "depends_on": dy.List(dy.Int32())}),
        description="as in `difficulty`",
    )
    teacher = dy.String(description="who wrote it")
