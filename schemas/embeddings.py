"""The contract of `embeddings`."""

from __future__ import annotations

import dataframely as dy


class Embeddings(dy.Schema):
    """A row is the sentence vector of a lexical representative; row groups hold about 25,000 rows."""

    query_id = dy.UInt64(primary_key=True, description="`queries.query_id`")
    vector = dy.Any(description="unit-length vector: fixed-size list of float32, width set by the encoder")
