"""
Tells the processor which memory is needed soon, so that it need not be waited for.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic, overload
from numba.np.arrayobj import make_array

from conflict.columnar.kernels.records import Records

__all__ = ["fetch_soon"]

_TO_WRITE, _KEEP, _DATA = 1, 3, 1  # arguments of llvm.prefetch


def fetch_soon(records: Records, row: int, column: int) -> None:
    """
    Have the processor fetch a record; it goes on meanwhile. What is not compiled does nothing.

    Args:
        records: An array with two dimensions.
        row: Place of the record, from 0.
        column: Place of the record, from 0.
    """


@intrinsic
def _prefetch(_: Any, records: Any, row: Any, column: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind, *place_kinds = signature.args
        array = make_array(kind)(context, builder, arguments[0])
        casts = zip(arguments[1:], place_kinds, strict=True)
        places = [context.cast(builder, place, each, types.intp) for place, each in casts]
        record = cgutils.get_item_pointer(context, builder, kind, array, places, wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], shape)
        how = [ir.Constant(number, each) for each in (_TO_WRITE, _KEEP, _DATA)]
        builder.call(prefetch, [builder.bitcast(record, byte), *how])
        return impl_ret_untracked(context, builder, signature.return_type, context.get_dummy_value())

    return types.void(records, row, column), generate


@overload(fetch_soon, inline="always")
def _compiled(records, row, column):  # noqa: ARG001 - numba picks by these names, and compiles what is returned
    # Numba puts in the first argument, which a call seems to lack, and compiles Python functions alone: thus a lambda.
    return lambda records, row, column: _prefetch(records, row, column)  # type: ignore[call-arg]  # noqa: PLW0108
