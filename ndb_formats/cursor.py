"""
Reading what comes from elsewhere, within bounds.

A `Cursor` reads numbers and bytes from a block. Reading past the end of the block raises `TruncatedError`, so that
neither ``IndexError`` nor ``struct.error`` ever leaves the package.

Compressed parts of a binlog have a bound, too: a small file can hold very much. It is 256 MiB for a transaction or an
event, unless ``NDB_CONFLICT_UNPACKED_MIB`` says otherwise in the environment when `ndb_formats.binlog_reader` is
imported; Spark's tasks have it from the program that starts them. A server unpacks up to 1 GiB (`max_allowed_packet`).

Digits in a text can be of any length, and those of a number that is used are not.
"""

from __future__ import annotations

import re

import attrs

from ndb_formats.errors import CorruptError, SettingError, TruncatedError, UnsupportedError

UNPACKED_OPTION = "NDB_CONFLICT_UNPACKED_MIB"
_DEFAULT_MIB = "256"
_MIB = 1 << 20
_allowed = {UNPACKED_OPTION: _DEFAULT_MIB}


def allow_unpacked(mib: str | None) -> None:
    """Allow so many MiB, or the default; what is no number is refused when it is needed."""
    _allowed[UNPACKED_OPTION] = _DEFAULT_MIB if mib is None else mib


def check_unpacked(size: int) -> None:
    """
    Make sure that a compressed part may unpack to so many bytes.

    Raises:
        UnsupportedError: It may not.
        SettingError: What is allowed is no number.
    """
    text = _allowed[UNPACKED_OPTION]
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        message = f"{UNPACKED_OPTION} is {text[:40]!r}; give a number of MiB"
        raise SettingError(message)
    if size > int(text) * _MIB:
        message = f"it unpacks to {size:,} bytes, more than {text} MiB; set {UNPACKED_OPTION} to allow it"
        raise UnsupportedError(message)


# More digits than any number has that means something, and fewer than Python's int() refuses.
_DIGITS = re.compile("[0-9]{1,1000}")


def whole_number(text: str) -> int | None:
    """Return the number that a text of digits stands for; None if it is anything else, or longer than 1000 digits."""
    return int(text) if _DIGITS.fullmatch(text) else None


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
