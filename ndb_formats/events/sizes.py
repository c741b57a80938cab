"""
How many bytes images and events take, without writing them.

    image         a null bit per column that it carries, then the values
    rows event    header, table id, flags, extra row info (version 2), column count, bitmaps, images, checksum

The functions on whole values say what the encoders of this folder write; `rows_head_size` is what sizes in columns
(`ndb_formats.sizes.log_sizes`) add to the images.
"""

from __future__ import annotations

from collections.abc import Iterable

from ndb_formats.constants import EVENT_HEADER_SIZE, ColumnCode, EventType
from ndb_formats.events.row_image import DIFF_CODEC, RowImage
from ndb_formats.events.rows_event import Operation, RowsEvent
from ndb_formats.events.table_map import TableMap
from ndb_formats.types.column_types import put_wire_types

_CHECKSUM_SIZE = 4
_TABLE_ID_AND_FLAGS = 8
_EXTRA_LENGTH = 2
_FIRST_V2 = EventType.WRITE_ROWS_EVENT


def packed_size(number: int) -> int:
    """Return the bytes of a length-encoded integer."""
    if number < 251:
        return 1
    return next(size for size, bits in ((3, 16), (4, 24), (9, 64)) if number < 1 << bits)


def bitmap_size(columns: int) -> int:
    """Return the bytes of a bitmap."""
    return (columns + 7) // 8


def image_size(image: RowImage) -> int:
    """Return the bytes of an image in a rows event."""
    codecs = (DIFF_CODEC if ordinal in image.partial else image.layout.codecs[ordinal] for ordinal in image.present)
    values = (
        (codec.width if codec.prefixed else 0) + len(payload)
        for codec, payload in zip(codecs, image.payloads, strict=True)
        if payload is not None
    )
    return bitmap_size(len(image.present)) + sum(values)


def _post_header_size(version: int, extra_size: int = 0) -> int:
    """Return the bytes of a rows event between header and column count; the extra row info is that of version 2."""
    return _TABLE_ID_AND_FLAGS + (_EXTRA_LENGTH + extra_size if version == 2 else 0)


def rows_head_size(columns: int, bitmaps: int) -> int:
    """
    Return the bytes of the column count and the bitmaps of a rows event.

    Args:
        columns: Columns of the table.
        bitmaps: 2 for an update, 1 for a write or a delete.
    """
    return packed_size(columns) + bitmaps * bitmap_size(columns)


def rows_event_size(
    event: RowsEvent, rows: Iterable[tuple[RowImage | None, RowImage | None]], *, checksum: bool = True
) -> int:
    """
    Return the bytes of a rows event with these rows, header and checksum included.

    Args:
        event: The event; its own images do not count. Not a compressed one of MariaDB.
        rows: Before and after image of each row.
        checksum: Whether the file has checksums.
    """
    version = 2 if event.type >= _FIRST_V2 else 1
    head = _post_header_size(version, len(event.extra_bytes)) + rows_head_size(
        event.column_count, 2 if event.operation is Operation.UPDATE_ROW else 1
    )
    images = sum(_row_size(event, before, after) for before, after in rows)
    return EVENT_HEADER_SIZE + head + images + _CHECKSUM_SIZE * checksum


def _row_size(event: RowsEvent, before: RowImage | None, after: RowImage | None) -> int:
    size = sum(image_size(image) for image in (before, after) if image is not None)
    if event.type is EventType.PARTIAL_UPDATE_ROWS_EVENT and after is not None:
        documents = sum(wire.code is ColumnCode.JSON for wire in after.layout.types)
        size += 1 + (bitmap_size(documents) if after.partial else 0)
    return size


def table_map_size(table_map: TableMap, *, checksum: bool = True) -> int:
    """Return the bytes of a Table_map event, header and checksum included."""
    names = (table_map.database, table_map.table)
    count, metadata = len(table_map.types), len(put_wire_types(table_map.types)[1])
    return (
        EVENT_HEADER_SIZE
        + _TABLE_ID_AND_FLAGS
        + sum(len(name.encode("utf-8", "surrogateescape")) + 2 for name in names)
        + packed_size(count)
        + count
        + packed_size(metadata)
        + metadata
        + bitmap_size(count)
        + len(table_map.metadata)
        + _CHECKSUM_SIZE * checksum
    )
