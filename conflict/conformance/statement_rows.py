"""
The row changes that recorded statements make, where a recording has no binlog.

SQLite runs the statements, and triggers report each row before and after. It need not agree with MySQL in more than the
rows of these statements; what it cannot run is not judged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import attrs
import sqlglot
from sqlglot.errors import SqlglotError

from conflict.errors import NotBuiltError
from ndb_formats.schema.default_values import default_value
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.types.values import ABSENT, Value

__all__ = ["ChangedRow", "StatementRunner"]

_Row = dict[int, Value]


@attrs.frozen
class ChangedRow:
    """A row before and after a statement; None where it does not exist."""

    before: _Row | None
    after: _Row | None


class StatementRunner:
    """Runs statements on tables that are empty at first."""

    def __init__(self, schema: Schema) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None)
        self._found: list[ChangedRow] = []
        self._old: _Row | None = None
        for name, function in _FUNCTIONS.items():
            self._connection.create_function(name, -1, function, deterministic=True)
        for number, table in enumerate(schema.tables):
            self._create(table, number)

    def run(self, sql: str) -> list[ChangedRow]:
        """
        Return the rows that a statement of MySQL changes, in order; updates that change no value are among them.

        Raises:
            NotBuiltError: SQLite cannot run it.
        """
        self._found = []
        try:
            for statement in sqlglot.transpile(sql, read="mysql", write="sqlite"):
                self._connection.execute(statement)
        except (SqlglotError, sqlite3.Error) as error:
            message = f"the rows that a statement changes cannot be worked out: {error}: {sql[:200]}"
            raise NotBuiltError(message) from None
        return self._found

    def _create(self, table: Table, number: int) -> None:
        columns = ", ".join(_definition(column) for column in table.columns)
        key = f", PRIMARY KEY ({_names(table.primary_key)})" if table.primary_key else ""
        unique = "".join(f", UNIQUE ({_names(names)})" for names in table.unique_keys)
        self._connection.execute(f"CREATE TABLE {_name(table.name)} ({columns}{key}{unique})")
        for image in ("OLD", "NEW"):
            self._connection.create_function(
                f"report_{image}_{number}", -1, lambda *values, image=image: self._report(table, image, values)
            )
        for event, images in (("INSERT", ("NEW",)), ("UPDATE", ("OLD", "NEW")), ("DELETE", ("OLD",))):
            reports = "".join(
                f"SELECT report_{image}_{number}('{event}', "
                + ", ".join(f"{image}.{_name(column.name)}" for column in table.columns)
                + "); "
                for image in images
            )
            trigger = f"CREATE TRIGGER {event}_{number} AFTER {event} ON {_name(table.name)} BEGIN {reports}END"
            self._connection.execute(trigger)

    def _report(self, table: Table, image: str, values: tuple[Any, ...]) -> None:
        """Note a row that a trigger reports; of an update the old row comes first."""
        event, row = values[0], _row(table, values[1:])
        if event == "UPDATE" and image == "OLD":
            self._old = row
            return
        before = {"INSERT": None, "UPDATE": self._old, "DELETE": row}[event]
        self._found.append(ChangedRow(before, None if event == "DELETE" else row))


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(_name, names))


_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year", "bit"})
_AFFINITY = {**dict.fromkeys(_INTEGERS, "INTEGER"), "float": "REAL", "double": "REAL", "decimal": "TEXT"}


def _definition(column: Column) -> str:
    parts = [_name(column.name), _AFFINITY.get(column.type, "TEXT" if column.charset else "BLOB")]
    if (column.collation or "").endswith("_ci"):
        parts.append("COLLATE NOCASE")
    if not column.nullable:
        parts.append("NOT NULL")
    if column.default is not ABSENT and column.default is not None:
        default = default_value(column)
        text = f"X'{default.hex()}'" if isinstance(default, bytes) else "'" + str(default).replace("'", "''") + "'"
        parts.append(f"DEFAULT {text}")
    return " ".join(parts)


def _row(table: Table, values: tuple[Any, ...]) -> _Row:
    return {ordinal: _value(table.columns[ordinal], value) for ordinal, value in enumerate(values)}


def _value(column: Column, value: Any) -> Value:
    """Return a value of SQLite as one of the column."""
    if value is None:
        return None
    if column.type in _INTEGERS:
        return int(value)
    if column.type == "decimal":
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-(column.scale or 0)))
    if column.type in ("float", "double"):
        return float(value)
    if column.charset is not None or column.type in ("date", "time", "datetime", "timestamp"):
        return str(value)
    return value if isinstance(value, bytes) else str(value).encode()


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that gives NULL if an argument is NULL."""
    return lambda *values: None if None in values else function(*values)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "REPEAT": _of_values(lambda text, times: str(text) * max(int(times), 0)),
    "CONCAT": _of_values(lambda *texts: "".join(map(str, texts))),
    "LPAD": _of_values(lambda text, size, pad: str(text).rjust(int(size), str(pad))[: int(size)]),
    "MOD": _of_values(lambda number, divisor: number % divisor if divisor else None),
}
