"""
The events of one transaction, until it is complete: the Gtid event before them has its length.

As in the server's binlog cache, large transactions go to a temporary file, so that memory does not grow with them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator

import attrs

from ndb_formats.constants import EVENT_HEADER_SIZE, EventType
from ndb_formats.events.header import EventHeader, decode_header
from ndb_formats.events.transaction_payload import TransactionPayload, compressed, encode_transaction_payload
from ndb_formats.writing.event_stream import EventStream, sealed

__all__ = ["Gtid", "TransactionBuffer"]

_MEMORY = 1 << 20


@attrs.frozen
class Gtid:
    """
    The Gtid event before a transaction.

    Attributes:
        header: Its header.
        body: Its body, given the length of the transaction, which counts this event too.
        keep_position: As for `EventStream.put`.
    """

    header: EventHeader
    body: Callable[[int], bytes]
    keep_position: bool = False

    def write_to(self, stream: EventStream, after: int) -> None:
        """Write it before `after` bytes of its transaction."""
        length, body = 0, self.body(0)
        # A longer length can take more bytes, which count too.
        while (whole := EVENT_HEADER_SIZE + len(body) + stream.trailer + after) != length:
            length, body = whole, self.body(whole)
        stream.put(self.header, body, keep_position=self.keep_position)


def _spool() -> tempfile.SpooledTemporaryFile[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=_MEMORY)


@attrs.define
class TransactionBuffer:
    """
    The events of one transaction, in order.

    Attributes:
        size: Bytes of its events, without checksums.
        count: Number of its events.
    """

    size: int = 0
    count: int = 0
    _file: tempfile.SpooledTemporaryFile[bytes] = attrs.field(factory=_spool)

    def add(self, header: EventHeader, body: bytes, *, keep_position: bool = False) -> None:
        """Add an event; arguments as for `EventStream.put`."""
        data = sealed(header, body, checksum=False)
        self._file.write(bytes([keep_position]) + data)
        self.size += len(data)
        self.count += 1

    def take_all(self, other: TransactionBuffer) -> None:
        """Add all events of another buffer, which is empty afterwards."""
        for header, body, keep_position in other.events():
            self.add(header, body, keep_position=keep_position)
        other.clear()

    def events(self) -> Iterator[tuple[EventHeader, bytes, bool]]:
        """Yield header, body and `keep_position` of each event; the sizes in the headers count no checksum."""
        self._file.seek(0)
        for _ in range(self.count):
            head = self._file.read(1 + EVENT_HEADER_SIZE)
            header = decode_header(head[1:])
            yield header, self._file.read(header.size - EVENT_HEADER_SIZE), bool(head[0])

    def plain(self) -> bytes:
        """Return the bytes of all events as they stand in a compressed transaction."""
        return b"".join(sealed(header, body, checksum=False) for header, body, _ in self.events())

    def clear(self) -> None:
        """Forget all events."""
        self._file.seek(0)
        self._file.truncate()
        self.size = self.count = 0

    def write_to(self, stream: EventStream, gtid: Gtid | None = None) -> None:
        """
        Write the transaction, after its Gtid event if there is one, and forget it.

        Args:
            stream: Where it is written.
            gtid: The Gtid event.
        """
        if gtid is not None:
            gtid.write_to(stream, self.size + self.count * stream.trailer)
        for header, body, keep_position in self.events():
            stream.put(header, body, keep_position=keep_position)
        self.clear()

    def compress(self, header: EventHeader, original: TransactionPayload | None = None) -> None:
        """
        Put one Transaction_payload event in the place of all events.

        Args:
            header: Header of that event; its type is set.
            original: A payload that is used again if it has the same events.
        """
        plain = self.plain()
        payload = original if original is not None and original.uncompressed() == plain else compressed(plain)
        self.clear()
        header = attrs.evolve(header, type_code=EventType.TRANSACTION_PAYLOAD_EVENT)
        self.add(header, encode_transaction_payload(payload))
