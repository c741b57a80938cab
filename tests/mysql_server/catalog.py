"""
Tables as a server's information_schema has them, and where definitions that are followed differ from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any

import attrs

from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.values import ABSENT
from tests.mysql_server.connection import Connection

__all__ = ["Shape", "disagreements", "shapes_of"]

Fact = str | None


@attrs.frozen
class Shape:
    """
    A table as information_schema has it.

    Attributes:
        columns: Per column: name, type, whether it may be NULL, character set, collation, default, extra, expression.
        keys: Per column of a unique key: the key's name, the column (None for an expression), the length of its prefix.
        engine: Storage engine.
        mariadb: Whether the server is MariaDB, which spells some of these in another way.
    """

    columns: tuple[tuple[Fact, ...], ...]
    keys: tuple[tuple[Fact, ...], ...]
    engine: Fact
    mariadb: bool = False

    @classmethod
    def of_json(cls, facts: Sequence[Any]) -> Shape:
        """Return a shape from what `attrs.astuple` made of it, and JSON of that."""
        columns, keys, engine, mariadb = facts
        return cls(tuple(map(tuple, columns)), tuple(map(tuple, keys)), engine, mariadb)


_COLUMNS = (
    "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_DEFAULT,"
    " EXTRA, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = '{}'"
    " ORDER BY TABLE_NAME, ORDINAL_POSITION"
)
_KEYS = (
    "SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS"
    " WHERE TABLE_SCHEMA = '{}' AND NON_UNIQUE = 0 ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
)
_TABLES = "SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{}' AND TABLE_TYPE <> 'VIEW'"


def shapes_of(server: Connection, database: str, *, mariadb: bool) -> dict[str, Shape]:
    """Return the tables of a database, by name."""
    columns, keys, tables = (
        [tuple(None if value is None else value.decode("utf-8", "replace") for value in row) for row in answer]
        for answer in (server.run(query.format(database)) for query in (_COLUMNS, _KEYS, _TABLES))
    )
    return {
        str(name): Shape(
            tuple(row[1:] for row in columns if row[0] == name),
            tuple(row[1:] for row in keys if row[0] == name),
            engine,
            mariadb,
        )
        for name, engine in tables
    }


def disagreements(table: Table | None, shape: Shape) -> Iterator[tuple[str, str, str]]:
    """Yield what differs: a kind, what the definition says, what the server says."""
    if table is None:
        yield "no table", "", ", ".join(str(column[0]) for column in shape.columns)
        return
    columns = [column for column in table.columns if not (shape.mariadb and _of_versions(column, shape))]
    names = [column.name for column in columns], [column[0] for column in shape.columns]
    if names[0] != names[1]:
        yield "columns", str(names[0]), str(names[1])
        return
    for column, facts in zip(columns, shape.columns, strict=True):
        yield from _of_column(column, facts, mariadb=shape.mariadb)
    hidden = {column.name.lower() for column in table.columns} - {column.name.lower() for column in columns}
    mine = sorted((name, tuple(part for part in key if part[0] not in hidden)) for name, key in _keys(table))
    theirs = sorted(_keys_of(shape))
    if mine != theirs:
        yield "keys", str(mine), str(theirs)
    if table.engine not in (None, _NO_ENGINE) and shape.engine is not None and table.engine != shape.engine.upper():
        yield "engine", table.engine, shape.engine


_NO_ENGINE = "NOSUCH"  # for one that it does not have, a server takes its default one, which no log tells


def _of_versions(column: Column, shape: Shape) -> bool:
    """Whether a column is one of those of system versioning, which information_schema does not list."""
    return column.name in ("row_start", "row_end") and column.name not in {facts[0] for facts in shape.columns}


def _of_column(column: Column, facts: Sequence[Fact], *, mariadb: bool) -> Iterator[tuple[str, str, str]]:
    _, sql_type, nullable, charset, collation, default, extra, expression = facts
    extra = (extra or "").lower()
    mine, theirs = _type(column), _type_of(sql_type or "")
    if mine != theirs and theirs[0] not in _STORED_AS_BYTES:
        yield "type", str(mine), f"{theirs} ({sql_type})"
    pairs = [
        ("nullable", column.nullable, nullable == "YES"),
        ("charset", column.charset or "binary", charset or "binary"),
        ("collation", column.collation or "binary", collation or "binary"),
        ("auto_increment", column.auto_increment, "auto_increment" in extra),
        ("on update", column.on_update, "on update" in extra),
        ("invisible", column.invisible, "invisible" in extra),
        ("generated", column.generated, _generated(extra)),
    ]
    yield from ((kind, str(one), str(two)) for kind, one, two in pairs if one != two)
    if column.generated is None and not column.auto_increment and not expression:
        one = "computed" if column.computed_default else _plain(column, column.default)
        two = _default_of_mariadb(default) if mariadb else _default_of(default, extra, sql_type or "")
        if column.type == "char" and two is not None:
            two = (
                two if two is _AS_WRITTEN else str(two).rstrip()
            )  # the asking session pads it under PAD_CHAR_TO_FULL_LENGTH
            one = one.rstrip() if isinstance(one, str) else one
        folded = mariadb and one == "computed" and two is not None  # it keeps what an expression of constants gives
        if not folded and not _same(one, two) and not _same_in_type(column, one, two):
            yield "default", f"{column.sql_type} {one!r}", f"{two!r} ({default!r})"


def _generated(extra: str) -> str | None:
    return next((kind for kind in ("virtual", "stored") if f"{kind} generated" in extra), None)


# Types --------------------------------------------------------------------------------------------------------------

_KINDS = frozenset(
    {
        "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geomcollection",
        "geometrycollection",
    }
)  # fmt: skip
_STORED_AS_BYTES = frozenset({"inet4", "inet6", "uuid"})  # of MariaDB: in the log they are BINARY
_SIZELESS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})


def _type(column: Column) -> tuple[Any, ...]:
    name = "geometry" if column.type == "geometry" else column.type
    size = () if column.type in _SIZELESS else tuple(each for each in (column.length, column.scale) if each is not None)
    return name, tuple(column.members) or tuple(each for each in size if each), column.unsigned


def _type_of(text: str) -> tuple[Any, ...]:
    """Return name, members or sizes, and whether it is unsigned, of a type as information_schema spells it."""
    found = re.match(r"(\w+)(?:\((.*)\))?(.*)$", text, re.DOTALL)
    assert found is not None, text
    name, arguments, rest = found.groups()
    name = "geometry" if name in _KINDS else name
    sizes: tuple[Any, ...] = ()
    if name in ("enum", "set"):
        sizes = tuple(_unescaped(each) for each in re.findall(r"'((?:[^'\\]|''|\\.)*)'", arguments, re.DOTALL))
    elif arguments and name not in _SIZELESS:
        sizes = tuple(int(each) for each in arguments.split(",") if int(each))
    return name, sizes, "unsigned" in rest


_ESCAPES = {"n": "\n", "r": "\r", "0": "\0"}


def _unescaped(text: str) -> str:
    return re.sub(
        r"''|\\(.)", lambda found: _ESCAPES.get(found[1], found[1]) if found[1] else "'", text, flags=re.DOTALL
    )


# Defaults -----------------------------------------------------------------------------------------------------------


def _plain(column: Column, default: Any) -> Any:
    if default is ABSENT:
        return None
    if column.type == "binary" and isinstance(default, str):
        default = default.encode()
    if isinstance(default, bytes):
        return default.ljust(column.length or 0, b"\0") if column.type == "binary" else default
    return None if default is None else str(default)


def _default_of(default: Fact, extra: str, sql_type: str) -> Any:
    if "default_generated" in extra:
        return "computed"
    if default is not None and re.match(r"(var)?binary", sql_type) and re.match(r"0x([0-9A-F]{2})*$", default):
        return bytes.fromhex(default[2:])
    return default


_AS_WRITTEN = object()  # MariaDB keeps some constants of BLOB and TEXT as the statement has them


def _default_of_mariadb(default: Fact) -> Any:
    if default is None or default == "NULL":
        return None
    if re.fullmatch(r"\w+'.*'|0x.*|[bx]'.*'", default, re.DOTALL):
        return _AS_WRITTEN
    if re.fullmatch(r"'.*'", default, re.DOTALL):
        return _unescaped(default[1:-1])
    return default if re.fullmatch(r"-?[0-9.]+(e[-+]?\d+)?|b'[01]*'", default) else "computed"


def _same(one: Any, two: Any) -> bool:
    if one == two or (two is _AS_WRITTEN and one not in (None, "computed")):
        return True
    if isinstance(one, bytes) or isinstance(two, bytes):
        mine, theirs = (each.encode() if isinstance(each, str) else each or b"" for each in (one, two))
        return bool(mine.rstrip(b"\0") == theirs.rstrip(b"\0")) and None not in (one, two)
    if one is None or two is None:
        return False
    return _number(one) is not None and _number(one) == _number(two)


def _same_in_type(column: Column, one: Any, two: Any) -> bool:
    """
    Whether constants are the same as values of a number or a time, which the server spells as the type does.

    A number of a date or time is compared by its digits.
    """
    if not isinstance(one, str) or not isinstance(two, str) or "computed" in (one, two):
        return False
    if column.type in _TIMES:
        mine, theirs = (re.sub(r"[^0-9]", "", each).rstrip("0") for each in (one, two))
        return mine.startswith(theirs) or theirs.startswith(mine)
    mine_, theirs_ = _number(one), _number(two)
    places = Decimal(1).scaleb(-(column.scale or 0))
    return None not in (mine_, theirs_) and mine_.quantize(places, ROUND_HALF_UP) == theirs_  # type: ignore[union-attr]


_TIMES = frozenset({"date", "time", "datetime", "timestamp", "year"})


def _number(text: str) -> Decimal | None:
    try:
        return Decimal(int(text[2:-1] or "0", 2)) if text.startswith("b'") else Decimal(text)
    except (InvalidOperation, ValueError):
        return None


# Keys ---------------------------------------------------------------------------------------------------------------

_Key = tuple[str, tuple[tuple[str, int], ...]]


def _keys(table: Table) -> Iterator[_Key]:
    """Yield name and columns of keys that identify rows; lengths of prefixes are known for the primary key only."""
    if table.primary_key and not table.serving:
        prefixes = table.primary_key_prefixes or (0,) * len(table.primary_key)
        parts = zip_longest(table.primary_key, prefixes, fillvalue="")  # as many of both, if all is well
        yield "PRIMARY", tuple((str(name).lower(), int(size or 0)) for name, size in parts)
    serving = [(table.serving, table.primary_key)] if table.serving and table.serving not in table.unique_names else []
    for name, columns in [*zip(table.unique_names, table.unique_keys, strict=True), *serving]:
        yield name.lower(), tuple((column.lower(), 0) for column in columns)


def _keys_of(shape: Shape) -> Iterator[_Key]:
    names = dict.fromkeys(str(name) for name, _, _ in shape.keys)
    for name in names:
        parts = [(column, size) for key, column, size in shape.keys if key == name]
        if name == "PRIMARY":
            yield name, tuple((str(column).lower(), int(size or 0)) for column, size in parts)
        elif all(column is not None for column, _ in parts):  # a key with an expression identifies no row
            yield name.lower(), tuple((str(column).lower(), 0) for column, _ in parts)
