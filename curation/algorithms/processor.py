"""Single instructions of the processor that numba has no name for; LLVM spells them out where one lacks them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = ["fetch", "ones"]


def _count_ones(typingctx: Any, x: Any) -> Any:
    """Number of ones in a uint64, as the processor's own instruction."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), build


def _fetch_line(typingctx: Any, matrix: Any, row: Any, column: Any) -> Any:
    """Tell the processor that the cache line of an entry of a matrix will be needed soon."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(matrix)(context, builder, args[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        place = builder.bitcast(cgutils.get_item_pointer(context, builder, matrix, array, list(args[1:])), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(prefetch, [place, number(0), number(3), number(1)])  # to read, keep near, data
        return context.get_dummy_value()

    return types.void(matrix, types.intp, types.intp), build


ones: Any = intrinsic(_count_ones)
"""``ones(x)``: number of ones in a uint64."""

fetch: Any = intrinsic(_fetch_line)
"""``fetch(matrix, row, column)``: ask for the cache line of an entry ahead of its use; changes no result."""
