"""
Is the definition of an exceptions table usable, and what is each of its columns for.

Source: MySQL manual, "Conflict Resolution Exceptions Table"; checks, their order and words as in
`ExceptionsTableWriter` of the server and as recorded.

Choices, where nothing is recorded:
    - A first column without its prefix is refused by the server with no reason given and the number of the column
      after it; the reason is added here.
    - NDB$OP_TYPE and NDB$CFT_CAUSE may be a CHAR as well, in whose first byte the server writes the number. What it
      leaves in further bytes cannot be told; here there is nothing.
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
    """What a column of an exceptions table is for."""

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
    What one column is for.

    Attributes:
        kind: What for.
        source: Position of the column of the main table that it shows.
        version: ``OLD`` or ``NEW`` for one that shows the value before or after a change.
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
    Return what each column of an exceptions table is for, and the server's warning.

    Args:
        definition: The exceptions table.
        table: The table whose conflicts it is to hold.

    Returns:
        The roles, or None if the definition is wrong; and a warning, if there is one: a wrong definition is not
        used, a suspicious one is.
    """
    name, columns = definition.name, definition.columns
    first = columns[:_FIXED]
    if [ndb_type(column) for column in first] != _FIXED_TYPES or {column.name for column in first} != set(
        definition.primary_key
    ):
        return None, f"exceptions table {name} has wrong definition (initial {_FIXED} columns)"
    keys = _key_places(table)
    extended = not _keys_follow(definition, table, keys)
    roles: list[ColumnRole] = []
    suspicious = None
    # From the last column to the first: the fault with the highest number is the one that is named.
    for place in range(len(columns) - 1, -1, -1):
        column = columns[place]
        prefixed = column.name.upper().startswith(_PREFIX)
        extended = extended or prefixed
        if place < _FIXED:
            if extended and not prefixed:
                fault = f"mandatory column {column.name} doesn't have the '{_PREFIX}' prefix"
                return None, f"exceptions table {name} has wrong definition (column {place + 1}): {fault}"
            roles.append(ColumnRole(RoleKind.FIXED))
            continue
        role = _role(column, definition, table)
        if isinstance(role, str):
            return None, f"exceptions table {name} has wrong definition (column {place}): {role}"
        roles.append(role)
        if role.kind is RoleKind.KEY and place != _FIXED + keys.index(role.source):
            extended = True
        elif role is _UNUSED:
            fault = f"Column {column.name} in extension table {name} not found in {table.name}"
            suspicious = f"exceptions table {name} has suspicious definition ((column {place}): {fault}"
    roles.reverse()
    if not extended:
        # Such a table holds keys alone, whatever other columns it has, and nobody is warned of those.
        return tuple(_UNUSED if role.kind is RoleKind.DATA else role for role in roles), None
    return tuple(roles), suspicious


def _key_places(table: Table) -> list[int]:
    """Return the positions of the primary key columns in the order of the table, which is that of NDB."""
    return sorted(table.key_ordinals)


def _keys_follow(definition: Table, table: Table, keys: list[int]) -> bool:
    """Whether the fifth and further columns could be the primary key; their names are looked at later."""

    def stored(column: Column) -> tuple[int, int, bool]:
        return ndb_type(column), ndb_length(column), column.nullable

    following = definition.columns[_FIXED : _FIXED + len(keys)]
    return [stored(column) for column in following] == [stored(table.columns[place]) for place in keys]


def _role(column: Column, definition: Table, table: Table) -> ColumnRole | str:
    """Return what a column after the first four is for, or what is wrong with it."""
    name, number = column.name, ndb_type(column)
    for kind, types in _EXTENSIONS.items():
        if name.upper() == kind.value:
            wrong = f"Table {definition.name} has incorrect type {number} for {kind.value}"
            return ColumnRole(kind) if number in types else wrong
    optional = column.nullable or column.default is not ABSENT
    place, version = _referenced(name, table)
    before = table.columns if place is None else table.columns[: place + 1]
    # The server takes a reference for one only if it passed a key column on the way to it.
    if version and not optional and any(each.name in table.primary_key for each in before):
        reference = f"Old or new column reference {name} in table {definition.name}"
        return f"{reference} is not nullable and doesn't have a default value"
    if place is None:
        wrong = f"Extra column {name} in table {definition.name} is not nullable and doesn't have a default value"
        return _UNUSED if optional else wrong
    source = table.columns[place]
    if number != ndb_type(source):
        match = f"Column {name} has matching name to column {source.name} for table {table.name}"
        return f"{match}, but wrong type, {number} versus {ndb_type(source)}"
    if source.name not in table.primary_key:
        wrong = f"Data column {name} in table {definition.name} is not nullable and doesn't have a default value"
        return ColumnRole(RoleKind.DATA, place, version) if optional else wrong
    if version:
        updated = "Old or new values of primary key columns cannot be referenced since primary keys cannot be updated"
        return f"{updated}, column {name} in table {definition.name}"
    if column.nullable != source.nullable:
        return f"Pk column {name} not declared not null in both tables"
    return ColumnRole(RoleKind.KEY, place)


def _referenced(name: str, table: Table) -> tuple[int | None, str]:
    """Return the position of the column that a name refers to, in any case, and ``OLD``, ``NEW`` or nothing."""
    version = next((each for each in ("OLD", "NEW") if name.upper().endswith(f"${each}") and len(name) > 4), "")
    wanted = (name[:-4] if version else name).lower()
    names = [column.name.lower() for column in table.columns]
    return (names.index(wanted) if wanted in names else None), version
