"""
What a real server's applier does with every pair of column types, by events that it logged for another table.

Each type has a table on both sides. Rows that one side logged are renamed to each table of the other side, and given
to the server in a BINLOG statement, which goes the way of an applier's event. The values fit into every type of their
kind, so that only the types count.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable
from pathlib import Path

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.rows_event import ROWS_EVENTS
from tests.mysql_server.connection import Connection, ServerError

__all__ = ["SETTINGS", "TYPES", "applied", "definitions", "logged", "replayed"]

SETTINGS = ("", "ALL_NON_LOSSY", "ALL_LOSSY", "ALL_LOSSY,ALL_NON_LOSSY")
TYPES = (
    *("TINYINT", "TINYINT UNSIGNED", "BOOL", "SMALLINT", "MEDIUMINT", "INT", "INT UNSIGNED"),
    *("BIGINT", "BIGINT UNSIGNED", "FLOAT", "FLOAT(24)", "FLOAT(53)", "FLOAT(7,2)", "DOUBLE", "DOUBLE(20,3)", "REAL"),
    *("DECIMAL", "DECIMAL(0)", "DECIMAL(10,2)", "DECIMAL(12,2)", "DECIMAL(12,5)", "DECIMAL(5,4)", "DECIMAL(19.5)"),
    *("BIT", "BIT(8)", "BIT(9)", "BIT(64)", "YEAR", "DATE", "TIME", "TIME(1)", "TIME(2)", "TIME(3)", "TIME(6)"),
    *("DATETIME", "DATETIME(3)", "DATETIME(6)", "TIMESTAMP NULL", "TIMESTAMP(3) NULL", "TIMESTAMP(6) NULL"),
    *("CHAR(5)", "CHAR(10)", "NCHAR(10)", "CHAR(10) CHARSET latin1", "CHAR(10) BYTE", "CHAR(64)", "CHAR(255)"),
    *("BINARY(5)", "BINARY(10)", "BINARY(40)", "VARCHAR(5)", "VARCHAR(10)", "VARCHAR(10) ASCII", "VARCHAR(10) UNICODE"),
    *("VARCHAR(63)", "VARCHAR(64)", "VARCHAR(300)", "VARCHAR(16000)", "NATIONAL VARCHAR(10)", "VARBINARY(10)"),
    *("VARBINARY(20)", "VARBINARY(256)", "VARBINARY(300)", "TINYBLOB", "BLOB", "BLOB(100)", "BLOB(70000)"),
    *("MEDIUMBLOB", "LONGBLOB", "TINYTEXT", "TEXT", "TEXT(30)", "TEXT(100)", "TEXT CHARSET latin1", "MEDIUMTEXT"),
    *("LONGTEXT", "LONG", "LONG VARCHAR", "LONG VARBINARY", "LONG BYTE", "ENUM('1','2')", "ENUM('1','2','3')"),
    *("SET('1','2')", "SET('1','2','3','4','5','6','7','8','9')", "JSON", "GEOMETRY", "POINT"),
    *("VECTOR", "VECTOR(1)", "VECTOR(2)"),
)
_VALUES = {
    "YEAR": "2001",
    **dict.fromkeys(("DATE", "DATETIME", "TIMESTAMP"), "'2020-01-02'"),
    **dict.fromkeys(("GEOMETRY", "POINT"), "POINT(1, 1)"),
    "VECTOR": "TO_VECTOR('[1]')",
    "VECTOR(2)": "TO_VECTOR('[1,2]')",
}
# How a BINLOG statement ends where an applier stops because of a type; 1062 and 1610 if it misreads the rows.
_STOPS = (1030, 1062, 1105, 1416, 1610, 1677, 13146)
_NAME = re.compile(rb"\x08ndb_from\x00\x03t(\d\d)\x00")


def definitions(database: str) -> list[str]:
    """Return the CREATE TABLE statement of each type."""
    return [f"CREATE TABLE {database}.t{place:02} (k INT PRIMARY KEY, c {kind})" for place, kind in enumerate(TYPES)]


def replayed(server: Connection) -> list[str]:
    """
    Return what a server does with each pair of types.

    Returns:
        For each type of the source, one hexadecimal digit for each type of the replica: bit n says that the applier
        goes on with `SETTINGS[n]`.
    """
    before = server.run("SELECT @@GLOBAL.replica_type_conversions")[0][0] or b""
    _make(server)
    try:
        digits = [[0] * len(TYPES) for _ in TYPES]
        written = logged(server, lambda place: _write(server, place), len(TYPES))
        for bit, setting in enumerate(SETTINGS):
            server.run(f"SET GLOBAL replica_type_conversions='{setting}'")
            for source, events in written.items():
                for replica in range(len(TYPES)):
                    digits[source][replica] |= _goes_on(server, events, replica) << bit
    finally:
        server.run(b"SET GLOBAL replica_type_conversions='%s'" % before)
    return ["".join(f"{digit:x}" for digit in row) for row in digits]


def _make(server: Connection) -> None:
    server.run("SET SESSION sql_mode=''")
    for database in ("ndb_from", "ndb_into"):
        server.run(f"DROP DATABASE IF EXISTS {database}")
        server.run(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        for statement in definitions(database):
            server.run(f"{statement} ENGINE=MyISAM")


def _write(server: Connection, place: int) -> None:
    """Have an insert with a full image and an update with a minimal one logged."""
    kind, table = TYPES[place], f"ndb_from.t{place:02}"
    value = _VALUES.get(kind) or _VALUES.get(re.split("[( ]", kind)[0], "'1'")
    server.run("SET SESSION binlog_row_image=FULL")
    server.run(f"INSERT INTO {table} VALUES (1, {value})")
    server.run("SET SESSION sql_log_bin=0")
    server.run(f"UPDATE {table} SET c = NULL")
    server.run("SET SESSION sql_log_bin=1, binlog_row_image=MINIMAL")
    server.run(f"UPDATE {table} SET c = {value}")


def logged(server: Connection, write: Callable[[int], None], count: int) -> dict[int, list[tuple[bytes, bytes]]]:
    """
    Return the Table_map and rows events that a write to each of so many tables logs, by the place of the table.

    From here on the session logs nothing, and takes these events in BINLOG statements.
    """
    server.run("SET SESSION binlog_row_image=FULL, sql_log_bin=1")
    server.run("FLUSH BINARY LOGS")
    name = server.run("SHOW BINARY LOG STATUS")[0][0]
    folder = Path((server.run("SELECT @@log_bin_basename")[0][0] or b"").decode()).parent
    for place in range(count):
        write(place)
    server.run("FLUSH BINARY LOGS")
    file = folder / (name or b"").decode()
    content = file.read_bytes()
    head, table_map, found = b"", b"", dict[int, list[tuple[bytes, bytes]]]()
    for event in read_events(file):
        data = content[event.position : event.position + event.header.size]
        if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
            head = data
        elif event.type is EventType.TABLE_MAP_EVENT:
            table_map = data
        elif event.type in ROWS_EVENTS and (match := _NAME.search(table_map)):
            found.setdefault(int(match[1]), []).append((table_map, data))
    server.run("SET sql_log_bin=0")
    server.run(b"BINLOG '%s'" % base64.b64encode(head))
    server.run("SET gtid_next='AUTOMATIC'")
    return found


def _goes_on(server: Connection, events: list[tuple[bytes, bytes]], replica: int) -> bool:
    """Whether the applier takes an insert and an update into the table of a type; both or none."""
    table = f"ndb_into.t{replica:02}"
    insert, update = events
    server.run(f"TRUNCATE TABLE {table}")
    inserted = applied(server, *insert, replica) == 0
    server.run(f"REPLACE INTO {table} (k) VALUES (1)")
    assert (applied(server, *update, replica) == 0) is inserted
    return inserted


def applied(server: Connection, table_map: bytes, rows: bytes, replica: int) -> int:
    """Have events applied to a table of the replica; return the number of the error, one of a type's; 0 without."""
    renamed = _NAME.sub(b"\x08ndb_into\x00\x03t%02d\x00" % replica, table_map[:-4])
    event = renamed + zlib.crc32(renamed).to_bytes(4, "little")
    try:
        server.run(b"BINLOG '%s'" % base64.b64encode(event + rows))
    except ServerError as error:
        if error.number not in _STOPS:
            raise
        return error.number
    return 0
