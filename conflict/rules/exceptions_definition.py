"""
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

from enum import Enum

import attrs

from ndb_formats.schema.ndb_types import CHAR, ndb_length, ndb_type
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.values import ABSENT

__all__ = ["ColumnRole", "RoleKind", "check_definition"]

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


def check_definition(definition: Table, table: Table) -> tuple[tuple[ColumnRole, ...] | None, str | None]:
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
