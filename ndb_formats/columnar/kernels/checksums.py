"""
The CRC32 of events.

Bytes are taken sixteen at a time with sixteen tables ("slicing"), which keeps more than one load in flight. Where the
processor multiplies polynomials, long stretches are folded first: 64 bytes at a time into as many, with the same CRC32
(Gopal and others, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from ndb_formats.columnar.kernels.compiled import njit_uncounted
from ndb_formats.columnar.kernels.words import load64

__all__ = ["crc32"]

POLYNOMIAL = 0xEDB88320
SLICES = 16
BYTE = np.uint64(0xFF)
# What the compiler may use: the processor's features, unless numba is told otherwise.
FOLDS = "+pclmul" in cpu_target.target_context.codegen().magic_tuple()[2].split(",")
FOLDED = 4  # blocks of sixteen bytes at a time
# Powers of x modulo the polynomial, from the paper: those that move 16 bytes by 64 bytes, and by 16 bytes.
BY_64, BY_16 = (0x154442BD4, 0x1C6E41596), (0x1751997D0, 0x0CCAA009E)
LOW_HALVES, HIGH_HALVES = 0x00, 0x11
VECTOR = ir.VectorType(ir.IntType(64), 2)


def _tables() -> np.ndarray:
    """Return what a byte adds to a CRC32, by how many bytes follow it. Shape (16 * 256,)."""
    tables = np.zeros((SLICES, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for number in range(1, SLICES):
        before = tables[number - 1]
        tables[number] = before >> 8 ^ tables[0, before & 0xFF]
    return tables.ravel()


TABLES = _tables()


@njit_uncounted(inline="always")
def _sixteen(low, high):
    """Return the CRC32 of sixteen bytes, the CRC32 of those before added to the lowest four; not inverted."""
    crc = np.uint64(0)
    for number in range(8):
        shift = np.uint64(8 * number)
        crc ^= np.uint64(TABLES[(15 - number) * 256 + np.int64(low >> shift & BYTE)])
        crc ^= np.uint64(TABLES[(7 - number) * 256 + np.int64(high >> shift & BYTE)])
    return crc


def _number(value):
    return ir.IntType(64)(value)


def _block(context, builder, array_type, array, place, number):
    """Load a block of sixteen bytes."""
    data = context.make_array(array_type)(context, builder, array).data
    start = builder.add(place, builder.mul(number, _number(16)))
    loaded = builder.load(builder.bitcast(builder.gep(data, [start]), VECTOR.as_pointer()))
    loaded.align = 1
    return loaded


def _move(builder, sixteen, powers):
    """Return sixteen bytes moved away from the end of the data."""
    kind = ir.FunctionType(VECTOR, [VECTOR, VECTOR, ir.IntType(8)])
    multiply = builder.module.declare_intrinsic("llvm.x86.pclmulqdq", fnty=kind)
    factors = ir.Constant(VECTOR, powers)
    return builder.xor(
        *(builder.call(multiply, [sixteen, factors, ir.IntType(8)(half)]) for half in (LOW_HALVES, HIGH_HALVES))
    )


def _folding(_, data, place, blocks, crc):
    """Return sixteen bytes with the CRC32 of at least `FOLDED` blocks of sixteen, that of those before added."""

    def generate(context, builder, signature, arguments):
        if not FOLDS:
            return context.get_constant_null(signature.return_type)  # nobody asks for it
        _, place, blocks, crc = arguments
        block = partial(_block, context, builder, signature.args[0], arguments[0], place)
        lanes = [cgutils.alloca_once(builder, VECTOR) for _ in range(FOLDED)]
        for number, lane in enumerate(lanes):
            builder.store(block(_number(number)), lane)
        first = lanes[0]
        before = builder.insert_element(ir.Constant(VECTOR, (0, 0)), crc, ir.IntType(32)(0))
        builder.store(builder.xor(builder.load(first), before), first)
        whole = builder.sub(blocks, builder.urem(blocks, _number(FOLDED)))
        with cgutils.for_range_slice(builder, _number(FOLDED), whole, _number(FOLDED)) as (number, _):
            for place_of_lane, lane in enumerate(lanes):
                after = block(builder.add(number, _number(place_of_lane)))
                builder.store(builder.xor(_move(builder, builder.load(lane), BY_64), after), lane)
        for lane in lanes[1:]:
            builder.store(builder.xor(_move(builder, builder.load(first), BY_16), builder.load(lane)), first)
        with cgutils.for_range_slice(builder, whole, blocks, _number(1)) as (number, _):
            builder.store(builder.xor(_move(builder, builder.load(first), BY_16), block(number)), first)
        halves = tuple(builder.extract_element(builder.load(first), ir.IntType(32)(half)) for half in (0, 1))
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.uint64, 2)(data, types.int64, types.int64, types.uint64), generate


_fold: Callable[..., Any] = intrinsic(_folding)


@njit_uncounted()
def crc32(data, place, end):
    """Return the CRC32 of some of the bytes of an array."""
    crc = np.uint64(0xFFFFFFFF)
    blocks = (end - place) // 16
    if FOLDS and blocks >= FOLDED:
        low, high = _fold(data, place, blocks, crc)
        crc = _sixteen(low, high)
        place += 16 * blocks
    while place + 16 <= end:
        crc = _sixteen(load64(data, place) ^ crc, load64(data, place + 8))
        place += 16
    while place < end:
        crc = crc >> np.uint64(8) ^ np.uint64(TABLES[np.int64((crc ^ np.uint64(data[place])) & BYTE)])
        place += 1
    return crc ^ np.uint64(0xFFFFFFFF)
