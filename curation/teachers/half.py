"""Matrix products of half precision (bfloat16): factors rounded to 8 bits, summed in 32, through torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["HalfProducts", "Times", "half_is_fast", "one_torch_thread"]

Floats = NDArray[np.float32]
Times = Callable[[Floats, Floats], Floats]
"""float32[n, d] times float32[d, e]."""


def half_is_fast() -> bool:
    """Whether the processor multiplies numbers of half precision itself: about twice as fast as whole ones."""
    import torch

    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


class HalfProducts:
    """Multiplies rows by one of some matrices, as :data:`Times`; what a row gives depends on it alone.

    Args:
        matrices: Those that there are; they are known again by identity, and must not change.
    """

    def __init__(self, matrices: Sequence[Floats]) -> None:
        import torch

        # The matrices themselves are kept too, lest another one take the identity of one that is gone.
        self._half: dict[int, tuple[Floats, Any]] = {
            id(matrix): (matrix, torch.from_numpy(np.ascontiguousarray(matrix)).bfloat16()) for matrix in matrices
        }

    def __call__(self, rows: Floats, matrix: Floats) -> Floats:
        """The product, float32[n, e]."""
        import torch

        half = self._half[id(matrix)][1]
        return torch.mm(torch.from_numpy(rows).bfloat16(), half).float().numpy()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Hold torch to one thread a product: callers run side by side."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
