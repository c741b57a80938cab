"""
The exceptions table of a table: is its definition usable, and what a row of it holds.

A malformed definition is a warning, never an error: conflicts are still found, only not written down.
Source: MySQL manual, "Conflict Resolution Exceptions Table"; the checks and their order as in `ndb_conflict_trans`/
`ExceptionsTableWriter` of the server.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from conflict.decision import Cause
from ndb_formats.default_values import default_value, zero_value
from ndb_formats.events.rows_event import Operation
from ndb_formats.row_image import RowImage
from ndb_formats.schema import Column, Schema, Table
from ndb_formats.values import ABSENT, MaybeValue, Value

__all__ = ["UNKNOWN_TRANSACTION_ID", "ConflictRecord", "ExceptionsTable", "find_exceptions_table"]

UNKNOWN_TRANSACTION_ID = 2**64 - 1
_FIXED_COLUMNS = (("int", True), ("int", True), ("bigint", True), ("int", True))
_PREFIX = "NDB$"
_OP_TYPE, _CFT_CAUSE, _ORIG_TRANSID = "NDB$OP_TYPE", "NDB$CFT_CAUSE", "NDB$ORIG_TRANSID"
_READ_ROW = 5


@attrs.frozen
class ConflictRecord:
    """
    One rejected operation, with all that an exceptions table can say of it.

    Attributes:
        server_id: Of the applier's server.
        source_server_id: Of the server whose binlog was applied.
        source_epoch: Epoch in that binlog.
        count: Number of the record, from 1 per applier and table.
        operation: What was rejected.
        cause: Why.
        transaction_id: The source's transaction, or `UNKNOWN_TRANSACTION_ID`.
        before: Before image, if the operation has one.
        after: After image, if the operation has one.
        read: Whether it is a read under an exclusive lock, which is logged as an update.
    """

    server_id: int
    source_server_id: int
    source_epoch: int
    count: int
    operation: Operation
    cause: Cause
    transaction_id: int
    before: RowImage | None
    after: RowImage | None
    read: bool = False

    @property
    def operation_type(self) -> int:
        """Its number in ``NDB$OP_TYPE``."""
        return _READ_ROW if self.read else int(self.operation)


_Fill = Callable[[ConflictRecord], Value]


@attrs.frozen
class ExceptionsTable:
    """
    A usable exceptions table.

    Attributes:
        table: Its definition.
        fills: Per column, how its value comes out of a record.
        replicated: Whether the server logs it: only one named in lower case (``t$ex``) is.
    """

    table: Table
    fills: tuple[_Fill, ...] = attrs.field(repr=False)
    replicated: bool = False

    def row(self, record: ConflictRecord) -> tuple[Value, ...]:
        """Return the row for one rejected operation."""
        return tuple(fill(record) for fill in self.fills)


def find_exceptions_table(schema: Schema, table: Table) -> tuple[ExceptionsTable | None, str | None]:
    """
    Return the exceptions table of `table` and a warning on its definition.

    Returns:
        The table, or None if there is none or its definition is malformed; and the server's warning
        (`wrong definition` where it is unusable, `suspicious definition` where it is used all the same).
    """
    for suffix in ("$EX", "$ex"):
        definition = schema.find(table.database, table.name + suffix)
        if definition is not None:
            return _check(definition, table, replicated=suffix == "$ex")
    return None, None


def _check(definition: Table, table: Table, *, replicated: bool) -> tuple[ExceptionsTable | None, str | None]:
    name, columns = definition.name, definition.columns
    fixed = tuple((column.type, column.unsigned) for column in columns[:4])
    key = {column.name for column in columns[:4]}
    if fixed != _FIXED_COLUMNS or set(definition.primary_key) != key:
        return None, f"exceptions table {name} has wrong definition (initial 4 columns)"
    fills: dict[int, _Fill] = dict(enumerate(_FIXED_FILLS))
    seen: set[str] = set()
    suspicious = None
    extended = any(column.name.upper().startswith(_PREFIX) for column in columns)
    # The server looks at the last column first and names the first fault that it meets.
    for place in range(len(columns) - 1, -1, -1):
        fill, fault = _column_fill(columns[place], place, table, seen, extended)
        if fault is not None and fill is None:
            return None, f"exceptions table {name} has wrong definition (column {place}): {fault}"
        suspicious = suspicious if fault is None else f"exceptions table {name} has suspicious definition: {fault}"
        if fill is not None:
            fills.setdefault(place, fill)
    ordered = tuple(fills[place] for place in range(len(columns)))
    return ExceptionsTable(definition, ordered, replicated), suspicious


def _column_fill(
    column: Column, place: int, table: Table, seen: set[str], extended: bool
) -> tuple[_Fill | None, str | None]:
    """Return how a column is filled and what is odd about it; no fill means that the definition is wrong."""
    if place < 4:
        if extended and not column.name.upper().startswith(_PREFIX):
            return None, f"mandatory column {column.name} lacks the '{_PREFIX}' prefix"
        return _FIXED_FILLS[place], None
    if column.name.upper() in (_OP_TYPE, _CFT_CAUSE, _ORIG_TRANSID):
        return _extension_fill(column)
    optional = column.nullable or column.default is not ABSENT
    source, version = _referenced(column.name, table)
    if source is None:
        if not optional:
            return None, f"Extra column {column.name} is not nullable and doesn't have a default value"
        return _constant(default_value(column)), f"Column {column.name} not found in {table.name}"
    if version != "" and not optional:
        return None, f"Old or new column reference {column.name} is not nullable and has no default value"
    if _storage(column) != _storage(source):
        return None, f"Column {column.name} has the name of a column of {table.name}, but another type"
    if source.name in table.primary_key:
        return _key_column_fill(column, source, version, table, seen)
    if not optional:
        return None, f"Data column {column.name} is not nullable and doesn't have a default value"
    return _data_fill(table.ordinal(source.name), version, source, column), None


def _key_column_fill(
    column: Column, source: Column, version: str, table: Table, seen: set[str]
) -> tuple[_Fill | None, str | None]:
    if version != "":
        return None, f"Old or new values of primary key columns cannot be referenced, column {column.name}"
    if source.name in seen:
        return None, f"Multiple references to the same key column {column.name}"
    seen.add(source.name)
    if column.nullable != source.nullable:
        return None, f"Pk column {column.name} not declared not null in both tables"
    return _key_fill(table.ordinal(source.name)), None


def _referenced(name: str, table: Table) -> tuple[Column | None, str]:
    """Return the column of the main table that a name refers to, and ``OLD``, ``NEW`` or nothing."""
    by_name = {column.name.lower(): column for column in table.columns}
    for version in ("OLD", "NEW"):
        if name.upper().endswith("$" + version) and name[:-4].lower() in by_name:
            return by_name[name[:-4].lower()], version
    return by_name.get(name.lower()), ""


def _storage(column: Column) -> tuple[object, ...]:
    """What NDB compares: the storage type, in which lengths do not count."""
    return column.type, column.unsigned, column.type.startswith("var") and (column.length or 0) > 255


def _extension_fill(column: Column) -> tuple[_Fill | None, str | None]:
    name = column.name.upper()
    if name == _ORIG_TRANSID:
        if (column.type, column.unsigned) != ("bigint", True):
            return None, f"incorrect type {column.sql_type} for {name}"
        return _transaction_fill(column.nullable), None
    if column.type != "enum" and (column.type, column.unsigned) != ("int", True):
        return None, f"incorrect type {column.sql_type} for {name}"
    number: Callable[[ConflictRecord], int] = (
        (lambda record: record.operation_type) if name == _OP_TYPE else (lambda record: int(record.cause))
    )
    if column.type == "int":
        return number, None
    members = ("", *column.members)
    return (lambda record: dict(enumerate(members)).get(number(record), "")), None


def _transaction_fill(nullable: bool) -> _Fill:
    def fill(record: ConflictRecord) -> Value:
        unknown = record.transaction_id == UNKNOWN_TRANSACTION_ID
        return None if unknown and nullable else record.transaction_id

    return fill


def _constant(value: Value) -> _Fill:
    return lambda record: value


def _image_value(image: RowImage | None, ordinal: int) -> MaybeValue:
    return ABSENT if image is None else image.value(ordinal)


def _key_fill(ordinal: int) -> _Fill:
    """A key column: from the before image where there is one, which every format logs with the key."""

    def fill(record: ConflictRecord) -> Value:
        for image in (record.before, record.after):
            value = _image_value(image, ordinal)
            if value is not ABSENT:
                return value
        return None

    return fill


def _data_fill(ordinal: int, version: str, source: Column, column: Column) -> _Fill:
    """
    A data column: ``col`` is the after value (of deletes the before value), ``col$OLD`` and ``col$NEW`` as named.

    What the operation did not write is the column's default. What it wrote but the before image does
    not carry is NULL, or the type's zero if the main table's column is NOT NULL.
    """

    def fill(record: ConflictRecord) -> Value:
        deleted = record.operation is Operation.DELETE_ROW
        wanted = version or ("OLD" if deleted else "NEW")
        if wanted == "NEW":
            value = _image_value(record.after, ordinal)
            return default_value(column) if value is ABSENT else value
        if record.before is None:
            return None
        value = record.before.value(ordinal)
        if value is not ABSENT:
            return value
        written = deleted or _image_value(record.after, ordinal) is not ABSENT
        return (zero_value(source) if written else default_value(column)) if not source.nullable else None

    return fill


_FIXED_FILLS: tuple[_Fill, ...] = (
    lambda record: record.server_id,
    lambda record: record.source_server_id,
    lambda record: record.source_epoch,
    lambda record: record.count,
)
