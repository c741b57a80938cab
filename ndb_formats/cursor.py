"""
A cursor that reads numbers and bytes from a block.

Reading past the end of the block raises `TruncatedError`, so that neither ``IndexError`` nor ``struct.error`` ever
leaves the package.
"""

from __future__ import annotations

import attrs

from ndb_formats.errors import CorruptError, TruncatedError

__all__ = ["Cursor", "packed"]


@attrs.define(slots=True)
class Cursor:
    """A position in a block of bytes. Integers are little-endian."""

    data: bytes
    offset: int = 0
    end: int = attrs.field(default=-1)

    def __attrs_post_init__(self) -> None:
        if self.end < 0:
            self.end = len(self.data)

    @property
    def remaining(self) -> int:
        """Bytes left in the block."""
        return self.end - self.offset

    def take(self, count: int) -> bytes:
        """
        Return the next `count` bytes and step over them.

        Raises:
            TruncatedError: Fewer are left.
        """
        stop = self.offset + count
        if count < 0 or stop > self.end:
            message = f"needs {count} bytes, has {self.remaining}"
            raise TruncatedError(message)
        taken = self.data[self.offset : stop]
        self.offset = stop
        return taken

    def skip(self, count: int) -> None:
        """Step over `count` bytes."""
        self.take(count)

    def rest(self) -> bytes:
        """Return all bytes up to the end of the block."""
        return self.take(self.remaining)

    def uint(self, width: int) -> int:
        """Return an unsigned integer of `width` bytes."""
        return int.from_bytes(self.take(width), "little")

    def packed(self) -> int:
        """Return a length-encoded integer (1, 3, 4 or 9 bytes)."""
        first = self.uint(1)
        if first < 251:
            return first
        if first in (251, 255):
            message = f"0x{first:02x} does not start a length-encoded integer"
            raise CorruptError(message)
        return self.uint({252: 2, 253: 3, 254: 8}[first])

    def text(self, length: int) -> str:
        """Return `length` bytes as UTF-8 text; a name in a binlog is always UTF-8."""
        return self.take(length).decode("utf-8", "surrogateescape")


def packed(value: int) -> bytes:
    """Return a length-encoded integer; the inverse of `Cursor.packed`."""
    if value < 251:
        return bytes([value])
    for marker, width in ((252, 2), (253, 3), (254, 8)):
        if value < 1 << 8 * width:
            return bytes([marker]) + value.to_bytes(width, "little")
    message = f"{value} is too large for a length-encoded integer"
    raise ValueError(message)
