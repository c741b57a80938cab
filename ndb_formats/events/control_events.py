"""
Xid, XA_prepare, Rotate and Incident: the end of a transaction, the name of the next file, and a gap in the log.

    Xid          transaction id u64
    XA_prepare   1 if it commits (ONE PHASE) u8, format of the xid i32, sizes of its two parts u32 each, these parts
    Rotate       position u64 of the first event in the next file, then its name to the end
    Incident     u16 (1 LOST_EVENTS; others are not in use), size of the message u8, message

After an incident the log lacks changes. A replica stops at it, because nobody knows what is missing.

Source: MySQL `control_events.h` (`Xid_event`, `XA_prepare_event`, `Rotate_event`, `Incident_event`).
"""

from __future__ import annotations

import attrs

from ndb_formats.cursor import Cursor

_FIRST_POSITION = 4


@attrs.frozen
class XaPrepareEvent:
    """
    The end of an XA transaction in a log.

    Attributes:
        xid: Its name, as in the XA statements of a log: ``X'6162',X'',1``.
        one_phase: Whether it is committed; if not, it is prepared, and another transaction commits it or rolls it back.
    """

    xid: str
    one_phase: bool

    @property
    def statement(self) -> str:
        """The statement that it stands for, as mysqlbinlog prints it."""
        return f"XA COMMIT {self.xid} ONE PHASE" if self.one_phase else f"XA PREPARE {self.xid}"


def decode_xa_prepare(body: bytes) -> XaPrepareEvent:
    """
    Decode the body of an XA_prepare event.

    Raises:
        TruncatedError: The body ends too early.
    """
    cursor = Cursor(body)
    one_phase, form = cursor.uint(1), int.from_bytes(cursor.take(4), "little", signed=True)
    sizes = cursor.uint(4), cursor.uint(4)
    first, second = (cursor.take(size).hex() for size in sizes)
    return XaPrepareEvent(f"X'{first}',X'{second}',{form}", bool(one_phase))


def encode_xid(transaction_id: int) -> bytes:
    """Return the body of a Xid event."""
    return transaction_id.to_bytes(8, "little")


def encode_rotate(next_file: str) -> bytes:
    """Return the body of a Rotate event."""
    return _FIRST_POSITION.to_bytes(8, "little") + next_file.encode("utf-8", "surrogateescape")


_NAMES = {0: "NONE", 1: "LOST_EVENTS"}


@attrs.frozen
class IncidentEvent:
    """
    One incident.

    Attributes:
        number: Its number.
        message: What the source says of it.
    """

    number: int
    message: str = ""

    @property
    def name(self) -> str:
        """Its name, as mysqlbinlog prints it."""
        return _NAMES.get(self.number, f"unknown incident {self.number}")


def decode_incident(body: bytes) -> IncidentEvent:
    """
    Decode the body of an Incident event.

    Raises:
        TruncatedError: The body ends too early.
    """
    cursor = Cursor(body)
    number = cursor.uint(2)
    return IncidentEvent(number, cursor.text(cursor.uint(1)) if cursor.remaining else "")


def encode_incident(event: IncidentEvent) -> bytes:
    """Return the body of an Incident event; the inverse of `decode_incident`."""
    message = event.message.encode("utf-8", "surrogateescape")
    return event.number.to_bytes(2, "little") + bytes([len(message)]) + message
