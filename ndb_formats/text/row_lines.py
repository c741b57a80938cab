"""
Rows events as `mysqlbinlog -v` prints them: the lines that start with ``###``.

    ### Extra row ndb info: data_format: 0, len: 10, data: 0x0100CF0000001B003800
    ### UPDATE `db`.`t`
    ### WHERE
    ###   @1=-1 (255) /* TINYINT meta=0 nullable=0 is_null=0 */
    ### SET
    ###   @1=1 /* TINYINT meta=0 nullable=0 is_null=0 */

A line is bytes without its newline, since text is printed in the character set of its column. Absent columns are not
printed. ``-v`` leaves the comments out.

Only the Table_map event matters, so no schema is needed. After a column that the tool cannot print (GEOMETRY), and
after an image without columns, it prints no more of the event.

Source: MySQL `log_event.cc` (`print_verbose`, `print_verbose_one_row`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import lru_cache

import attrs

from ndb_formats.constants import ColumnCode, EventType
from ndb_formats.cursor import Cursor
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of
from ndb_formats.events.rows_event import Operation, RowsEvent
from ndb_formats.events.table_map import TableMap
from ndb_formats.events.table_metadata import decode_table_metadata
from ndb_formats.text.value_text import PRINTED, metadata_number, quoted
from ndb_formats.types.column_types import WireType
from ndb_formats.types.json_binary import decode_json
from ndb_formats.types.json_diff import decode_diffs, diff_text
from ndb_formats.types.json_values import json_text

_EXTRA_ROW_INFO, _PARTITION = 0, 1
_CACHED_TABLES = 256
COMMANDS = {
    Operation.WRITE_ROW: b"INSERT INTO",
    Operation.UPDATE_ROW: b"UPDATE",
    Operation.DELETE_ROW: b"DELETE FROM",
}


@attrs.frozen
class PrintedColumn:
    """
    The text of a column around its values.

    Attributes:
        start: The text before a value, up to ``@1=``.
        text: Payload to the text of a value; None if values of its type are not printed.
        comment: The text after a value, or in ordinal of it if `text` is None.
        null_comment: The text after NULL.
    """

    start: bytes
    text: Callable[[bytes], bytes] | None
    comment: bytes
    null_comment: bytes


@attrs.frozen
class PrintedTable:
    """The text of a table around its rows."""

    name: bytes
    layout: RowLayout
    columns: tuple[PrintedColumn, ...]


def rows_event_lines(
    table_map: TableMap, event: RowsEvent, *, verbose: int = 2, names: tuple[str, ...] | None = None
) -> Iterator[bytes]:
    """
    Yield the lines of one rows event.

    Args:
        table_map: The Table_map event that it refers to.
        event: The event.
        verbose: 1 for ``-v``, 2 for ``-vv``.
        names: Names of the columns; None for ``@1`` and so on, as the tool prints them.

    Raises:
        FormatError: The event cannot be read further; all lines before have been yielded.
    """
    yield from extra_row_lines(event.extra_bytes, event.operation)
    table = printed_table(table_map, verbose, names)
    if event.operation is Operation.WRITE_ROW and not event.body:
        yield b"### INSERT INTO `%s`.`%s` VALUES ()" % (_bytes(table_map.database), _bytes(table_map.table))
        return
    for before, after in event.rows(table.layout):
        yield b"### %s %s" % (COMMANDS[event.operation], table.name)
        if before is not None:
            yield b"### WHERE"
            if not (yield from _image_lines(table, before)):
                return
        if after is not None:
            yield b"### SET"
            # An after image of a partial update is never empty, because its options come first.
            partial = event.type is EventType.PARTIAL_UPDATE_ROWS_EVENT
            if not (yield from _image_lines(table, after)) and not (partial and not after.present):
                return


def extra_row_lines(data: bytes, operation: Operation) -> Iterator[bytes]:
    """
    Yield the lines of extra row info: that of NDB, and partitions.

    Of several blocks of NDB the first one is printed; blocks after one of an unknown type are ignored.

    Args:
        data: The blocks of extra row info, as encoded in the event.
        operation: An update has two partitions.

    Raises:
        TruncatedError: A block ends too early.
    """
    cursor = Cursor(data)
    lines: dict[int, str] = {}
    while cursor.remaining:
        kind = cursor.uint(1)
        if kind == _EXTRA_ROW_INFO:
            length, data_format = cursor.uint(1) - 2, cursor.uint(1)
            payload = cursor.take(length)
            text = f"0x{payload.hex().upper()}" if payload else '""'
            line = f"### Extra row ndb info: data_format: {data_format}, len: {length}, data: {text}"
            lines.setdefault(kind, line)
        elif kind == _PARTITION:
            partition = f"partition: {cursor.uint(2)}"
            if operation is Operation.UPDATE_ROW:
                partition = f"source_partition: {cursor.uint(2)} target_{partition}"
            lines[kind] = f"### Extra row info for partitioning: {partition}"
        else:
            break
    yield from (lines[kind].encode() for kind in sorted(lines))


def _image_lines(table: PrintedTable, image: RowImage) -> Generator[bytes, None, bool]:
    """Yield the lines of one image, and return whether the tool continues after it."""
    for ordinal, payload in zip(image.present, image.payloads, strict=True):
        column = table.columns[ordinal]
        if column.text is None:
            yield column.start + column.comment
            return False
        if payload is None:
            yield column.start + b"NULL" + column.null_comment
        elif ordinal in image.partial:
            text = diff_text(decode_diffs(payload), f"@{ordinal + 1}").encode(errors="surrogateescape")
            yield from (column.start + text + column.comment).split(b"\n")
        else:
            yield from (column.start + column.text(payload) + column.comment).split(b"\n")
    return bool(image.present)


def _document(data: bytes) -> bytes:
    try:
        text = json_text(decode_json(data), quoted=False)
    except FormatError:
        return b"Invalid JSON\n"
    return quoted(text.encode(errors="surrogateescape"))


@lru_cache(maxsize=_CACHED_TABLES)
def printed_table(table_map: TableMap, verbose: int, names: tuple[str, ...] | None = None) -> PrintedTable:
    """Return the text of a table around its rows; arguments as for `rows_event_lines`."""
    full_name = b".".join(b"`%s`" % _bytes(part).replace(b"`", b"``") for part in (table_map.database, table_map.table))
    elements = iter(_vector_elements(table_map))
    columns = []
    for ordinal, wire in enumerate(table_map.types):
        most = next(elements, 0) if wire.code is ColumnCode.VECTOR else 0
        start = f"@{ordinal + 1}" if names is None else names[ordinal]
        columns.append(_column(b"###   %s=" % _bytes(start), wire, most, table_map.nullable[ordinal], verbose))
    return PrintedTable(full_name, layout_of(table_map), tuple(columns))


def _vector_elements(table_map: TableMap) -> tuple[int, ...]:
    """Return the maximum of elements of each VECTOR column, which is not in its wire type."""
    if not any(wire.code is ColumnCode.VECTOR for wire in table_map.types):
        return ()
    return decode_table_metadata(table_map.metadata).vector_dimensionality or ()


def _column(start: bytes, wire: WireType, elements: int, nullable: bool, verbose: int) -> PrintedColumn:
    number = metadata_number(wire)
    if wire.code is ColumnCode.JSON:
        kind, text = "JSON", _document
    elif wire.code in PRINTED:
        printed = PRINTED[wire.code]
        kind, text = printed.name(wire, elements), lambda data: printed.text(data, wire)
    else:
        refusal = f"!! Don't know how to handle column type={wire.code:d} meta={number} ({number:04x})"
        return PrintedColumn(start, None, refusal.encode(), b"")
    if verbose < 2:
        return PrintedColumn(start, text, b"", b"")
    comment = f" /* {kind} meta={number} nullable={nullable:d} is_null="
    return PrintedColumn(start, text, f"{comment}0 */".encode(), f"{comment}1 */".encode())


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")
