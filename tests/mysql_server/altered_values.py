"""
What ALTER TABLE makes of stored values on a real server, for every pair of column types.

A table of one column gets border values of its type. An ALTER by copy gives the column another type, and a DELETE logs
what the row then holds: so the vectors hold the bytes of row images before and after. Without strict mode, one ALTER
converts all rows; in strict mode, each value has a table of its own, because one value can refuse the statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.row_image import layout_of
from ndb_formats.events.rows_event import ROWS_EVENTS, decode_rows_event
from ndb_formats.events.table_map import TableMap, decode_table_map
from tests.mysql_server.connection import Connection, ServerError

__all__ = ["REFUSED", "STRICT", "VALUES", "altered_values", "definition"]

STRICT = "STRICT_TRANS_TABLES"
REFUSED = "refused"
_NUMBERS = ("0", "1", "-1", "127", "128", "-129", "255", "256", "32768", "65535", "2147483647", "2147483648")
_WIDE = ("4294967295", "-2147483649", "9223372036854775807", "18446744073709551615", "20200102", "20200102030405")
_POINTS = ("1.25", "-1.25", "1.35", "0.5", "-0.5", "2.5", "0.05", "99999.99", "-99999.99", "1234567.89", "0", "3")
_FLOATS = (*_POINTS, "0.1", "1e10", "-1e10", "1e30", "-1e30", "1e-5", "16777217", "255.5", "127.49999", "1e19")
_TEXTS = ("''", "'a'", "'b'", "'a '", "'abcde'", "'12'", "'-1.25'", "' 7'", "'1e2'", "'12abc'", "'é'", "'€'", "'a,c'")
_TEXTS = (*_TEXTS, "'2020-01-02'", "'10:20:30'", "'B'", "'[1]'", "'300'", "'0x1F'", "'1.5'")
_BYTES = ("''", "'a'", "'a '", "x'00'", "x'FF'", "x'610000'", "x'C3A9'", "'12'", "'abcde'", "x'31003200'")
_DATES = ("'2020-02-29'", "'1969-12-31'", "'0000-00-00'", "'9999-12-31'", "'2001-00-01'")
_CLOCKS = ("'10:20:30.5'", "'-10:20:30.499999'", "'838:59:59'", "'-838:59:59'", "'00:00:59.999999'", "'100:00:00'")
_MOMENTS = ("'2020-01-02 03:04:05.123456'", "'2020-12-31 23:59:59.999999'", "'9999-12-31 23:59:59.4'", "'0000-00-00'")
_MOMENTS = (*_MOMENTS, "'1970-01-02 00:00:00.5'", "'2037-01-01 12:00:00'", "'1900-06-07 08:09:10'")
_STAMPS = ("'2020-01-02 03:04:05.123456'", "'2037-12-31 23:59:59.999'", "'1970-01-02 00:00:01.5'", "0")
_BITS = ("0", "1", "b'10000001'", "255", "256", "0x6162")
_JSON = ("'1'", "'-1.25'", "'\"a\"'", "'\"12\"'", "'null'", "'true'", "'[1, 2]'", "'{\"a\": 1}'", "'1e2'")

VALUES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("TINYINT", "TINYINT UNSIGNED", "SMALLINT", "MEDIUMINT UNSIGNED", "INT"), (*_NUMBERS, *_WIDE)),
    **dict.fromkeys(("INT UNSIGNED", "BIGINT", "BIGINT UNSIGNED", "INT NOT NULL"), (*_NUMBERS, *_WIDE)),
    **dict.fromkeys(("DECIMAL(9,2)", "DECIMAL(9,1)", "DECIMAL(12,4)", "DECIMAL(5,0)", "DECIMAL(65,30)"), _POINTS),
    **dict.fromkeys(("DECIMAL(9,2) UNSIGNED", "DECIMAL(9,2) NOT NULL"), _POINTS),
    **dict.fromkeys(("FLOAT", "DOUBLE", "FLOAT(7,2)", "DOUBLE UNSIGNED", "DOUBLE NOT NULL"), _FLOATS),
    **dict.fromkeys(("VARCHAR(20)", "CHAR(5)", "VARCHAR(3)", "VARCHAR(20) CHARSET latin1", "TEXT"), _TEXTS),
    **dict.fromkeys(("CHAR(20) CHARSET utf16", "VARCHAR(20) NOT NULL", "TINYTEXT CHARSET latin1"), _TEXTS),
    **dict.fromkeys(("VARBINARY(20)", "BINARY(5)", "BLOB", "BINARY(20)", "VARBINARY(3) NOT NULL"), _BYTES),
    **dict.fromkeys(("DATE", "DATE NOT NULL"), _DATES),
    **dict.fromkeys(("TIME", "TIME(3)", "TIME(6)"), _CLOCKS),
    **dict.fromkeys(("DATETIME", "DATETIME(3)", "DATETIME(6)", "DATETIME NOT NULL"), _MOMENTS),
    **dict.fromkeys(
        ("TIMESTAMP NULL", "TIMESTAMP(3) NULL", "TIMESTAMP NOT NULL DEFAULT '2000-01-01 00:00:00'"), _STAMPS
    ),
    "YEAR": ("0", "1901", "2155", "2020"),
    **dict.fromkeys(("ENUM('a','b','c')", "ENUM('c','a','b')", "ENUM('a','B')"), ("'a'", "'b'", "'c'", "'zz'")),
    "ENUM('a','b','c') NOT NULL": ("'a'", "'b'", "'c'"),
    "ENUM('12','a b','é') CHARSET latin1": ("'12'", "'a b'", "'é'"),
    **dict.fromkeys(("SET('a','b','c')", "SET('c','b','a')", "SET('a','b')"), ("''", "'a'", "'b'", "'a,c'", "'a,b,c'")),
    "SET('a','b','c','d','e','f','g','h','i')": ("'a'", "'i'", "'a,i'", "''"),
    **dict.fromkeys(("BIT(1)", "BIT(8)", "BIT(16)", "BIT(64)", "BIT(8) NOT NULL"), _BITS),
    **dict.fromkeys(("JSON", "JSON NOT NULL"), _JSON),
}


_INTEGERS = ("TINYINT", "TINYINT UNSIGNED", "SMALLINT", "MEDIUMINT UNSIGNED", "INT", "INT UNSIGNED", "BIGINT")
_INTEGERS = (*_INTEGERS, "BIGINT UNSIGNED", "INT NOT NULL")
_DECIMALS = ("DECIMAL(9,2)", "DECIMAL(9,1)", "DECIMAL(12,4)", "DECIMAL(5,0)", "DECIMAL(9,2) UNSIGNED")
_REALS = ("FLOAT", "DOUBLE", "FLOAT(7,2)", "DOUBLE UNSIGNED", "DOUBLE NOT NULL")
_STRINGS = ("VARCHAR(20)", "CHAR(5)", "VARCHAR(3)", "VARCHAR(20) CHARSET latin1", "TEXT", "CHAR(20) CHARSET utf16")
_STRINGS = (*_STRINGS, "VARCHAR(20) NOT NULL", "TINYTEXT CHARSET latin1")
_BINARIES = ("VARBINARY(20)", "BINARY(5)", "BLOB", "BINARY(20)", "VARBINARY(3) NOT NULL")
_TIMES = ("DATE", "TIME", "TIME(3)", "TIME(6)", "DATETIME", "DATETIME(3)", "DATETIME(6)", "TIMESTAMP NULL")
_TIMES = (*_TIMES, "TIMESTAMP(3) NULL", "DATE NOT NULL", "DATETIME NOT NULL", "YEAR")
_TIMES = (*_TIMES, "TIMESTAMP NOT NULL DEFAULT '2000-01-01 00:00:00'")
_MEMBERS = tuple(kind for kind in VALUES if kind.startswith(("ENUM", "SET")))
_NUMERIC = (*_INTEGERS, *_DECIMALS, *_REALS)
# The types that a column of a type gets, by the first letters of the type before.
TARGETS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT", "DECIMAL", "FLOAT", "DOUBLE"),
        (*_NUMERIC, *_STRINGS, "VARBINARY(20)", "BINARY(5)", "BIT(8)", "ENUM('a','b','c')", "YEAR", "DATETIME"),
    ),
    **dict.fromkeys(
        ("VARCHAR", "CHAR", "TEXT", "TINYTEXT"),
        (
            *("INT", "TINYINT UNSIGNED", "DECIMAL(9,2)", "DOUBLE", "DATE", "DATETIME(3)", "JSON", "SET('a','b','c')"),
            *(
                *_STRINGS,
                "VARBINARY(20)",
                "BINARY(5)",
                "BLOB",
                "ENUM('a','b','c')",
                "ENUM('12','a b','é') CHARSET latin1",
            ),
        ),
    ),
    **dict.fromkeys(("VARBINARY", "BINARY", "BLOB"), (*_BINARIES, "VARCHAR(20)", "TEXT", "VARCHAR(3)", "INT")),
    **dict.fromkeys(("DATE", "TIME", "YEAR"), (*_TIMES, "VARCHAR(20)", "CHAR(5)", "BIGINT", "DECIMAL(9,2)")),
    **dict.fromkeys(("ENUM", "SET"), (*_MEMBERS, "VARCHAR(20)", "VARCHAR(3)", "TEXT", "INT", "VARBINARY(20)")),
    "BIT": ("BIT(1)", "BIT(8)", "BIT(16)", "BIT(64)", "BIT(8) NOT NULL", "INT", "BIGINT UNSIGNED", "VARBINARY(20)"),
    "JSON": ("JSON", "JSON NOT NULL", "VARCHAR(20)", "TEXT", "INT", "DOUBLE"),
}


def targets(kind: str) -> tuple[str, ...]:
    """Return the types that a column of a type gets."""
    return max((start, found) for start, found in TARGETS.items() if kind.startswith(start))[1]


def definition(kind: str) -> str:
    """Return a CREATE TABLE statement with a column `c` of a type."""
    return f"CREATE TABLE t (k INT PRIMARY KEY, c {kind}) ENGINE=MyISAM"


def altered_values(server: Connection, types: Iterable[str] = VALUES) -> dict[str, Any]:
    """
    Return what a server makes of the values.

    Returns:
        `version`; and `pairs`, by type before and type afterwards: for each value its bytes before (hexadecimal; None
        is NULL), those after an ALTER without strict mode, and those after one in strict mode, or `REFUSED`.
    """
    server.run("SET SESSION sql_log_bin=1, time_zone='+00:00', timestamp=1577934245")
    server.run("DROP DATABASE IF EXISTS ndb_alter")
    server.run("CREATE DATABASE ndb_alter CHARACTER SET utf8mb4")
    server.run("USE ndb_alter")
    pairs = {before: {after: _pair(server, before, after) for after in targets(before)} for before in types}
    version = (server.run("SELECT VERSION()")[0][0] or b"").decode()
    return {"version": version, "pairs": pairs}


def _pair(server: Connection, before: str, after: str) -> list[list[str | None]] | str:
    """Return the values of one pair of types; `REFUSED` if no ALTER is taken even without strict mode."""
    given = (*VALUES[before], *(() if "NOT NULL" in before else ("NULL",)))
    try:
        loose = _converted(server, before, after, dict(enumerate(given)), "")
    except ServerError:
        return REFUSED
    strict = dict(_one_by_one(server, before, after, {key: given[key] for key in loose}))
    return [[*loose[key], strict[key]] for key in loose]


def _one_by_one(server: Connection, before: str, after: str, given: dict[int, str]) -> Iterator[tuple[int, str | None]]:
    """Yield the bytes afterwards of each value in strict mode, or `REFUSED`: of a table of those that are refused."""
    try:
        found = _converted(server, before, after, given, STRICT)
    except ServerError:
        if len(given) == 1:
            yield from dict.fromkeys(given, REFUSED).items()
            return
        keys = [*given]
        for half in (keys[: len(keys) // 2], keys[len(keys) // 2 :]):
            yield from _one_by_one(server, before, after, {key: given[key] for key in half})
    else:
        yield from ((key, value) for key, (_, value) in found.items())


def _converted(
    server: Connection, before: str, after: str, given: dict[int, str], mode: str
) -> dict[int, tuple[str | None, str | None]]:
    """Return the bytes before and after, by number of the value; values that the type does not take are left out."""
    server.run("SET SESSION sql_mode=''")
    server.run("DROP TABLE IF EXISTS t")
    server.run(definition(before))
    start = _position(server)
    taken = dict[int, str]()
    for key, value in given.items():
        try:
            server.run(f"INSERT INTO t VALUES ({key}, {value})")
        except ServerError:
            continue
        taken[key] = value
    server.run(f"SET SESSION sql_mode='{mode}'")
    server.run(f"ALTER TABLE t MODIFY c {after}, ALGORITHM=COPY")
    server.run("DELETE FROM t")
    images = list(_images(start))
    half = len(images) // 2
    written, left = dict(images[:half]), dict(images[half:])
    return {key: (written[key], left[key]) for key in taken}


def _position(server: Connection) -> tuple[Path, int]:
    name, position = server.run("SHOW BINARY LOG STATUS")[0][:2]
    folder = Path((server.run("SELECT @@log_bin_basename")[0][0] or b"").decode()).parent
    return folder / (name or b"").decode(), int(position or b"0")


def _images(start: tuple[Path, int]) -> Iterator[tuple[int, str | None]]:
    """Yield key and bytes of the column of each row that was logged from a position on."""
    file, position = start
    table_map: TableMap | None = None
    for event in read_events(file, start=position):
        if event.type is EventType.TABLE_MAP_EVENT:
            table_map = decode_table_map(event.body)
        elif event.type in ROWS_EVENTS:
            assert table_map is not None
            rows = decode_rows_event(event.type, event.body)
            for old, new in rows.rows(layout_of(table_map)):
                image = new if new is not None else old
                assert image is not None
                payload = image.payloads[1]
                yield int.from_bytes(image.payloads[0] or b"", "little"), None if payload is None else payload.hex()
