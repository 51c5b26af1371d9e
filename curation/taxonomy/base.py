"""Where the versions of a workspace begin, and all that its versions file makes of that."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from curation.domain.model import Taxonomy
from curation.taxonomy.versions import History

if TYPE_CHECKING:
    from curation.domain import Domain
    from curation.teachers.induction import Induced

__all__ = ["TaxonomyChoice", "base_tree", "named_by_content", "read_history"]


class TaxonomyChoice(Protocol):
    """The part of the taxonomy section of a recipe that says which versions there are."""

    @property
    def base(self) -> str | None:
        """File with the first version; None for the domain's."""

    @property
    def versions(self) -> str | None:
        """File with the later versions."""


def base_tree(choice: TaxonomyChoice, domain: Domain) -> Taxonomy:
    """The first version, where it is not induced."""
    from curation.domain.load import load_taxonomy

    return domain.taxonomy if choice.base is None else load_taxonomy(Path(choice.base))


def read_history(choice: TaxonomyChoice, domain: Domain, induced: Taxonomy | None = None) -> History:
    """All versions; the first is `induced` where one is given.

    Raises:
        CurationError: A file is wrong; its line is named.
    """
    base = base_tree(choice, domain) if induced is None else induced
    return History.read(base, Path(choice.versions) if choice.versions else None)


def named_by_content(found: Induced, texts: Mapping[int, str]) -> Taxonomy:
    """An induced tree whose leaves have all their seeds as examples, and whose version is a hash of its nodes.

    So versions that were made of another tree are not taken for versions of this one.

    Args:
        found: The tree, with the seeds of each leaf.
        texts: Of the seeds, by query id.
    """
    nodes = []
    for node in found.taxonomy.nodes:
        mine = () if node.is_other else (texts[seed] for seed in found.members.get(node.node_id, ()))
        nodes.append(replace(node, examples=tuple(dict.fromkeys([*node.examples, *mine]))))
    digest = hashlib.sha256(repr(nodes).encode()).hexdigest()[:8]
    return Taxonomy(f"induced-{digest}", tuple(nodes))
