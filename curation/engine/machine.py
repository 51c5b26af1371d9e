"""The machine that a run has: its faults as sentences, the memory taken and given back."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from curation.errors import CurationError

__all__ = ["give_back_memory", "peak_memory", "sentences"]


def peak_memory() -> int:
    """Most bytes that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def give_back_memory() -> None:
    """Give the system what was freed: allocators keep much of what a stage took, beside what the next one takes."""
    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    # Of the GNU library alone; others have nothing like it, or need nothing.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextlib.contextmanager
def sentences(stage: str, root: Path) -> Iterator[None]:
    """Turn faults of the machine into sentences; faults of the program keep their traceback."""
    full = f"the disk with the workspace {root} is full; stage {stage} stopped, tables of earlier runs are intact"
    hint = "Free some space, then run again: finished parts are kept."
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CurationError(full, hint) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise CurationError(f"stage {stage} may not write {error.filename or root}: {error.strerror}") from error
        raise
    except MemoryError as error:
        raise CurationError(
            f"stage {stage} ran out of memory", "Lower run.memory_gb in the recipe, or free some memory."
        ) from error
    except Exception as error:
        if "No space left on device" in str(error):
            raise CurationError(full, hint) from error
        raise
