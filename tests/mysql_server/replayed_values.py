"""
Which values a real server's applier stores, by border values of each type in every other type of its family.

Rows as in `replayed_conversions`; here they hold the least, the greatest, the longest and the awkward values of a
type, and the replica's are read back. Types of different families are in that module: no conversion exists.
"""

from __future__ import annotations

from decimal import Decimal

from tests.mysql_server.connection import Connection
from tests.mysql_server.replayed_conversions import SETTINGS, applied, logged

__all__ = ["FAMILIES", "STOPS", "replayed_values"]

STOPS = (0, 1030, 1062, 1105, 1416, 1610, 1677, 13146)  # the numbers of errors, by the digit that stands for them
_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "MEDIUMINT": 24, "INT": 32, "BIGINT": 64}
_FRACTIONS = ["", *(f"({digits})" for digits in range(1, 7))]
_BITS = (1, 7, 8, 9, 15, 16, 17, 33, 63, 64)
_SETS = (1, 8, 9, 16, 17, 24, 25, 32, 33, 64)
_NUMBERS = ("0", "1", "1.5", "-1.5", "0.1", "99999.99", "-99999.99", "12345678.12", "9.99999", "1e30", "-1e30", "1e-5")
_TEXTS = (
    "''",
    "'a'",
    "'a  '",
    "' a'",
    "REPEAT('b', 70000)",
    "'é'",
    "REPEAT('é', 70000)",
    "'a\\0\\0'",
    "'\\0'",
    "REPEAT('😀', 70000)",
    "REPEAT('€', 70000)",
)


def _members(count: int) -> str:
    return ",".join(f"'{place}'" for place in range(1, count + 1))


# The types of each family, and the values that all of them are given; sql_mode='' brings them to the borders.
FAMILIES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "integer": (
        (*(f"{kind}{sign}" for kind in _INTEGERS for sign in ("", " UNSIGNED")), "INT NOT NULL"),
        (*("0", "1", "-1"), *(f"{sign}{1 << bits - 1}" for bits in _INTEGERS.values() for sign in ("", "-")),
         *(str((1 << bits) - 1) for bits in _INTEGERS.values())),
    ),
    "bit": (
        tuple(f"BIT({bits})" for bits in _BITS),
        ("0", "1", *(str(1 << bits - 1) for bits in _BITS), *(str((1 << bits) - 1) for bits in _BITS)),
    ),
    "number": (
        (*("FLOAT", "FLOAT UNSIGNED", "FLOAT(7,2)", "DOUBLE", "DOUBLE UNSIGNED", "DOUBLE(20,3)", "DECIMAL(10)"),
         *("DECIMAL(10) UNSIGNED", "DECIMAL(10,2)", "DECIMAL(10,2) UNSIGNED", "DECIMAL(12,2)", "DECIMAL(12,5)"),
         *("DECIMAL(5,4)", "DECIMAL(65,30)", "DECIMAL(65)")),
        _NUMBERS,
    ),
    "string": (
        (*("CHAR(5)", "CHAR(5) CHARSET latin1", "CHAR(10)", "CHAR(20) CHARSET latin1", "CHAR(63)", "CHAR(64)"),
         *("CHAR(255) CHARSET latin1", "BINARY(5)", "BINARY(20)", "BINARY(255)", "VARCHAR(5)", "VARCHAR(10)"),
         *("VARCHAR(10) NOT NULL", "VARCHAR(4) CHARSET utf8mb3", "VARCHAR(3)", "CHAR(4) CHARSET utf8mb3"),
         *("CHAR(3)", "VARCHAR(63)", "VARCHAR(64)", "VARCHAR(85) CHARSET utf8mb3"),
         *("VARCHAR(86) CHARSET utf8mb3", "VARCHAR(127) CHARSET ucs2", "VARCHAR(128) CHARSET ucs2"),
         *("VARCHAR(127) CHARSET gbk", "VARCHAR(128) CHARSET gbk", "VARCHAR(255) CHARSET latin1"),
         *("VARCHAR(256) CHARSET latin1", "VARBINARY(5)", "VARBINARY(255)", "VARBINARY(256)", "TINYTEXT", "TEXT"),
         *("TEXT CHARSET latin1", "MEDIUMTEXT", "LONGTEXT", "TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB")),
        _TEXTS,
    ),
    "member": (
        (*(f"ENUM({_members(count)})" for count in (2, 3, 255, 256, 300)),
         *(f"SET({_members(count)})" for count in _SETS)),
        ("1", "2", "3", "255", "256", "300", *(str((1 << bits) - 1) for bits in _SETS)),
    ),
    "time": (
        ("DATE", "YEAR", *(f"{kind}{digits}{null}"
         for kind, null in (("TIME", ""), ("DATETIME", ""), ("TIMESTAMP", " NULL"))
                   for digits in _FRACTIONS)),
        ("'2020-01-02 03:04:05.123456'", "'1970-01-02 00:00:01.5'", "'9999-12-31 23:59:59'", "'-838:59:59'",
         "'-00:00:00.000001'", "'838:59:59'", "'-01:00:00.5'", "2001", "0"),
    ),
    "vector": (("VECTOR", "VECTOR(1)", "VECTOR(2)"), ("TO_VECTOR('[1]')",)),
    "geometry": (
        (*("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"),
         "GEOMETRYCOLLECTION"),
        ("NULL",),
    ),
}  # fmt: skip


def replayed_values(server: Connection, family: str) -> dict[str, list[str]]:
    """
    Return what a server does with each pair of types of a family, given border values of the source's type.

    Returns:
        Rows for each type of the source, with one digit for each type of the replica. `goes_on`: as in
        `replayed_conversions`. `equal`: 1 if all values that it reads back are the source's, where it goes on with
        the last of `SETTINGS`. `stops`: the place in `STOPS` of the error without any setting.
    """
    types, values = FAMILIES[family]
    before = server.run("SELECT @@GLOBAL.replica_type_conversions")[0][0] or b""
    _make(server, types)
    goes_on, stops = ([[0] * len(types) for _ in types] for _ in range(2))
    equal = [[0] * len(types) for _ in types]
    try:
        written = logged(server, lambda place: _insert(server, place, types[place], values), len(types))
        stored = [_stored(server, "ndb_from", place, types[place]) for place in range(len(types))]
        for bit, setting in enumerate(SETTINGS):
            server.run(f"SET GLOBAL replica_type_conversions='{setting}'")
            for source, events in written.items():
                event = events[0][0], b"".join(rows for _, rows in events)  # long rows take several events
                for replica, kind in enumerate(types):
                    server.run(f"DELETE FROM ndb_into.t{replica:02}")
                    number = applied(server, *event, replica)
                    goes_on[source][replica] |= (not number) << bit
                    if not bit:
                        stops[source][replica] = STOPS.index(number)
                    if bit == len(SETTINGS) - 1 and not number:
                        equal[source][replica] = int(_stored(server, "ndb_into", replica, kind) == stored[source])
    finally:
        server.run(b"SET GLOBAL replica_type_conversions='%s'" % before)
    found = {"goes_on": goes_on, "equal": equal, "stops": stops}
    return {name: ["".join(f"{digit:x}" for digit in row) for row in rows] for name, rows in found.items()}


def _make(server: Connection, types: tuple[str, ...]) -> None:
    server.run("SET SESSION sql_mode='', sql_log_bin=1")
    for database in ("ndb_from", "ndb_into"):
        server.run(f"DROP DATABASE IF EXISTS {database}")
        server.run(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        for place, kind in enumerate(types):
            server.run(f"CREATE TABLE {database}.t{place:02} (k INT PRIMARY KEY, c {kind}) ENGINE=MyISAM")


def _insert(server: Connection, place: int, kind: str, values: tuple[str, ...]) -> None:
    given = values
    if kind.startswith("VECTOR(2)"):
        given = ("TO_VECTOR('[1,2]')",)
    elif kind in _SHAPES:
        shapes = [*_SHAPES.values()][1:3] if kind == "GEOMETRY" else [_SHAPES[kind]]
        given = tuple(f"ST_GeomFromText('{shape}')" for shape in shapes)
    elif "BLOB" in kind or "TEXT" in kind or "CHAR" in kind or "BINARY" in kind:
        given = tuple(value for value in values if "70000" not in value or kind.startswith(("LONG", "MEDIUM")))
        given += tuple(value.replace("70000", str(_longest(kind))) for value in values if "70000" in value)
    if "NOT NULL" not in kind:
        given = (*given, "NULL")
    rows = ", ".join(f"({key}, {value})" for key, value in enumerate(given))
    server.run(f"INSERT INTO ndb_from.t{place:02} VALUES {rows}")


_SHAPES = {
    "GEOMETRY": "POINT(1 2)", "POINT": "POINT(1 2)", "LINESTRING": "LINESTRING(0 0, 1 1)",
    "POLYGON": "POLYGON((0 0, 0 1, 1 1, 0 0))", "MULTIPOINT": "MULTIPOINT(0 0, 1 1)",
    "MULTILINESTRING": "MULTILINESTRING((0 0, 1 1))", "MULTIPOLYGON": "MULTIPOLYGON(((0 0, 0 1, 1 1, 0 0)))",
    "GEOMETRYCOLLECTION": "GEOMETRYCOLLECTION(POINT(1 2))",
}  # fmt: skip


def _longest(kind: str) -> int:
    """Return characters enough to fill a type."""
    return 300 if not kind.startswith(("TEXT", "BLOB", "MEDIUM", "LONG")) else 32767


def _stored(server: Connection, database: str, place: int, kind: str) -> list[object]:
    """Return the values of a table, so that equal ones are equal whatever the type: numbers by number."""
    name = kind.split("(", maxsplit=1)[0].split(maxsplit=1)[0]
    exact = name in (*_INTEGERS, "DECIMAL", "FLOAT", "DOUBLE", "TIME", "DATETIME", "TIMESTAMP")
    column = "SHA2(c, 256)"
    if name in ("FLOAT", "DOUBLE"):
        column = "c + 0e0"
    elif name in ("ENUM", "SET", "BIT", "TIME", "DATETIME", "TIMESTAMP"):
        column = "c + 0"
    elif name in (*_INTEGERS, "DECIMAL", "DATE", "YEAR"):
        column = "c"
    elif "CHAR" in name or "TEXT" in name:
        column = "SHA2(CONVERT(c USING utf8mb4), 256)"
    rows = [value for (value,) in server.run(f"SELECT {column} FROM {database}.t{place:02} ORDER BY k")]
    return [Decimal(value.decode()) if exact and value is not None else value for value in rows]
