"""Where the versions of a workspace begin, and all that its versions file makes of that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from curation.taxonomy.versions import History

if TYPE_CHECKING:
    from curation.domain import Domain
    from curation.domain.model import Taxonomy

__all__ = ["TaxonomyChoice", "base_tree", "read_history"]


class TaxonomyChoice(Protocol):
    """The part of the taxonomy section of a recipe that says which versions there are."""

    @property
    def base(self) -> str | None:
        """File with the first version; None for the domain's."""

    @property
    def versions(self) -> str | None:
        """File with the later versions."""


def base_tree(choice: TaxonomyChoice, domain: Domain) -> Taxonomy:
    """The first version."""
    from curation.domain.load import load_taxonomy

    return domain.taxonomy if choice.base is None else load_taxonomy(Path(choice.base))


def read_history(choice: TaxonomyChoice, domain: Domain) -> History:
    """All versions.

    Raises:
        CurationError: A file is wrong; its line is named.
    """
    return History.read(base_tree(choice, domain), Path(choice.versions) if choice.versions else None)
