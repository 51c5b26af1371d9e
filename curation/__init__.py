"""Raw user-query logs in, a labelled, deduplicated, difficulty-graded candidate pool out."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

# numba's OpenMP layer spins while other processes want the cores, workqueue does not. To be set before numba loads.
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")


def _kernel_cache() -> Path:
    """Where compiled kernels lie: a directory of their own for every state of the files that may hold some.

    Numba looks only at the file a kernel stands in and not at those it calls into, so after an update of one of them
    a caller would go on with its old machine code.
    """
    package = Path(__file__).parent
    state = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        source = file.read_bytes()
        if b"numba" in source or file.parent.name == "algorithms":
            state.update(f"{file}\n".encode() + source)
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "curation"
    place = package / "__pycache__" if os.access(package, os.W_OK) else home
    return place / f"kernels-{state.hexdigest()[:12]}"


os.environ.setdefault("NUMBA_CACHE_DIR", str(_kernel_cache()))

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
