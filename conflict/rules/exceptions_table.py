"""
Finds the exceptions table of a table, and makes its rows.

A malformed definition is a warning, never an error: conflicts are detected, but no exceptions rows are written.
Source: MySQL manual, "Conflict Resolution Exceptions Table"; values as `ExceptionsTableWriter` of the
server writes them.

Checks the definition of an exceptions table, and finds the role of each of its columns.

Source: MySQL manual, "Conflict Resolution Exceptions Table"; the checks, their order and their
messages are those of `ExceptionsTableWriter` of the server, as recorded.

Choices, where nothing is recorded:
    - For one of the first columns without its prefix, the server gives no reason and the number of the next column. The
      reason is added here.
    - NDB$OP_TYPE and NDB$CFT_CAUSE can be a CHAR, into whose first byte the server writes the number. The content of
      further bytes is undefined; here they are empty.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import attrs

from conflict.rules.decision import Cause
from ndb_formats.events.row_image import RowImage
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.update_format import is_of_other_engine
from ndb_formats.schema.declared_type import CHAR, ndb_length, ndb_type
from ndb_formats.schema.default_values import default_value, implied_value
from ndb_formats.schema.tables import Column, Schema, Table
from ndb_formats.types.values import ABSENT, MaybeValue, Value

_FIXED = 4
_UNSIGNED, _BIG_UNSIGNED = 8, 10
_FIXED_TYPES = [_UNSIGNED, _UNSIGNED, _BIG_UNSIGNED, _UNSIGNED]
_PREFIX = "NDB$"


class RoleKind(Enum):
    """The role of a column of an exceptions table."""

    FIXED = "one of the first four"
    OPERATION = "NDB$OP_TYPE"
    CAUSE = "NDB$CFT_CAUSE"
    TRANSACTION = "NDB$ORIG_TRANSID"
    KEY = "a column of the primary key"
    DATA = "another column of the main table"
    UNUSED = "left at its default"


@attrs.frozen
class ColumnRole:
    """
    The role of one column.

    Attributes:
        kind: Kind of role.
        source: Position of the column of the main table whose value it holds; -1 if none.
        version: ``OLD`` or ``NEW`` if it holds the value before or after a change; else empty.
    """

    kind: RoleKind
    source: int = -1
    version: str = ""


_EXTENSIONS = {
    RoleKind.OPERATION: (CHAR, _UNSIGNED),
    RoleKind.CAUSE: (CHAR, _UNSIGNED),
    RoleKind.TRANSACTION: (_BIG_UNSIGNED,),
}
_UNUSED = ColumnRole(RoleKind.UNUSED)


def _check_definition(definition: Table, table: Table) -> tuple[tuple[ColumnRole, ...] | None, str | None]:
    """
    Return the role of each column of an exceptions table, and the server's warning.

    Args:
        definition: The exceptions table.
        table: The table whose conflicts it holds.

    Returns:
        The roles, or None if the definition is wrong; and the warning, or None. The server does not use a wrong
        definition; it uses a suspicious one.
    """
    name, columns = definition.name, definition.columns
    first = columns[:_FIXED]
    if [ndb_type(column) for column in first] != _FIXED_TYPES or {column.name for column in first} != set(
        definition.primary_key
    ):
        return None, f"exceptions table {name} has wrong definition (initial {_FIXED} columns)"
    keys = _key_ordinals(table)
    extended = not _keys_follow(definition, table, keys)
    roles: list[ColumnRole] = []
    suspicious = None
    # From the last column to the first: the server reports the fault with the highest column number.
    for ordinal in range(len(columns) - 1, -1, -1):
        column = columns[ordinal]
        prefixed = column.name.upper().startswith(_PREFIX)
        extended = extended or prefixed
        if ordinal < _FIXED:
            if extended and not prefixed:
                fault = f"mandatory column {column.name} doesn't have the '{_PREFIX}' prefix"
                return None, f"exceptions table {name} has wrong definition (column {ordinal + 1}): {fault}"
            roles.append(ColumnRole(RoleKind.FIXED))
            continue
        role = _role(column, definition, table)
        if isinstance(role, str):
            return None, f"exceptions table {name} has wrong definition (column {ordinal}): {role}"
        roles.append(role)
        if role.kind is RoleKind.KEY and ordinal != _FIXED + keys.index(role.source):
            extended = True
        elif role is _UNUSED:
            fault = f"Column {column.name} in extension table {name} not found in {table.name}"
            suspicious = f"exceptions table {name} has suspicious definition ((column {ordinal}): {fault}"
    roles.reverse()
    if not extended:
        # The basic form fills in keys alone. Other columns are left at their defaults without a warning.
        return tuple(_UNUSED if role.kind is RoleKind.DATA else role for role in roles), None
    return tuple(roles), suspicious


def _key_ordinals(table: Table) -> list[int]:
    """Return the positions of the primary key columns in table order, which is NDB's order."""
    return sorted(table.key_ordinals)


def _keys_follow(definition: Table, table: Table, keys: list[int]) -> bool:
    """Whether the fifth and further columns have the types of the primary key; names are checked later."""

    def stored(column: Column) -> tuple[int, int, bool]:
        return ndb_type(column), ndb_length(column), column.nullable

    following = definition.columns[_FIXED : _FIXED + len(keys)]
    return [stored(column) for column in following] == [stored(table.columns[ordinal]) for ordinal in keys]


def _role(column: Column, definition: Table, table: Table) -> ColumnRole | str:
    """Return the role of a column after the first four, or the fault in its definition."""
    name, number = column.name, ndb_type(column)
    for kind, types in _EXTENSIONS.items():
        if name.upper() == kind.value:
            wrong = f"Table {definition.name} has incorrect type {number} for {kind.value}"
            return ColumnRole(kind) if number in types else wrong
    optional = column.nullable or column.default is not ABSENT
    ordinal, version = _referenced(name, table)
    before = table.columns if ordinal is None else table.columns[: ordinal + 1]
    # The server recognizes the reference only if a key column precedes the column in the main table.
    if version and not optional and any(each.name in table.primary_key for each in before):
        reference = f"Old or new column reference {name} in table {definition.name}"
        return f"{reference} is not nullable and doesn't have a default value"
    if ordinal is None:
        wrong = f"Extra column {name} in table {definition.name} is not nullable and doesn't have a default value"
        return _UNUSED if optional else wrong
    source = table.columns[ordinal]
    if number != ndb_type(source):
        match = f"Column {name} has matching name to column {source.name} for table {table.name}"
        return f"{match}, but wrong type, {number} versus {ndb_type(source)}"
    if source.name not in table.primary_key:
        wrong = f"Data column {name} in table {definition.name} is not nullable and doesn't have a default value"
        return ColumnRole(RoleKind.DATA, ordinal, version) if optional else wrong
    if version:
        updated = "Old or new values of primary key columns cannot be referenced since primary keys cannot be updated"
        return f"{updated}, column {name} in table {definition.name}"
    if column.nullable != source.nullable:
        return f"Pk column {name} not declared not null in both tables"
    return ColumnRole(RoleKind.KEY, ordinal)


def _referenced(name: str, table: Table) -> tuple[int | None, str]:
    """Return the position of the column that a name refers to, ignoring case, and ``OLD``, ``NEW`` or an empty text."""
    version = next((each for each in ("OLD", "NEW") if name.upper().endswith(f"${each}") and len(name) > 4), "")
    wanted = (name[:-4] if version else name).lower()
    names = [column.name.lower() for column in table.columns]
    return (names.index(wanted) if wanted in names else None), version


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


# A fault of the server: of a BIT(33), 1 became 16777216 (recorded on 9.7.2).
BITS_IN_EXCEPTIONS = "MySQL NDB Cluster 9.7.2 writes other bits than the row had"


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

    @property
    def bits(self) -> tuple[str, ...]:
        """Names of its columns that hold a BIT of the main table: MySQL NDB Cluster writes other bits there."""
        pairs = zip(self.table.columns, self.roles, strict=True)
        return tuple(column.name for column, role in pairs if role.kind is RoleKind.DATA and column.type == "bit")

    def row(self, record: ConflictRecord) -> tuple[Value, ...]:
        """Return the row for one rejected operation."""
        return tuple(fill(record) for fill in self.fills)


def find_exceptions_table(schema: Schema, table: Table) -> tuple[ExceptionsTable | None, str | None]:
    """
    Return the exceptions table of `table` and a warning on its definition.

    The server looks among the tables of NDB: it does not see one of another storage engine (recorded).

    Returns:
        The table, or None if there is none or its definition is malformed; and the server's warning, or None: `wrong
        definition` if the table is not used, `suspicious definition` if it is.
    """
    for suffix in ("$EX", "$ex"):
        definition = schema.find(table.database, table.name + suffix)
        if definition is not None and not is_of_other_engine(definition):
            roles, warning = _check_definition(definition, table)
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
