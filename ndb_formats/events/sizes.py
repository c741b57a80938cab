"""
How many bytes parts of events take, without writing them: bitmaps, the head of a rows event, a Table_map event.
"""

from __future__ import annotations

from ndb_formats.constants import EVENT_HEADER_SIZE
from ndb_formats.events.table_map import TableMap
from ndb_formats.types.column_types import put_wire_types

_CHECKSUM_SIZE = 4
_TABLE_ID_AND_FLAGS = 8


def packed_size(number: int) -> int:
    """Return the bytes of a length-encoded integer."""
    if number < 251:
        return 1
    return next(size for size, bits in ((3, 16), (4, 24), (9, 64)) if number < 1 << bits)


def bitmap_size(columns: int) -> int:
    """Return the bytes of a bitmap."""
    return (columns + 7) // 8


def rows_head_size(columns: int, bitmaps: int) -> int:
    """
    Return the bytes of the column count and the bitmaps of a rows event.

    Args:
        columns: Columns of the table.
        bitmaps: 2 for an update, 1 for a write or a delete.
    """
    return packed_size(columns) + bitmaps * bitmap_size(columns)


def table_map_size(table_map: TableMap) -> int:
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
        + _CHECKSUM_SIZE
    )
