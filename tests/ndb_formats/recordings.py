"""
Recorded binlogs of a real cluster, and what `mysqlbinlog` printed of them: the judge of the decoder.

`tests/recordings/ndb_formats/<name>/` holds copies of cases recorded from MySQL NDB Cluster 9.7.4:
the raw binlog, and the text of ``mysqlbinlog -vv --base64-output=decode-rows`` of the same file.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from ndb_formats.binlog_reader import Event, read_events
from ndb_formats.constants import BINLOG_MAGIC, EventType
from ndb_formats.events.row_image import RowImage, layout_of
from ndb_formats.events.rows_event import ROWS_EVENTS, RowsEvent, decode_rows_event
from ndb_formats.events.table_map import TableMap, decode_table_map
from ndb_formats.schema.tables import Column, Schema
from tests.corpora import DEMO, SHARED

ALL_RECORDINGS = Path(__file__).parents[1] / "recordings"
RECORDINGS = ALL_RECORDINGS / "ndb_formats"
TYPES = RECORDINGS / "types_type8"
COMPOSITE = RECORDINGS / "composite_type7"
EPOCH = RECORDINGS / "epoch_type8"
METADATA = RECORDINGS / "metadata_full"


def binlogs(folder: Path) -> list[Path]:
    """Return every binlog below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if path.open("rb").read(4) == BINLOG_MAGIC)


# Its rows have a size that a log does not tell, so they are refused; the tests of reports hold what is said of it.
_UNREADABLE = ALL_RECORDINGS / "reports" / "25-mariadb-old-temporal.binlog"
BINLOGS = [path for folder in (DEMO, ALL_RECORDINGS) for path in binlogs(folder) if path != _UNREADABLE]
CORPUS = binlogs(SHARED)  # more of them beside the checkout; tests that read them are marked `corpus`


def name_of(path: Path) -> str:
    """Return a recording's path below the folder of all recordings, or of the demo, to name a test."""
    return str(path.relative_to(DEMO.parent if DEMO in path.parents else ALL_RECORDINGS))


Image = dict[int, Any] | None
Change = tuple[str, str, Image, Image]


def row_events(path: Path) -> Iterator[tuple[Event, TableMap, RowsEvent]]:
    """Yield the rows events of a file, each with the Table_map it refers to."""
    maps: dict[int, TableMap] = {}
    for event in read_events(path):
        if event.type is EventType.TABLE_MAP_EVENT:
            table_map = decode_table_map(event.body)
            maps[table_map.table_id] = table_map
        elif event.type in ROWS_EVENTS:
            rows = decode_rows_event(EventType(event.header.type_code), event.body)
            yield event, maps[rows.table_id], rows


def decoded_changes(path: Path, schema: Schema) -> Iterator[Change]:
    """Yield (operation, table, before, after) of every row, as the code under test decodes it."""
    for _, table_map, rows in row_events(path):
        layout = layout_of(table_map, schema.find(table_map.database, table_map.table))
        for before, after in rows.rows(layout):
            yield rows.operation.name, table_map.full_name, _values(before), _values(after)


def _values(image: RowImage | None) -> Image:
    return None if image is None else dict(image.values())


_OPERATION = re.compile(rb"### (INSERT INTO|UPDATE|DELETE FROM) `(.*?)`\.`(.*?)`$")
_VALUE = re.compile(rb"###   @(\d+)=(.*) /\* (.+?) meta=\d+ nullable=[01] is_null=([01]) \*/$", re.DOTALL)
_SECTION = {b"### WHERE": 0, b"### SET": 1}
_OPERATION_NAME = {b"INSERT INTO": "WRITE_ROW", b"UPDATE": "UPDATE_ROW", b"DELETE FROM": "DELETE_ROW"}


def printed_changes(path: Path, schema: Schema) -> Iterator[Change]:
    """Yield (operation, table, before, after) of every row that `mysqlbinlog` printed."""
    operation, database, table, images = "", "", "", [None, None]
    for line in path.read_bytes().split(b"\n"):
        if match := _OPERATION.match(line):
            if operation:
                yield operation, f"{database}.{table}", images[0], images[1]
            operation, images = _OPERATION_NAME[match[1]], [None, None]
            database, table = match[2].decode(), match[3].decode()
        elif line in _SECTION:
            section = _SECTION[line]
            images[section] = {}
        elif match := _VALUE.match(line):
            definition = schema.find(database, table)
            place = int(match[1]) - 1
            column = definition.columns[place] if definition else None
            null = match[4] == b"1"
            images[section][place] = None if null else _printed_value(match[2].strip(), match[3].decode(), column)
    if operation:
        yield operation, f"{database}.{table}", images[0], images[1]


def _printed_value(text: bytes, kind: str, column: Column | None) -> Any:
    """Turn one printed value into the Python value that stands for it; by the printed type, not by our codecs."""
    return _READERS[kind.partition("(")[0]](text, column)


def _printed_integer(text: bytes, column: Column | None) -> int:
    """``-1 (255)`` gives both readings of a negative number, ``5`` only one."""
    signed, _, rest = text.partition(b" (")
    return int(rest[:-1]) if rest and column is not None and column.unsigned else int(signed)


def _printed_float(text: bytes, _: Column | None) -> float:
    """A FLOAT is printed with six digits; the nearest of single precision is meant."""
    return struct.unpack("<f", struct.pack("<f", float(text)))[0]


def _printed_year(text: bytes, _: Column | None) -> int:
    """`mysqlbinlog` adds 1900 to the byte, also to the byte 0, which is the year 0000; there is no year 1900."""
    return 0 if text == b"1900" else int(text)


def _printed_bits(text: bytes, _: Column | None) -> int:
    return int(text[2:-1], 2)


def _printed_enum(text: bytes, column: Column) -> str:
    return column.members[int(text) - 1]


def _printed_set(text: bytes, column: Column) -> str:
    mask = _printed_bits(text, column)
    return ",".join(member for place, member in enumerate(column.members) if mask >> place & 1)


def _printed_text(text: bytes, column: Column | None) -> str | bytes:
    text = text[1:-1]
    plain = re.sub(rb"\\x([0-9a-f]{2})", lambda match: bytes.fromhex(match[1].decode()), text)
    plain = plain.replace(b"\\'", b"'")
    if column is None or column.charset is None:
        width = column.length if column is not None and column.type == "binary" else 0
        return plain.ljust(width or 0, b"\0") if column is not None else plain
    return plain.decode({"utf8mb4": "utf-8", "latin1": "cp1252"}[column.charset])


def _printed_date(text: bytes, _: Column | None) -> str:
    return text[1:-1].decode().replace(":", "-")


def _printed_clock(text: bytes, _: Column | None) -> str:
    return text[1:-1].decode()


def _printed_timestamp(text: bytes, _: Column | None) -> str:
    """Seconds since 1970, with a fraction if the column has one."""
    whole, point, digits = text.decode().partition(".")
    days, second = divmod(int(whole), 86400)
    year, month, day = _civil_date(days)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d} {clock}{point}{digits}"


def _civil_date(days: int) -> tuple[int, int, int]:
    """Count days from 1970-01-01, one year and one month at a time."""
    year = 1970
    while days >= (length := 366 if _leap(year) else 365):
        days, year = days - length, year + 1
    month = 1
    while days >= (length := (31, 28 + _leap(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]):
        days, month = days - length, month + 1
    return year, month, days + 1


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


_READERS: dict[str, Callable[[bytes, Any], Any]] = {
    **dict.fromkeys(("TINYINT", "SHORTINT", "MEDIUMINT", "INT", "LONGINT"), _printed_integer),
    "FLOAT": _printed_float,
    "DOUBLE": lambda text, _: float(text),
    "DECIMAL": lambda text, _: Decimal(text.decode()),
    "YEAR": _printed_year,
    "BIT": _printed_bits,
    "ENUM": _printed_enum,
    "SET": _printed_set,
    **dict.fromkeys(("STRING", "VARSTRING"), _printed_text),
    "DATE": _printed_date,
    **dict.fromkeys(("TIME", "DATETIME"), _printed_clock),
    "TIMESTAMP": _printed_timestamp,
}
