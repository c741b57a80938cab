"""
Finds the exceptions table of a table, and makes its rows.

A malformed definition is a warning, never an error: conflicts are detected, but no exceptions rows are written.
Source: MySQL manual, "Conflict Resolution Exceptions Table"; values as `ExceptionsTableWriter` of the
server writes them.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from conflict.rules.decision import Cause
from conflict.rules.exceptions_definition import ColumnRole, RoleKind, check_definition
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.schema.default_values import default_value, implied_value
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.types.values import ABSENT, MaybeValue, Value

__all__ = [
    "READ_ROW",
    "UNKNOWN_TRANSACTION_ID",
    "ConflictRecord",
    "ExceptionsTable",
    "cause_name",
    "find_exceptions_table",
    "number_value",
]

UNKNOWN_TRANSACTION_ID = 2**64 - 1
READ_ROW = 5


@attrs.frozen
class ConflictRecord:
    """
    One rejected operation, with all that an exceptions table can hold of it.

    Attributes:
        server_id: Of the applier's server.
        source_server_id: Of the server whose binlog was applied.
        source_epoch: Epoch in that binlog.
        count: Number of the record, from 1 per applier and table.
        operation: Kind of the operation.
        cause: Why it was rejected.
        transaction_id: The source's transaction, or `UNKNOWN_TRANSACTION_ID`.
        before: Before image, if the operation has one.
        after: After image, if the operation has one.
        read: Whether it is a read under an exclusive lock, which is logged as an update and flagged.
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
        return READ_ROW if self.read else int(self.operation)


_Fill = Callable[[ConflictRecord], Value]


@attrs.frozen
class ExceptionsTable:
    """
    A usable exceptions table.

    Attributes:
        table: Its definition.
        source: The table whose conflicts it holds.
        roles: The role of each column.
        fills: Per column, the function from a record to its value.
        replicated: Whether the server logs it: only one named in lower case (``t$ex``) is.
    """

    table: Table
    source: Table
    roles: tuple[ColumnRole, ...]
    fills: tuple[_Fill, ...] = attrs.field(repr=False)
    replicated: bool = False

    def row(self, record: ConflictRecord) -> tuple[Value, ...]:
        """Return the row for one rejected operation."""
        return tuple(fill(record) for fill in self.fills)


def find_exceptions_table(schema: Schema, table: Table) -> tuple[ExceptionsTable | None, str | None]:
    """
    Return the exceptions table of `table` and a warning on its definition.

    Returns:
        The table, or None if there is none or its definition is malformed; and the server's warning, or None: `wrong
        definition` if the table is not used, `suspicious definition` if it is.
    """
    for suffix in ("$EX", "$ex"):
        definition = schema.find(table.database, table.name + suffix)
        if definition is not None:
            roles, warning = check_definition(definition, table)
            if roles is None:
                return None, warning
            fills = tuple(_fill_of(role, definition, position, table) for position, role in enumerate(roles))
            return ExceptionsTable(definition, table, roles, fills, replicated=suffix == "$ex"), warning
    return None, None


def _fill_of(role: ColumnRole, definition: Table, position: int, table: Table) -> _Fill:
    column = definition.columns[position]
    match role.kind:
        case RoleKind.FIXED:
            return _FIXED_FILLS[position]
        case RoleKind.OPERATION:
            return lambda record: number_value(column, record.operation_type)
        case RoleKind.CAUSE:
            return lambda record: number_value(column, int(record.cause))
        case RoleKind.TRANSACTION:
            return _transaction_fill(column.nullable)
        case RoleKind.KEY:
            return _key_fill(role.source)
        case RoleKind.DATA:
            return _data_fill(role.source, role.version, table.columns[role.source], column)
    return _constant(default_value(column))


def number_value(column: Column, number: int) -> Value:
    """Return a number as the value of a column: an ENUM's member of that number, or the empty error value if none."""
    if column.type == "enum":
        members = ("", *column.members)
        return members[number] if number < len(members) else ""
    if column.type == "set":
        return ",".join(member for bit, member in enumerate(column.members) if number >> bit & 1)
    # The server writes the number as the one byte of a CHAR.
    return number if column.type == "int" else chr(number)


def cause_name(exceptions: ExceptionsTable | None, cause: Cause) -> str:
    """Return a cause as an exceptions table's ``NDB$CFT_CAUSE`` names it; without that column, as the manual does."""
    if exceptions is not None:
        for column, role in zip(exceptions.table.columns, exceptions.roles, strict=True):
            if role.kind is RoleKind.CAUSE and column.type == "enum":
                return str(number_value(column, int(cause))) or cause.name
    return cause.name


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
    """Return the fill of a key column: its after value, or the before value where the after image omits the key."""

    def fill(record: ConflictRecord) -> Value:
        for image in (record.after, record.before):
            value = _image_value(image, ordinal)
            if value is not ABSENT:
                return value
        return None

    return fill


def _data_fill(ordinal: int, version: str, source: Column, column: Column) -> _Fill:
    """
    Return the fill of a data column.

    ``col$OLD`` is the before value, ``col$NEW`` the after value, and ``col`` the after value, or the before value of a
    delete. A column that the operation did not write has the default of the exceptions table's column. A written column
    that the before image does not carry has its default in the main table, else NULL, or its type's zero if it is NOT
    NULL there.
    """

    def fill(record: ConflictRecord) -> Value:
        deleted = record.operation is Operation.DELETE_ROW
        wanted = version or ("OLD" if deleted else "NEW")
        if wanted == "NEW":
            if record.after is None:
                return None
            value = _image_value(record.after, ordinal)
            return default_value(column) if value is ABSENT else value
        if record.before is None:
            return None
        value = record.before.value(ordinal)
        if value is not ABSENT:
            return value
        written = deleted or _image_value(record.after, ordinal) is not ABSENT
        return implied_value(source) if written else (None if source.nullable else default_value(column))

    return fill


_FIXED_FILLS: tuple[_Fill, ...] = (
    lambda record: record.server_id,
    lambda record: record.source_server_id,
    lambda record: record.source_epoch,
    lambda record: record.count,
)
