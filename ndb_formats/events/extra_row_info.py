"""
The extra row info of NDB in a rows event: the id of the user transaction, and conflict flags.

Layout of the block in a v2 rows event, little-endian:

    type     u8   0 = extra row info
    length   u8   of the block from here on, counting itself and the format
    format   u8   0 = NDB; other formats are ignored
    flags    u16  bit 0: transaction id follows, bit 1: conflict flags follow
    transaction id   u64
    conflict flags   u16

Source: MySQL `ndb_binlog_extra_row_info.cc`.
"""

from __future__ import annotations

from enum import IntFlag

import attrs

from ndb_formats.cursor import Cursor

_EXTRA_ROW_INFO = 0
_NDB_FORMAT = 0
_HAS_TRANSACTION_ID = 1
_HAS_CONFLICT_FLAGS = 2


class ConflictFlag(IntFlag):
    """What the change of a rows event is, if it is not a plain one."""

    REFLECTED = 1
    REFRESH = 2
    READ = 4


@attrs.frozen
class ExtraRowInfo:
    """
    The extra row info of NDB.

    Attributes:
        transaction_id: Unsigned 64-bit id of the user transaction; None if it was not logged.
        flags: Conflict flags; None if none were logged.
    """

    transaction_id: int | None = None
    flags: ConflictFlag | None = None


def decode_extra_row_info(payload: bytes) -> ExtraRowInfo:
    """Decode the payload of format 0; bytes after the known fields are of later versions, and ignored."""
    cursor = Cursor(payload)
    present = cursor.uint(2)
    transaction_id = cursor.uint(8) if present & _HAS_TRANSACTION_ID else None
    flags = ConflictFlag(cursor.uint(2)) if present & _HAS_CONFLICT_FLAGS else None
    return ExtraRowInfo(transaction_id, flags)


def encode_extra_row_info(info: ExtraRowInfo) -> bytes:
    """Encode the payload of format 0."""
    present, body = 0, b""
    if info.transaction_id is not None:
        present |= _HAS_TRANSACTION_ID
        body += info.transaction_id.to_bytes(8, "little")
    if info.flags is not None:
        present |= _HAS_CONFLICT_FLAGS
        body += info.flags.to_bytes(2, "little")
    return present.to_bytes(2, "little") + body


def extra_row_info_block(info: ExtraRowInfo | None) -> bytes:
    """Return the whole block of a rows event, type and length included; nothing if there is no info."""
    if info is None:
        return b""
    payload = encode_extra_row_info(info)
    return bytes([_EXTRA_ROW_INFO, len(payload) + 2, _NDB_FORMAT]) + payload
