"""
Transaction_payload: the events of a whole transaction, compressed (``binlog_transaction_compression``).

    fields    packed type, packed length, packed value; a type of 0 ends them and has no length
    payload   compressed events, with headers and without checksums

Source: MySQL `codecs/binary.cpp` (`Transaction_payload`).
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import zstandard

from ndb_formats.constants import EVENT_HEADER_SIZE
from ndb_formats.cursor import Cursor, check_unpacked, packed
from ndb_formats.errors import CorruptError, UnsupportedError
from ndb_formats.events.header import EventHeader, decode_header

_END, _PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE = range(4)
_ZSTD, _NONE = 0, 255
_ZSTD_LEVEL = 3


@attrs.frozen
class TransactionPayload:
    """
    One compressed transaction.

    Attributes:
        compression: 0 is zstd, 255 none.
        uncompressed_size: Bytes of its events, as given in the event.
        data: The payload, still compressed.
    """

    compression: int
    uncompressed_size: int
    data: bytes = attrs.field(repr=False)

    def events(self) -> Iterator[tuple[EventHeader, bytes]]:
        """
        Yield header and body of each event inside.

        Raises:
            CorruptError: The payload cannot be decompressed, or does not have the size given.
            TruncatedError: Its last event is cut short.
            UnsupportedError: It is compressed in an unknown way, or unpacks to more than is allowed.
        """
        cursor = Cursor(self.uncompressed())
        while cursor.remaining:
            header = decode_header(cursor.take(EVENT_HEADER_SIZE))
            if header.size < EVENT_HEADER_SIZE:
                message = f"an event inside gives its size as {header.size} bytes, which is less than its header"
                raise CorruptError(message)
            yield header, cursor.take(header.size - EVENT_HEADER_SIZE)

    def uncompressed(self) -> bytes:
        """
        Return the bytes of its events.

        Raises:
            CorruptError: The payload cannot be decompressed, or does not have the size given.
            UnsupportedError: It is compressed in an unknown way, or unpacks to more than is allowed.
        """
        if self.compression == _NONE:
            return self.data
        if self.compression != _ZSTD:
            message = f"compression type {self.compression} is not known"
            raise UnsupportedError(message)
        check_unpacked(self.uncompressed_size)
        try:
            # One byte more than expected, to notice a longer payload.
            with zstandard.ZstdDecompressor().stream_reader(self.data, read_across_frames=True) as stream:
                plain = stream.read(self.uncompressed_size + 1)
        except zstandard.ZstdError as error:
            message = f"its payload cannot be decompressed: {error}"
            raise CorruptError(message) from error
        if len(plain) != self.uncompressed_size:
            message = f"its payload does not have the {self.uncompressed_size} bytes that it gives as its size"
            raise CorruptError(message)
        return plain


def compressed(events: bytes) -> TransactionPayload:
    """Return events, with headers and without checksums, compressed with zstd at the level of the server's default."""
    return TransactionPayload(_ZSTD, len(events), zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(events))


def decode_transaction_payload(body: bytes) -> TransactionPayload:
    """
    Decode the body of a Transaction_payload event.

    Raises:
        CorruptError: The payload does not have the size given.
        TruncatedError: The body ends too early.
    """
    cursor = Cursor(body)
    fields: dict[int, int] = {}
    while (kind := cursor.packed()) != _END:
        value = Cursor(cursor.take(cursor.packed()))
        if kind in (_PAYLOAD_SIZE, _COMPRESSION, _UNCOMPRESSED_SIZE):
            fields[kind] = value.packed()
    data = cursor.rest()
    if fields.get(_PAYLOAD_SIZE, len(data)) != len(data):
        message = f"its payload has {len(data)} bytes, but it gives {fields[_PAYLOAD_SIZE]}"
        raise CorruptError(message)
    return TransactionPayload(fields.get(_COMPRESSION, _NONE), fields.get(_UNCOMPRESSED_SIZE, len(data)), data)


def encode_transaction_payload(payload: TransactionPayload) -> bytes:
    """Return the body of a Transaction_payload event; the payload is not compressed again."""
    fields = b"".join(
        packed(kind) + packed(len(value)) + value
        for kind, value in (
            (_COMPRESSION, packed(payload.compression)),
            (_UNCOMPRESSED_SIZE, packed(payload.uncompressed_size)),
            (_PAYLOAD_SIZE, packed(len(payload.data))),
        )
    )
    return fields + packed(_END) + payload.data
