"""The contract of `occurrences`."""

from __future__ import annotations

import dataframely as dy


class Occurrences(dy.Schema):
    """A row is one raw row of the log and the query it became.

    Written in the order of the log: two logs with the same rows in another order differ here and in the row numbers
    of `rejects`, and nowhere else.
    """

    file = dy.String(primary_key=True, description="path of the file under the log directory, with forward slashes")
    row = dy.UInt64(primary_key=True, description="0-based row in that file")
    query_id = dy.UInt64(description="`queries.query_id`")
