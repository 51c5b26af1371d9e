"""Raw user-query logs in, a labelled, deduplicated, difficulty-graded candidate pool out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

# numba's OpenMP layer spins while other processes want the cores; workqueue does not. It must be set before numba loads.
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")

if TYPE_CHECKING:
    from curation.engine.recipe import Recipe
    from curation.engine.workspace import Workspace

__all__ = ["Recipe", "Workspace", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Imported on first use: `import curation` alone must not cost what polars and pydantic cost.
    if name == "Recipe":
        from curation.engine.recipe import Recipe

        return Recipe
    if name == "Workspace":
        from curation.engine.workspace import Workspace

        return Workspace
    raise AttributeError(f"module 'curation' has no attribute {name!r}")
