"""The contract of `taxonomy_changes`."""

from __future__ import annotations

import dataframely as dy


class TaxonomyChanges(dy.Schema):
    """A row is a change of one node between a version of the taxonomy and the version before it."""

    version = dy.String(primary_key=True, description="the version the change leads to")
    from_version = dy.String(nullable=True, description="the version before; null for the first")
    node_id = dy.String(
        primary_key=True, description="the node, as named in the newer version (the older for `removed`)"
    )
    change = dy.String(
        primary_key=True,
        check=lambda c: c.is_in(["added", "removed", "renamed", "moved", "described", "examples"]),
        description="what happened: added, removed, renamed, moved, described, examples",
    )
    before = dy.String(nullable=True, description="the earlier value; of a removed node its description")
    after = dy.String(nullable=True, description="the later value; of an added node its description")
