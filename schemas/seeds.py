"""The contract of `seeds`."""

from __future__ import annotations

import dataframely as dy


class Seeds(dy.Schema):
    """A row is a seed query: labelled by an expert, or proposed for labelling (`tags` empty)."""

    query_id = dy.UInt64(primary_key=True, description="id of the normal form of `text`, as in `queries`")
    text = dy.String(min_length=1, description="the seed query")
    lang = dy.String(description="ISO 639-1 code")
    tags = dy.List(dy.String(), description="open-ended intent tags of the expert; empty while only proposed")
    primary = dy.String(nullable=True, description="leaf of the taxonomy, where one is given")
    secondary = dy.List(dy.String(), description="further leaves")
    reason = dy.String(nullable=True, description="why the seed cannot be solved; null for a solvable one")
    labelled_by = dy.String(
        nullable=True, description="who labelled it; `domain` for seeds of the domain file; null if proposed"
    )
    origin = dy.String(
        check=lambda c: c.is_in(["domain", "file", "proposed"]), description="domain, file or proposed"
    )
