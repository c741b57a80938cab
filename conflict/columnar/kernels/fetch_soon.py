"""
Tells the processor which row is needed soon: more than half of a fold's time would be waiting for rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ndb_formats.columnar.kernel import Kernel, Use
from ndb_formats.columnar.kernel_mode import Mode

__all__ = ["fetch_soon"]


def _fetch_soon(records: Any, row: Any, column: Any) -> None:
    """Fetch the record ``records[row, column]`` into the processor's cache without waiting for it."""


class _Fetching(Kernel):
    """Compiled, it is one instruction; interpreted, there is nothing to do."""

    def form(self, mode: Mode) -> Callable[..., Any]:
        return _instruction() if mode is Mode.COMPILED else _fetch_soon


def _instruction() -> Any:
    """Return what numba compiles to the instruction."""
    from llvmlite import ir  # noqa: PLC0415  # interpreted kernels do without numba
    from numba import types  # noqa: PLC0415
    from numba.core import cgutils  # noqa: PLC0415
    from numba.extending import intrinsic  # noqa: PLC0415
    from numba.np.arrayobj import make_array  # noqa: PLC0415

    def fetch_soon(_: Any, records: Any, row: Any, column: Any) -> Any:
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

    return intrinsic(fetch_soon)


fetch_soon: Any = _Fetching(_fetch_soon, Use.PART)
