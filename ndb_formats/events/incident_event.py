"""
Incident: something happened on the source after which its log lacks changes.

    incident        u16  1 LOST_EVENTS; others are not in use
    message size    u8
    message         text

A replica stops at it, because nobody knows what is missing. Source: MySQL `control_events.h` (`Incident_event`).
"""

from __future__ import annotations

import attrs

from ndb_formats.cursor import Cursor

__all__ = ["IncidentEvent", "decode_incident", "encode_incident"]

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
