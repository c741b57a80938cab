"""
Tells the processor which row is needed soon: more than half of a fold's time would be waiting for rows.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

__all__ = ["fetch_soon"]


@intrinsic
def _fetch_soon(_: Any, records: Any, row: Any, column: Any) -> Any:
    """Fetch the record ``records[row, column]`` into the processor's cache without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        array = make_array(kind)(context, builder, arguments[0])
        place = [context.cast(builder, arguments[each], signature.args[each], types.intp) for each in (1, 2)]
        record = cgutils.get_item_pointer(context, builder, kind, array, place, wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        options = [ir.Constant(number, each) for each in (1, 3, 1)]  # to write, keep in all caches, data
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        builder.call(prefetch, [builder.bitcast(record, byte), *options])
        return context.get_dummy_value()

    return types.void(records, row, column), generate


fetch_soon: Any = _fetch_soon
