"""
How NDB logs the changes of a table: ``binlog_type`` of `mysql.ndb_replication`, else three server options.

`BINLOG_TYPES` is the one table of what each type means; `ndb_columns` says which columns an event then carries.

Choices, where nothing is recorded:
    - Types 5 and 10, which the server takes without knowing them, set no flag. No flag is updated-only and
      update-as-write, whatever the server options say.
    - A key column under a ``_bin`` collation, an ENUM or a SET counts as compared byte by byte.
    - A blob that an update does not write is in no image of a table without a primary key either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from ndb_formats.constants import APPLY_STATUS
from ndb_formats.errors import SettingError
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.event_columns import EventColumns, ordered, stored_columns, updated_columns
from ndb_formats.schema.tables import Column, Table

__all__ = [
    "BINLOG_TYPES",
    "BinlogType",
    "ServerOptions",
    "UpdateFormat",
    "effective_format",
    "is_ndb",
    "key_change",
    "ndb_columns",
    "parse_binlog_type",
    "server_options",
    "switch",
]


@attrs.frozen
class UpdateFormat:
    """
    How the changes of one NDB table are logged.

    Attributes:
        logged: Whether they are logged at all.
        updated_only: An update's images hold the written columns and the key, not all columns.
        as_write: An update is logged as a write, which has no before image.
        minimal: An update's before image holds the key alone, and its after image leaves the key out.
    """

    logged: bool = True
    updated_only: bool = False
    as_write: bool = False
    minimal: bool = False


@attrs.frozen
class BinlogType:
    """
    One value of ``binlog_type``.

    Attributes:
        number: The number in `mysql.ndb_replication`.
        names: Its names in the manual, the server's source and its change history, without the ``NBT_`` before each.
        format: What it means; None is what the server options say.
    """

    number: int
    names: tuple[str, ...]
    format: UpdateFormat | None

    @property
    def name(self) -> str:
        """The name to print; empty if it has none."""
        return self.names[0] if self.names else ""


_UNKNOWN = UpdateFormat(updated_only=True, as_write=True)  # no flag set

BINLOG_TYPES = (
    BinlogType(0, ("DEFAULT",), None),
    BinlogType(1, ("NO_LOGGING",), UpdateFormat(logged=False)),
    BinlogType(2, ("UPDATED_ONLY",), UpdateFormat(updated_only=True, as_write=True)),
    BinlogType(3, ("FULL",), UpdateFormat(as_write=True)),
    BinlogType(4, ("USE_UPDATE",), UpdateFormat(updated_only=True)),
    BinlogType(5, (), _UNKNOWN),
    BinlogType(6, ("UPDATED_ONLY_USE_UPDATE",), UpdateFormat(updated_only=True)),
    BinlogType(7, ("FULL_USE_UPDATE",), UpdateFormat()),
    BinlogType(
        8, ("UPDATED_ONLY_USE_UPDATE_MINIMAL", "UPDATED_ONLY_MINIMAL"), UpdateFormat(updated_only=True, minimal=True)
    ),
    BinlogType(9, ("FULL_USE_UPDATE_MINIMAL", "UPDATED_FULL_MINIMAL"), UpdateFormat(minimal=True)),
    BinlogType(10, (), _UNKNOWN),
)
_BY_NUMBER = {row.number: row for row in BINLOG_TYPES}
_BY_NAME = {name: row for row in BINLOG_TYPES for name in row.names}


def parse_binlog_type(value: str | int | None) -> int:
    """
    Return the number of a binlog type.

    Args:
        value: A number, a name in any of its spellings and in any case, or NULL, which is type 0.

    Raises:
        SettingError: There is no such type; the message lists those there are.
    """
    text = "0" if value is None else str(value).strip().upper().replace("-", "_")
    if text == "NULL":
        return 0
    row = _BY_NUMBER.get(int(text)) if text.isdecimal() else _BY_NAME.get(text.removeprefix("NBT_"))
    if row is None:
        known = ", ".join(f"{row.number} {' or '.join(row.names)}" for row in BINLOG_TYPES if row.names)
        message = f"binlog_type {value!r} is not known; there are {known}"
        raise SettingError(message)
    return row.number


@attrs.frozen
class ServerOptions:
    """The server options that decide where a table's binlog type is 0, with the server's defaults."""

    ndb_log_updated_only: bool = True
    ndb_log_update_as_write: bool = True
    ndb_log_update_minimal: bool = False


_SWITCH = {"ON": True, "1": True, "TRUE": True, "OFF": False, "0": False, "FALSE": False}


def server_options(settings: Mapping[str, object]) -> ServerOptions:
    """
    Return the three options among a server's settings; other settings are passed over.

    Args:
        settings: Values by name, as in an option file or SHOW VARIABLES: dashes or underscores, ON or 1.

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
    Return the value of a server option that can be on or off.

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
        options: What the server options say; None is their defaults. They matter for type 0 alone.
        table: ``database.table``. Only `mysql.ndb_apply_status` is special: always all columns, always writes.

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
        # A write has no before image that could be made smaller.
        minimal=options.ndb_log_update_minimal and not options.ndb_log_update_as_write,
    )


def is_ndb(table: Table) -> bool:
    """Whether a table is NDB's; one that declares no engine is not."""
    return table.engine in ("NDB", "NDBCLUSTER")


def ndb_columns(
    update_format: UpdateFormat, table: Table, operation: Operation, written: Collection[int] = ()
) -> EventColumns | None:
    """
    Return which columns the event of a change carries; None if nothing is logged.

    Args:
        update_format: How the table is logged.
        table: The table.
        operation: What the statement did to the row: WRITE_ROW inserts it.
        written: Positions of the columns that an update sets, also to the value they had. An update that
            changes the key is a `key_change`; one that changes the key to an equal one (``'abc'`` to
            ``'ABC'``) writes all columns.
    """
    if not update_format.logged:
        return None
    stored, key = stored_columns(table), frozenset(table.key_ordinals)
    if operation is Operation.WRITE_ROW:
        return EventColumns(operation, None, ordered(stored))
    if operation is Operation.DELETE_ROW:
        return EventColumns(operation, ordered(key if key and update_format.updated_only else stored), None)
    marked = _marked(table, written)
    full = frozenset(place for place in stored if place in marked or not table.columns[place].is_blob)
    if not key:
        # The hidden key is in no image, so the replica has to find the row by all that is in it.
        return EventColumns(operation, ordered(full), ordered(full))
    columns = marked | key if update_format.updated_only else full
    if update_format.as_write:
        return EventColumns(Operation.WRITE_ROW, None, ordered(columns))
    if update_format.minimal:
        fixed = {place for place in key if not _compares_by_collation(table.columns[place])}
        return EventColumns(operation, ordered(key), ordered(columns - fixed))
    return EventColumns(operation, ordered(columns), ordered(columns))


def key_change(update_format: UpdateFormat, table: Table) -> tuple[EventColumns, ...]:
    """Return the events of an update that gives a row another key: a delete and an insert, if anything is logged."""
    events = (ndb_columns(update_format, table, operation) for operation in (Operation.DELETE_ROW, Operation.WRITE_ROW))
    return tuple(event for event in events if event is not None)


def _marked(table: Table, written: Collection[int]) -> frozenset[int]:
    """
    Return the stored columns that NDB takes as written.

    Columns of NDB are numbered without the virtual ones. As long as every written column stands at or before
    the first virtual one, the numbers are the same and the server hands its own marks to NDB; the mark of that
    virtual column then falls on the stored column that follows it (recorded in `gencols`, section 12).
    """
    updated, stored = updated_columns(table, written), stored_columns(table)
    virtual = [place for place in range(len(table.columns)) if place not in stored]
    if virtual and updated and max(updated) == virtual[0]:
        following = min((place for place in stored if place > virtual[0]), default=virtual[0])
        # A mark alone gives a blob no new value, and NDB logs a blob only with one.
        updated |= frozenset() if table.columns[following].is_blob else {following}
    return updated & stored


def _compares_by_collation(column: Column) -> bool:
    """Whether two keys can be equal and differ in bytes, so that an update can change such a column."""
    return column.charset is not None and not column.members and not (column.collation or "").endswith("_bin")
