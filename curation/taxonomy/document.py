"""A version of the taxonomy as text, in the format of a domain's ``taxonomy.yaml``."""

from __future__ import annotations

from io import StringIO
from typing import Any

from curation.domain.model import Node, Taxonomy

__all__ = ["taxonomy_text"]


def taxonomy_text(taxonomy: Taxonomy, title: str | None = None) -> str:
    """YAML that :func:`curation.domain.load.load_taxonomy` reads back as `taxonomy`."""
    from ruamel.yaml import YAML

    yaml = YAML(pure=True)
    yaml.allow_unicode, yaml.width, yaml.default_flow_style = True, 110, False
    content = ({"title": title} if title else {}) | {"version": taxonomy.version, "taxonomy": _below(taxonomy, None)}
    stream = StringIO()
    yaml.dump(content, stream)
    return stream.getvalue()


def _below(taxonomy: Taxonomy, parent: str | None) -> dict[str, Any]:
    return {node.name: _node(taxonomy, node) for node in taxonomy.children(parent) if not node.is_other}


def _node(taxonomy: Taxonomy, node: Node) -> dict[str, Any]:
    body: dict[str, Any] = {"description": node.description}
    if node.examples:
        body["examples"] = list(node.examples)
    if not node.is_leaf:
        body["children"] = _below(taxonomy, node.node_id)
    return body
