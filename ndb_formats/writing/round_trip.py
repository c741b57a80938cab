"""
The bytes of a binlog file from its events, each decoded and encoded again: the inverse of `binlog_reader`.

Events that this package can decode are encoded from their values; all others, and compressed payloads, are written as
they were read. Sizes and checksums are computed.

To add an event: a line in `_CODECS`; docs/adding.md lists what else changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import attrs

from ndb_formats.binlog_reader import Event, locate
from ndb_formats.constants import (
    BINLOG_MAGIC,
    CHECKSUM_ALG_CRC32,
    EventType,
)
from ndb_formats.events.header import (
    FormatDescription,
    decode_format_description,
    encode_format_description,
    has_checksum_algorithm,
)
from ndb_formats.events.query_event import decode_query, encode_query
from ndb_formats.events.row_image import layout_of
from ndb_formats.events.rows_event import ROWS_EVENTS, decode_rows_event, encode_rows, encode_rows_event
from ndb_formats.events.table_map import TableMap, decode_table_map, encode_table_map
from ndb_formats.events.transaction_payload import decode_transaction_payload, encode_transaction_payload
from ndb_formats.writing.event_stream import sealed

# Events that need nothing but their body to be decoded and encoded.
_CODECS: dict[EventType, Callable[[bytes], bytes]] = {
    EventType.QUERY_EVENT: lambda body: encode_query(decode_query(body)),
    EventType.TRANSACTION_PAYLOAD_EVENT: lambda body: encode_transaction_payload(decode_transaction_payload(body)),
}


@attrs.define
class EventEncoder:
    """
    Encodes the events of one file, in order.

    Attributes:
        description: The last Format_description event.
    """

    description: FormatDescription | None = None
    _maps: dict[int, TableMap] = attrs.field(factory=dict)

    def encode(self, event: Event) -> bytes:
        """
        Return the bytes of an event, its values decoded and encoded again.

        Raises:
            FormatError: It cannot be decoded; the error names file and position.
        """
        with locate(event):
            return self._sealed(event, self._body(event))

    def _body(self, event: Event) -> bytes:
        kind = event.type
        if kind is EventType.FORMAT_DESCRIPTION_EVENT:
            self.description = decode_format_description(event.body)
            return encode_format_description(self.description)
        if kind is EventType.TABLE_MAP_EVENT:
            table_map = decode_table_map(event.body)
            self._maps[table_map.table_id] = table_map
            return encode_table_map(table_map)
        if kind in ROWS_EVENTS:
            assert kind is not None
            return self._rows(kind, event.body)
        return _CODECS[kind](event.body) if kind in _CODECS else event.body

    def _rows(self, kind: EventType, body: bytes) -> bytes:
        rows = decode_rows_event(kind, body)
        table_map = self._maps.get(rows.table_id)
        if table_map is not None:
            images = encode_rows(rows, rows.rows(layout_of(table_map)))
            rows = attrs.evolve(rows, body=images)
        return encode_rows_event(rows)

    def _sealed(self, event: Event, body: bytes) -> bytes:
        """Add header and checksum to a body."""
        description = self.description
        own = event.type is EventType.FORMAT_DESCRIPTION_EVENT and description is not None
        with_checksum = description is not None and description.checksum == CHECKSUM_ALG_CRC32
        if own and not with_checksum and description is not None and has_checksum_algorithm(description):
            # Its checksum field is there even if other events have none, and then not always filled.
            return sealed(event.header, body + event.body[-4:], checksum=False)
        return sealed(event.header, body, checksum=with_checksum)


def encode_file(events: Iterable[Event]) -> Iterator[bytes]:
    """
    Yield the bytes of a binlog file, event by event.

    Args:
        events: All events of the file, the Format_description event first.

    Raises:
        FormatError: An event cannot be decoded. All events before it have been yielded.
    """
    encoder = EventEncoder()
    yield BINLOG_MAGIC
    for event in events:
        yield encoder.encode(event)
