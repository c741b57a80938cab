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

Only the Table_map event matters, so no schema is needed. After a column that the tool cannot print (GEOMETRY of MySQL),
and after an image without columns, it prints no more of the event.

`PRINTED` has a row per column type: the name of the type, and a function from a payload (the bytes of a value without
its length prefix) to text. Text is bytes: strings are printed as they are stored, each column in its own character set,
and only control characters, quotes and backslashes are escaped. `mariadb-binlog` escapes control characters alone, all
by their numbers, and prints a GEOMETRY as a text; `PRINTED_BY_MARIADB` has these rows.

Choices: the tool is followed even where its output is odd. It prints an unsigned integer as a signed one first, the
year 0000 as 1900, and a negative TIME of servers before MySQL 5.6 as a large number.

Source: MySQL `log_event.cc` (`print_verbose`, `print_verbose_one_row`, `log_event_print_value`); what mariadb-binlog
10.11 prints.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import lru_cache

import attrs

from ndb_formats.constants import ColumnCode, EventType
from ndb_formats.cursor import Cursor
from ndb_formats.errors import FormatError
from ndb_formats.events.row_image import RowImage, RowLayout, layout_of
from ndb_formats.events.rows_event import Operation, RowsEvent
from ndb_formats.events.table_map import TableMap
from ndb_formats.events.table_metadata import decode_table_metadata
from ndb_formats.types import temporal
from ndb_formats.types.column_types import WireType, put_wire_types
from ndb_formats.types.decimals import decode_decimal
from ndb_formats.types.json_binary import decode_json
from ndb_formats.types.json_diff import decode_diffs, diff_text
from ndb_formats.types.json_values import json_text

_ESCAPES = {byte: b"\\x%02x" % byte for byte in range(32)}
_ESCAPES |= {8: rb"\b", 9: rb"\t", 10: rb"\n", 12: rb"\f", 13: rb"\r", 39: rb"\'", 92: rb"\\"}
_QUOTED = tuple(_ESCAPES.get(byte, bytes([byte])) for byte in range(256))
_PLAIN = bytes(byte for byte in range(256) if byte not in _ESCAPES)
_QUOTED_BY_MARIADB = tuple(b"\\x%02x" % byte if byte < 32 else bytes([byte]) for byte in range(256))

_BLOB_NAMES = {1: "TINYBLOB/TINYTEXT", 2: "BLOB/TEXT", 3: "MEDIUMBLOB/MEDIUMTEXT", 4: "LONGBLOB/LONGTEXT"}
_ENUM_NAMES = {1: "ENUM(1 byte)", 2: "ENUM(2 bytes)"}
_BIG_ENDIAN_METADATA = frozenset({ColumnCode.STRING, ColumnCode.ENUM, ColumnCode.SET, ColumnCode.NEWDECIMAL})


@attrs.frozen
class Printed:
    """
    How values of one type are printed.

    Attributes:
        name: Wire type and maximum of elements (of a VECTOR) to the name of the type.
        text: Payload and wire type to the text of the value.
    """

    name: Callable[[WireType, int], str]
    text: Callable[[bytes, WireType], bytes]


def metadata_number(wire: WireType) -> int:
    """Return the metadata of a column as the number that the tool prints after ``meta=``."""
    _, metadata = put_wire_types((wire,))
    return int.from_bytes(metadata, "big" if wire.code in _BIG_ENDIAN_METADATA else "little")


def quoted(data: bytes) -> bytes:
    """Return bytes in single quotes, escaped."""
    if data.translate(None, _PLAIN):
        data = b"".join(map(_QUOTED.__getitem__, data))
    return b"'" + data + b"'"


def _integer(data: bytes, _: WireType) -> bytes:
    signed = int.from_bytes(data, "little", signed=True)
    return b"%d (%d)" % (signed, int.from_bytes(data, "little")) if signed < 0 else b"%d" % signed


def _decimal(data: bytes, wire: WireType) -> bytes:
    return f"{decode_decimal(data, wire.length, wire.scale):f}".encode()


def _float(data: bytes, _: WireType) -> bytes:
    return b"%-20g" % float(struct.unpack("<f", data)[0])


def _double(data: bytes, _: WireType) -> bytes:
    return b"%.20g" % float(struct.unpack("<d", data)[0])


def _bit(data: bytes, wire: WireType) -> bytes:
    digits = f"{int.from_bytes(data, 'big'):0{8 * len(data)}b}"
    return f"b'{digits[len(digits) - wire.length :]}'".encode()


def _set(data: bytes, _: WireType) -> bytes:
    """Return the bytes of a SET in the order stored, that of its first eight members first."""
    return b"b'" + b"".join(f"{byte:08b}".encode() for byte in data) + b"'"


def _enum(data: bytes, _: WireType) -> bytes:
    return b"%d" % int.from_bytes(data, "little")


def _year(data: bytes, _: WireType) -> bytes:
    return b"%d" % (data[0] + 1900)


def _date(data: bytes, _: WireType) -> bytes:
    return quoted(temporal.decode_date(data).replace("-", ":").encode())


def _time(data: bytes, wire: WireType) -> bytes:
    return quoted(temporal.decode_time2(data, wire.length).encode())


def _datetime(data: bytes, wire: WireType) -> bytes:
    return quoted(temporal.decode_datetime2(data, wire.length).encode())


def _timestamp(data: bytes, wire: WireType) -> bytes:
    seconds = b"%d" % int.from_bytes(data[:4], "big")
    if wire.length == 0:
        return seconds
    digits = f"{int.from_bytes(data[4:], 'big'):0{2 * temporal.fraction_bytes(wire.length)}d}"
    return seconds + b"." + digits[: wire.length].encode()


def _old_time(data: bytes, _: WireType) -> bytes:
    temporal.decode_old_time(data)  # refuses what is no TIME; mysqlbinlog prints a negative one as a large one
    number = int.from_bytes(data, "little")
    return b"'%02d:%02d:%02d'" % (number // 10000, number // 100 % 100, number % 100)


def _old_datetime(data: bytes, _: WireType) -> bytes:
    return temporal.decode_old_datetime(data).encode()


def _old_timestamp(data: bytes, _: WireType) -> bytes:
    return b"%d" % int.from_bytes(data, "little", signed=True)


def _vector(data: bytes, _: WireType) -> bytes:
    if not data:
        return b"["
    elements = struct.unpack(f"<{len(data) // 4}f", data[: len(data) // 4 * 4])
    return b"[" + b",".join(b"%.5e" % element for element in elements) + b"]"


def _string(data: bytes, _: WireType) -> bytes:
    return quoted(data)


def _string_of_mariadb(data: bytes, _: WireType) -> bytes:
    return b"'" + b"".join(map(_QUOTED_BY_MARIADB.__getitem__, data)) + b"'"


def _named(name: str) -> Callable[[WireType, int], str]:
    """Return a function for a name in which ``{0}`` is the wire type and ``{1}`` the maximum of elements."""
    return name.format


# JSON is printed by `row_lines`; other types that are not here are not printed.
PRINTED: dict[ColumnCode, Printed] = {
    ColumnCode.TINY: Printed(_named("TINYINT"), _integer),
    ColumnCode.SHORT: Printed(_named("SHORTINT"), _integer),
    ColumnCode.INT24: Printed(_named("MEDIUMINT"), _integer),
    ColumnCode.LONG: Printed(_named("INT"), _integer),
    ColumnCode.LONGLONG: Printed(_named("LONGINT"), _integer),
    ColumnCode.NEWDECIMAL: Printed(_named("DECIMAL({0.length},{0.scale})"), _decimal),
    ColumnCode.FLOAT: Printed(_named("FLOAT"), _float),
    ColumnCode.DOUBLE: Printed(_named("DOUBLE"), _double),
    ColumnCode.BIT: Printed(_named("BIT({0.length})"), _bit),
    ColumnCode.ENUM: Printed(lambda wire, _: _ENUM_NAMES.get(wire.length, "ENUM"), _enum),
    ColumnCode.SET: Printed(_named("SET({0.length} bytes)"), _set),
    ColumnCode.YEAR: Printed(_named("YEAR"), _year),
    ColumnCode.DATE: Printed(_named("DATE"), _date),
    ColumnCode.NEWDATE: Printed(_named("DATE"), _date),
    ColumnCode.TIME: Printed(_named("TIME"), _old_time),
    ColumnCode.TIME2: Printed(_named("TIME({0.length})"), _time),
    ColumnCode.DATETIME: Printed(_named("DATETIME"), _old_datetime),
    ColumnCode.DATETIME2: Printed(_named("DATETIME({0.length})"), _datetime),
    ColumnCode.TIMESTAMP: Printed(_named("TIMESTAMP"), _old_timestamp),
    ColumnCode.TIMESTAMP2: Printed(_named("TIMESTAMP({0.length})"), _timestamp),
    ColumnCode.VARCHAR: Printed(_named("VARSTRING({0.length})"), _string),
    ColumnCode.VAR_STRING: Printed(_named("VARSTRING({0.length})"), _string),
    ColumnCode.STRING: Printed(_named("STRING({0.length})"), _string),
    ColumnCode.BLOB: Printed(lambda wire, _: _BLOB_NAMES.get(wire.length, "BLOB"), _string),
    ColumnCode.VECTOR: Printed(_named("VECTOR({1})"), _vector),
}
PRINTED_BY_MARIADB: dict[ColumnCode, Printed] = {
    **{
        code: attrs.evolve(printed, text=_string_of_mariadb) if printed.text is _string else printed
        for code, printed in PRINTED.items()
    },
    ColumnCode.GEOMETRY: Printed(_named("GEOMETRY"), _string_of_mariadb),
    # The compressed bytes.
    ColumnCode.VARCHAR_COMPRESSED: Printed(_named("VARSTRING({0.length}) COMPRESSED"), _string_of_mariadb),
    ColumnCode.BLOB_COMPRESSED: Printed(
        lambda wire, _: f"{_BLOB_NAMES.get(wire.length, 'BLOB')} COMPRESSED", _string_of_mariadb
    ),
}


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


def printed_table(table_map: TableMap, verbose: int, names: tuple[str, ...] | None = None) -> PrintedTable:
    """Return the text of a table around its rows; arguments as for `rows_event_lines`."""
    return _printed_table(table_map, table_map.mariadb, verbose, names)


@lru_cache(maxsize=_CACHED_TABLES)
def _printed_table(  # maps of two servers can be equal
    table_map: TableMap, mariadb: bool, verbose: int, names: tuple[str, ...] | None
) -> PrintedTable:
    printed = PRINTED_BY_MARIADB if mariadb else PRINTED
    full_name = b".".join(b"`%s`" % _bytes(part).replace(b"`", b"``") for part in (table_map.database, table_map.table))
    elements = iter(_vector_elements(table_map))
    columns = []
    for ordinal, wire in enumerate(table_map.types):
        most = next(elements, 0) if wire.code is ColumnCode.VECTOR else 0
        start = f"@{ordinal + 1}" if names is None else names[ordinal]
        kind, text = _kind_and_text(wire, most, printed)
        columns.append(_column(b"###   %s=" % _bytes(start), wire, kind, text, table_map.nullable[ordinal], verbose))
    return PrintedTable(full_name, layout_of(table_map), tuple(columns))


def _vector_elements(table_map: TableMap) -> tuple[int, ...]:
    """Return the maximum of elements of each VECTOR column, which is not in its wire type."""
    if not any(wire.code is ColumnCode.VECTOR for wire in table_map.types):
        return ()
    return decode_table_metadata(table_map.metadata).vector_dimensionality or ()


def _kind_and_text(
    wire: WireType, elements: int, printed: Mapping[ColumnCode, Printed]
) -> tuple[str, Callable[[bytes], bytes] | None]:
    """Return the name of a type and what prints its values; None if they are not printed."""
    if wire.code is ColumnCode.JSON:
        return "JSON", _document
    found = printed.get(wire.code)
    if found is None:
        return "", None
    return found.name(wire, elements), lambda data: found.text(data, wire)


def _column(
    start: bytes, wire: WireType, kind: str, text: Callable[[bytes], bytes] | None, nullable: bool, verbose: int
) -> PrintedColumn:
    number = metadata_number(wire)
    if text is None:
        refusal = f"!! Don't know how to handle column type={wire.code:d} meta={number} ({number:04x})"
        return PrintedColumn(start, None, refusal.encode(), b"")
    if verbose < 2:
        return PrintedColumn(start, text, b"", b"")
    comment = f" /* {kind} meta={number} nullable={nullable:d} is_null="
    return PrintedColumn(start, text, f"{comment}0 */".encode(), f"{comment}1 */".encode())


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogateescape")
