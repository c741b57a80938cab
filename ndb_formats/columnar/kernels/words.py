"""
Words of 1 to 8 bytes at any place of a byte array.

Compiled code indexes arrays of bytes; reading eight of them one by one costs more than the value is worth. These
functions make one machine instruction each. Nothing checks the place: the caller has done that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ndb_formats.columnar.kernels.compiled import njit_uncounted

__all__ = ["big_endian", "little_endian", "load16", "load32", "load64", "store16", "store64"]


def _pointer(context, builder, array_type, array, place, bits):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), ir.IntType(bits).as_pointer())


def _load(bits: int, result: Any) -> Callable[..., Any]:
    @intrinsic
    def load(_, data, place):
        def code(context, builder, signature, arguments):
            pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], bits)
            word = builder.load(pointer)
            word.align = 1
            return word

        return result(data, types.int64), code

    return load


load16 = _load(16, types.uint16)
load32 = _load(32, types.uint32)
load64 = _load(64, types.uint64)


def _store(bits: int, kind: Any) -> Callable[..., Any]:
    @intrinsic
    def store(_, data, place, word):
        def code(context, builder, signature, arguments):
            pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1], bits)
            builder.store(arguments[2], pointer).align = 1
            return context.get_dummy_value()

        return types.none(data, types.int64, kind), code

    return store


store16 = _store(16, types.uint16)
store64 = _store(64, types.uint64)


def _swap() -> Callable[..., Any]:
    @intrinsic
    def swap(_, word):
        def code(_, builder, signature, arguments):
            return builder.bswap(arguments[0])

        return types.uint64(types.uint64), code

    return swap


_swapped = _swap()


@njit_uncounted(inline="always")
def little_endian(data, place, width):
    """Return an unsigned number of up to 8 bytes, the lowest first."""
    if width > 0 and place + 8 <= len(data):
        unwanted = types.uint64(64 - 8 * width)
        return load64(data, place) << unwanted >> unwanted
    number = types.uint64(0)
    for byte in range(width):
        number |= types.uint64(data[place + byte]) << types.uint64(8 * byte)
    return number


@njit_uncounted(inline="always")
def big_endian(data, place, width):
    """Return an unsigned number of up to 8 bytes, the highest first."""
    if width > 0 and place + 8 <= len(data):
        return _swapped(load64(data, place)) >> types.uint64(64 - 8 * width)
    number = types.uint64(0)
    for byte in range(width):
        number = number << types.uint64(8) | types.uint64(data[place + byte])
    return number
