"""The contract of `taxonomy`."""

from __future__ import annotations

import dataframely as dy


class Taxonomy(dy.Schema):
    """A row is a node of one version of the taxonomy."""

    version = dy.String(primary_key=True, description="version of the taxonomy")
    is_current = dy.Bool(description="the version that rows are labelled with")
    node_id = dy.String(primary_key=True, description="dotted path from the root")
    parent_id = dy.String(nullable=True, description="`node_id` of the parent; null at level 1")
    level = dy.Int32(min=1, description="depth, 1 at the top")
    name = dy.String(min_length=1, description="last part of `node_id`")
    description = dy.String(min_length=1, description="what belongs here")
    is_other = dy.Bool(description="the Other child of its parent, for what no sibling takes")
    is_leaf = dy.Bool(description="a node that labels may use")
    examples = dy.List(dy.String(), description="example queries")
