"""
How NDB logs the changes of a table: by ``binlog_type`` in `mysql.ndb_replication`, else by three server options.

`BINLOG_TYPES` is the table of what each type means; `ndb_columns` gives the columns of an event, and `may_log` and
`fitting_types` find the types from the columns of an event.

Choices, where there is no recording:
    - Types 5 and 10, which the server accepts without knowing them, set no flag. That means updated-only and
      update-as-write, whatever the server options are.
    - A key column with a ``_bin`` collation, an ENUM or a SET compares byte by byte.
    - Even without a primary key, no image carries a blob that an update does not write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from ndb_formats.constants import APPLY_STATUS
from ndb_formats.cursor import whole_number
from ndb_formats.errors import SettingError, did_you_mean
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns, ordered, stored_columns, updated_columns
from ndb_formats.schema.tables import Column, Table


@attrs.frozen
class UpdateFormat:
    """
    How the changes of one NDB table are logged.

    Attributes:
        logged: Whether they are logged at all.
        updated_only: The images of an update have the written columns and the key, not all columns.
        as_write: An update is logged as a write, which has no before image.
        minimal: The before image of an update has only the key; its after image leaves out the key, but for
            columns of which two different values can be equal (text whose collation is not ``_bin``).
    """

    logged: bool = True
    updated_only: bool = False
    as_write: bool = False
    minimal: bool = False


@attrs.frozen
class _BinlogType:
    """
    One value of ``binlog_type``.

    Attributes:
        number: The number in `mysql.ndb_replication`.
        names: Its names in the manual, the server's source and its release notes, without the prefix ``NBT_``.
        format: What it means; None for what the server options give.
    """

    number: int
    names: tuple[str, ...]
    format: UpdateFormat | None

    @property
    def name(self) -> str:
        """Its name in the manual; empty if it has none."""
        return self.names[0] if self.names else ""


_UNKNOWN = UpdateFormat(updated_only=True, as_write=True)  # no flag set

BINLOG_TYPES = (
    _BinlogType(0, ("DEFAULT",), None),
    _BinlogType(1, ("NO_LOGGING",), UpdateFormat(logged=False)),
    _BinlogType(2, ("UPDATED_ONLY",), UpdateFormat(updated_only=True, as_write=True)),
    _BinlogType(3, ("FULL",), UpdateFormat(as_write=True)),
    _BinlogType(4, ("USE_UPDATE",), UpdateFormat(updated_only=True)),
    _BinlogType(5, (), _UNKNOWN),
    _BinlogType(6, ("UPDATED_ONLY_USE_UPDATE",), UpdateFormat(updated_only=True)),
    _BinlogType(7, ("FULL_USE_UPDATE",), UpdateFormat()),
    _BinlogType(
        8, ("UPDATED_ONLY_USE_UPDATE_MINIMAL", "UPDATED_ONLY_MINIMAL"), UpdateFormat(updated_only=True, minimal=True)
    ),
    _BinlogType(9, ("FULL_USE_UPDATE_MINIMAL", "UPDATED_FULL_MINIMAL"), UpdateFormat(minimal=True)),
    _BinlogType(10, (), _UNKNOWN),
)
_BY_NUMBER = {row.number: row for row in BINLOG_TYPES}
_BY_NAME = {name: row for row in BINLOG_TYPES for name in row.names}


def parse_binlog_type(value: str | int | None) -> int:
    """
    Return the number of a binlog type.

    Args:
        value: A number, one of its names in any letter case, or NULL, which is type 0.

    Raises:
        SettingError: There is no such type; the message lists the types.
    """
    text = "0" if value is None else str(value).strip().upper().replace("-", "_")
    if text == "NULL":
        return 0
    number = whole_number(text)
    row = _BY_NAME.get(text.removeprefix("NBT_")) if number is None else _BY_NUMBER.get(number)
    if row is None:
        known = ", ".join(f"{row.number} {' or '.join(row.names)}" for row in BINLOG_TYPES if row.names)
        meant = did_you_mean(text.removeprefix("NBT_"), _BY_NAME)
        message = f"binlog_type {value!r} is not known{meant}; there are {known}"
        raise SettingError(message)
    return row.number


@attrs.frozen
class ServerOptions:
    """The server options for tables with binlog type 0, with their defaults."""

    ndb_log_updated_only: bool = True
    ndb_log_update_as_write: bool = True
    ndb_log_update_minimal: bool = False


_SWITCH = {"ON": True, "1": True, "TRUE": True, "OFF": False, "0": False, "FALSE": False}


def server_options(settings: Mapping[str, object]) -> ServerOptions:
    """
    Return the three options among a server's settings; other settings are ignored.

    Args:
        settings: Values by name as in an option file or SHOW VARIABLES, with dashes or underscores, and ON or 1.

    Raises:
        SettingError: One of the three is neither on nor off.
    """
    found = {}
    for name, value in settings.items():
        field = name.lstrip("-").replace("-", "_").lower()
        if field not in attrs.fields_dict(ServerOptions):
            continue
        found[field] = switch(name, value)
    return ServerOptions(**found)


def switch(name: str, value: object) -> bool:
    """
    Return the value of a server option that is on or off.

    Raises:
        SettingError: It is neither.
    """
    found = _SWITCH.get(str(value).strip().upper())
    if found is None:
        message = f"{name} is {value!r}; it can be ON or OFF, 1 or 0"
        raise SettingError(message)
    return found


def effective_format(
    binlog_type: int | None, options: ServerOptions | None = None, *, table: str | None = None
) -> UpdateFormat:
    """
    Return how the changes of a table are logged.

    Args:
        binlog_type: A number of `BINLOG_TYPES`; None is 0.
        options: The server options, for type 0; None for their defaults.
        table: ``database.table``. `mysql.ndb_apply_status` is always logged with all columns and as writes.

    Raises:
        SettingError: There is no such type.
    """
    if table == APPLY_STATUS:
        return UpdateFormat(as_write=True)
    fixed = _BY_NUMBER[parse_binlog_type(binlog_type)].format
    if fixed is not None:
        return fixed
    options = options or ServerOptions()
    return UpdateFormat(
        updated_only=options.ndb_log_updated_only,
        as_write=options.ndb_log_update_as_write,
        # A write has no before image.
        minimal=options.ndb_log_update_minimal and not options.ndb_log_update_as_write,
    )


def is_ndb(table: Table) -> bool:
    """Return whether a table declares NDB as its engine."""
    return table.engine in ("NDB", "NDBCLUSTER")


def is_of_other_engine(table: Table) -> bool:
    """Return whether a table declares another engine than NDB."""
    return table.engine is not None and not is_ndb(table)


def ndb_columns(
    update_format: UpdateFormat, table: Table, operation: Operation, written: Collection[int] = ()
) -> EventColumns | None:
    """
    Return the columns of the event of a change; None if it is not logged.

    Args:
        update_format: How the table is logged.
        table: The table.
        operation: The operation of the statement; WRITE_ROW is an insert.
        written: Ordinals of the columns that an update sets, even to the same value. An update that changes the key
            is a `key_change`; one that changes it to an equal key (``'abc'`` to ``'ABC'``) writes all columns.
    """
    return ndb_event(update_format, table, operation, stored_marks(table, written))


def ndb_event(
    update_format: UpdateFormat, table: Table, operation: Operation, marked: Collection[int]
) -> EventColumns | None:
    """
    Return the columns of the event of a change; None if it is not logged.

    Args:
        update_format: How the table is logged.
        table: The table.
        operation: The operation of the statement.
        marked: Ordinals of the columns that NDB considers written by an update (see `stored_marks`).
    """
    if not update_format.logged:
        return None
    stored, key = stored_columns(table), frozenset(table.key_ordinals)
    if operation is Operation.WRITE_ROW:
        return EventColumns(operation, None, ordered(stored))
    if operation is Operation.DELETE_ROW:
        return EventColumns(operation, ordered(key if key and update_format.updated_only else stored), None)
    marked = frozenset(marked)
    full = frozenset(ordinal for ordinal in stored if ordinal in marked or not table.columns[ordinal].is_blob)
    if not key:
        # The hidden key is in no image, so the replica finds the row by all its other columns.
        return EventColumns(operation, ordered(full), ordered(full))
    columns = marked | key if update_format.updated_only else full
    if update_format.as_write:
        return EventColumns(Operation.WRITE_ROW, None, ordered(columns))
    if update_format.minimal:
        return EventColumns(operation, ordered(key), ordered(columns - (key - changing_key_columns(table))))
    return EventColumns(operation, ordered(columns), ordered(columns))


def key_change(update_format: UpdateFormat, table: Table) -> tuple[EventColumns, ...]:
    """Return the events of an update that changes the key: a delete and an insert, or none if it is not logged."""
    events = (ndb_columns(update_format, table, operation) for operation in (Operation.DELETE_ROW, Operation.WRITE_ROW))
    return tuple(event for event in events if event is not None)


def stored_marks(table: Table, written: Collection[int]) -> frozenset[int]:
    """
    Return the ordinals of the stored columns that NDB considers written by an update that sets the columns `written`.

    NDB numbers columns without the virtual ones. If no written column comes after the first virtual one, the server
    passes its own bitmap to NDB, where the bit of that virtual column belongs to the next stored column (recorded in
    `gencols`, section 12).
    """
    updated, stored = updated_columns(table, written), stored_columns(table)
    virtual = [ordinal for ordinal in range(len(table.columns)) if ordinal not in stored]
    if virtual and updated and max(updated) == virtual[0]:
        following = min((ordinal for ordinal in stored if ordinal > virtual[0]), default=virtual[0])
        # NDB logs a blob only with a new value, and the bit alone gives it none.
        updated |= frozenset() if table.columns[following].is_blob else {following}
    return updated & stored


def changing_key_columns(table: Table) -> frozenset[int]:
    """Return the ordinals of the key columns that an update can change to an equal value with other bytes."""
    return frozenset(ordinal for ordinal in table.key_ordinals if _compares_by_collation(table.columns[ordinal]))


def _compares_by_collation(column: Column) -> bool:
    """Return whether keys with different bytes can be equal, so that an update can change such a column."""
    return column.charset is not None and not column.members and not (column.collation or "").endswith("_bin")


def may_log(update_format: UpdateFormat, table: Table, event: EventColumns) -> bool:
    """
    Whether a table that is logged in a format may have logged an event.

    A write may be an insert, or an update that is logged as a write. The columns of an after image are those that the
    statement wrote, with or without the key.

    Args:
        update_format: How the table is logged.
        table: The table.
        event: The operation, and the columns of both images.
    """
    if event.operation is Operation.DELETE_ROW:
        return ndb_event(update_format, table, Operation.DELETE_ROW, ()) == event
    if ndb_event(update_format, table, Operation.WRITE_ROW, ()) == event:
        return True
    after = frozenset(event.after or ())
    marks = (after, after - frozenset(table.key_ordinals))
    return any(ndb_event(update_format, table, Operation.UPDATE_ROW, marked) == event for marked in marks)


def fitting_types(versions: Iterable[Table], events: Iterable[EventColumns]) -> tuple[int, ...]:
    """Return the named binlog types other than 0 under which the versions of a table may have logged some events."""
    versions, events = list(versions), list(events)
    return tuple(
        row.number
        for row in BINLOG_TYPES
        if row.format is not None
        and row.names
        and all(any(may_log(row.format, table, event) for table in versions) for event in events)
    )
