"""The contract of `seeds`."""

from __future__ import annotations

import dataframely as dy


class Seeds(dy.Schema):
    """A row is a seed query: labelled by an expert, or proposed for labelling (`tags` empty)."""

    query_id = dy.UInt64(primary_key=True, description="id of the normal form of `text`, as in `queries`")
    text = dy.String(min_length=1, description="the seed query")
    lang = dy.String(description="ISO 639-1 code")
    tags = dy.List(dy.String(), description="open-ended intent tags of the expert; empty while only proposed")
    primary = dy.String(
        nullable=True,
        description="leaf in the current version of the taxonomy, where one is given and still means one",
    )
    secondary = dy.List(dy.String(), description="further leaves in the current version")
    reason = dy.String(nullable=True, description="why the seed cannot be solved; null for a solvable one")
    given_primary = dy.String(nullable=True, description="the leaf as it was given, in `given_version`")
    given_secondary = dy.List(dy.String(), description="the further leaves as they were given")
    given_version = dy.String(nullable=True, description="version of the taxonomy that the given labels speak of")
    labelled_by = dy.String(
        nullable=True,
        description="who labelled it, several names parted by commas; `domain` for seeds of the domain file; null if "
        "proposed",
    )
    origin = dy.String(
        check=lambda c: c.is_in(["domain", "file", "proposed"]), description="domain, file or proposed"
    )
