"""The contract of `survivors`."""

from __future__ import annotations

import dataframely as dy


class Survivors(dy.Schema):
    """A row is a query that the semantic level kept, this day or in an earlier workspace.

    `survivors.faiss`, a Faiss index of their vectors, lies beside the table where the recipe asks for it.
    """

    query_id = dy.UInt64(
        primary_key=True, description="`queries.query_id` of the day it was kept on; label in the index"
    )
    bucket = dy.String(min_length=1, description="`semantic_groups.bucket`")
    numbers = dy.UInt32(description="hash of its digits and model names; queries that differ in it are never merged")
    earlier = dy.Bool(description="kept in an earlier workspace")
