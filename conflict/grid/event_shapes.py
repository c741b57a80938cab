"""
What a row event is besides its values: the operation, and which columns its images carry.

A History has few different ones, and keeps each in one word: a byte of operation, then the bitmap of the columns that
the before image carries, then that of the after image. A write has no before image and a delete no after image, and no
bytes of one: an image without columns is something else, and has a bitmap of zeros.
"""

from __future__ import annotations

from ndb_formats.events.rows_event import Operation

__all__ = ["parts_of", "shape_of"]


def shape_of(operation: int, before: bytes | None, after: bytes | None) -> bytes:
    """Return the word of an operation and the bitmaps of its images; None for no image."""
    return bytes([operation]) + (before or b"") + (after or b"")


def parts_of(shape: bytes) -> tuple[Operation, bytes | None, bytes | None]:
    """Return the operation of a word, and the bitmaps of its before and after image; None for no image."""
    operation, bitmaps = Operation(shape[0]), shape[1:]
    if operation is Operation.WRITE_ROW:
        return operation, None, bitmaps
    if operation is Operation.DELETE_ROW:
        return operation, bitmaps, None
    half = len(bitmaps) // 2
    return operation, bitmaps[:half], bitmaps[half:]
