"""
Xid and Rotate: the commit of a transaction, and the name of the next file.

    Xid       transaction id u64
    Rotate    position u64 of the first event in the next file, then its name to the end

Source: MySQL `control_events.h` (`Xid_event`, `Rotate_event`).
"""

from __future__ import annotations

__all__ = ["encode_rotate", "encode_xid"]

_FIRST_POSITION = 4


def encode_xid(transaction_id: int) -> bytes:
    """Return the body of a Xid event."""
    return transaction_id.to_bytes(8, "little")


def encode_rotate(next_file: str) -> bytes:
    """Return the body of a Rotate event."""
    return _FIRST_POSITION.to_bytes(8, "little") + next_file.encode("utf-8", "surrogateescape")
