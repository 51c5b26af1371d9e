"""The domain as data: taxonomy, tools, constraint dimensions, seed queries, plan rules, grammar."""

from curation.domain.load import SHIPPED, domain_fingerprint, load_domain, load_seeds, load_taxonomy
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
    Wording,
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
    "Wording",
    "domain_fingerprint",
    "load_domain",
    "load_seeds",
    "load_taxonomy",
]
