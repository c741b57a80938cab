"""
Write_rows, Update_rows and Delete_rows, versions 1 and 2.

    table id          u48
    flags             u16
    extra row info    u16 length, which counts itself, then blocks (version 2 only)
    column count      packed integer
    columns before    bitmap: of the before image; of the after image for Write_rows
    columns after     bitmap: of the after image (Update_rows only)
    rows              images; two per row for Update_rows

An image without columns has no bytes, not even NULL bits. A Write_rows event without columns is one row, of defaults:
``INSERT INTO t VALUES ()`` of a table without a key is logged so with ``binlog_row_image=MINIMAL``. The server logs no
second such row in a statement: it fails with error 1534.

Unused bits at the end of a bitmap are 1.

The extra row info of NDB is the id of the user transaction, and conflict flags. Its block, little-endian:

    type     u8   0 = extra row info
    length   u8   of the block from here on, counting itself and the format
    format   u8   0 = NDB; other formats are ignored
    flags    u16  bit 0: transaction id follows, bit 1: conflict flags follow
    transaction id   u64
    conflict flags   u16

Sources: MySQL `rows_event.h` (`Rows_event`), `ndb_binlog_extra_row_info.cc`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum, IntFlag

import attrs

from ndb_formats.constants import ColumnCode, EventType
from ndb_formats.cursor import Cursor, packed
from ndb_formats.errors import CorruptError
from ndb_formats.events.row_image import RowImage, RowLayout, put_image, take_image
from ndb_formats.events.table_map import bits
from ndb_formats.types.mariadb_compression import uncompressed

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


_EXTRA_ROW_INFO = 0
_PARTITION = 1
_NDB_FORMAT = 0
STATEMENT_END = 0x1
_PARTIAL_JSON_UPDATES = 1


class Operation(IntEnum):
    """The operation of a rows event, numbered as in ``NDB$OP_TYPE`` of an exceptions table."""

    WRITE_ROW = 1
    UPDATE_ROW = 2
    DELETE_ROW = 3


_KINDS = {
    EventType.WRITE_ROWS_EVENT_V1: (Operation.WRITE_ROW, 1),
    EventType.UPDATE_ROWS_EVENT_V1: (Operation.UPDATE_ROW, 1),
    EventType.DELETE_ROWS_EVENT_V1: (Operation.DELETE_ROW, 1),
    EventType.WRITE_ROWS_EVENT: (Operation.WRITE_ROW, 2),
    EventType.UPDATE_ROWS_EVENT: (Operation.UPDATE_ROW, 2),
    EventType.DELETE_ROWS_EVENT: (Operation.DELETE_ROW, 2),
    EventType.PARTIAL_UPDATE_ROWS_EVENT: (Operation.UPDATE_ROW, 2),
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1: (Operation.WRITE_ROW, 1),
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1: (Operation.UPDATE_ROW, 1),
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1: (Operation.DELETE_ROW, 1),
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_EVENT: (Operation.WRITE_ROW, 2),
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT: (Operation.UPDATE_ROW, 2),
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_EVENT: (Operation.DELETE_ROW, 2),
}


def operation_of(kind: EventType) -> Operation:
    """Return the operation of a type of rows events."""
    return _KINDS[kind][0]


_COMPRESSED = frozenset(kind for kind in _KINDS if kind.name.startswith("MARIADB_"))
ROWS_EVENTS = frozenset(_KINDS)


@attrs.frozen
class RowsEvent:
    """
    One rows event; `rows` reads its rows, given the table's layout.

    Attributes:
        table_id: Table id of the Table_map event that it refers to.
        operation: Write, update or delete.
        extra: The extra row info of NDB; None if there is none.
        column_count: Columns of the table.
        before: Ordinals of the columns of the before image; None for a write.
        after: Ordinals of the columns of the after image; None for a delete.
        body: The images.
        type: Type of the event.
        flags: Flags of the event.
        extra_bytes: All blocks of extra row info, of NDB and others, as encoded in the event.
        spare_columns: The unused bits of the column bitmaps.
        compressed: The compressed images of a compressed event of MariaDB; None for all others.
    """

    table_id: int
    operation: Operation
    extra: ExtraRowInfo | None
    column_count: int
    before: tuple[int, ...] | None
    after: tuple[int, ...] | None
    body: bytes = attrs.field(repr=False)
    type: EventType
    flags: int = 0
    extra_bytes: bytes = attrs.field(default=b"", repr=False)
    spare_columns: tuple[int, int] = attrs.field(default=(0, 0), repr=False)
    compressed: bytes | None = attrs.field(default=None, repr=False)

    @property
    def statement_end(self) -> bool:
        """Whether it is the last event of its statement (NDB: of its epoch)."""
        return bool(self.flags & STATEMENT_END)

    def rows(self, layout: RowLayout) -> Iterator[tuple[RowImage | None, RowImage | None]]:
        """
        Yield the before and after image of each row.

        Raises:
            CorruptError: The table has another number of columns.
            TruncatedError: The last image is cut short.
        """
        if self.column_count != len(layout.codecs):
            message = f"has {self.column_count} columns, but its Table_map event has {len(layout.codecs)}"
            raise CorruptError(message, table=layout.table)
        cursor = Cursor(self.body)
        bare = self.operation is Operation.WRITE_ROW and not self.after
        while cursor.remaining or bare:
            before = None if self.before is None else take_image(cursor, layout, self.before)
            partial = self._partial(cursor, layout)
            after = None if self.after is None else take_image(cursor, layout, self.after, partial)
            yield before, after
            if not self.before and not self.after:
                return  # images without columns have no bytes: without this the loop would not end

    def _partial(self, cursor: Cursor, layout: RowLayout) -> tuple[int, ...]:
        """
        Read which columns of the after image are JSON diffs.

        There is a bit for every JSON column of the table, which says nothing of one that is not in the image.
        """
        if self.type is not EventType.PARTIAL_UPDATE_ROWS_EVENT:
            return ()
        options = cursor.packed()
        if not options & _PARTIAL_JSON_UPDATES:
            return ()
        documents = [ordinal for ordinal, wire in enumerate(layout.types) if wire.code is ColumnCode.JSON]
        chosen = bits(cursor.take((len(documents) + 7) // 8), len(documents))
        carried = set(self.after or ())
        return tuple(ordinal for ordinal, here in zip(documents, chosen, strict=True) if here and ordinal in carried)


def decode_rows_event(event_type: EventType, body: bytes) -> RowsEvent:
    """
    Decode the body of a rows event.

    Raises:
        TruncatedError: The body ends too early.
    """
    operation, version = _KINDS[event_type]
    cursor = Cursor(body)
    table_id = cursor.uint(6)
    flags = cursor.uint(2)
    extra_bytes = cursor.take(cursor.uint(2) - 2) if version == 2 else b""
    count = cursor.packed()
    first, first_spare = _columns(cursor, count)
    second, second_spare = _columns(cursor, count) if operation is Operation.UPDATE_ROW else (None, 0)
    before = None if operation is Operation.WRITE_ROW else first
    after = {Operation.WRITE_ROW: first, Operation.UPDATE_ROW: second}.get(operation)
    rest = cursor.rest()
    return RowsEvent(
        table_id=table_id,
        operation=operation,
        extra=_extra(Cursor(extra_bytes)),
        column_count=count,
        before=before,
        after=after,
        body=uncompressed(rest) if event_type in _COMPRESSED else rest,
        type=event_type,
        flags=flags,
        extra_bytes=extra_bytes,
        spare_columns=(first_spare, second_spare),
        compressed=rest if event_type in _COMPRESSED else None,
    )


def encode_rows_event(event: RowsEvent) -> bytes:
    """Return the body of a rows event; the inverse of `decode_rows_event`."""
    _, version = _KINDS[event.type]
    parts = [event.table_id.to_bytes(6, "little"), event.flags.to_bytes(2, "little")]
    if version == 2:
        parts += [(len(event.extra_bytes) + 2).to_bytes(2, "little"), event.extra_bytes]
    parts.append(packed(event.column_count))
    bitmaps = [columns for columns in (event.before, event.after) if columns is not None]
    for columns, spare in zip(bitmaps, event.spare_columns, strict=False):
        number = sum(1 << ordinal for ordinal in columns) | spare << event.column_count
        parts.append(number.to_bytes((event.column_count + 7) // 8, "little"))
    return b"".join([*parts, event.body if event.compressed is None else event.compressed])


def spare_bits(column_count: int, padding_is_set: Sequence[bool]) -> tuple[int, int]:
    """Return the unused bits of the column bitmaps of an event (see `RowsEvent`)."""
    bits_of_one = (1 << -column_count % 8) - 1
    first, second = (*padding_is_set, False)[:2]
    return bits_of_one * first, bits_of_one * second


def rows_event_type(operation: Operation, version: int) -> EventType:
    """Return the event type of an operation in version 1 or 2 of the rows events of MySQL."""
    return next(kind for kind, known in _KINDS.items() if known == (operation, version))


def encode_rows(event: RowsEvent, rows: Iterable[tuple[RowImage | None, RowImage | None]]) -> bytes:
    """Return the bytes of the images of rows."""
    return b"".join(encode_row(event.type, before, after) for before, after in rows)


def encode_row(event_type: EventType, before: RowImage | None, after: RowImage | None) -> bytes:
    """Return the bytes of the images of one row."""
    return b"".join(_row_parts(event_type, before, after))


def _row_parts(event_type: EventType, before: RowImage | None, after: RowImage | None) -> Iterator[bytes]:
    if before is not None:
        yield put_image(before)
    if after is None:
        return
    if event_type is EventType.PARTIAL_UPDATE_ROWS_EVENT:
        documents = [ordinal for ordinal, wire in enumerate(after.layout.types) if wire.code is ColumnCode.JSON]
        chosen = sum(1 << number for number, ordinal in enumerate(documents) if ordinal in after.partial)
        yield packed(_PARTIAL_JSON_UPDATES if after.partial else 0)
        if after.partial:
            yield chosen.to_bytes((len(documents) + 7) // 8, "little")
    yield put_image(after)


def _columns(cursor: Cursor, count: int) -> tuple[tuple[int, ...], int]:
    """Return the columns of a bitmap, and its unused bits."""
    number = int.from_bytes(cursor.take((count + 7) // 8), "little")
    return tuple(ordinal for ordinal in range(count) if number >> ordinal & 1), number >> count


def _extra(cursor: Cursor) -> ExtraRowInfo | None:
    """Return the block of NDB; blocks of partitioned tables and of other formats are skipped."""
    found = None
    while cursor.remaining:
        kind = cursor.uint(1)
        if kind == _EXTRA_ROW_INFO:
            length = cursor.uint(1)
            block_format = cursor.uint(1)
            payload = cursor.take(length - 2)
            if block_format == _NDB_FORMAT:
                found = decode_extra_row_info(payload)
        elif kind == _PARTITION:
            cursor.skip(2)  # one partition, two for updates, and nothing after them
            cursor.skip(cursor.remaining)
        else:
            message = f"extra row info of unknown type {kind}"
            raise CorruptError(message)
    return found
