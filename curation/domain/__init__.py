"""The domain as data: taxonomy, tools, constraint dimensions, seed queries, plan rules, grammar."""

from curation.domain.load import SHIPPED, load_domain, load_seeds, load_taxonomy
from curation.domain.model import (
    Dimension,
    Domain,
    DomainParts,
    LexiconEntry,
    Node,
    Pattern,
    SeedQuery,
    Taxonomy,
    Tool,
)

__all__ = [
    "SHIPPED",
    "Dimension",
    "Domain",
    "DomainParts",
    "LexiconEntry",
    "Node",
    "Pattern",
    "SeedQuery",
    "Taxonomy",
    "Tool",
    "load_domain",
    "load_seeds",
    "load_taxonomy",
]
